"""The weights of experts, from what validation rows say of them."""

from __future__ import annotations

import numpy as np

from ibug._typing import Floats
from ibug._weights import mean
from ibug.exceptions import InvalidInputError
from ibug.rule.stack._pooled import Pooled
from ibug.rule.stack._simplex import likeliest, quadratic_minimum
from ibug.rule.stack._stacked import Stacked
from ibug.rule.stack._statistics import BANDWIDTHS, ExpertStatistics
from ibug.rule.stack._views import Experts

#: The pull towards the normal expert: λ/n · |w − w_normal|², in units of its score.
SHRINKAGE = 2.0
_ROWS_PER_PULL = 2.0  # what the same λ is worth for the log score, in rows
#: The least number of validation rows that weights are found from.
FEWEST_ROWS = 10
#: The width of kernels on atoms where nothing tells a better one.
USUAL_BANDWIDTH = 0.25


def fit(
    experts: Experts,
    pooled: Pooled,
    statistics: ExpertStatistics | None,
    scoring: str = "crps",
    shrinkage: float = SHRINKAGE,
) -> Stacked:
    r"""Find the weights of experts that have the best score on validation rows.

    For the CRPS, with a and B the mean distances of the experts to the targets and to each other, they minimise
    :math:`w \cdot a - \frac12 w^T B w + \frac{\lambda}{n} |w - w_0|^2`, a convex quadratic programme. For the log
    score they have the highest likelihood, with a prior worth 2λ rows for the normal expert, and the bandwidth is the
    best of eight. On the validation rows the stack is never worse than the normal expert alone. That one and the pooled
    errors keep a weight of 1/(n + 1) at least, so that every value has a density that is not absurdly small.
    """
    if scoring not in _FITS:
        raise InvalidInputError(f"A stack is fitted for one of the scores {tuple(_FITS)}; got {scoring!r}.")
    n = 0 if statistics is None else len(statistics)
    if statistics is None or n < FEWEST_ROWS:
        return normal_only(experts, pooled, scoring, too_few(n))
    weights, bandwidth, score, scores = _FITS[scoring](statistics, 1 + experts.errors, shrinkage)
    if not score <= scores[0]:
        stacked = normal_only(experts, pooled, scoring, "No mixture scored better on the validation rows.")
        return Stacked(experts, stacked.weights, scores, float(scores[0]), scoring, pooled, bandwidth, stacked.reason)
    return Stacked(experts, weights, scores, float(score), scoring, pooled, bandwidth)


def too_few(n: int) -> str:
    """Say that n validation rows are not enough."""
    rows = {0: "no validation rows", 1: "1 validation row"}.get(n, f"{n} validation rows")
    return f"With {rows}, weights of experts cannot be found: at least {FEWEST_ROWS} are needed."


def normal_only(experts: Experts, pooled: Pooled, scoring: str, reason: str) -> Stacked:
    """Return the stack in which the normal expert has all the weight, for a reason."""
    weights = np.eye(len(experts))[0]
    unknown = np.full(len(experts), np.nan)
    return Stacked(experts, weights, unknown, np.nan, scoring, pooled, USUAL_BANDWIDTH, reason)


Found = tuple[Floats, float, float, Floats]  # weights, bandwidth, score of the stack, score of each expert


def _for_crps(statistics: ExpertStatistics, kept: int, shrinkage: float) -> Found:
    weights, score, scores = from_distances(*statistics.means(), statistics.n_rows, kept, shrinkage)
    return weights, best_bandwidth(statistics, weights), score, scores


def from_distances(
    to_target: Floats, to_each_other: Floats, n: float, kept: int = 1, shrinkage: float = SHRINKAGE
) -> tuple[Floats, float, Floats]:
    """Return the weights of experts from their mean distances, the score of their mixture, and that of each expert.

    Shapes: to_target (J,); to_each_other (J, J).
    """
    scores = to_target - 0.5 * np.diag(to_each_other)
    unit = max(float(scores[0]), float(np.finfo(float).tiny))
    pull = 2 * shrinkage / n
    gradient = to_target / unit
    gradient[0] -= pull
    best = quadratic_minimum(gradient, pull * np.eye(len(scores)) - to_each_other / unit)
    weights = _with_least(best, n, kept)
    return weights, float(weights @ to_target - 0.5 * weights @ to_each_other @ weights), scores


def _for_nll(statistics: ExpertStatistics, kept: int, shrinkage: float) -> Found:
    n, density, rows = statistics.n_rows, statistics.log_density, statistics.weights
    tried = []
    for number, bandwidth in enumerate(BANDWIDTHS):
        best = likeliest(density[:, number], max(_ROWS_PER_PULL * shrinkage, 1e-9), rows)
        weights = _with_least(best, n, kept)
        tried.append((_log_score(density[:, number], weights, rows), number, float(bandwidth), weights))
    score, number, bandwidth, weights = min(tried, key=lambda each: each[:2])
    return weights, bandwidth, score, np.asarray(-mean(density[:, number], rows))


def _with_least(weights: Floats, n: float, kept: int) -> Floats:
    """Return the weights with at least 1/(n + 1) for the first `kept` experts; the others share the rest as before."""
    least = least_weight(n)
    raised = np.zeros(len(weights), np.bool_)
    for _ in range(kept):  # what is raised takes from the others, which may then be below the least
        raised[:kept] |= weights[:kept] < least
        rest = weights[~raised].sum()
        weights = np.where(raised, least, weights * (1 - least * raised.sum()) / max(rest, np.finfo(float).tiny))
    return np.asarray(weights / weights.sum())


def least_weight(n: float) -> float:
    """Return the weight that the first experts keep, with n rows as far as they count."""
    return 1 / (n + 1)


def best_bandwidth(statistics: ExpertStatistics, weights: Floats) -> float:
    """Return the width of the kernels on atoms with the best log score of the mixture, relative to a row's scale.

    Shapes: weights (J,).
    """
    scores = [
        _log_score(statistics.log_density[:, number], weights, statistics.weights) for number in range(len(BANDWIDTHS))
    ]
    return float(BANDWIDTHS[int(np.argmin(scores))])


def _log_score(log_density: Floats, weights: Floats, rows: Floats | None) -> float:
    """Return the mean negative log density of the mixture."""
    top = log_density.max(axis=1)
    return float(-mean(np.log(np.exp(log_density - top[:, None]) @ weights) + top, rows))


_FITS = {"crps": _for_crps, "nll": _for_nll}
