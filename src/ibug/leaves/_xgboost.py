"""XGBoost: leaf numbers from ``predict(pred_leaf=True)``; its trees and leaf values from its model file."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._compiled import walk as kernel
from ibug._read_only import read_only
from ibug._typing import Floats
from ibug.leaves._matrix import array_as_floats, categories_of, frame_as_floats, frame_with_codes, is_pandas, names_of
from ibug.leaves._reader import LeafReader, as_leaf_numbers, require_fitted, unsupported
from ibug.leaves._recipe import Boosting, LeafValues, Loss, RecipeError, in_single
from ibug.leaves._ubjson import parse
from ibug.leaves._walk import NAN_IS_MISSING, Answers, Link, NotWalkableError, Trees, WalkingReader, new_nodes

_LINEAR = "its booster is 'gblinear', which has no trees"
#: The objectives whose raw predictions are logarithms, and their names.
_LOG_LINK = {"count:poisson": "Poisson", "reg:gamma": "gamma", "reg:tweedie": "Tweedie"}
_UNIT_HESSIANS = {"reg:squarederror", "reg:absoluteerror", "reg:quantileerror"}
_IDENTITY = {"reg:squaredlogerror", "reg:pseudohubererror"} | _UNIT_HESSIANS
_NO_REGRESSION = ("binary:", "multi:", "rank:", "survival:cox")

# What nodes show of penalty and rate, in single precision, counts where the configuration differs by more than this.
_SAME = 1e-3


def find(model: Any) -> type[LeafReader]:
    """Return the reader for an XGBoost model."""
    if isinstance(model, xgboost.Booster):
        return BoosterReader
    if isinstance(model, xgboost.XGBRegressor):  # XGBRFRegressor is one too
        if model.booster == "gblinear":
            raise unsupported(model, _LINEAR)
        return XGBRegressorReader
    raise unsupported(model, "it is not a regressor")


class XGBoostReader(WalkingReader):
    """What the two readers share: the booster, and how it reads rows."""

    library = "XGBoost"
    refused_characters = r"[\[\]<]"

    def __init__(self, model: Any, booster: Any, *, n_rounds: int = 0, missing: float = np.nan) -> None:
        super().__init__(model)
        self._booster = booster
        self._n_rounds = n_rounds  # those that `predict` uses; 0 for all
        self._missing = missing  # the value that means a missing one
        config = _config(booster)
        self.n_outputs = _n_outputs(model, config)
        parameters = _gbtree(config)["gbtree_model_param"]
        n_parallel, rounds = int(parameters["num_parallel_tree"]), int(booster.num_boosted_rounds())
        # Outputs share their trees, or their trees take turns.
        self._has_vector_leaves = self.n_outputs > 1 and int(parameters["num_trees"]) == rounds * n_parallel
        self._trees_per_round = n_parallel * (1 if self._has_vector_leaves else self.n_outputs)
        rounds = n_rounds or rounds
        self.n_trees = rounds * self._trees_per_round
        if self.n_outputs > 1 and not self._has_vector_leaves:
            self.outputs = read_only(np.tile(np.repeat(np.arange(self.n_outputs), n_parallel), rounds))
        self.n_features = int(booster.num_features())
        self._objective = config["objective"]["name"]
        self.nonnegative_loss = _LOG_LINK.get(self._objective, "")
        levels = config["objective"].get("quantile_loss_param", {}).get("quantile_alpha")  # one here
        self.quantile = None if levels is None else float(str(levels).strip("[]()").split(",")[0])
        self._names = booster.feature_names
        self._has_categories = "c" in (booster.feature_types or ())
        self._categories: list[list[Any]] = []

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting:
        if self._has_vector_leaves:
            raise RecipeError("its leaves hold vectors")
        config, content = _config(self._booster), _content(self._booster)
        if config["gradient_booster"]["name"] != "gbtree":
            raise RecipeError(f"its booster is {config['gradient_booster']['name']!r}")
        given = config["gradient_booster"]["tree_train_param"]
        if int(config["gradient_booster"]["gbtree_model_param"]["num_parallel_tree"]) > 1:
            raise RecipeError("it grows several trees in each round (num_parallel_tree)")
        drawn = float(given["subsample"])
        loss = _loss(config["objective"])
        trees = [_FittedTree(tree) for tree in _trees_of(content, self._n_rounds)[output :: self.n_outputs]]
        targets, weights = in_single(y, sample_weight)
        starts = _base_scores(content)
        start = starts[output if len(starts) > 1 else 0]
        l1, l2, rates = float(given["alpha"]), float(given["lambda"]), np.full(len(trees), float(given["eta"]))
        max_step = float(given["max_delta_step"])
        if not l1 and not max_step:
            l2 = _penalty(trees, l2)
            rates = np.array([tree.rate(l2, rate) for tree, rate in zip(trees, rates, strict=True)])
        # A tree whose rows weigh less than min_child_weight all together is a leaf of value 0.
        rates[[not tree.leaf_values.any() for tree in trees]] = 0.0
        return Boosting(
            LeafValues.of([tree.leaf_values for tree in trees]),
            loss,
            float(np.log(start) if loss.has_log_link else start),
            rates,
            targets,
            weights,
            loss.link,
            l1=l1,
            l2=l2,
            max_step=max_step,
            single=True,
            suspects="monotone_constraints" if given["monotone_constraints"] not in ("", "()") else "",
            sampled=drawn < 1 or loss.name != "squared" or _vary([tree.hessian[0] for tree in trees]),
            refusal=f"its trees have seen samples of the rows (subsample={given['subsample']})" if drawn < 1 else "",
        )

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of rows in leaves: the sum of their second derivatives, which are 1 for some losses."""
        if self._objective not in _UNIT_HESSIANS or self._has_vector_leaves:
            return None
        rounds = -(-n // self._trees_per_round)
        first = self._booster[: min(rounds, self._booster.num_boosted_rounds())]
        trees = _gbtree(_content(first))["model"]["trees"]
        return [
            np.where(np.array(tree["left_children"]) < 0, np.array(tree["sum_hessian"], np.float64), 0.0)
            for tree in trees[:n]
        ]

    def _trees(self) -> tuple[Trees, Link | None]:
        content = _content(self._booster)
        categories: list[NDArray[np.int32]] = []
        nodes = [_nodes(tree, categories) for tree in _trees_of(content, self._n_rounds)]
        if not nodes:
            raise NotWalkableError("it has no trees")
        has_log_link = self._objective in _LOG_LINK
        base = _base_scores(content)[:1]
        if has_log_link:
            kernel.log(base)
        reading = {
            "n_features": self.n_features,
            "single": True,
            "single_sums": True,
            "refuse_infinite": True,
            "members_left": False,
            "missing": float(np.float32(self._missing)),
            "start": float(base[0]),
        }
        known = content["gradient_booster"]["name"] != "dart" and (has_log_link or self._objective in _IDENTITY)
        known = known and self.n_outputs == 1  # one sum is not several predictions
        link = (_exp if has_log_link else _in_float32) if known else None
        return Trees.of(nodes, reading, categories), link

    def prepare(self, X: Any = None) -> None:
        """Compile and check the walk; remember the categories of X, with which it is checked."""
        if X is not None and self._has_categories and is_pandas(X):
            self._categories = [categories for _, categories in categories_of(X)]
        super().prepare(X)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "categories": self._categories}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._categories = [list(categories) for categories in state["categories"]]
        super().restore(state)

    def _matrix(self, X: Any) -> NDArray[Any] | None:
        """Return arrays and pandas frames of numbers; XGBoost itself reads frames with other names or categories."""
        if not is_pandas(X):
            return array_as_floats(X, np.float32)
        if names_of(X) != self._names:
            return None
        if self._has_categories:
            return frame_with_codes(X, np.float32, self._categories, recode=False)
        return frame_as_floats(X, np.float32)

    def _ask_library(self, matrix: NDArray[np.float64]) -> Answers:
        booster = self._booster
        rows = xgboost.DMatrix(
            matrix, missing=self._missing, feature_names=booster.feature_names, feature_types=booster.feature_types
        )
        return self._leaves_of(rows, len(matrix)), booster.predict(rows, iteration_range=(0, self._n_rounds))

    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        return self._leaves_of(self._rows(X), _num_samples(X))

    @abstractmethod
    def _rows(self, X: Any) -> xgboost.DMatrix:
        """Return the rows as the model's own functions hand them to the booster."""

    def _leaves_of(self, rows: xgboost.DMatrix, n_rows: int) -> NDArray[np.int32]:
        leaves = self._booster.predict(rows, pred_leaf=True, iteration_range=(0, self._n_rounds))
        return as_leaf_numbers(leaves, n_rows, self.model)


class XGBRegressorReader(XGBoostReader):
    """Reads ``XGBRegressor`` and ``XGBRFRegressor``; like ``predict``, up to the best iteration of early stopping."""

    def __init__(self, model: Any) -> None:
        require_fitted(model, model.__sklearn_is_fitted__())
        n_rounds = int(getattr(model, "best_iteration", -1)) + 1  # the attribute is there after early stopping
        super().__init__(model, model.get_booster(), n_rounds=n_rounds, missing=float(model.missing))

    def _rows(self, X: Any) -> xgboost.DMatrix:
        # What `apply` does; but XGBoost 2's `apply` refuses the categorical columns that its `predict` takes.
        model = self.model
        return xgboost.DMatrix(
            X,
            missing=model.missing,
            feature_types=model.feature_types,
            nthread=model.n_jobs,
            enable_categorical=model.enable_categorical,
        )


class BoosterReader(XGBoostReader):
    """Reads ``Booster``, whose ``predict`` uses all trees; XGBoost itself checks the names of its columns."""

    def __init__(self, model: Any) -> None:
        require_fitted(model, _has_rounds(model))
        super().__init__(model, model)

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.model.predict(self._rows(X)))

    def _rows(self, X: Any) -> xgboost.DMatrix:
        return xgboost.DMatrix(X, enable_categorical=True)


def _has_rounds(booster: Any) -> bool:
    try:
        return bool(booster.num_boosted_rounds() > 0)
    except xgboost.core.XGBoostError:  # an empty Booster() cannot even count
        return False


def _config(booster: Any) -> dict[str, Any]:
    """Return the configuration of a booster: its parameters."""
    config: dict[str, Any] = json.loads(booster.save_config())["learner"]
    return config


def _content(booster: Any) -> dict[str, Any]:
    """Return what the model file of a booster has: trees, and a few parameters."""
    content: dict[str, Any] = parse(bytes(booster.save_raw("ubj")))["learner"]
    return content


def _gbtree(learner: dict[str, Any]) -> dict[str, Any]:
    """Return the part about trees of a configuration or a model file; that of DART is one level further down."""
    booster = learner["gradient_booster"]
    part: dict[str, Any] = booster.get("gbtree", booster)
    return part


def _base_scores(content: dict[str, Any]) -> NDArray[np.float32]:
    """Return the predictions before the first tree, one or one for each output, (n,)."""
    return np.array(content["learner_model_param"]["base_score"].strip("[]").split(","), np.float32)


def _n_outputs(model: Any, learner: dict[str, Any]) -> int:
    """Return the number of outputs that a configuration says; refuse a model that is no regression model."""
    kind, objective = learner["gradient_booster"]["name"], learner["objective"]["name"]
    if kind == "gblinear":
        raise unsupported(model, _LINEAR)
    if objective.startswith(_NO_REGRESSION):
        raise unsupported(model, f"its objective is {objective!r}, and ibug needs a regression model")
    # A user's own objective may ask for classes without a name that shows it; several quantiles are outputs, too.
    n_classes, n_targets = (int(learner["learner_model_param"].get(name, 1)) for name in ("num_class", "num_target"))
    if n_classes > 1 or (n_targets > 1 and "quantile" in objective):
        raise unsupported(model, "it has several outputs, which are not several targets")
    return max(n_targets, 1)


def _trees_of(content: dict[str, Any], n_rounds: int) -> list[dict[str, Any]]:
    """Return the trees of the first rounds, of all if the number is 0."""
    model = _gbtree(content)["model"]
    trees: list[dict[str, Any]] = model["trees"][: model["iteration_indptr"][n_rounds or -1]]
    return trees


def _in_float32(sums: Floats) -> NDArray[np.float32]:
    return sums.astype(np.float32)


def _exp(sums: Floats) -> NDArray[np.float32]:
    """Return the exponential as XGBoost computes it: in single precision."""
    margins = _in_float32(sums)
    kernel.exp(margins)
    return margins


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


def _vary(weights: list[float]) -> bool:
    """Return whether trees have seen rows of different weights: samples, though a file does not have the parameter."""
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
    raise RecipeError(f"its loss, {name!r}, is not known or makes leaf values of medians or quantiles")


class _FittedTree:
    """The nodes of one tree: their values, which are −G/(H + l2), times the rate in leaves, and the sums H.

    A model from a file has no configuration: as G of a node is the sum of its children's, l2 and rate follow from them.
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
        """Return the learning rate that leaves and their parents show, or the given one if it agrees."""
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


def _penalty(trees: list[_FittedTree], given: float) -> float:
    """Return l2 as the nodes show it, or the given one if it agrees."""
    pairs = [tree.inner_pairs() for tree in trees]
    d, e = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
    size = float(e @ e)
    found = float(d @ e) / size if size > 0 else given
    return given if abs(found - given) <= 10 * _SAME * max(given, 1.0) else found
