"""The choice among spreads, numbers of neighbours and families on validation rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ibug._typing import Floats
from ibug.calibration import variance_calibrator
from ibug.exceptions import InvalidInputError
from ibug.metrics import Scoring
from ibug.rule._family import Family
from ibug.rule._plan import COMBINATION_KS, Plan
from ibug.rule._spread import Combination, Feature, Spread
from ibug.rule._statistics import TargetStatistics

_USUAL = COMBINATION_KS.index(31)

#: How the variance of each quantity is calibrated unless it is said otherwise: that of targets as the paper does.
_CALIBRATION = {"targets": "grid", "residuals": "continuous"}

# The share by which the CRPS on the validation rows may be higher with a narrower neighbourhood than with the widest.
_NEGLIGIBLE = 5e-4

# The factors that are tried for the calibrated variance of a family, in logarithms: from 1/20 to 20.
_LARGEST_LOG_FACTOR, _LOG_FACTOR_TOLERANCE = 3.0, 0.01


@dataclass(frozen=True)
class Candidate:
    """The best number of neighbours and family, with the table of all that were tried."""

    k: int
    family: Family
    min_variance: float  # ρ, the floor of the predicted variance
    variance: Floats  # (n_validation,) at the chosen k, at least ρ
    tried: list[dict[str, Any]]  # of each candidate: distribution, k, score, reason
    best: int  # which of these is the chosen one


@dataclass(frozen=True)
class Choice:
    """One spread with its number of neighbours, family and calibration."""

    spread: Spread
    candidate: Candidate
    gamma: float
    delta: float
    score: float  # of the calibrated distributions on the validation rows

    @property
    def tried(self) -> list[dict[str, Any]]:
        """Its candidates, with the score after calibration of the one that was calibrated."""
        known = {self.candidate.best: self.score}
        return [
            {"spread": self.spread.name, **one, "calibrated": known.get(i, np.nan)}
            for i, one in enumerate(self.candidate.tried)
        ]


def select(
    plan: Plan, statistics: TargetStatistics, singles: Mapping[str, Choice]
) -> tuple[Choice, list[dict[str, Any]]]:
    """Return the chosen spread, tuned and calibrated, and all candidates; spreads of one quantity are known."""
    choices = [singles[quantity] for quantity in plan.quantities]
    combination = combined(plan, statistics) if plan.options.spread.combines else None
    tried = [one for choice in (*choices, combination) if choice is not None for one in choice.tried]
    # A combination is penalised for its parameters, the choice of the best k is not: between equals it is the better
    # bet for new rows, so that only the paper's rule itself, the first one, can turn it out.
    if combination is not None and combination.score <= choices[0].score:
        return combination, tried
    return min(choices, key=lambda choice: choice.score), tried


def single(quantity: str, plan: Plan, statistics: TargetStatistics) -> Choice:
    """Return the spread of one quantity: k and family as in the paper's Algorithm 3, then the calibration."""
    options, ks = plan.options, plan.candidates
    candidate = _best(plan, statistics, ks, statistics.columns(quantity, ks), statistics.values.get(quantity))
    gamma, delta = 1.0, 0.0
    if options.calibrate:
        calibrator = variance_calibrator(options.scoring, options.calibrate, _CALIBRATION[quantity])
        calibrator.fit(statistics.mean, candidate.variance, statistics.y, statistics.weights)
        gamma, delta = calibrator.gamma_, calibrator.delta_
    return _for_its_own_family(Spread.of(quantity, candidate.k), candidate, gamma, delta, plan, statistics)


def combined(plan: Plan, statistics: TargetStatistics) -> Choice | None:
    """Return the log-linear combination of spreads, or None where it would not be used or cannot be had."""
    # It is a calibration of its own; and "neighbors" fits distributions without regard to the variance.
    if not plan.options.calibrate or plan.options.location != "model":
        return None
    # The narrowest neighbourhood that is about as good as the widest: a search for fewer neighbours is faster.
    *narrower, widest = plan.wide_ks
    best = _combination(plan, statistics, (*plan.combination_ks[:-1], widest))
    if best is None:
        return None
    for k in narrower:
        choice = _combination(plan, statistics, (*plan.combination_ks[:-1], k))
        if choice is not None and choice.score <= (1 + _NEGLIGIBLE) * best.score:
            return choice
    return best


def _combination(plan: Plan, statistics: TargetStatistics, combination_ks: Sequence[int]) -> Choice | None:
    """Return the combination of spreads in neighbourhoods of these sizes."""
    features = combination_features("residuals" in plan.quantities, combination_ks, own=plan.own_residuals)
    variances = np.stack([statistics.columns(quantity, [k])[:, 0] for quantity, k in features], axis=1)
    error, loss = statistics.y - statistics.mean, plan.options.loss
    fitted = Combination.fit(variances, error, loss=loss, tiny=plan.tiny, weights=statistics.weights)
    spread, variance = Spread(features, fitted), fitted.combine(variances)
    if not np.all((variance > 0) & np.isfinite(variance)):
        return None
    shaped = any(family.needs_neighbors for family in plan.target.families)
    ks = plan.candidates if shaped else (spread.k,)  # the number of neighbours matters for the shape only
    values = statistics.values.get(spread.quantity)
    try:
        candidate = _best(plan, statistics, ks, np.repeat(variance[:, None], len(ks), axis=1), values)
    except InvalidInputError:
        return None
    return _for_its_own_family(spread, candidate, 1.0, 0.0, plan, statistics)


def combination_features(has_residuals: bool, scales: Sequence[int], *, own: bool = False) -> tuple[Feature, ...]:
    """Return quantity and k of a combination's spreads, the one to start from first; none twice."""
    # Residuals of clones come first. Those of the model itself come after targets: their level is too low, and more so
    # where the model fits the training rows closely.
    start = "residuals" if has_residuals and not own else "targets"
    usual = scales[_USUAL]
    features = [(start, usual), *((start, k) for k in scales)]
    if has_residuals:
        others = (usual, *scales) if own else (usual,)
        features += [("residuals" if own else "targets", k) for k in others]
    return tuple(dict.fromkeys(features))


def _best(
    plan: Plan, statistics: TargetStatistics, ks: Sequence[int], variances: Floats, values: Floats | None
) -> Candidate:
    score = statistics.scoring(plan.options.scoring)
    return best_candidate(statistics.mean, variances, values, statistics.y, ks, plan.target.families, score, plan.tiny)


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
    """Choose k and the family by the validation score: one sorted list of neighbours serves all (paper, Algorithm 3).

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
    tried = [
        {"distribution": family.name, "k": k, "score": scores[i, j], "reason": reasons[i, j]}
        for i, family in enumerate(families)
        for j, k in enumerate(ks)
    ]
    return Candidate(int(ks[at]), families[best], floor, np.maximum(variances[:, at], floor), tried, chosen)


def smallest_nonzero(variance: Floats, tiny: float) -> float:
    """Return ρ, the smallest variance above zero, or a tiny one where all are zero."""
    above = variance[variance > 0]
    return float(above.min()) if above.size else tiny


def _for_its_own_family(
    spread: Spread, candidate: Candidate, gamma: float, delta: float, plan: Plan, statistics: TargetStatistics
) -> Choice:
    """Return the choice with γ and δ of the normal distribution times the factor that is best for its family."""
    variance = gamma * candidate.variance + delta
    values = statistics.values.get(spread.quantity)
    nearest = None if values is None else values[:, : candidate.k]
    score = statistics.scoring(plan.options.scoring)

    def scored(factor: float) -> float:
        distribution = candidate.family.distribution(statistics.mean, factor * variance, nearest)
        found = float(score(statistics.y, distribution))
        return np.inf if np.isnan(found) else found

    factor, best = 1.0, scored(1.0)
    if plan.options.calibrate and candidate.family.needs_own_calibration:
        factor, best = best_factor(scored, best)
    return Choice(spread, candidate, factor * gamma, factor * delta, best)


def best_factor(scored: Callable[[float], float], at_one: float) -> tuple[float, float]:
    """Return the factor of the lowest score, and that score: never a worse one than that of 1."""
    if not np.isfinite(at_one):
        return 1.0, at_one
    found = minimize_scalar(
        lambda log_factor: scored(float(np.exp(log_factor))),
        bounds=(-_LARGEST_LOG_FACTOR, _LARGEST_LOG_FACTOR),
        method="bounded",
        options={"xatol": _LOG_FACTOR_TOLERANCE},
    )
    return (float(np.exp(found.x)), float(found.fun)) if found.fun < at_one else (1.0, at_one)
