"""The columns of a trained model, as far as the model knows them: names and categories."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ibug.exceptions import InvalidInputError


@dataclass(frozen=True)
class ModelColumns:
    """The columns of a model, as far as the model knows them.

    Parameters
    ----------
    n
        The number of columns.
    names
        Their names, as the library writes them; None where the model was trained without names.
    categories
        By place of a categorical column: its categories, in the model's order; None where the model does not keep them.
    unplaced
        Lists of categories in the order of their columns, where the model does not tell which columns these are.
    texts
        Whether the model takes categories as texts.
    any
        Whether the model takes values of any kind: a Pipeline that encodes texts itself, say.
    """

    n: int
    names: list[str] | None
    categories: dict[int, list[Any] | None] = field(default_factory=dict)
    unplaced: list[list[Any]] = field(default_factory=list)
    texts: bool = False
    any: bool = False

    @property
    def values(self) -> frozenset[str]:
        """All texts that are categories of the model, as far as it keeps them."""
        lists = [*(known for known in self.categories.values() if known is not None), *self.unplaced]
        return frozenset(value for known in lists for value in known if isinstance(value, str))


def columns_of(model: Any, n: int | None = None) -> ModelColumns:
    """Return the columns of a trained model."""
    from ibug.leaves import read_leaves_of  # takes long to import

    names = read_leaves_of(model).feature_names
    while hasattr(model, "regressor_") or type(model).__name__ == "FrozenEstimator":
        model = model.regressor_ if hasattr(model, "regressor_") else model.estimator
    libraries = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    for name, ask in (("lightgbm", _lightgbm), ("xgboost", _xgboost), ("catboost", _catboost)):
        if name in libraries:
            return ask(model, names)
    return _sklearn(model, names, n)


def _lightgbm(model: Any, names: list[str] | None) -> ModelColumns:
    booster = getattr(model, "booster_", model)
    known = [list(values) for values in booster.pandas_categorical or []]
    header = booster.model_to_string(num_iteration=1).partition("\nTree=")[0]
    found = re.search(r"^feature_infos=(.*)$", header, re.MULTILINE)
    infos = found[1].split(" ") if found else []
    # [least:greatest] for numbers, none for a column that is never used, otherwise the codes of categories.
    places = [i for i, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    n = booster.num_feature()
    if len(places) == len(known):
        return ModelColumns(n, names, dict(zip(places, known, strict=True)))
    return ModelColumns(n, names, unplaced=known)


def _xgboost(model: Any, _: list[str] | None) -> ModelColumns:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    names = booster.feature_names  # the reader may leave their check to XGBoost and have none
    types = booster.feature_types or []
    stored = _xgboost_categories(booster)
    # Without names the model was trained on an array, where categories are numbers.
    categories = {} if names is None else {i: stored.get(i) for i, kind in enumerate(types) if kind == "c"}
    return ModelColumns(int(booster.num_features()), names, categories)


def _xgboost_categories(booster: Any) -> dict[int, list[Any]]:
    """Return the categories that XGBoost keeps in its models from 3.1 on."""
    if not hasattr(booster, "get_categories"):
        return {}
    try:
        columns = booster.get_categories(export_to_arrow=True).to_arrow()
    except (ValueError, TypeError, AttributeError):
        return {}
    return {i: values.to_pylist() for i, (_, values) in enumerate(columns) if values is not None}


def _catboost(model: Any, names: list[str] | None) -> ModelColumns:
    if model.get_text_feature_indices() or model.get_embedding_feature_indices():
        raise InvalidInputError("The CatBoost model has text or embedding features, which the command does not read.")
    categories: dict[int, list[Any] | None] = dict.fromkeys(map(int, model.get_cat_feature_indices()))
    return ModelColumns(len(model.feature_names_), names, categories, texts=True)


def _sklearn(model: Any, names: list[str] | None, n: int | None) -> ModelColumns:
    n = int(model.n_features_in_ if n is None else n)
    if hasattr(model, "steps"):
        return ModelColumns(n, names, any=True)
    flags = getattr(model, "is_categorical_", None)
    encoder = getattr(model, "_preprocessor", None)
    if flags is None or encoder is None:
        return ModelColumns(n, names)
    places = [i for i, flag in enumerate(flags) if flag]
    known = [list(values) for values in encoder.named_transformers_["encoder"].categories_]
    return ModelColumns(n, names, dict(zip(places, known, strict=True)))
