"""How XGBoost came to its leaf values, from its model and its configuration."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ibug._typing import Floats
from ibug.leaves.recipe._base import (
    LOG_LINK,
    Boosting,
    LeafValues,
    Loss,
    NotRedoneError,
    in_single,
    link_of,
    suspected,
)
from ibug.leaves.walk._ubjson import parse

# What nodes tell of penalty and rate, in single precision, counts where the configuration differs by more than this.
_SAME = 1e-3


def boosting(
    booster: Any, n_rounds: int, y: Floats, weights: Floats | None, *, output: int = 0, n_outputs: int = 1
) -> Boosting:
    """Return the recipe of the first rounds. Shapes: y, weights (n_rows,)."""
    config = json.loads(booster.save_config())["learner"]
    learner = parse(bytes(booster.save_raw("ubj")))["learner"]
    if config["gradient_booster"]["name"] != "gbtree":
        raise NotRedoneError(f"its booster is {config['gradient_booster']['name']!r}")
    given = config["gradient_booster"]["tree_train_param"]
    if int(config["gradient_booster"]["gbtree_model_param"]["num_parallel_tree"]) > 1:
        raise NotRedoneError("it grows several trees in each round (num_parallel_tree)")
    drawn = float(given["subsample"])
    refusal = f"its trees have seen samples of the rows (subsample={given['subsample']})" if drawn < 1 else ""
    loss = _loss(config["objective"])
    model = learner["gradient_booster"]["model"]
    used = model["trees"][: model["iteration_indptr"][n_rounds or -1]]
    trees = [_Nodes(tree) for tree in used[output::n_outputs]]
    starts = learner["learner_model_param"]["base_score"].strip("[]").split(",")
    start = np.float32(starts[output if len(starts) > 1 else 0])
    l1, l2, rates = float(given["alpha"]), float(given["lambda"]), np.full(len(trees), float(given["eta"]))
    max_step = float(given["max_delta_step"])
    if not l1 and not max_step:
        l2 = _penalty(trees, l2)
        rates = np.array([tree.rate(l2, rate) for tree, rate in zip(trees, rates, strict=True)])
    # A tree whose rows weigh less than min_child_weight all together says nothing.
    rates[[not tree.leaf_values.any() for tree in trees]] = 0.0
    return Boosting(
        LeafValues.of([tree.leaf_values for tree in trees]),
        loss,
        float(np.log(start) if loss.name in LOG_LINK else start),
        rates,
        np.asarray(in_single(y)),
        in_single(weights),
        l1=l1,
        l2=l2,
        max_step=max_step,
        single=True,
        link=link_of(loss),
        suspects=suspected(monotone_constraints=given["monotone_constraints"] not in ("", "()")),
        sampled=drawn < 1 or loss.name != "squared" or _vary([tree.hessian[0] for tree in trees]),
        refusal=refusal,
    )


def _vary(weights: list[float]) -> bool:
    """Tell whether trees have seen rows of different weights: samples, though a file does not have the parameter."""
    return bool(np.ptp(weights) > _SAME * np.max(weights))


def _loss(objective: dict[str, Any]) -> Loss:
    name = objective["name"]
    if name == "reg:squarederror":
        return Loss()
    if name == "reg:pseudohubererror":
        return Loss("pseudo_huber", float(objective["pseudo_huber_param"]["huber_slope"]))
    if name == "count:poisson":
        return Loss("poisson", float(objective["poisson_regression_param"]["max_delta_step"]))
    if name == "reg:gamma":
        return Loss("gamma")
    if name == "reg:tweedie":
        return Loss("tweedie", float(objective["tweedie_regression_param"]["tweedie_variance_power"]))
    raise NotRedoneError(f"its loss, {name!r}, is not known or makes leaf values of medians or quantiles")


class _Nodes:
    """The nodes of one tree: their values, which are −G/(H + l2), times the rate in leaves, and the sums H.

    A model that comes from a file has no configuration; G of a node is the sum of its children's, which tells both.
    """

    def __init__(self, tree: dict[str, Any]) -> None:
        self.left, self.right = np.array(tree["left_children"]), np.array(tree["right_children"])
        self.weight = np.array(tree["base_weights"], np.float64)
        self.hessian = np.array(tree["sum_hessian"], np.float64)
        self.leaf = self.left < 0
        self.leaf_values = np.where(self.leaf, np.array(tree["split_conditions"], np.float32), 0.0)

    def inner_pairs(self) -> tuple[Floats, Floats]:
        """Return d and e of all splits above splits, for which d = l2 · e."""
        above = np.flatnonzero(~self.leaf)
        above = above[~self.leaf[self.left[above]] & ~self.leaf[self.right[above]]]
        left, right = self.left[above], self.right[above]
        total, weight = self.weight * self.hessian, self.weight
        return total[above] - total[left] - total[right], weight[left] + weight[right] - weight[above]

    def rate(self, l2: float, given: float) -> float:
        """Return the learning rate that leaves show beside their parents, or the given one if it agrees."""
        above = np.flatnonzero(~self.leaf)
        above = above[self.leaf[self.left[above]] & self.leaf[self.right[above]]]
        gradient = self.weight[above] * (self.hessian[above] + l2)
        left, right = self.left[above], self.right[above]
        children = [self.leaf_values[child] * (self.hessian[child] + l2) for child in (left, right)]
        size, rest = float(gradient @ gradient), _SAME * float(sum(part @ part for part in children))
        if size <= rest:  # as in the first split of all, where gradients sum to zero: rounding is all that is left
            return given
        found = float((children[0] + children[1]) @ gradient) / size
        return given if abs(found - given) <= _SAME * given else found


def _penalty(trees: list[_Nodes], given: float) -> float:
    """Return l2 as the nodes show it, or the given one if it agrees."""
    pairs = [tree.inner_pairs() for tree in trees]
    d, e = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
    size = float(e @ e)
    found = float(d @ e) / size if size > 0 else given
    return given if abs(found - given) <= 10 * _SAME * max(given, 1.0) else found
