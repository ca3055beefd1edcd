"""How CatBoost came to its leaf values, from the parameters in its model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibug._typing import Floats
from ibug.leaves.recipe._base import (
    Boosting,
    LeafValues,
    Loss,
    NotRedoneError,
    by_tree,
    identity,
    in_single,
    mean,
    suspected,
)


def boosting(
    model: Any, loss: str, y: Floats, weights: Floats | None, *, output: int = 0, n_outputs: int = 1
) -> Boosting:
    """Return the recipe of a model.

    CatBoost samples rows to find splits only; the values of leaves are made of all rows, in ordered boosting, too.

    Shapes: y, weights (n_rows,).
    """
    if "params" not in model.get_metadata():
        raise NotRedoneError("it does not tell its parameters, as sums of models do not")
    given = model.get_all_params()
    if loss not in ("RMSE", "MultiRMSE"):
        raise NotRedoneError(f"its loss, {loss!r}, is another than 'RMSE'")
    steps = int(given.get("leaf_estimation_iterations", 1))
    if steps > 1:
        raise NotRedoneError(f"its leaf values are found in several steps (leaf_estimation_iterations={steps})")
    if given.get("langevin") or float(given.get("model_shrink_rate", 0)):
        raise NotRedoneError("its trees are shrunk or made noisy later (langevin, model_shrink_rate)")
    scale, start = model.get_scale_and_bias()
    if scale != 1.0:
        raise NotRedoneError(f"its sum of leaf values is scaled by {scale:g}")
    targets, weights = np.asarray(in_single(y)), in_single(weights)
    every = np.asarray(model.get_leaf_values(), np.float64).reshape(-1, n_outputs)
    values = by_tree(every[:, output], model.get_tree_leaf_counts())
    return Boosting(
        LeafValues.of(values),
        Loss(),
        float(np.ravel(start)[output]),
        np.full(len(values), float(given["learning_rate"])),
        targets,
        weights,
        l1=0.0,
        l2=float(given["l2_leaf_reg"]) * (1.0 if weights is None else mean(weights, None)),
        max_step=0.0,
        single=False,
        link=identity,
        suspects=suspected(**{"categories, whose codes are others in training": bool(model.get_cat_feature_indices())}),
    )
