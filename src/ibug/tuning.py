"""The choice of k on validation data (paper, Algorithm 3): one sorted neighbour list serves all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import Scoring

Floats = NDArray[np.float64]

#: The paper's candidates for k (section B.2).
K_CANDIDATES = (3, 5, 7, 9, 11, 15, 31, 61, 91, 121, 151, 201, 301, 401, 501, 601, 701)

#: What stands for a variance of zero while k is being tuned (paper, Algorithm 3), for targets of unit variance.
TINY_VARIANCE = 1e-15


@dataclass(frozen=True)
class Tuning:
    """The outcome of tuning k."""

    k: int
    min_variance: float  # ρ, the floor of the predicted variance
    variance: Floats  # (n_validation,) at the chosen k, at least ρ
    candidates: tuple[int, ...]
    scores: Floats  # (len(candidates),)


def candidates_up_to(n_rows: int) -> tuple[int, ...]:
    """Return the paper's candidates that a training set of n rows can supply; all of its rows if it has under three."""
    return tuple(k for k in K_CANDIDATES if k <= n_rows) or (n_rows,)


def tune_k(
    mean: Floats, variances: Floats, y: Floats, candidates: Sequence[int], score: Scoring, tiny: float = TINY_VARIANCE
) -> Tuning:
    """Choose k by the validation score.

    Parameters
    ----------
    mean : ndarray of shape (n_validation,)
        The model's predictions.
    variances : ndarray of shape (n_validation, n_candidates)
        The variance of the nearest training rows' targets for each candidate, from one sorted list of neighbours.
    y : ndarray of shape (n_validation,)
        The observed values.
    candidates
        The numbers of neighbours to choose from.
    score
        Lower is better; of equal scores the smaller k wins.
    tiny
        What stands for a variance of zero meanwhile.
    """
    scores = np.array([score(y, Normal(mean, np.sqrt(np.maximum(v, tiny)))) for v in variances.T])
    if np.all(np.isnan(scores)):
        raise InvalidInputError("The scoring function returned NaN for every candidate k.")
    best = int(np.nanargmin(scores))
    floor = smallest_nonzero(variances[:, best], tiny)
    return Tuning(
        int(candidates[best]), floor, np.maximum(variances[:, best], floor), tuple(map(int, candidates)), scores
    )


def smallest_nonzero(variance: Floats, tiny: float = TINY_VARIANCE) -> float:
    """Return ρ, the smallest variance above zero, or a tiny one where all are zero."""
    above = variance[variance > 0]
    return float(above.min()) if above.size else tiny
