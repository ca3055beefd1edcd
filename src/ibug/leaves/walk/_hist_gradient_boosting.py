"""The trees of scikit-learn's HistGradientBoosting from its predictors, whose nodes are arrays of records."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.leaves.walk._trees import NAN_IS_MISSING, NotWalkableError, Trees, new_nodes, offsets


class InverseLink:
    """What the model does to the raw prediction: the inverse of its loss's link."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, sums: NDArray[np.float64]) -> NDArray[Any]:
        """Return the predictions, (n_rows,)."""
        return np.asarray(self.model._loss.link.inverse(sums))


def read_trees(model: Any) -> tuple[Trees, InverseLink]:
    """Return the trees of a single-output model, and what turns the sum of leaf values into a prediction."""
    categories: list[NDArray[np.int32]] = []
    nodes = [_nodes(trees[0], categories) for trees in model._predictors]
    reading = {
        "n_features": int(model._bin_mapper.n_bins_non_missing_.shape[0]),
        "others_as_missing": True,
        "start": float(np.asarray(model._baseline_prediction).item()),
    }
    bitsets, places = model._bin_mapper.make_known_categories_bitsets()
    known = {
        feature: _members(bitsets[places[feature]]) for feature in np.flatnonzero(model._bin_mapper.is_categorical_)
    }
    if any(not np.array_equal(members, np.arange(len(members))) for members in known.values()):
        raise NotWalkableError("its categories are not numbered from 0 on")
    n_categories = {int(feature): len(members) for feature, members in known.items()}
    trees = Trees(offsets([len(part) for part in nodes]), np.concatenate(nodes), reading, categories, n_categories)
    return trees, InverseLink(model)


def _nodes(predictor: Any, categories: list[NDArray[np.int32]]) -> NDArray[Any]:
    """Return the nodes of one tree, its leaves numbered in their order, and add its sets of categories to the list."""
    given = predictor.nodes
    nodes = new_nodes(len(given))
    leaf = given["is_leaf"].astype(bool)
    nodes["value"] = given["value"]
    nodes["number"][leaf] = np.arange(leaf.sum())
    nodes["feature"][~leaf] = given["feature_idx"][~leaf]
    nodes["threshold"][~leaf] = given["num_threshold"][~leaf]
    nodes["left"][~leaf], nodes["right"][~leaf] = given["left"][~leaf], given["right"][~leaf]
    nodes["missing"] = NAN_IS_MISSING
    nodes["default_left"] = given["missing_go_to_left"]
    for node in np.flatnonzero(~leaf & given["is_categorical"].astype(bool)):
        nodes["categories"][node], nodes["threshold"][node] = len(categories), 0.0
        categories.append(_members(predictor.raw_left_cat_bitsets[given["bitset_idx"][node]]))
    return nodes


def _members(words: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Return the numbers of the bits that are set."""
    bits = np.unpackbits(np.ascontiguousarray(words, "<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int32)
