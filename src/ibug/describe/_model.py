"""A fitted estimator as plain values, and in words."""

from __future__ import annotations

from typing import Any

from ibug.describe._numbers import number


def model_facts(estimator: Any) -> dict[str, Any]:
    """Return what a fitted estimator is, as plain values by name.

    Parameters
    ----------
    estimator : IBUGRegressor
        Fitted.
    """
    model = estimator.estimator_
    return {
        "model": f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}",
        "trees": estimator.index_.n_trees,
        "training_rows": estimator.index_.n_rows,
        "features": int(estimator.n_features_in_),
        "neighbors": int(estimator.k_),
        "spread": estimator.spread_,
        "distribution": estimator.distribution_,
        "location": estimator.location,
        "support": None if estimator.support is None else [float(bound) for bound in estimator.support],
        "scoring": estimator.scoring if isinstance(estimator.scoring, str) else "custom",
        "gamma": float(estimator.gamma_),
        "delta": float(estimator.delta_),
        "min_variance": float(estimator.min_variance_),
        "conformal": None if estimator.conformal_ is None else type(estimator.conformal_).__name__,
        "affinity_threshold": float(estimator.affinity_threshold_),
    }


def model_lines(facts: dict[str, Any]) -> dict[str, str]:
    """Return a few lines about a model, by label.

    Parameters
    ----------
    facts : dict
        What `model_facts` returns.
    """
    lines = {
        "model": f"{facts['model']}, {facts['trees']:,} trees",
        "training": f"{facts['training_rows']:,} rows, {facts['features']} features",
        "distribution": str(facts["distribution"]),
        "neighbours": f"{facts['neighbors']} (spread: {facts['spread']})",
        "calibration": _calibration(facts),
    }
    if facts["support"] is not None:
        lines["distribution"] += f" within {facts['support'][0]:g} to {facts['support'][1]:g}"
    return lines


def _calibration(facts: dict[str, Any]) -> str:
    """Say how the variance is calibrated."""
    if facts["spread"] == "combination":
        text = "by the combination of spreads itself"
    elif (facts["gamma"], facts["delta"]) == (1.0, 0.0):
        text = "none"
    else:
        text = f"{number(facts['gamma'])} × variance + {number(facts['delta'])}"
    return text if facts["conformal"] is None else f"{text}; then {facts['conformal']}"
