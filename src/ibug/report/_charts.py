"""The data of the charts: calibration curve, PIT, intervals, spread against error, tuning, and densities of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.describe import (
    chance_band,
    chosen_curve,
    density_ends,
    highest_drawn,
    named_curves,
    scoring_label,
    tuning_curves,
)
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError
from ibug.metrics import calibration_curve, pit
from ibug.report._page import pack
from ibug.report._summary import ScoredRows

_LEVELS = 51
_PIT_BINS = 20
_SPREAD_BINS = 10


def all_charts(
    estimator: Any, found: ScoredRows, plain: ScoredRows | None, rows: NDArray[np.int64], target: int | None = None
) -> dict[str, dict[str, Any]]:
    """Return the data of all charts, by name. Shapes: rows (n_shown,)."""
    return {
        "calibration": calibration(found, plain),
        "pit": pit_histogram(found, plain),
        # The order in which the rows of the explorer are drawn: by their point predictions.
        "intervals": {"order": pack(np.argsort(found.points[rows], kind="stable"), "int32")},
        "spread": spread_error(found),
        "tuning": tuning(estimator, target),
    }


def calibration(found: ScoredRows, plain: ScoredRows | None) -> dict[str, Any]:
    """Return observed over nominal coverage, of ibug and of the plain neighbours, and the range of chance."""
    expected, observed = calibration_curve(found.y, found.distribution, n_levels=_LEVELS)
    low, high = chance_band(len(found.y), expected)
    other = None if plain is None else calibration_curve(plain.y, plain.distribution, n_levels=_LEVELS)[1]
    low, high = np.nan_to_num(low), np.nan_to_num(high)
    return {"expected": expected, "ibug": observed, "plain": other, "low": low, "high": high}


def pit_histogram(found: ScoredRows, plain: ScoredRows | None) -> dict[str, Any]:
    """Return the histogram of F(y) as densities, of ibug and of the plain neighbours."""
    n = len(found.y)
    low, high = (float(share) * _PIT_BINS for share in chance_band(n, 1 / _PIT_BINS))

    def heights(each: ScoredRows) -> Floats:
        counts, _ = np.histogram(pit(each.y, each.distribution), bins=_PIT_BINS, range=(0.0, 1.0))
        return counts * _PIT_BINS / n

    return {"ibug": heights(found), "plain": None if plain is None else heights(plain), "low": low, "high": high}


def spread_error(found: ScoredRows) -> dict[str, Any]:
    """Return root mean squared σ and error of bins of rows, sorted by σ; rows without a finite σ are left out."""
    std, error = found.distribution.std(), np.abs(found.distribution.mean() - found.y)
    usable = np.flatnonzero(np.isfinite(std))
    order = usable[np.argsort(std[usable], kind="stable")]
    bins = [rows for rows in np.array_split(order, min(_SPREAD_BINS, max(len(order), 1))) if len(rows)]
    return {
        "std": [float(np.sqrt(np.mean(np.square(std[rows])))) for rows in bins],
        "rmse": [float(np.sqrt(np.mean(np.square(error[rows])))) for rows in bins],
    }


def tuning(estimator: Any, target: int | None = None) -> dict[str, Any]:
    """Return the score of each candidate k, or the reason why there is none; of one target where there are several."""
    if getattr(estimator, "tuning_", None) is None:
        return {"reason": f"{type(estimator).__name__} has no neighbours to choose."}
    rule = estimator.rule_.parts[target or 0]
    table = rule.tuning
    if not np.any(table["k"]):
        return {"reason": f"k = {rule.k} was given, not tuned."}
    try:
        every = tuning_curves(table)
    except InvalidInputError as error:
        return {"reason": str(error)}
    scores = np.concatenate([score for _, score in every.values()])
    edge = highest_drawn(scores)
    named = named_curves(every, chosen_curve(table, rule.distribution_name, rule.spread.name))
    curves: list[dict[str, Any]] = []
    for name in [*named, *(name for name in every if name not in named)]:
        k, score = every[name]
        drawn = score <= edge
        curves.append({"name": name, "k": k[drawn], "score": score[drawn], "named": name in named})
    return {
        "curves": [curve for curve in curves if len(curve["k"])],
        "chosen": int(rule.k),
        "spread": rule.spread.name,
        "scoring": scoring_label(estimator.scoring, None),
        "above": int(np.sum(scores > edge)),
    }


# A density is drawn between these quantiles, and beyond where it has not come down yet.
_TAIL = 0.003
_EVEN, _BY_QUANTILE = 49, 23
_STEPS = 2**16 - 1


def densities(distribution: Distribution, lower: Floats, upper: Floats) -> dict[str, Any]:
    """Return the density of each row on a grid of its own.

    The grid is even, with more points where the distribution has its mass, so that narrow peaks over long tails are
    seen. Points are stored as 65535ths of the grid's length, densities as 65535ths of their peak.

    Shapes: lower, upper (n_rows,).
    """
    start, stop = _ends(distribution, lower, upper)
    length = np.where(stop > start, stop - start, 1.0)
    quantiles = distribution.ppf(np.linspace(0.02, 0.98, _BY_QUANTILE)[None, :])
    even = start[:, None] + (stop - start)[:, None] * np.linspace(0, 1, _EVEN)[None, :]
    inside = np.where(np.isfinite(quantiles), quantiles, start[:, None])
    grid = np.sort(np.clip(np.hstack([even, inside]), start[:, None], stop[:, None]), axis=1)
    # The density is taken where it is drawn, at a whole number of steps.
    steps = np.round((grid - start[:, None]) / length[:, None] * _STEPS)
    grid = start[:, None] + steps / _STEPS * length[:, None]
    with np.errstate(all="ignore"):
        density = np.nan_to_num(distribution.pdf(grid), nan=0.0, posinf=np.inf)
    peak = np.max(np.where(np.isfinite(density), density, 0.0), axis=1)
    height = np.minimum(density / np.where(peak > 0, peak, 1.0)[:, None], 1.0)
    return {
        "start": pack(start, "float64"),
        "length": pack(length, "float64"),
        "peak": pack(peak, "float64"),
        "steps": pack(steps, "uint16"),
        "heights": pack(np.round(height * _STEPS), "uint16"),
    }


def _ends(distribution: Distribution, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return where each grid starts and stops: finite even where quantiles are not."""
    centre = np.nan_to_num(distribution.ppf(0.5), posinf=0.0, neginf=0.0)
    quartiles = np.nan_to_num(distribution.ppf(0.75) - distribution.ppf(0.25), nan=1.0, posinf=1.0)
    around = 4 * np.where(quartiles > 0, quartiles, 1.0)
    first, last = density_ends(distribution, _TAIL)
    start, stop = np.minimum(first, lower), np.maximum(last, upper)
    start = np.where(np.isfinite(start), start, centre - around)
    stop = np.where(np.isfinite(stop), stop, centre + around)
    return start, np.maximum(start, stop)
