"""The work of ``ibug explain``: why a prediction is what it is, and why it is so uncertain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ibug._text import percent
from ibug.cli._training_rows import TrainingRows
from ibug.explanation import mean_distances


@dataclass(frozen=True)
class Difference:
    """A feature in which a row differs from its neighbours."""

    name: str
    here: Any
    there: list[Any]  # the values of the neighbours
    distance: float  # the mean distance in standard deviations; 1 for each neighbour of another category


def explain_row(estimator: Any, X: Any, others: Any, coverage: float, n_neighbors: int) -> dict[str, Any]:
    """Return prediction, interval and neighbours of one row, and how they compare.

    Parameters
    ----------
    estimator
        The fitted IBUGRegressor.
    X
        The row, of shape (1, n_features).
    others
        Other rows of the same file, to compare the width with.
    coverage
        Of the interval.
    n_neighbors
        How many neighbours to name.
    """
    law = estimator.predict_dist(X)
    lower, upper = (float(end[0]) for end in law.interval(coverage))
    affinities, indices = estimator.kneighbors(X, max(estimator.k_, n_neighbors))
    n_trees = estimator.index_.n_trees
    used = estimator._targets[indices[0, : estimator.k_]]
    std = float(law.std()[0])
    spread = estimator.predict_dist(others).std()
    return {
        "prediction": float(estimator.predict(X)[0]),
        "std": std,
        "interval": {"coverage": coverage, "lower": lower, "upper": upper},
        "wider_than": float(np.mean(spread < std)),
        "compared_with": len(spread),
        "affinity": float(affinities[0, : estimator.k_].mean() / n_trees),
        "affinity_threshold": float(estimator.affinity_threshold_),
        "neighborhood": {
            "neighbors": int(estimator.k_),
            "mean": float(used.mean()),
            "std": float(used.std()),
            "min": float(used.min()),
            "max": float(used.max()),
        },
        "neighbors": [
            {
                "row": int(row),
                "target": float(estimator._targets[row]),
                "affinity": float(affinity / n_trees),
            }
            for row, affinity in zip(indices[0, :n_neighbors], affinities[0, :n_neighbors], strict=True)
        ],
    }


def differences(here: dict[str, Any], training: TrainingRows) -> list[Difference]:
    """Return the features in which a row differs from its neighbours, those that differ most first."""
    found = []
    for name, value in here.items():
        there = [row[name] for row in training.values]
        here_values, there_values = np.array([value], object), np.array([there], object)
        distance = float(mean_distances(here_values, there_values, training.scales.get(name))[0])
        if distance > 0:
            found.append(Difference(name, value, there, distance))
    return sorted(found, key=lambda difference: -difference.distance)


def reasons(facts: dict[str, Any], unseen: list[str]) -> list[str]:
    """Say in sentences what makes the prediction certain or not."""
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
        f"Their targets go from {near['min']:.4g} to {near['max']:.4g}, mean {near['mean']:.4g}, standard deviation "
        f"{near['std']:.4g}."
    )
    if facts["compared_with"] > 1:
        lines.append(
            f"Its spread is wider than that of {percent(facts['wider_than'])} of the {facts['compared_with']} rows it "
            "was compared with."
        )
    return lines
