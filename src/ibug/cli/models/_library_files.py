"""Trained models in their libraries' own files; the ending tells the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ibug.exceptions import IBUGError, InvalidInputError, MissingDependencyError


def library(name: str, why: str) -> Any:
    """Import an optional library, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f'{why} needs {name}, which cannot be imported ({error}). Install it: pip install "ibug-learn[{name}]".'
        ) from error


def load_model(path: str) -> Any:
    """Load a trained model by the ending of its file."""
    ending = Path(path).suffix.lower()
    if ending not in _LOADERS:
        hint = " It was saved by ibug already: use it with ibug predict." if ending == ".ibug" else ""
        raise InvalidInputError(
            f"{path}: the ending does not tell the library. Expected are LightGBM's .txt (booster.save_model), "
            f"XGBoost's .ubj or .json (save_model), CatBoost's .cbm (save_model).{hint}"
        )
    if not Path(path).is_file():
        raise InvalidInputError(f"The model file {path} does not exist.")
    name, load = _LOADERS[ending]
    module = library(name, f"{path}")
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
            raise InvalidInputError(f"{path} is no LightGBM model: booster.save_model writes one.")
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
        with open(path, encoding="utf-8") as file:
            keys = set(json.load(file))
    except (ValueError, TypeError):
        keys = set()
    if "learner" not in keys:
        raise InvalidInputError(
            f"{path} is no XGBoost model: save_model of a Booster or XGBRegressor writes one (dump_model does not)."
        )


def _catboost(catboost: Any, path: str) -> Any:
    return catboost.CatBoostRegressor().load_model(path)


_LOADERS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    ".txt": ("lightgbm", _lightgbm),
    ".ubj": ("xgboost", _xgboost),
    ".json": ("xgboost", _xgboost),
    ".cbm": ("catboost", _catboost),
}
