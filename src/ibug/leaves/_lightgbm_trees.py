"""LightGBM's trees from the text of its model file."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.leaves._trees import NotWalkableError, Trees, new_nodes, offsets

Floats = NDArray[np.float64]
Link = Callable[[Floats], Floats]

_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of a split's decision type; the next two tell what is missing

_LOG_LINK = {"poisson", "gamma", "tweedie"}
_IDENTITY = {"regression", "regression_l1", "huber", "fair", "quantile", "mape", "custom"}


def read_trees(booster: Any, n_iterations: int) -> tuple[Trees, Link | None]:
    """Return the trees of the first iterations, and what turns the sum of leaf values into a prediction.

    Parameters
    ----------
    booster
        A LightGBM booster of one tree per iteration.
    n_iterations
        How many iterations `predict` uses.

    Returns
    -------
    trees
        In the common form.
    link
        ``None`` where a sum is not enough: for linear models in the leaves, or an unknown objective.
    """
    text = booster.model_to_string(num_iteration=n_iterations)
    header, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    fields = [_fields(block) for block in blocks]
    if not fields or "num_tree_per_iteration=1" not in header.split("\n"):
        raise NotWalkableError("LightGBM's model text is not as expected")
    categories: list[NDArray[np.int32]] = []
    nodes = [_nodes(each, categories) for each in fields]
    reading = {"n_features": booster.num_feature(), "tiny_is_zero": True, "truncated": True}
    trees = Trees(offsets([len(part) for part in nodes]), np.concatenate(nodes), reading, categories)
    linear = any(each.get("is_linear", "0") != "0" for each in fields)
    return trees, None if linear else _link(header, len(fields))


def _fields(block: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in block.split("\n") if "=" in line)


def _nodes(fields: dict[str, str], categories: list[NDArray[np.int32]]) -> NDArray[Any]:
    """Return the nodes of one tree, splits first and then leaves, and add its sets of categories to the list."""
    n_leaves = int(fields["num_leaves"])
    n_splits = n_leaves - 1
    nodes = new_nodes(n_splits + n_leaves)
    nodes["value"][n_splits:] = _numbers(fields["leaf_value"])
    nodes["number"][n_splits:] = np.arange(n_leaves)
    if n_splits == 0:
        return nodes
    splits = nodes[:n_splits]
    decision = _numbers(fields["decision_type"]).astype(np.int32)
    threshold = _numbers(fields["threshold"])
    splits["feature"] = _numbers(fields["split_feature"])
    for side in ("left", "right"):
        child = _numbers(fields[f"{side}_child"]).astype(np.int32)
        splits[side] = np.where(child >= 0, child, n_splits + ~child)
    splits["missing"] = decision >> 2 & 3
    splits["default_left"] = (decision & _DEFAULT_LEFT) > 0
    categorical = (decision & _CATEGORICAL) > 0
    splits["threshold"] = np.where(categorical, 0.0, threshold)
    if categorical.any():
        splits["categories"][categorical] = len(categories) + threshold[categorical].astype(np.int32)
        splits["missing"][categorical], splits["default_left"][categorical] = 0, 0  # a missing category goes right
        words, ends = _numbers(fields["cat_threshold"]).astype("<u4"), _numbers(fields["cat_boundaries"]).astype(int)
        for start, end in zip(ends[:-1], ends[1:], strict=True):
            bits = np.unpackbits(words[start:end].view(np.uint8), bitorder="little")
            categories.append(np.flatnonzero(bits).astype(np.int32))
    return nodes


def _numbers(text: str) -> Floats:
    return np.array(text.split(), np.float64)


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
