"""The choice of the spread on validation rows: targets, residuals, or a combination of spreads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ibug.calibration import VarianceCalibrator
from ibug.evidence import ValidationRows
from ibug.exceptions import InvalidInputError
from ibug.metrics import Scoring, resolve_scoring
from ibug.posterior import Posterior
from ibug.spread import QUANTITIES, CombinedSpread, Feature, SingleSpread, Spread, prefix_means
from ibug.tuning import Tuning, tune

Floats = NDArray[np.float64]

SPREADS = ("auto", *QUANTITIES)

#: The neighbourhoods that a combination looks at: the nearest, the usual, and the wide one.
SCALES = (9, 31, 301)
_USUAL = 1  # of SCALES

#: How the variance of each quantity is calibrated unless it is said otherwise: that of targets as the paper does.
_CALIBRATION = {"targets": "grid", "residuals": "continuous"}

# The factors that are tried for the calibrated variance of a family, in logarithms: from 1/20 to 20.
_LARGEST_LOG_FACTOR, _LOG_FACTOR_TOLERANCE = 3.0, 0.01


@dataclass(frozen=True)
class Statistics:
    """What the validation rows' neighbours say, for all candidates at once."""

    mean: Floats  # (n_rows,) predictions
    y: Floats  # (n_rows,) observed
    ks: tuple[int, ...]
    variances: dict[str, Floats]  # by quantity, (n_rows, len(ks))
    affinities: Floats  # (n_rows, len(ks)) mean affinity of the first k
    values: dict[str, Floats]  # by quantity, (n_rows, max(ks)); empty unless families need them

    def columns(self, quantity: str, ks: Sequence[int]) -> Floats:
        """Return the variances of a quantity for some k, (n_rows, len(ks))."""
        return self.variances[quantity][:, [self.ks.index(k) for k in ks]]

    @classmethod
    def join(cls, parts: Sequence[Statistics]) -> Statistics:
        """Put the rows of several parts together, in their order."""
        return cls(
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.y for part in parts]),
            parts[0].ks,
            _joined([part.variances for part in parts]),
            np.concatenate([part.affinities for part in parts]),
            _joined([part.values for part in parts]),
        )


@dataclass(frozen=True)
class Settings:
    """What candidates are made from, and what they are judged by."""

    ks: tuple[int, ...]  # the numbers of neighbours to choose from
    scales: tuple[int, ...]  # those that a combination looks at
    posteriors: Sequence[Posterior]
    scoring: str | Scoring
    calibrate: bool | str
    tiny: float  # what stands for a variance of zero


@dataclass(frozen=True)
class Choice:
    """One spread with everything that belongs to it, tuned and calibrated."""

    spread: Spread
    tuning: Tuning
    gamma: float
    delta: float
    score: float  # of the calibrated laws on the validation rows

    def table(self) -> dict[str, NDArray[Any]]:
        """Return one row per candidate, with the score after calibration of the one that was calibrated."""
        columns = self.tuning.table
        n = len(columns["k"])
        calibrated = np.full(n, np.nan)
        calibrated[self.tuning.best] = self.score
        return {"spread": np.full(n, self.spread.name), **columns, "calibrated": calibrated}


def clipped_scales(most: int) -> tuple[int, ...]:
    """Return the scales of a combination where there are at most so many neighbours."""
    return tuple(min(k, most) for k in SCALES)


def collect(rows: ValidationRows, quantities: Sequence[str], ks: Sequence[int], keep_values: bool) -> Statistics:
    """Read the neighbours of all validation rows once; values are kept only if a family is fitted to them."""
    parts: list[tuple[Floats, dict[str, Floats], dict[str, Floats]]] = []
    mean = rows.mean
    for batch in rows.batches(dict.fromkeys(dict.fromkeys(["targets", *quantities]), max(ks))):
        variances = {name: QUANTITIES[name].prefix_variances(batch.neighbors[name], ks) for name in quantities}
        kept = {}
        if keep_values:
            kept = {name: QUANTITIES[name].around(batch.neighbors[name], mean[batch.where]) for name in quantities}
        parts.append((prefix_means(batch.affinities, ks), variances, kept))
    affinities, all_variances, all_values = zip(*parts, strict=True)
    return Statistics(mean, rows.y, tuple(ks), _joined(all_variances), np.concatenate(affinities), _joined(all_values))


def _joined(parts: Sequence[dict[str, Floats]]) -> dict[str, Floats]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def select(spread: str, statistics: Statistics, settings: Settings) -> tuple[Choice, dict[str, NDArray[Any]]]:
    """Return the chosen spread, tuned and calibrated, and a table of all candidates.

    Parameters
    ----------
    spread : {"targets", "residuals", "auto"}
        ``"auto"`` takes the combination, unless the paper's rule scores better on the validation rows: then it takes
        the better of targets and residuals. So it is never worse there than the paper's rule.
    """
    if spread != "auto":
        choice = single(spread, statistics, settings)
        return choice, choice.table()
    singles = [single(quantity, statistics, settings) for quantity in statistics.variances]
    combination = combined(statistics, settings)
    paper = next(choice for choice in singles if choice.spread.name == "targets")
    candidates = [*singles, *([] if combination is None else [combination])]
    tables = [choice.table() for choice in candidates]
    table = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    # A combination is penalised for its parameters, the choice of the best k is not: between equals it is the better
    # bet for new rows, so that only the paper's rule itself can turn it out.
    if combination is not None and combination.score <= paper.score:
        return combination, table
    return min(singles, key=lambda choice: choice.score), table


def single(quantity: str, statistics: Statistics, settings: Settings) -> Choice:
    """Return the spread of one quantity: k and family as in the paper's Algorithm 3, then the calibration."""
    mean, y = statistics.mean, statistics.y
    values = statistics.values.get(quantity)
    tuning = tune(
        mean,
        statistics.columns(quantity, settings.ks),
        values,
        y,
        settings.ks,
        settings.posteriors,
        resolve_scoring(settings.scoring),
        settings.tiny,
    )
    gamma, delta = 1.0, 0.0
    if settings.calibrate:
        method = settings.calibrate if isinstance(settings.calibrate, str) else _CALIBRATION[quantity]
        calibrator = VarianceCalibrator(scoring=settings.scoring, method=method).fit(mean, tuning.variance, y)
        gamma, delta = calibrator.gamma_, calibrator.delta_
    return for_its_own_law(SingleSpread(quantity, tuning.k), tuning, gamma, delta, values, statistics, settings)


def for_its_own_law(
    spread: Spread,
    tuning: Tuning,
    gamma: float,
    delta: float,
    values: Floats | None,
    statistics: Statistics,
    settings: Settings,
) -> Choice:
    """Return the choice with γ and δ of the normal law times the factor that is best for the chosen family."""
    score, variance = resolve_scoring(settings.scoring), gamma * tuning.variance + delta
    nearest = None if values is None else values[:, : tuning.k]

    def scored(factor: float) -> float:
        return _comparable(score(statistics.y, tuning.posterior.law(statistics.mean, factor * variance, nearest)))

    factor, best = 1.0, scored(1.0)
    if settings.calibrate and tuning.posterior.needs_own_calibration:
        factor, best = best_factor(scored, best)
    return Choice(spread, tuning, factor * gamma, factor * delta, best)


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


def combined(statistics: Statistics, settings: Settings) -> Choice | None:
    """Return the log-linear combination of spreads, or None where it would not be used or cannot be had.

    It starts from the residuals of the usual neighbourhood if there are residuals, and from targets otherwise. It is a
    calibration of its own, so that it is no candidate without calibration, nor where laws are fitted to neighbours
    without regard to the variance.
    """
    if not settings.calibrate or any(posterior.location != "model" for posterior in settings.posteriors):
        return None
    features = combination_features("residuals" in statistics.variances, settings.scales)
    variances = np.stack([statistics.columns(quantity, [k])[:, 0] for quantity, k in features], axis=1)
    loss = settings.scoring if isinstance(settings.scoring, str) else "crps"
    error = statistics.y - statistics.mean
    spread = CombinedSpread.fit(features, variances, error, loss=loss, tiny=settings.tiny)
    variance = spread.combine(variances)
    if not np.all((variance > 0) & np.isfinite(variance)):
        return None
    shaped = any(posterior.needs_neighbors for posterior in settings.posteriors)
    ks = settings.ks if shaped else (spread.usual_k,)  # the number of neighbours matters for the shape only
    try:
        tuning = tune(
            statistics.mean,
            np.repeat(variance[:, None], len(ks), axis=1),
            statistics.values.get(spread.shape),
            statistics.y,
            ks,
            settings.posteriors,
            resolve_scoring(settings.scoring),
            settings.tiny,
        )
    except InvalidInputError:
        return None
    values = statistics.values.get(spread.shape)
    return for_its_own_law(spread, tuning, 1.0, 0.0, values, statistics, settings)


def combination_features(has_residuals: bool, scales: Sequence[int]) -> tuple[Feature, ...]:
    """Return quantity and k of a combination's spreads, the one to start from first; none twice."""
    start = "residuals" if has_residuals else "targets"
    usual = scales[_USUAL]
    features = [(start, usual), *((start, k) for k in scales)]
    if has_residuals:
        features.append(("targets", usual))
    return tuple(dict.fromkeys(features))


def _comparable(score: float) -> float:
    return float(score) if not np.isnan(score) else np.inf
