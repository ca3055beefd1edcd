"""CatBoost's oblivious trees from the JSON of its model file."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.leaves.walk._trees import NAN_IS_MISSING, NotWalkableError, Trees, new_nodes, offsets


class ScaleAndBias:
    """What CatBoost does to the sum of leaf values; the exponential comes last where the link is a logarithm."""

    def __init__(self, scale: float, bias: float, log_link: bool) -> None:
        self.scale = scale
        self.bias = bias
        self.log_link = log_link

    def __call__(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the predictions, (n_rows,)."""
        raw = sums * self.scale + self.bias
        return np.exp(raw) if self.log_link else raw


def read_trees(model: Any, log_link: bool) -> tuple[Trees, ScaleAndBias]:
    """Return the trees, and what turns the sum of leaf values into a prediction."""
    content = _content(model)
    info = content["features_info"]
    if "oblivious_trees" not in content:
        raise NotWalkableError("its trees are not symmetric")
    if set(info) - {"float_features"}:
        raise NotWalkableError("it has features that are no plain numbers")
    # A feature that has no borders is in no split.
    column = {feature["feature_index"]: feature["flat_feature_index"] for feature in info["float_features"]}
    nan_goes_left = {
        feature["feature_index"]: feature["nan_value_treatment"] != "AsTrue" for feature in info["float_features"]
    }
    trees = content["oblivious_trees"]
    splits = [split for tree in trees for split in tree["splits"] or ()]
    if any(split["split_type"] != "FloatFeature" for split in splits):
        raise NotWalkableError("it has splits that are no thresholds")
    levels = new_nodes(len(splits))
    features = [split["float_feature_index"] for split in splits]
    levels["left"] = levels["right"] = 0
    levels["feature"] = [column[feature] for feature in features]
    levels["threshold"] = np.array([split["border"] for split in splits], np.float32)
    levels["missing"] = NAN_IS_MISSING
    levels["default_left"] = [nan_goes_left[feature] for feature in features]
    reading = {"n_features": len(info["float_features"]), "single": True}
    first = offsets([len(tree["splits"] or ()) for tree in trees])
    scale, bias = model.get_scale_and_bias()
    values = np.asarray(model.get_leaf_values(), np.float64)
    return Trees(first, levels, reading, leaf_values=values), ScaleAndBias(float(scale), float(bias), log_link)


def _content(model: Any) -> dict[str, Any]:
    with TemporaryDirectory(prefix="ibug-") as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content
