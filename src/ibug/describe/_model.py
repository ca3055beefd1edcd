"""A fitted estimator as plain values, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ibug.describe._text import number, percent

_LEAST_WEIGHT = 0.005  # of an expert that is named
_EXPERTS = {
    "own, by copula": "each target's own",
    "normal": "normal",
    "errors": "errors of validation rows",
    "targets": "neighbours' targets",
    "residuals": "neighbours' residuals",
}


def model_facts(estimator: Any) -> dict[str, Any]:
    """Return what a fitted estimator is, as plain values by name."""
    model = estimator.estimator_
    return {
        "model": f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}",
        "trees": estimator.source_.index.n_trees,
        "tree_fraction": float(estimator.source_.tree_fraction),
        "training_rows": estimator.source_.index.n_rows,
        "features": int(estimator.n_features_in_),
        "neighbors": int(estimator.k_),
        "search": str(estimator.search_),
        "spread": estimator.spread_,
        "distribution": estimator.distribution_,
        "stack": _experts(estimator.stack_),
        "location": estimator.location,
        "support": _bounds(np.asarray(estimator.support_)),
        "support_reason": estimator.rule_.support_reason,
        "scoring": _scoring(estimator),
        "gamma": _numbers(estimator.rule_.gamma),
        "delta": _numbers(estimator.rule_.delta),
        "min_variance": _numbers(estimator.rule_.min_variance),
        "conformal": _conformal(estimator.conformal_),
        "affinity_threshold": float(estimator.affinity_threshold_),
        "blocks": _blocks(getattr(estimator, "dependence_", None)),
    }


def _blocks(dependence: Any) -> list[dict[str, Any]] | None:
    """Return what rows of each kind of block have in common; None where it is not known."""
    if dependence is None:
        return None
    names = ("correlation", "estimate", "standard_error")
    return [
        {"name": name, **{one: _numbers(getattr(dependence, one)[i]) for one in names}, "blocks": n_blocks}
        for i, (name, n_blocks) in enumerate(zip(dependence.names, dependence.n_blocks, strict=True))
    ]


def _scoring(estimator: Any) -> str:
    if getattr(estimator, "target_names_", None) is not None:
        return "energy"
    return estimator.scoring if isinstance(estimator.scoring, str) else "custom"


def _bounds(bounds: Any) -> Any:
    """Return a pair of bounds, None where there are none; a list of these for several targets."""
    if bounds.ndim > 1:
        return [_bounds(one) for one in bounds]
    return bounds.tolist() if np.isfinite(bounds).any() else None


def _numbers(value: Any) -> Any:
    """Return a number, or a list of them for several targets."""
    return value.tolist() if hasattr(value, "tolist") else float(value)


def _conformal(calibrator: Any) -> str | None:
    """Return the name of a conformal calibrator; several targets have one each, of the same kind."""
    one = calibrator[0] if isinstance(calibrator, tuple) else calibrator
    return None if one is None else type(one).__name__


def model_lines(facts: dict[str, Any]) -> dict[str, str]:
    """Return a few lines about a model, by label."""
    blocks = {"blocks": "; ".join(map(_block, facts["blocks"]))} if facts["blocks"] else {}
    return {
        "model": f"{facts['model']}, {_trees(facts)}",
        "training": f"{facts['training_rows']:,} rows, {facts['features']} features",
        "distribution": _distribution(facts),
        "support": _support(facts),
        "neighbours": f"{facts['neighbors']} (spread: {facts['spread']})",
        "search": facts["search"],
        "calibration": _calibration(facts),
        **blocks,
    }


def _block(facts: dict[str, Any]) -> str:
    pairs = zip(np.atleast_1d(facts["estimate"]), np.atleast_1d(facts["standard_error"]), strict=True)
    found = ", ".join(f"{value:.2f} ± {error:.2f}" for value, error in pairs)
    return f"rows of a {facts['name']} have a correlation of {found} ({facts['blocks']:,} blocks)"


def _trees(facts: dict[str, Any]) -> str:
    """Return how many trees there are, and how many of them count for affinities."""
    counting = f"{facts['trees']:,}"
    if facts["tree_fraction"] == 1:
        return f"{counting} trees"
    return f"{round(facts['trees'] / facts['tree_fraction']):,} trees, of which {counting} find neighbours"


def _distribution(facts: dict[str, Any]) -> str:
    """Return which family it is, or what the stack is made of."""
    support = facts["support"]
    text = str(facts["distribution"])
    if support is not None and not isinstance(facts["support_reason"], list):
        text += f" within {support[0]:g} to {support[1]:g}"
    return f"{text}: {_parts(facts['stack'])}" if facts["stack"] else text


def _support(facts: dict[str, Any]) -> str:
    """Return which bounds the distributions have, and how they were found; the same ones of several targets once."""
    bounds, reasons = facts["support"], facts["support_reason"]
    pairs = zip(bounds, reasons, strict=True) if isinstance(reasons, list) else [(bounds, reasons)]
    texts = (f"{'none' if pair is None else f'{pair[0]:g} to {pair[1]:g}'} ({reason})" for pair, reason in pairs)
    return "; ".join(dict.fromkeys(texts))


def _calibration(facts: dict[str, Any]) -> str:
    """Return how the variance is calibrated."""
    if isinstance(facts["gamma"], list):
        text = "of each target by itself"
    elif facts["spread"] == "combination":
        text = "by the combination of spreads itself"
    elif (facts["gamma"], facts["delta"]) == (1.0, 0.0):
        text = "none"
    else:
        text = f"{number(facts['gamma'])} × variance + {number(facts['delta'])}"
    if facts["stack"]:
        text += "; then the weights of the stack"
    return text if facts["conformal"] is None else f"{text}; then {facts['conformal']}"


def _experts(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return name, number of neighbours, weight and own score of each expert of a stack."""
    columns = {name: column.tolist() for name, column in table.items()}
    return [dict(zip(columns, expert, strict=True)) for expert in zip(*columns.values(), strict=True)]


def _parts(experts: list[dict[str, Any]]) -> str:
    """Return what a stack is made of, the largest part first."""
    named = [expert for expert in experts if expert["weight"] > _LEAST_WEIGHT]
    parts = []
    for kind, words in _EXPERTS.items():
        ours = [expert for expert in named if expert["expert"].split(" of ")[0] == kind]
        ks = sorted({expert["k"] for expert in ours} - {0})
        nearest = f" ({', '.join(str(k) for k in ks)})" if ks else ""
        parts.append((sum(expert["weight"] for expert in ours), f"{words}{nearest}"))
    return ", ".join(f"{percent(weight)} {text}" for weight, text in sorted(parts, reverse=True) if weight)
