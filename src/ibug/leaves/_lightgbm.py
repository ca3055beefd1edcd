"""LightGBM: leaf numbers from ``predict(pred_leaf=True)``; trees and leaf values from the text of its model."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug.leaves._matrix import array_as_floats, frame_with_codes, is_pandas
from ibug.leaves._reader import LeafReader, as_leaf_numbers, require_fitted, unsupported
from ibug.leaves._recipe import Boosting, LeafValues, Loss, RecipeError, by_tree, identity, in_single
from ibug.leaves._walk import Answers, Link, NotWalkableError, Trees, WalkingReader, members_of, new_nodes, offsets

#: The objectives whose raw predictions are logarithms, and their names.
_LOG_LINK = {"poisson": "Poisson", "gamma": "gamma", "tweedie": "Tweedie"}
_MEDIANS = {"regression_l1", "quantile", "mape"}
_IDENTITY = {"regression", "huber", "fair", "custom"} | _MEDIANS
_NO_REGRESSION = {"binary", "multiclass", "multiclassova", "lambdarank", "rank_xendcg"}

_ALPHA = 0.9  # LightGBM's default level of a quantile
_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of a split's decision type; the next two say what is missing


def find(model: Any) -> type[LeafReader]:
    """Return the reader for a LightGBM model."""
    if isinstance(model, (lightgbm.LGBMRegressor, lightgbm.Booster)):
        return LightGBMReader
    raise unsupported(model, "it is not a regressor")


class LightGBMReader(WalkingReader):
    """Reads ``LGBMRegressor`` and ``Booster``; both stop at the best iteration of early stopping in every call."""

    library = "LightGBM"
    refused_characters = r'[",:\[\]{}\r\n]'

    def __init__(self, model: Any) -> None:
        native = isinstance(model, lightgbm.Booster)
        require_fitted(model, model.num_trees() > 0 if native else model.__sklearn_is_fitted__())
        super().__init__(model)
        booster = self._booster()
        text = ModelText.of(booster, 1)
        objective = text.objective[0] if text.objective else ""
        if objective in _NO_REGRESSION:
            raise unsupported(model, f"its objective is {objective!r}, and ibug needs a regression model")
        if booster.num_model_per_iteration() != 1:
            raise unsupported(model, "it has several outputs")
        n_trees, best = int(booster.num_trees()), int(booster.best_iteration)
        self.n_trees = min(best, n_trees) if best > 0 else n_trees
        self.n_features = int(booster.num_feature())
        names = booster.feature_name()  # which LightGBM makes up for arrays
        self.feature_names = None if names == [f"Column_{i}" for i in range(len(names))] else names
        self.quantile = float(text.parameters.get("alpha", _ALPHA)) if objective == "quantile" else None
        self.nonnegative_loss = _LOG_LINK.get(objective, "")

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of rows in leaves; a tree that is one leaf has none in its file."""
        trees = ModelText.of(self._booster(), min(n, self.n_trees)).trees
        return [_numbers([tree], "leaf_count", np.float64) for tree in trees if "leaf_count" in tree] or None

    def written_as(self, name: str) -> str:
        """Return a column's name as LightGBM writes it: with underscores for white space."""
        return re.sub(r"\s", "_", name)

    @classmethod
    def refuses(cls, name: str) -> bool:
        """Return whether LightGBM refuses a name: an empty one, or one with a character that JSON uses."""
        return not name or super().refuses(name)

    @classmethod
    def spelled(cls, name: str) -> str:
        """Return the nearest name that LightGBM takes; it makes underscores of white space by itself."""
        return re.sub(r"\s", "_", super().spelled(name)) or "_"

    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers, 0 to ``num_leaves - 1`` in each tree."""
        return as_leaf_numbers(self.model.predict(X, pred_leaf=True), _num_samples(X), self.model)

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting:
        booster = self._booster()
        text = ModelText.of(booster, booster.best_iteration)
        given, trees = text.parameters, text.trees
        if not given:
            raise RecipeError("its file has no parameters")
        targets, weights = in_single(y, sample_weight)
        refusal, seen = _sampling(given, len(targets))
        loss, of_roots = _loss(text)
        counts = [int(tree["num_leaves"]) for tree in trees]
        values = by_tree(_numbers(trees, "leaf_value", np.float64), counts)
        rates = np.array([float(tree["shrinkage"]) for tree in trees])
        if rates[0] == 1.0 and len(set(rates[1:])) > 1:
            raise RecipeError("its learning rate changes, and that of the first tree is not known")
        if of_roots:
            targets, _ = in_single(np.sign(targets) * np.sqrt(np.abs(targets)), None)
        start = 0.0
        # Which is how the average in the first tree shows; it is there, too, where the first tree finds no split.
        if rates[0] == 1.0 and (int(given["boost_from_average"]) or counts[0] == 1):
            start = float(np.average(targets, weights=weights))
            if loss.has_log_link:
                start = float(np.log(start))
            rates[0], values[0] = float(given["learning_rate"]), values[0] - start
        rates[np.array(counts) == 1] = 0.0
        suspects = {
            "monotone_constraints hold values between those of other leaves": bool(given["monotone_constraints"]),
            "use_quantized_grad rounds gradients": given.get("use_quantized_grad", "0") != "0",
            "bagging needs the rows in the order of the training, and a split in each round": seen is not None,
        }
        return Boosting(
            LeafValues.of(values),
            loss,
            start,
            rates,
            targets,
            weights,
            _signed_square if of_roots else loss.link,
            l1=float(given["lambda_l1"]),
            l2=_penalties(text, np.array(counts)),
            max_step=float(given["max_delta_step"]),
            seen=seen,
            suspects=", ".join(name for name, is_set in suspects.items() if is_set),
            sampled=bool(refusal) or seen is not None,
            refusal=refusal,
        )

    def _booster(self) -> Any:
        return self.model if isinstance(self.model, lightgbm.Booster) else self.model.booster_

    def _trees(self) -> tuple[Trees, Link | None]:
        booster = self._booster()
        text = ModelText.of(booster, booster.best_iteration)
        trees = text.trees
        if not trees or text.header.get("num_tree_per_iteration") != "1":
            raise NotWalkableError("LightGBM's model text is not as expected")
        n_leaves = np.array([int(tree["num_leaves"]) for tree in trees])
        nodes, first = _nodes(trees, n_leaves), offsets(2 * n_leaves - 1)
        reading = {"n_features": self.n_features, "tiny_is_zero": True, "truncated": True}
        is_linear = any(tree.get("is_linear", "0") != "0" for tree in trees)
        return Trees(first, nodes, reading, _read_categories(trees, nodes, first)), None if is_linear else _link(text)

    def _matrix(self, X: Any) -> NDArray[Any] | None:
        """Return what LightGBM makes of arrays and pandas frames: integers become single precision in arrays."""
        if not is_pandas(X):
            return array_as_floats(X, np.float32)
        dtypes = X.dtypes.tolist()
        categories = self._booster().pandas_categorical or []
        if categories or any(not isinstance(dtype, np.dtype) for dtype in dtypes):
            return frame_with_codes(X, np.float64, categories, recode=True)
        if any(dtype.kind not in "biuf" for dtype in dtypes):
            return None
        return np.ascontiguousarray(X.to_numpy(dtype=np.result_type(*dtypes, np.float32)))

    def _ask_library(self, matrix: NDArray[np.float64]) -> Answers:
        booster = self._booster()
        leaves = as_leaf_numbers(booster.predict(matrix, pred_leaf=True), len(matrix), self.model)
        return leaves, np.asarray(booster.predict(matrix))


@dataclass(frozen=True)
class ModelText:
    """The text of a model file, its lines ``name=value`` as dicts."""

    header: dict[str, str]
    trees: list[dict[str, str]]
    parameters: dict[str, str]  # none where the model was made by other means than training

    @classmethod
    def of(cls, booster: Any, n_iterations: int) -> ModelText:
        """Read the text of the first iterations of a booster; of all, if the number is not above zero."""
        trees, _, rest = booster.model_to_string(num_iteration=n_iterations).partition("\nend of trees")
        parts = [dict(line.partition("=")[::2] for line in part.split("\n")) for part in trees.split("\nTree=")]
        return cls(parts[0], parts[1:], dict(re.findall(r"^\[(\w+): (.*)\]$", rest, re.MULTILINE)))

    @property
    def objective(self) -> list[str]:
        """The name of the objective and its options, also of a booster from a file; none for a user's own function."""
        return self.header.get("objective", "").split()


def _numbers(trees: list[dict[str, str]], name: str, kind: type) -> NDArray[Any]:
    """Return the numbers of all trees one after another; a tree of one leaf has none of its splits."""
    text = " ".join(tree.get(name, "") for tree in trees)
    return np.fromstring(text, kind, sep=" ") if text.strip() else np.empty(0, kind)


def _nodes(trees: list[dict[str, str]], n_leaves: NDArray[np.intp]) -> NDArray[Any]:
    """Return the nodes of all trees, in each the splits first and then the leaves."""
    n_splits = n_leaves - 1
    nodes = new_nodes(int((2 * n_leaves - 1).sum()))
    is_leaf = np.repeat(np.tile([False, True], len(trees)), np.column_stack([n_splits, n_leaves]).ravel())
    nodes["value"][is_leaf] = _numbers(trees, "leaf_value", np.float64)
    nodes["number"][is_leaf] = np.arange(n_leaves.sum()) - np.repeat(np.cumsum(n_leaves) - n_leaves, n_leaves)
    splits = new_nodes(int(n_splits.sum()))
    decision = _numbers(trees, "decision_type", np.int32)
    splits["feature"] = _numbers(trees, "split_feature", np.int32)
    splits["threshold"] = _numbers(trees, "threshold", np.float64)
    splits["missing"] = decision >> 2 & 3
    splits["default_left"] = (decision & _DEFAULT_LEFT) > 0
    splits["categories"] = np.where((decision & _CATEGORICAL) > 0, 0, -1)
    for side in ("left", "right"):
        child = _numbers(trees, f"{side}_child", np.int32)
        leaf = np.repeat(n_splits, n_splits) + ~child  # a leaf is written as the complement of its number
        splits[side] = np.where(child >= 0, child, leaf)
    nodes[~is_leaf] = splits
    return nodes


def _read_categories(
    trees: list[dict[str, str]], nodes: NDArray[Any], first: NDArray[np.int64]
) -> list[NDArray[np.int32]]:
    """Return the sets of categories, and let the categorical nodes point to them: their thresholds number them."""
    categories: list[NDArray[np.int32]] = []
    for number, tree in enumerate(trees):
        if int(tree.get("num_cat", "0")) == 0:
            continue
        own = nodes[first[number] : first[number + 1]]
        categorical = own["categories"] == 0
        own["categories"][categorical] = len(categories) + own["threshold"][categorical].astype(np.int32)
        own["threshold"][categorical] = 0.0
        own["missing"][categorical] = own["default_left"][categorical] = 0  # a missing category goes right
        bitsets = _numbers([tree], "cat_threshold", np.uint32)
        bounds = _numbers([tree], "cat_boundaries", np.int64)
        categories += [members_of(bitsets[start:end]) for start, end in pairwise(bounds)]
    return categories


def _link(text: ModelText) -> Link | None:
    """Return what LightGBM does to a sum of leaf values: the mean for a random forest, and the inverse of the link."""
    name, *options = text.objective or ["custom"]
    if name not in _IDENTITY and name not in _LOG_LINK:
        return None
    inverse = np.exp if name in _LOG_LINK else _signed_square if "sqrt" in options else identity
    if "average_output" in text.header:
        return lambda sums: inverse(sums / len(text.trees))
    return inverse


def _signed_square(raw: Floats) -> Floats:
    return np.asarray(np.sign(raw) * raw * raw)


def _penalties(text: ModelText, n_leaves: NDArray[np.intp]) -> Floats:
    """Return l2 of each leaf of all trees: a split that makes two groups of categories adds `cat_l2` to its leaves'.

    With few categories, a split takes one of them, and adds nothing. A bin of a column is a category or the others.
    """
    given, trees, n_splits = text.parameters, text.trees, n_leaves - 1
    n_bins = np.array([info.count(":") + 1 for info in text.header["feature_infos"].split(" ")])
    grouped = (_numbers(trees, "decision_type", np.int32) & _CATEGORICAL) > 0
    grouped &= n_bins[_numbers(trees, "split_feature", np.int32)] > int(given["max_cat_to_onehot"])
    first = np.repeat(np.cumsum(n_leaves) - n_leaves, n_splits)
    l2 = np.full(n_leaves.sum(), float(given["lambda_l2"]))
    for side in ("left", "right"):
        child = _numbers(trees, f"{side}_child", np.int32)
        leaf = grouped & (child < 0)
        l2[first[leaf] + ~child[leaf]] += float(given["cat_l2"])
    return l2


def _sampling(given: dict[str, str], n_rows: int) -> tuple[str, Callable[[slice], NDArray[np.bool_]] | None]:
    """Return why it is not known which rows trees have seen, or nothing, and those of bags; raise for other values."""
    if given["boosting"] == "dart":
        raise RecipeError("its boosting is 'dart', in which later trees change the values of earlier ones")
    if given["boosting"] not in ("gbdt", "gbrt"):
        raise RecipeError(f"its boosting is {given['boosting']!r}")
    if given.get("linear_tree", "0") != "0":
        raise RecipeError("its leaves have linear models")
    if float(given.get("path_smooth", "0")):
        raise RecipeError("the values of its leaves are smoothed (path_smooth)")
    if given.get("data_sample_strategy", "bagging") != "bagging":
        return f"its trees have seen samples of the rows ({given['data_sample_strategy']})", None
    frequency, fraction = int(given["bagging_freq"]), float(given["bagging_fraction"])
    if not frequency or fraction >= 1:
        return "", None
    if given.get("bagging_by_query", "0") != "0":
        return "its trees have seen samples of the rows (bagging_by_query)", None
    bags = _Bags(n_rows, int(given["bagging_seed"]), fraction)

    def seen(trees: slice) -> NDArray[np.bool_]:
        numbers = np.arange(trees.start, trees.stop) // frequency
        drawn = np.array([bags.draw(number) for number in range(numbers[0], numbers[-1] + 1)])
        return np.asarray(drawn[numbers - numbers[0]])

    return "", seen


class _Bags:
    """The rows in each bag, as LightGBM draws them: blocks of rows have random numbers of their own.

    These are x ← 214013 x + 2531011, modulo 2³², from the seed plus the number of the block on. A row is in the bag
    where bits 16 to 30, as a share of 2¹⁵, are below `fraction`.
    """

    _block = 1024

    def __init__(self, n_rows: int, seed: int, fraction: float) -> None:
        self._fraction = fraction
        block, place = np.divmod(np.arange(n_rows), self._block)
        factors, terms = np.array([_steps(i + 1) for i in range(self._block)], np.uint64).T
        self._first = (factors[place] * ((seed + block) % 2**32).astype(np.uint64) + terms[place]) % 2**32
        self._n_whole = n_rows - n_rows % self._block  # the number of rows in whole blocks

    def draw(self, number: int) -> NDArray[np.bool_]:
        """Return whether each row is in a bag, given by its number from 0 on, (n_rows,)."""
        numbers = self._first.copy()
        for rows, size in (
            (numbers[: self._n_whole], self._block),
            (numbers[self._n_whole :], len(numbers) - self._n_whole),
        ):
            factor, term = _steps(int(number) * size)
            rows[:] = (np.uint64(factor) * rows + np.uint64(term)) % 2**32
        return np.asarray((numbers >> np.uint64(16) & np.uint64(0x7FFF)) / 2**15 < self._fraction)


def _steps(n: int) -> tuple[int, int]:
    """Return a and b of n steps of LightGBM's random numbers in one, x ← a x + b modulo 2³²."""
    a, b, factor, term = 1, 0, 214013, 2531011
    while n:
        if n & 1:
            a, b = a * factor % 2**32, (b * factor + term) % 2**32
        factor, term, n = factor * factor % 2**32, (term * factor + term) % 2**32, n >> 1
    return a, b


def _loss(text: ModelText) -> tuple[Loss, bool]:
    """Return the loss, and whether it is that of square roots."""
    if not text.objective:
        raise RecipeError("its loss is a function of its own")
    name, *options = text.objective
    if name in _MEDIANS:
        raise RecipeError(f"its loss, {name!r}, makes leaf values of medians or quantiles")
    losses = {
        "regression": Loss(),
        "huber": Loss("huber", float(text.parameters["alpha"])),
        "poisson": Loss("poisson", float(text.parameters["poisson_max_delta_step"])),
        "gamma": Loss("gamma"),
        "tweedie": Loss("tweedie", float(text.parameters["tweedie_variance_power"])),
    }
    if name not in losses:
        raise RecipeError(f"its loss, {name!r}, is not known")
    return losses[name], "sqrt" in options
