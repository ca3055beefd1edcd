"""The choice of k and family on validation rows (paper, Algorithm 3): one sorted neighbour list serves all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.metrics import Scoring
from ibug.rule._family import Family


@dataclass(frozen=True)
class Candidate:
    """The best number of neighbours and family, with the table of all that were tried."""

    k: int
    family: Family
    min_variance: float  # ρ, the floor of the predicted variance
    variance: Floats  # (n_validation,) at the chosen k, at least ρ
    table: dict[str, NDArray[Any]]  # one row per candidate: distribution, k, score, reason
    best: int  # the row of the chosen one


def best_candidate(
    mean: Floats,
    variances: Floats,
    values: Floats | None,
    y: Floats,
    ks: Sequence[int],
    families: Sequence[Family],
    score: Scoring,
    tiny: float,
) -> Candidate:
    """Choose k and the family by the validation score.

    Shapes: mean (n_validation,); variances (n_validation, len(ks)); values (n_validation, max(ks)); y (n_validation,).
    """
    scores = np.full((len(families), len(ks)), np.inf)
    reasons = np.full(scores.shape, "", dtype=object)
    for i, family in enumerate(families):
        for j, k in enumerate(ks):
            try:
                nearest = None if values is None else values[:, :k]
                scores[i, j] = score(y, family.distribution(mean, np.maximum(variances[:, j], tiny), nearest))
            except InvalidInputError as error:
                if len(families) == 1:
                    raise
                reasons[i, j] = str(error)
    if np.all(np.isnan(scores) | (reasons != "")):
        raise InvalidInputError("The scoring function returned NaN for every candidate.")
    chosen = int(np.nanargmin(scores))
    best, at = divmod(chosen, len(ks))
    floor = smallest_nonzero(variances[:, at], tiny)
    names = np.repeat([family.name for family in families], len(ks))
    table = {
        "distribution": names,
        "k": np.tile(np.asarray(ks), len(families)),
        "score": scores.ravel(),
        "reason": reasons.ravel().astype(str),
    }
    return Candidate(int(ks[at]), families[best], floor, np.maximum(variances[:, at], floor), table, chosen)


def smallest_nonzero(variance: Floats, tiny: float) -> float:
    """Return ρ, the smallest variance above zero, or a tiny one where all are zero."""
    above = variance[variance > 0]
    return float(above.min()) if above.size else tiny
