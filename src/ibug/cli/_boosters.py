"""Trained models in their libraries' own files; the ending names the library."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from ibug._installed import how_to_install
from ibug._typing import Floats
from ibug.exceptions import IBUGError, InvalidInputError, MissingDependencyError
from ibug.leaves import names_taken, renamed


def library(name: str, why: str) -> Any:
    """Import an optional library, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"{why} needs {name}, which cannot be imported ({error}). Install it: {how_to_install(name)}."
        ) from error


def load_model(path: str) -> Any:
    """Load a trained model by the ending of its file."""
    ending = Path(path).suffix.lower()
    if ending not in _LOADERS:
        hint = " It was saved by ibug already: use it with ibug predict." if ending == ".ibug" else ""
        raise InvalidInputError(
            f"{path}: the ending of the file is not that of a library's model. Expected are LightGBM's .txt "
            f"(booster.save_model), XGBoost's .ubj or .json (save_model), CatBoost's .cbm (save_model).{hint}"
        )
    if not Path(path).is_file():
        raise InvalidInputError(f"The model file {path} does not exist.")
    name, load = _LOADERS[ending]
    module = library(name, path)
    try:
        return load(module, path)
    except (IBUGError, MemoryError):
        raise
    except Exception as error:  # each library has errors of its own, and bare ones of Python for damaged files
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InvalidInputError(f"{name} cannot load {path}: {reason}") from error


def _lightgbm(lightgbm: Any, path: str) -> Any:
    with open(path, "rb") as file:
        if file.read(5) != b"tree\n":
            raise InvalidInputError(f"{path} is not a LightGBM model: booster.save_model writes one.")
    return lightgbm.Booster(params={"verbosity": -1}, model_file=path)


def _xgboost(xgboost: Any, path: str) -> Any:
    if path.lower().endswith(".json"):
        _require_xgboost_json(path)
    booster = xgboost.Booster(model_file=path)
    if booster.attr("scikit_learn") is None:
        return booster
    # It was saved by XGBRegressor, which predicts up to the best iteration; a Booster would use all trees.
    model = xgboost.XGBRegressor(enable_categorical=True)
    model.load_model(path)
    return model


def _require_xgboost_json(path: str) -> None:
    try:
        keys = set(json.loads(Path(path).read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        keys = set()
    if "learner" not in keys:
        raise InvalidInputError(
            f"{path} is not an XGBoost model: save_model of a Booster or XGBRegressor writes one (dump_model does not)."
        )


def _catboost(catboost: Any, path: str) -> Any:
    return catboost.CatBoostRegressor().load_model(path)


_LOADERS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    ".txt": ("lightgbm", _lightgbm),
    ".ubj": ("xgboost", _xgboost),
    ".json": ("xgboost", _xgboost),
    ".cbm": ("catboost", _catboost),
}


# XGBRegressor takes the library's own names as well, and only warns of others once it is trained.
_XGBOOST = {
    "aft_loss_distribution", "aft_loss_distribution_scale", "alpha", "disable_default_eval_metric", "eta",
    "extmem_single_page", "feature_selector", "huber_slope", "lambda", "lambda_bias", "max_cached_hist_node",
    "max_cat_threshold", "max_cat_to_onehot", "min_split_loss", "normalize_type", "nthread", "num_target", "one_drop",
    "process_type", "quantile_alpha", "rate_drop", "refresh_leaf", "sample_type", "seed", "seed_per_iteration",
    "sketch_ratio", "skip_drop", "top_k", "tweedie_variance_power", "updater", "use_rmm",
}  # fmt: skip


def parse_parameters(given: list[str]) -> dict[str, Any]:
    """Return ``name=value`` pairs as parameters; values are JSON where they can be, and text otherwise."""
    parameters = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInputError(f"--param {pair}: name=value is expected, num_leaves=63 say.")
        try:
            parameters[name] = json.loads(text)
        except ValueError:
            parameters[name] = text
    return parameters


def check_parameters(given: Iterable[str], estimator: Any, library: str) -> None:
    """Refuse parameters that the library does not know, and suggest what was probably meant."""
    known = _known(estimator, library)
    for name in given:
        if name not in known:
            usual = get_close_matches(name, sorted(estimator.get_params()), 1, cutoff=0.7)
            close = usual or get_close_matches(name, sorted(known), 1, cutoff=0.7)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise InvalidInputError(f"--param {name}: {library} has no such parameter{hint}")


def _known(estimator: Any, library: str) -> set[str]:
    known = {*estimator.get_params(), *inspect.signature(type(estimator).__init__).parameters}
    if library == "xgboost":
        known |= _XGBOOST
    if library == "lightgbm":  # LGBMRegressor itself takes anything; its compiled part lists all names and aliases
        from lightgbm.basic import _ConfigAliases

        known.update(*_ConfigAliases._get_all_param_aliases().values())
    return known - {"self", "kwargs"}


_MOST_TREES = 2000
_PATIENCE = 50  # trees without progress
_SHARED = {"learning_rate": 0.05}
_HELD_OUT = 0.2  # of the training rows, to stop on
_LEAST_ROWS_TO_STOP_ON = 20
_TREES_WITHOUT_STOPPING = 100


@dataclass(frozen=True)
class Training:
    """The settings of a training."""

    trees: int | None = None  # None: early stopping finds it
    parameters: dict[str, Any] = field(default_factory=dict)  # of the library's estimator, as the user gave them
    seed: int = 0
    jobs: int = -1
    categorical: tuple[str, ...] = ()


class Booster(ABC):
    """How the command trains models of one library."""

    #: The library's import name, its estimator, and the name of the parameter for the number of trees.
    library: str
    regressor: str
    trees: str

    #: Whether categories are given to the library as texts.
    texts = False

    #: The largest number of categories in one column.
    most_categories = 2**31

    def require(self) -> Any:
        """Import the library, or say how to install it."""
        return library(self.library, f"--booster {self.library}")

    @abstractmethod
    def settings(self, training: Training) -> dict[str, Any]:
        """Return the parameters that the estimator has unless the user gives others."""

    def make(self, training: Training, **options: Any) -> Any:
        """Return an untrained estimator."""
        parameters = {**_SHARED, **self.settings(training), **training.parameters, **options}
        return getattr(self.require(), self.regressor)(**parameters)

    @abstractmethod
    def best_trees(self, training: Training, train: tuple[Any, ...], held_out: tuple[Any, ...]) -> int:
        """Train with early stopping and return the best number of trees; rows are (X, y, weights or None)."""

    def check(self, training: Training) -> None:
        """Refuse parameters that the library does not know."""
        check_parameters(training.parameters, self.make(replace(training, parameters={})), self.library)

    def estimator(self, training: Training, X: Any, y: Any, weight: Any) -> tuple[Any, int]:
        """Return an untrained estimator with the best number of trees, and that number."""
        trees = training.trees if training.trees is not None else training.parameters.get(self.trees)
        if trees is None and len(y) < _LEAST_ROWS_TO_STOP_ON:
            trees = _TREES_WITHOUT_STOPPING
        if trees is None:
            taken = names_taken(self._checked(training), X.columns)
            parts = _split(X if taken is None else renamed(X, taken), y, weight, training.seed)
            trees = self.best_trees(training, *parts)
        return self._checked(training, **{self.trees: int(trees)}), int(trees)

    def _checked(self, training: Training, **options: Any) -> Any:
        try:
            return self.make(training, **options)
        except TypeError as error:
            raise InvalidInputError(f"--param: {self.library} does not take it: {error}.") from error


def _split(X: Any, y: Floats, weight: Any, seed: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    train, held_out = train_test_split(np.arange(len(y)), test_size=_HELD_OUT, random_state=seed)

    def take(rows: Any) -> tuple[Any, ...]:
        return _safe_indexing(X, rows), y[rows], None if weight is None else weight[rows]

    return take(np.sort(train)), take(np.sort(held_out))


class _LightGBMBooster(Booster):
    library, regressor, trees = "lightgbm", "LGBMRegressor", "n_estimators"

    def settings(self, training: Training) -> dict[str, Any]:
        return {"random_state": training.seed, "n_jobs": training.jobs, "verbosity": -1}

    def best_trees(self, training: Training, train: tuple[Any, ...], held_out: tuple[Any, ...]) -> int:
        model = self._checked(training, n_estimators=_MOST_TREES)
        X, y, weight = held_out
        stop = self.require().early_stopping(_PATIENCE, verbose=False)
        newer = "eval_X" in inspect.signature(model.fit).parameters  # LightGBM 4.7 has new names
        rows = {"eval_X": X, "eval_y": y} if newer else {"eval_set": [(X, y)]}
        model.fit(*train[:2], sample_weight=train[2], **rows, eval_sample_weight=[weight], callbacks=[stop])
        return max(1, int(model.best_iteration_))


class _XGBoostBooster(Booster):
    library, regressor, trees = "xgboost", "XGBRegressor", "n_estimators"

    def settings(self, training: Training) -> dict[str, Any]:
        own = {"tree_method": "hist", "enable_categorical": True}
        return {"random_state": training.seed, "n_jobs": training.jobs, **own}

    def best_trees(self, training: Training, train: tuple[Any, ...], held_out: tuple[Any, ...]) -> int:
        model = self._checked(training, n_estimators=_MOST_TREES, early_stopping_rounds=_PATIENCE)
        X, y, weight = held_out
        weights = None if weight is None else [weight]
        model.fit(*train[:2], sample_weight=train[2], eval_set=[(X, y)], sample_weight_eval_set=weights, verbose=False)
        return int(model.best_iteration) + 1


class _CatBoostBooster(Booster):
    library, regressor, trees, texts = "catboost", "CatBoostRegressor", "iterations", True

    def settings(self, training: Training) -> dict[str, Any]:
        own: dict[str, Any] = {"allow_writing_files": False, "logging_level": "Silent"}
        if training.categorical:
            own["cat_features"] = training.categorical  # a tuple: scikit-learn can clone it
        return {"random_seed": training.seed, "thread_count": training.jobs, **own}

    def best_trees(self, training: Training, train: tuple[Any, ...], held_out: tuple[Any, ...]) -> int:
        model = self._checked(training, iterations=_MOST_TREES)
        pool = self.require().Pool
        columns = list(training.categorical)
        sets = [pool(X, y, weight=weight, cat_features=columns) for X, y, weight in (train, held_out)]
        model.fit(sets[0], eval_set=sets[1], early_stopping_rounds=_PATIENCE)
        return int(model.get_best_iteration()) + 1


class _SklearnBooster(Booster):
    library, regressor, trees, most_categories = "sklearn", "HistGradientBoostingRegressor", "max_iter", 255

    def require(self) -> Any:
        return import_module("sklearn.ensemble")

    def settings(self, training: Training) -> dict[str, Any]:
        return {"random_state": training.seed, "categorical_features": "from_dtype", "early_stopping": False}

    def best_trees(self, training: Training, train: tuple[Any, ...], held_out: tuple[Any, ...]) -> int:
        stopping = {"early_stopping": True, "validation_fraction": _HELD_OUT, "n_iter_no_change": _PATIENCE}
        model = self._checked(training, max_iter=_MOST_TREES, **stopping)
        X, y, weight = train
        model.fit(X, y, sample_weight=weight)
        return max(1, int(np.argmax(model.validation_score_)))  # the first score is that of no tree


BOOSTERS_BY_NAME: dict[str, Booster] = {
    "lightgbm": _LightGBMBooster(),
    "xgboost": _XGBoostBooster(),
    "catboost": _CatBoostBooster(),
    "sklearn": _SklearnBooster(),
}


def default_booster() -> str:
    """Return the first library that is installed; scikit-learn always is."""
    for name, booster in BOOSTERS_BY_NAME.items():
        try:
            booster.require()
        except IBUGError:
            continue
        return name
    raise AssertionError("scikit-learn is a core dependency")
