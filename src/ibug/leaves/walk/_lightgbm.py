"""LightGBM's trees from the text of its model file."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.leaves.walk._trees import NotWalkableError, Trees, new_nodes, offsets

Link = Callable[[Floats], Floats]

_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of a split's decision type; the next two tell what is missing

_LOG_LINK = {"poisson", "gamma", "tweedie"}
_IDENTITY = {"regression", "regression_l1", "huber", "fair", "quantile", "mape", "custom"}


def read_trees(booster: Any, n_iterations: int) -> tuple[Trees, Link | None]:
    """Return the trees of the first iterations, and what turns the sum of leaf values into a prediction."""
    text = booster.model_to_string(num_iteration=n_iterations)
    header, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    fields = [_fields(block) for block in blocks]
    if not fields or "num_tree_per_iteration=1" not in header.split("\n"):
        raise NotWalkableError("LightGBM's model text is not as expected")
    n_leaves = np.array([int(each["num_leaves"]) for each in fields])
    nodes = _nodes(fields, n_leaves)
    categories = _read_categories(fields, nodes, n_leaves)
    reading = {"n_features": booster.num_feature(), "tiny_is_zero": True, "truncated": True}
    trees = Trees(offsets(2 * n_leaves - 1), nodes, reading, categories)
    linear = any(each.get("is_linear", "0") != "0" for each in fields)
    return trees, None if linear else _link(header, len(fields))


def _fields(block: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in block.split("\n") if "=" in line)


def _nodes(fields: list[dict[str, str]], n_leaves: NDArray[np.intp]) -> NDArray[Any]:
    """Return the nodes of all trees, in each the splits first and then the leaves."""
    n_splits = n_leaves - 1
    nodes = new_nodes(int((2 * n_leaves - 1).sum()))
    is_leaf = np.repeat(np.tile([False, True], len(fields)), np.column_stack([n_splits, n_leaves]).ravel())
    nodes["value"][is_leaf] = _column(fields, "leaf_value", np.float64)
    nodes["number"][is_leaf] = _counted(n_leaves)
    splits = new_nodes(int(n_splits.sum()))
    decision = _column(fields, "decision_type", np.int32)
    splits["feature"] = _column(fields, "split_feature", np.int32)
    splits["threshold"] = _column(fields, "threshold", np.float64)
    splits["missing"] = decision >> 2 & 3
    splits["default_left"] = (decision & _DEFAULT_LEFT) > 0
    splits["categories"] = np.where((decision & _CATEGORICAL) > 0, 0, -1)
    for side in ("left", "right"):
        child = _column(fields, f"{side}_child", np.int32)
        leaf = np.repeat(n_splits, n_splits) + ~child  # a leaf is written as the complement of its number
        splits[side] = np.where(child >= 0, child, leaf)
    nodes[~is_leaf] = splits
    return nodes


def _column(fields: list[dict[str, str]], name: str, kind: type) -> NDArray[Any]:
    """Return the numbers of all trees one after another; a tree of one leaf has none of its splits."""
    text = " ".join(each.get(name, "") for each in fields)
    return np.fromstring(text, kind, sep=" ") if text.strip() else np.empty(0, kind)


def _counted(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return 0, 1, ... for each count, one after another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _read_categories(
    fields: list[dict[str, str]], nodes: NDArray[Any], n_leaves: NDArray[np.intp]
) -> list[NDArray[np.int32]]:
    """Return the sets of categories, and let the categorical nodes point to them: their thresholds number them."""
    categories: list[NDArray[np.int32]] = []
    first = offsets(2 * n_leaves - 1)
    for tree, each in enumerate(fields):
        if int(each.get("num_cat", "0")) == 0:
            continue
        own = nodes[first[tree] : first[tree + 1]]
        categorical = own["categories"] == 0
        own["categories"][categorical] = len(categories) + own["threshold"][categorical].astype(np.int32)
        own["threshold"][categorical] = 0.0
        own["missing"][categorical] = own["default_left"][categorical] = 0  # a missing category goes right
        words = _column([each], "cat_threshold", np.uint32).astype("<u4")
        ends = _column([each], "cat_boundaries", np.int64)
        for start, end in pairwise(ends):
            bits = np.unpackbits(words[start:end].view(np.uint8), bitorder="little")
            categories.append(np.flatnonzero(bits).astype(np.int32))
    return categories


def _link(header: str, n_iterations: int) -> Link | None:
    found = re.search(r"^objective=(.*)$", header, re.MULTILINE)
    words = found[1].split() if found else ["custom"]
    n_averaged = n_iterations if "average_output" in header.split("\n") else 1
    if words[0] in _LOG_LINK:
        return Linked("exp", n_averaged)
    if words[0] not in _IDENTITY:
        return None
    return Linked("square" if "sqrt" in words[1:] else "identity", n_averaged)


class Linked:
    """What LightGBM does to a sum of leaf values: the mean for a random forest, and the inverse of the link."""

    def __init__(self, kind: str, n_averaged: int) -> None:
        self.kind = kind
        self.n_averaged = n_averaged

    def __call__(self, sums: Floats) -> Floats:
        """Return the predictions, (n_rows,)."""
        if self.n_averaged > 1:
            sums = sums / self.n_averaged
        if self.kind == "exp":
            return np.exp(sums)
        return np.sign(sums) * sums * sums if self.kind == "square" else sums
