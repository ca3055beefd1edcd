"""A conformal calibrator as plain values, and from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ibug.calibration._conformal import CALIBRATORS, ConformalCalibrator
from ibug.calibration._likelihood_ratio import LikelihoodRatio
from ibug.calibration._score_map import ScoreMap
from ibug.exceptions import InvalidInputError, NotStorableError


def calibrator_state(calibrator: ConformalCalibrator | None) -> dict[str, Any] | None:
    """Return what `calibrator_from_state` needs, of a fitted or an unfitted one: strings, numbers and arrays.

    Parameters
    ----------
    calibrator : ConformalCalibrator
        The calibrator.
    """
    if calibrator is None:
        return None
    kinds = [name for name, kind in CALIBRATORS.items() if type(calibrator) is kind]
    if not kinds:
        raise NotStorableError(
            f"The conformal calibrator is of the class {type(calibrator).__name__}, which is not ibug's own and cannot "
            "be saved without pickle."
        )
    if callable(calibrator.groups) or callable(calibrator.ratio):
        raise NotStorableError(
            "The conformal calibrator takes groups or likelihood ratios from a function, which cannot be saved without "
            "pickle. Groups in a column can, groups='region', say, and what u.likelihood_ratio(X_val, X_new) returns."
        )
    state: dict[str, Any] = {"kind": kinds[0], "n_bins": calibrator.n_bins, "by": calibrator.groups}
    if isinstance(calibrator.ratio, LikelihoodRatio):
        state["ratio"] = calibrator.ratio.state()
    if not hasattr(calibrator, "maps_"):
        return state
    return {
        **state,
        "groups": calibrator.groups_,
        "overlapping": calibrator.overlapping_,
        "edges": calibrator.edges_,
        "maps": [map_state(one) for one in calibrator.maps_],
    }


def calibrator_from_state(state: Mapping[str, Any] | None) -> ConformalCalibrator | None:
    """Return the calibrator whose state this is.

    Parameters
    ----------
    state : dict
        What `calibrator_state` has returned.
    """
    if state is None:
        return None
    if state.get("kind") not in CALIBRATORS:
        raise InvalidInputError(f"A calibrator of kind {state.get('kind')!r:.100} is not known.")
    ratio = None if state.get("ratio") is None else LikelihoodRatio.from_state(state["ratio"])
    calibrator = CALIBRATORS[state["kind"]](n_bins=state["n_bins"], groups=state.get("by"), ratio=ratio)
    if "maps" in state:
        calibrator.groups_, calibrator.edges_ = np.asarray(state["groups"]), state["edges"]
        calibrator.overlapping_ = bool(state.get("overlapping", False))
        calibrator.maps_ = [map_from_state(one) for one in state["maps"]]
        if len(calibrator.maps_) != len(calibrator.groups_) + 1:
            raise InvalidInputError("A calibrator has one map for each group, and one for all.")
        if calibrator.edges_ is not None and len(calibrator.edges_) + 1 != len(calibrator.groups_):
            raise InvalidInputError("A calibrator has one group more than there are edges between them.")
    return calibrator


def map_state(one: ScoreMap) -> dict[str, Any]:
    """Return a map of scores as plain values and arrays."""
    return {name: getattr(one, name) for name in ("v", "w", "slope", "scores", "symmetric", "weights")}


def map_from_state(state: Mapping[str, Any]) -> ScoreMap:
    """Return the map that has this state."""
    v, w, scores = (np.asarray(state[name], np.float64) for name in ("v", "w", "scores"))
    if v.ndim != 1 or v.shape != w.shape or not v.size or scores.ndim != 1 or not scores.size:
        raise InvalidInputError("A map of a calibrator has as many values as knots, one at least.")
    weights = state.get("weights")  # which files of before have not
    if weights is not None:
        weights = np.asarray(weights, np.float64)
        if weights.shape != scores.shape or not np.all(np.isfinite(weights) & (weights > 0)):
            raise InvalidInputError("A map of a calibrator has as many weights as scores, all above zero.")
    return ScoreMap(v, w, float(state["slope"]), scores, bool(state["symmetric"]), weights)
