"""CatBoost: leaf numbers from ``calc_leaf_indexes``; its trees from the JSON of its model file."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import catboost
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug.leaves._matrix import array_as_floats, frame_as_floats, is_pandas, names_of
from ibug.leaves._reader import LeafReader, as_leaf_numbers, require_fitted, unsupported
from ibug.leaves._recipe import Boosting, LeafValues, Loss, RecipeError, by_tree, identity, in_single
from ibug.leaves._walk import NAN_IS_MISSING, Link, NotWalkableError, Trees, WalkingReader, new_nodes, offsets

_NO_REGRESSION = (
    "Logloss", "CrossEntropy", "MultiClass", "MultiLogloss", "MultiCrossEntropy", "MultiQuantile",
    "PairLogit", "YetiRank", "QueryRMSE", "QuerySoftMax", "StochasticRank", "LambdaMart", "Focal", "Cox",
)  # fmt: skip

_MULTIOUTPUT = ("MultiRMSE", "MultiRMSEWithMissingValues")
_LOG_LINK = ("Poisson", "Tweedie")


def find(model: Any) -> type[LeafReader]:
    """Return the reader for a CatBoost model."""
    if isinstance(model, (catboost.CatBoostClassifier, catboost.CatBoostRanker)):
        raise unsupported(model, "it is not a regressor")
    if isinstance(model, catboost.CatBoost):  # CatBoostRegressor is one too
        return CatBoostReader
    raise unsupported(model)


class CatBoostReader(WalkingReader):
    """Reads ``CatBoostRegressor`` and ``CatBoost``, whatever the grow policy."""

    library = "CatBoost"

    def __init__(self, model: Any) -> None:
        require_fitted(model, model.is_fitted())
        super().__init__(model)
        loss = trained_loss(model)
        if loss == "RMSEWithUncertainty":
            raise unsupported(
                model, "RMSEWithUncertainty already predicts a variance, and has two outputs; CBURegressor takes it"
            )
        if loss.startswith(_NO_REGRESSION):
            raise unsupported(model, f"its loss is {loss!r}, and ibug needs a single-output regression model")
        self.n_outputs = int(len(model.get_leaf_values()) // sum(model.get_tree_leaf_counts()))
        if self.n_outputs > 1 and not loss.startswith(_MULTIOUTPUT):  # as a user's own loss may have it
            raise unsupported(model, "it has several outputs, which are not known to be several targets")
        self.n_trees = int(model.tree_count_)
        self._names = [str(name) for name in model.feature_names_]
        self.n_features = len(self._names)
        self.feature_names = trained_names(model)
        self._has_log_link = loss.startswith(_LOG_LINK)
        name = loss.partition(":")[0]
        self.nonnegative_loss = name if self._has_log_link else ""
        if name == "Expectile":
            self.expectile = _level(loss)
        elif name in ("Quantile", "LogLinQuantile"):
            self.quantile = _level(loss)
        # `CatBoostRegressor` predicts in the unit of the target; plain `CatBoost` stays on the log scale unless told.
        self.changes_unit = self._has_log_link and not isinstance(model, catboost.CatBoostRegressor)

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of rows in leaves; files of several targets do not have it."""
        if self.n_outputs > 1:
            return None
        weights = np.asarray(self.model.get_leaf_weights(), np.float64)
        return by_tree(weights, self.model.get_tree_leaf_counts()[:n]) if len(weights) else None

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's predictions in the unit of the targets, (n_rows,) or (n_rows, n_outputs)."""
        return np.asarray(self.model.predict(X, **({"prediction_type": "Exponent"} if self.changes_unit else {})))

    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers, 0 to ``2**depth - 1`` in a symmetric tree."""
        return as_leaf_numbers(self.model.calc_leaf_indexes(X), _num_samples(X), self.model)

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting:
        """Return how leaf values were made.

        CatBoost samples rows to find splits only; the values of leaves are made of all rows, in ordered boosting, too.
        """
        model = self.model
        if "params" not in model.get_metadata():
            raise RecipeError("its file has no parameters, like that of every sum of models")
        given, loss = model.get_all_params(), trained_loss(model)
        if loss not in ("RMSE", "MultiRMSE"):
            raise RecipeError(f"its loss, {loss!r}, is another than 'RMSE'")
        steps = int(given.get("leaf_estimation_iterations", 1))
        if steps > 1:
            raise RecipeError(f"its leaf values are found in several steps (leaf_estimation_iterations={steps})")
        if given.get("langevin") or float(given.get("model_shrink_rate", 0)):
            raise RecipeError("its trees are shrunk or made noisy later (langevin, model_shrink_rate)")
        scale, start = model.get_scale_and_bias()
        if scale != 1.0:
            raise RecipeError(f"its sum of leaf values is scaled by {scale:g}")
        every = np.asarray(model.get_leaf_values(), np.float64).reshape(-1, self.n_outputs)
        values = by_tree(every[:, output], model.get_tree_leaf_counts())
        targets, weights = in_single(y, sample_weight)
        has_categories = bool(model.get_cat_feature_indices())
        return Boosting(
            LeafValues.of(values),
            Loss(),
            float(np.ravel(start)[output]),
            np.full(len(values), float(given["learning_rate"])),
            targets,
            weights,
            identity,
            l2=float(given["l2_leaf_reg"]) * (1.0 if weights is None else float(np.mean(weights))),
            suspects="categories, whose codes are others in training" if has_categories else "",
        )

    def _trees(self) -> tuple[Trees, Link | None]:
        if self.n_outputs > 1:
            raise NotWalkableError("its leaves hold vectors")
        scale, bias = self.model.get_scale_and_bias()

        def link(sums: Floats) -> Floats:
            raw = np.asarray(sums * scale + bias)
            return np.exp(raw) if self._has_log_link else raw

        return _read_trees(self.model), link

    def _matrix(self, X: Any) -> NDArray[Any] | None:
        """Return arrays and pandas frames of numbers; CatBoost itself reads everything else."""
        if not is_pandas(X):
            return None if getattr(X, "dtype", None) == np.bool_ else array_as_floats(X, np.float64)
        return frame_as_floats(X, np.float64, "iuf") if names_of(X) == self._names else None


def _level(loss: str) -> float:
    """Return the level of a loss such as ``"Quantile:alpha=0.9"``; CatBoost's own default is 0.5."""
    given = dict(part.partition("=")[::2] for part in loss.partition(":")[2].split(";"))
    return float(given.get("alpha", 0.5))


def trained_names(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was trained on; CatBoost numbers those of arrays."""
    names = [str(name) for name in model.feature_names_]
    return None if names == [str(i) for i in range(len(names))] else names


def trained_loss(model: Any) -> str:
    """Return the name of the loss that a model was trained with."""
    metadata = model.get_metadata()
    if "params" in metadata:
        return str(model.get_all_params().get("loss_function", ""))
    # `sum_models` keeps no parameters, and the loss only where all summands have the same.
    return str(json.loads(metadata.get("loss_function", "{}")).get("type", ""))


def _read_trees(model: Any) -> Trees:
    with TemporaryDirectory(prefix="ibug-") as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        content = json.loads(path.read_text(encoding="utf-8"))
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
    return Trees(first, levels, reading, leaf_values=np.asarray(model.get_leaf_values(), np.float64))
