"""How scikit-learn's boosting and forests came to their leaf values."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import _forest

from ibug._typing import Floats
from ibug.leaves.recipe._base import (
    Bagging,
    Boosting,
    LeafValues,
    Loss,
    NotRedoneError,
    identity,
    link_of,
    suspected,
)

_HISTOGRAM_LOSSES = {"squared_error": Loss(), "poisson": Loss("poisson"), "gamma": Loss("gamma")}


def histogram_boosting(model: Any, y: Floats, weights: Floats | None) -> Boosting:
    """Return the recipe of a HistGradientBoostingRegressor. Shapes: y, weights (n_rows,)."""
    if model.loss not in _HISTOGRAM_LOSSES:
        raise NotRedoneError(f"its loss, {model.loss!r}, makes leaf values of medians or quantiles")
    held_out = model.do_early_stopping_ and getattr(model, "_use_validation_data", True)
    nodes = [trees[0].nodes for trees in model._predictors]
    loss = _HISTOGRAM_LOSSES[model.loss]
    return Boosting(
        LeafValues.of([part["value"][part["is_leaf"].astype(bool)] for part in nodes]),
        loss,
        float(np.asarray(model._baseline_prediction).item()),
        np.full(len(nodes), float(model.learning_rate)),
        y,
        weights,
        l1=0.0,
        l2=float(model.l2_regularization),
        max_step=0.0,
        single=False,
        link=link_of(loss),
        suspects=suspected(monotonic_cst=model.monotonic_cst is not None),
        refusal="its early stopping has held out a part of the rows (validation_fraction)" if held_out else "",
    )


def gradient_boosting(model: Any, y: Floats, weights: Floats | None) -> Boosting:
    """Return the recipe of a GradientBoostingRegressor. Shapes: y, weights (n_rows,)."""
    if model.loss != "squared_error":
        raise NotRedoneError(f"its loss, {model.loss!r}, makes leaf values of medians or quantiles")
    refusal = ""
    if model.n_iter_no_change is not None:
        refusal = "its early stopping has held out a part of the rows (n_iter_no_change)"
    if model.subsample < 1:
        refusal = f"its trees have seen samples of the rows (subsample={model.subsample:g})"
    trees = [estimator.tree_ for estimator in model.estimators_.ravel()]
    return Boosting(
        LeafValues.of([model.learning_rate * _leaf_means(tree) for tree in trees]),
        Loss(),
        _constant(model.init_),
        np.full(len(trees), float(model.learning_rate)),
        y,
        weights,
        l1=0.0,
        l2=0.0,
        max_step=0.0,
        single=False,
        link=identity,
        sampled=model.subsample < 1,
        refusal=refusal,
    )


def forest(model: Any, y: Floats, weights: Floats | None, output: int = 0) -> Bagging:
    """Return the recipe of a RandomForestRegressor or ExtraTreesRegressor. Shapes: y, weights (n_rows,)."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    leaves = LeafValues.of([_leaf_means(tree, output) for tree in trees])
    parents = LeafValues.of([_means_above_leaves(tree, output) for tree in trees])
    drawn, refusal = 1.0, ""
    if model.bootstrap:
        drawn = float(np.mean([tree.n_node_samples[0] for tree in trees])) / getattr(model, "_n_samples", len(y))
    else:
        refusal = "each of its trees has seen all rows (bootstrap=False), so that none are out of bag"
    # From 1.8 on, scikit-learn draws a row as often as it weighs, and then all draws weigh the same.
    drawn_by_weight = "sample_weight" in signature(_forest._generate_sample_indices).parameters
    return Bagging(
        leaves,
        parents,
        lambda: model.estimators_samples_,
        y,
        None if drawn_by_weight else weights,
        identity,
        drawn=drawn,
        refusal=refusal,
    )


def _leaf_means(tree: Any, output: int = 0) -> Floats:
    """Return the values of a tree's leaves for one output, in their order."""
    return np.asarray(tree.value[tree.children_left == -1, output, 0])


def _means_above_leaves(tree: Any, output: int) -> Floats:
    """Return the value of the node above each leaf, in the order of the leaves; a root has its own."""
    above = np.arange(tree.node_count)
    for children in (tree.children_left, tree.children_right):
        inner = np.flatnonzero(children != -1)
        above[children[inner]] = inner
    return np.asarray(tree.value[above[tree.children_left == -1], output, 0])


def _constant(init: Any) -> float:
    """Return what comes before the first tree, if that is one number."""
    if isinstance(init, str) and init == "zero":
        return 0.0
    if not isinstance(init, DummyRegressor):
        raise NotRedoneError(f"its first prediction is that of another model (init={type(init).__name__})")
    return float(np.asarray(init.constant_).item())
