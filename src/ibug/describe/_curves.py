"""Curves for charts: scores over the number of neighbours, and where a density is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._typing import Floats, Integers
from ibug.exceptions import InvalidInputError

_PLACES = np.linspace(0.01, 0.99, 25)  # probabilities of the quantiles at which the peak is looked for
_LOW = 0.01  # of the peak: a density that has come down to it may end
_STEP, _STEPS = 0.1, 10


def density_ends(distribution: Any, tail: float) -> tuple[Floats, Floats]:
    """Return where the drawing of each density starts and stops, (n_rows,) each; infinite ends stay infinite.

    These are quantiles, moved outwards where the density is not yet low there: a stack has its last quantiles at single
    values, and half of a kernel beyond.
    """
    start, stop = np.array(distribution.ppf(tail)), np.array(distribution.ppf(1 - tail))
    step = _STEP * (stop - start)
    with np.errstate(all="ignore"):
        peak = np.nan_to_num(distribution.pdf(distribution.ppf(_PLACES[None, :])), posinf=0.0).max(axis=1)
        for _ in range(_STEPS):
            high = [np.nan_to_num(distribution.pdf(end), posinf=0.0) > _LOW * peak for end in (start, stop)]
            if not (high[0].any() or high[1].any()):
                break
            start, stop = np.where(high[0], start - step, start), np.where(high[1], stop + step, stop)
    return start, stop


# With few neighbours of equal targets the NLL can be astronomical, and nothing else could be seen. Where a score is
# further above the best one than _FAR times the median distance, only scores up to _NEAR times are drawn in place.
_FAR, _NEAR = 30.0, 4.0
_MOST_NAMED = 6  # more colours and dashes cannot be distinguished


def _curve_name(family: str, spread: str) -> str:
    return family if family == "stack" else f"{family}, {spread}"


def chosen_curve(tuning: Mapping[str, Any], family: str, spread: str) -> str:
    """Return the name of the curve of the chosen family and spread."""
    several = len(set(tuning["spread"]) - {""}) > 1
    return _curve_name(family, spread) if several else family


def tuning_curves(tuning: Mapping[str, ArrayLike]) -> dict[str, tuple[Integers, Floats]]:
    """Return the candidates k, ascending, and their scores, by family; by family and spread where several were tried.

    Curves without any finite score are left out. In the others, a score that is not finite is NaN.
    """
    names, k, score = _columns(tuning)
    curves = {}
    for name in dict.fromkeys(names):
        rows = np.flatnonzero(names == name)
        rows = rows[np.argsort(k[rows], kind="stable")]
        if np.any(np.isfinite(score[rows])):
            curves[str(name)] = k[rows], score[rows]
    return curves


def _columns(tuning: Mapping[str, ArrayLike]) -> tuple[NDArray[Any], Integers, Floats]:
    """Return curve, k and score of each candidate, (n,) each."""
    from ibug._validation import check_finite  # takes long to import

    if "k" not in tuning or "score" not in tuning:
        raise InvalidInputError(f'The columns "k" and "score" are expected; got {sorted(tuning)}.')
    k = check_finite(tuning["k"], "k").astype(np.int64)
    score = np.asarray(tuning["score"], np.float64)
    names = np.asarray(tuning.get("distribution", np.full(len(k), "all")))
    spreads = np.asarray(tuning.get("spread", np.full(len(k), "")))
    if spreads.shape == names.shape and len(set(spreads[k > 0])) > 1:
        names = np.array([_curve_name(family, spread) for family, spread in zip(names, spreads, strict=True)])
    if score.shape != k.shape or names.shape != k.shape:
        raise InvalidInputError(
            f"score and distribution must have shape {k.shape}, as k has; got {score.shape}, {names.shape}."
        )
    tried = k > 0  # a family that was refused has k = 0
    score = np.where(np.isfinite(score), score, np.nan)[tried]
    if np.all(np.isnan(score)):
        raise InvalidInputError("There is no finite score to draw.")
    return names[tried], k[tried], score


def named_curves(curves: Mapping[str, tuple[Integers, Floats]], chosen: str) -> list[str]:
    """Return the curves that get a name: all, or the best ones and the chosen one where there are many."""
    if len(curves) <= _MOST_NAMED:
        return list(curves)
    best = sorted(curves, key=lambda name: (name != chosen, float(np.nanmin(curves[name][1]))))
    return sorted(best[:_MOST_NAMED], key=lambda name: float(np.nanmin(curves[name][1])))


def highest_drawn(score: Floats) -> float:
    """Return the highest score that is drawn in its place; infinity where none is too far away. Shapes: score (n,)."""
    excess = score - np.nanmin(score)
    usual = float(np.nanmedian(excess))
    is_outlier = usual > 0 and np.nanmax(excess) > _FAR * usual
    return float(np.nanmin(score)) + _NEAR * usual if is_outlier else np.inf
