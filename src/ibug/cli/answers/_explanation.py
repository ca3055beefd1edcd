"""The explanation of one prediction: the rows behind it, in which features they differ, and why it is uncertain."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ibug.cli.rows import TrainingRows
from ibug.describe import mean_distances, number, percent
from ibug.explain import Attributor


def explain_row(estimator: Any, X: Any, at: int, coverage: float, n_neighbors: int) -> dict[str, Any]:
    """Return prediction, interval and neighbours of one row, and how its spread compares with that of others.

    Shapes: X (n_rows, n_features).
    """
    k = estimator.k_
    distribution, affinities, indices = estimator.predict_with_neighbors(X, max(k, n_neighbors))
    spread = distribution.std()
    lower, upper = (float(end[0]) for end in distribution[at : at + 1].interval(coverage))
    targets = estimator.training_targets_[indices[at]]
    shares = affinities[at] / estimator.index_.n_trees
    used = targets[:k]
    listed = zip(indices[at, :n_neighbors], targets[:n_neighbors], shares[:n_neighbors], strict=True)
    return {
        "prediction": float(estimator.predict(_safe_indexing(X, [at]))[0]),
        "std": float(spread[at]),
        "interval": {"coverage": coverage, "lower": lower, "upper": upper},
        "wider_than": float(np.mean(spread < spread[at])),
        "compared_with": len(spread),
        "affinity": float(affinities[at, :k].mean() / estimator.index_.n_trees),
        "affinity_threshold": float(estimator.affinity_threshold_),
        "neighborhood": {
            "neighbors": int(k),
            "mean": float(used.mean()),
            "std": float(used.std()),
            "min": float(used.min()),
            "max": float(used.max()),
        },
        "neighbors": [
            {"row": int(row), "target": float(target), "affinity": float(share)} for row, target, share in listed
        ],
    }


def compare(facts: dict[str, Any], here: dict[str, Any], training: TrainingRows) -> None:
    """Add the neighbours' features to an explanation, and those in which the row differs, largest distance first."""
    for i, neighbor in enumerate(facts["neighbors"]):
        if training.ids is not None:
            neighbor["id"] = training.ids[i]
        neighbor["features"] = training.values[i]
    found = []
    for name, value in here.items():
        there = [row[name] for row in training.values]
        values, others = np.array([value], object), np.array([there], object)
        distance = float(mean_distances(values, others, training.scales.get(name))[0])
        if distance > 0:
            found.append({"feature": name, "here": value, "neighbors": there, "distance": distance})
    facts["differences"] = sorted(found, key=lambda difference: -difference["distance"])


def widening(estimator: Any, X: Any, at: int, background: Any, here: dict[str, Any]) -> dict[str, Any]:
    """Return what each feature of one row does to σ, the largest effect first."""
    parts = Attributor(estimator, _safe_indexing(X, [at]), background)
    _, values, base = parts.row(0)
    order = np.argsort(-np.abs(values), kind="stable")
    names = list(here)
    return {
        "typical_std": float(np.exp(base)),
        "compared_with": parts.n_background,
        "features": [
            {
                "feature": names[j],
                "here": here[names[j]],
                "log_std": float(values[j]),
                "factor": float(np.exp(values[j])),
            }
            for j in order
        ],
    }


def reasons(facts: dict[str, Any], unseen: list[str]) -> list[str]:
    """Return sentences on why the prediction is certain or not."""
    near, share = facts["neighborhood"], facts["affinity"]
    lines = []
    if unseen:
        lines.append(f"The model does not know its category in: {', '.join(unseen)}.")
    threshold = facts["affinity_threshold"]
    if share < threshold:
        lines.append(
            f"It is unlike the training data: its neighbours share {percent(share)} of the leaves with it, and all but "
            f"1 % of the validation rows had {percent(threshold)} or more."
        )
    else:
        lines.append(f"Its {near['neighbors']} nearest training rows share {percent(share)} of the leaves with it.")
    lines.append(
        f"Their targets go from {number(near['min'])} to {number(near['max'])}, mean {number(near['mean'])}, standard "
        f"deviation {number(near['std'])}."
    )
    if facts["compared_with"] > 1:
        lines.append(
            f"Its spread is wider than that of {percent(facts['wider_than'])} of the {facts['compared_with']} rows it "
            "was compared with."
        )
    return lines
