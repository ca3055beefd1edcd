"""XGBoost's trees from its model file, in the binary form of the documented JSON schema."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import walk
from ibug.leaves.walk._trees import NAN_IS_MISSING, NotWalkableError, Trees, new_nodes, offsets
from ibug.leaves.walk._ubjson import parse

_IDENTITY = {
    "reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror",
}  # fmt: skip
_LOG_LINK = {"count:poisson", "reg:gamma", "reg:tweedie"}


class Margin:
    """What XGBoost does to the margin, in single precision: nothing, or the exponential."""

    def __init__(self, log_link: bool) -> None:
        self.log_link = log_link

    def __call__(self, sums: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the predictions, (n_rows,)."""
        margins = sums.astype(np.float32)
        if self.log_link:
            walk.exp(margins)
        return margins


def read_trees(booster: Any, n_rounds: int, missing: float) -> tuple[Trees, Margin | None]:
    """Return the trees of the first rounds, and what turns the sum of leaf values into a prediction."""
    learner = parse(bytes(booster.save_raw("ubj")))["learner"]
    gradient_booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    dart = gradient_booster["name"] == "dart"
    model = (gradient_booster["gbtree"] if dart else gradient_booster)["model"]
    n_trees = model["iteration_indptr"][n_rounds or -1]
    categories: list[NDArray[np.int32]] = []
    nodes = [_nodes(tree, categories) for tree in model["trees"][:n_trees]]
    if not nodes:
        raise NotWalkableError("it has no trees")
    base = np.array([float(learner["learner_model_param"]["base_score"].strip("[]").split(",")[0])], np.float32)
    if objective in _LOG_LINK:
        walk.log(base)
    reading = {
        "n_features": int(learner["learner_model_param"]["num_feature"]),
        "single": True,
        "single_sums": True,
        "refuse_infinite": True,
        "members_left": False,
        "missing": float(np.float32(missing)),
        "start": float(base[0]),
    }
    trees = Trees(offsets([len(part) for part in nodes]), np.concatenate(nodes), reading, categories)
    known = not dart and objective in _IDENTITY | _LOG_LINK
    return trees, Margin(objective in _LOG_LINK) if known else None


def _nodes(tree: dict[str, Any], categories: list[NDArray[np.int32]]) -> NDArray[Any]:
    """Return the nodes of one tree under their numbers, and add its sets of categories to the list."""
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise NotWalkableError("its leaves hold vectors")
    nodes = new_nodes(len(tree["left_children"]))
    nodes["number"] = np.arange(len(nodes))
    nodes["left"], nodes["right"] = tree["left_children"], tree["right_children"]
    split = nodes["left"] >= 0
    conditions = np.array(tree["split_conditions"], np.float32)
    nodes["value"][~split] = conditions[~split]
    # x < t, for numbers of single precision, is x <= the next number below t.
    nodes["threshold"][split] = np.nextafter(conditions[split], np.float32(-np.inf))
    nodes["feature"][split] = np.array(tree["split_indices"])[split]
    nodes["missing"] = NAN_IS_MISSING
    nodes["default_left"] = tree["default_left"]
    members = np.array(tree["categories"], np.int32)
    for node, start, size in zip(
        tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
    ):
        nodes["categories"][node], nodes["threshold"][node] = len(categories), 0.0
        categories.append(members[start : start + size])
    return nodes
