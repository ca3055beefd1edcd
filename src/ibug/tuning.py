"""The choice of k and family on validation data (paper, Algorithm 3): one sorted neighbour list serves all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.exceptions import InvalidInputError
from ibug.metrics import Scoring
from ibug.posterior import Posterior

Floats = NDArray[np.float64]

#: The paper's candidates for k (section B.2).
K_CANDIDATES = (3, 5, 7, 9, 11, 15, 31, 61, 91, 121, 151, 201, 301, 401, 501, 601, 701)

#: What stands for a variance of zero while k is being tuned (paper, Algorithm 3), for targets of unit variance.
TINY_VARIANCE = 1e-15


@dataclass(frozen=True)
class Tuning:
    """The outcome of tuning k and the family."""

    k: int
    posterior: Posterior
    min_variance: float  # ρ, the floor of the predicted variance
    variance: Floats  # (n_validation,) at the chosen k, at least ρ
    table: dict[str, NDArray[Any]]  # one row per candidate: distribution, k, score, reason
    best: int  # the row of the chosen one


def candidates_up_to(n_rows: int) -> tuple[int, ...]:
    """Return the paper's candidates that a training set of n rows can supply; all of its rows if it has under three."""
    return tuple(k for k in K_CANDIDATES if k <= n_rows) or (n_rows,)


def tune(
    mean: Floats,
    variances: Floats,
    values: Floats | None,
    y: Floats,
    ks: Sequence[int],
    posteriors: Sequence[Posterior],
    score: Scoring,
    tiny: float = TINY_VARIANCE,
) -> Tuning:
    """Choose k and the family by the validation score.

    Parameters
    ----------
    mean : ndarray of shape (n_validation,)
        The model's predictions.
    variances : ndarray of shape (n_validation, len(ks))
        The variance of each row's nearest neighbours for each k, from one sorted list of neighbours.
    values : ndarray of shape (n_validation, max(ks)) or None
        What the neighbours say the target may be, nearest first, if a family needs it.
    y : ndarray of shape (n_validation,)
        The observed values.
    ks
        The numbers of neighbours to choose from.
    posteriors
        The families to choose from.
    score
        Lower is better; of equal scores the first family and the smallest k win.
    tiny
        What stands for a variance of zero meanwhile.
    """
    scores = np.full((len(posteriors), len(ks)), np.inf)
    reasons = np.full(scores.shape, "", dtype=object)
    for i, posterior in enumerate(posteriors):
        for j, k in enumerate(ks):
            try:
                law = posterior.law(mean, np.maximum(variances[:, j], tiny), None if values is None else values[:, :k])
                scores[i, j] = score(y, law)
            except InvalidInputError as error:
                if len(posteriors) == 1:
                    raise
                reasons[i, j] = str(error)
    if np.all(np.isnan(scores) | (reasons != "")):
        raise InvalidInputError("The scoring function returned NaN for every candidate.")
    chosen = int(np.nanargmin(scores))
    best, at = divmod(chosen, len(ks))
    floor = smallest_nonzero(variances[:, at], tiny)
    names = np.repeat([posterior.name for posterior in posteriors], len(ks))
    table = {
        "distribution": names,
        "k": np.tile(np.asarray(ks), len(posteriors)),
        "score": scores.ravel(),
        "reason": reasons.ravel().astype(str),
    }
    return Tuning(int(ks[at]), posteriors[best], floor, np.maximum(variances[:, at], floor), table, chosen)


def smallest_nonzero(variance: Floats, tiny: float = TINY_VARIANCE) -> float:
    """Return ρ, the smallest variance above zero, or a tiny one where all are zero."""
    above = variance[variance > 0]
    return float(above.min()) if above.size else tiny
