"""The schema of a model: names, kinds and categories of its columns, as the model file keeps them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ibug.cli._columns import as_texts, divided, kind_of_type, listed, require_features
from ibug.exceptions import InvalidInputError

#: Numbers; true and false; texts out of a list; dates and times, as days; and values of any kind, for a Pipeline that
#: encodes them itself.
NUMBER, BOOLEAN, CATEGORY, DATE, ANY = "number", "boolean", "category", "date", "any"
_TYPES = {NUMBER: pa.float64(), BOOLEAN: pa.bool_(), CATEGORY: pa.string(), DATE: pa.string(), ANY: None}

#: The text for a missing category where the model takes categories as texts: pandas writes it so.
MISSING_TEXT = "nan"

_VERSION = 1


@dataclass(frozen=True)
class Column:
    """One feature."""

    name: str  # as it is written in data files
    kind: str  # NUMBER, BOOLEAN, CATEGORY, DATE or ANY
    categories: tuple[str, ...] | None = None  # texts in the model's order; None where they are not known
    values: tuple[Any, ...] | None = None  # the model's own values for these categories, where they are not texts


@dataclass(frozen=True)
class Schema:
    """The features of a model, in its order."""

    columns: tuple[Column, ...]
    target: str | None = None  # its name, if it is known; several names have commas between them, for people
    named: bool = True  # the model takes a data frame with names; False: an array
    texts: bool = False  # the model takes categories as texts (CatBoost); False: by their place in the list
    placed: bool = False  # the model has no names: columns are taken in the order of the file
    target_names: tuple[str, ...] = ()  # of several targets, in the model's order

    def of_targets(self, names: Sequence[str]) -> Schema:
        """Return the same with the names of the targets."""
        return replace(self, target=", ".join(names), target_names=tuple(names) if len(names) > 1 else ())

    def targets(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the targets; none if they are not known."""
        if self.target_names or self.target is None:
            return self.target_names
        return divided([self.target], columns)

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [column.name for column in self.columns]

    @property
    def types(self) -> dict[str, Any]:
        """The types that text is read as, by column; None where the reader infers it."""
        return {column.name: _TYPES[column.kind] for column in self.columns}

    @property
    def values(self) -> frozenset[str]:
        """All texts that are categories of the model."""
        return frozenset(text for column in self.columns for text in column.categories or ())

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON, for `from_json`."""
        known: dict[str, Any] = {"target": self.target, "named": self.named, "texts": self.texts}
        if self.target_names:
            known["targets"] = list(self.target_names)
        columns = [{key: value for key, value in vars(column).items() if value is not None} for column in self.columns]
        return {"version": _VERSION, **known, "columns": columns}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """Return a stored schema. The file may come from anywhere, so everything in it is checked."""
        try:
            if data["version"] != _VERSION:
                raise InvalidInputError(
                    f"The model file describes its columns in version {data['version']!r}; this ibug knows version "
                    f"{_VERSION}. A newer ibug will read it: pip install --upgrade ibug-learn."
                )
            columns = tuple(_column(entry) for entry in data["columns"])
            target = None if data["target"] is None else str(data["target"])
            target_names = tuple(str(name) for name in data.get("targets", ()))
            return cls(columns, target, bool(data["named"]), bool(data["texts"]), target_names=target_names)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"The model file's description of its columns is damaged ({error!r}).") from error


def _column(entry: Mapping[str, Any]) -> Column:
    kind = str(entry["kind"])
    if kind not in _TYPES:
        raise ValueError(f"unknown kind {kind!r}")
    categories = tuple(str(text) for text in entry["categories"]) if "categories" in entry else None
    values = tuple(entry["values"]) if "values" in entry else None
    if values is not None and len(values) != len(categories or ()):
        raise ValueError("categories and values differ in number")
    return Column(str(entry["name"]), kind, categories, values)


@dataclass(frozen=True)
class ModelColumns:
    """The columns of a model, as far as the model knows them."""

    n: int
    names: list[str] | None  # as the library writes them; None where the model was trained without names
    # By place of a categorical column: its categories, in the model's order; None where the model does not keep them.
    categories: dict[int, list[Any] | None] = field(default_factory=dict)
    # Lists of categories in the order of their columns, where the model does not name these columns.
    unplaced: list[list[Any]] = field(default_factory=list)
    texts: bool = False  # the model takes categories as texts
    any: bool = False  # the model takes values of any kind: a Pipeline that encodes texts itself, say

    @property
    def values(self) -> frozenset[str]:
        """All texts that are categories of the model, as far as it keeps them."""
        lists = [*(known for known in self.categories.values() if known is not None), *self.unplaced]
        return frozenset(value for known in lists for value in known if isinstance(value, str))


def columns_of(model: Any, n: int | None = None) -> ModelColumns:
    """Return the columns of a trained model."""
    from ibug.leaves import library_of, reader_of  # takes long to import

    names = reader_of(model).feature_names
    while hasattr(model, "regressor_") or type(model).__name__ == "FrozenEstimator":
        model = model.regressor_ if hasattr(model, "regressor_") else model.estimator
    ask = {"lightgbm": _lightgbm, "xgboost": _xgboost, "catboost": _catboost}.get(library_of(model) or "")
    return _sklearn(model, names, n) if ask is None else ask(model, names)


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


_NUMBER_WITH_COMMA = r"^\s*[+-]?\d[\d.' ]*(,\d+)+(\.\d+)?\s*$"


def schema_of_table(data: Any, columns: Sequence[str], categorical: Sequence[str], file: str, *, texts: bool) -> Schema:
    """Return the schema of a training table; texts are categories, dates become days."""
    described = []
    for name in columns:
        kind = kind_of_type(data.schema.field(name).type)
        if kind == "text" and name not in categorical:
            _refuse_numbers(data.column(name), name, file)
        if name in categorical or kind == "text":
            described.append(Column(name, CATEGORY, found_categories(data.column(name), name, file, texts)))
        elif kind in ("number", "boolean"):
            described.append(Column(name, NUMBER if kind == "number" else BOOLEAN))
        elif kind == "dates or times":
            described.append(Column(name, DATE))
        else:
            raise InvalidInputError(
                f"{file}: column {name!r} has {kind}, which trees cannot use. Convert it to numbers, or leave it out "
                f"(--drop {name}), or take it as a category (--categorical {name})."
            )
    return Schema(tuple(described), texts=texts)


def _refuse_numbers(column: Any, name: str, file: str) -> None:
    """Refuse texts that are numbers with commas: as categories they would be useless, and nobody would notice."""
    if pa.types.is_dictionary(column.type):
        return
    texts = pc.unique(column.drop_null()).cast(pa.string())
    numbers = texts.filter(pc.match_substring_regex(texts, _NUMBER_WITH_COMMA))
    if len(numbers) > len(texts) / 2:
        raise InvalidInputError(
            f"{file}: column {name!r} has numbers with commas ({numbers[0]}, say), which would be read as "
            f"{len(texts)} different texts. If the comma is the decimal mark, say --decimal , and take marks between "
            f"thousands out; if the comma is between thousands, take it out; if these are categories, say "
            f"--categorical {name}."
        )


def found_categories(column: Any, name: str, file: str, texts: bool) -> tuple[str, ...]:
    """Return the texts of a column, sorted; where the model takes texts, with the one for missing values."""
    values = as_texts(column.combine_chunks(), name, file)
    found = sorted(pc.unique(values.drop_null()).to_pylist())
    if texts and values.null_count and MISSING_TEXT not in found:
        found = sorted([*found, MISSING_TEXT])
    return tuple(found)


def names_in_file(model: ModelColumns, written_as: Any, columns: Sequence[str], file: str) -> list[str]:
    """Return the columns of a file that are the model's, in the model's order."""
    if model.names is None:
        if len(columns) != model.n:
            raise InvalidInputError(
                f"The model was trained on {model.n} columns without names; {file} has {len(columns)} besides the "
                f"target: {listed(columns)}. Leave out those that are not features (--drop)."
            )
        return list(columns)
    by_name = {written_as(column): column for column in columns}
    require_features(model.names, by_name, columns, file)
    return [by_name[name] for name in model.names]


def schema_of_model(model: ModelColumns, names: Sequence[str], *, named: bool) -> Schema:
    """Return the schema of a trained model, as far as the model knows it."""
    other = ANY if model.any else NUMBER
    columns = [
        _categorical(name, model.categories[i]) if i in model.categories else Column(name, other)
        for i, name in enumerate(names)
    ]
    return Schema(tuple(columns), named=named, texts=model.texts)


def _categorical(name: str, values: Sequence[Any] | None) -> Column:
    """Return a column with the categories that a model knows, without missing values."""
    if values is None:
        return Column(name, CATEGORY)
    kept = tuple(
        value for value in values if value is not None and not (isinstance(value, float) and math.isnan(value))
    )
    texts = tuple(_as_text(value) for value in kept)
    return Column(name, CATEGORY, texts, None if texts == kept else kept)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as files have it
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def place_categories(
    model: ModelColumns, names: Sequence[str], categorical: Sequence[str], text_columns: Sequence[str], file: str
) -> ModelColumns:
    """Place the categories whose columns the model does not name: in those named, or in the texts of the file."""
    if not model.unplaced:
        return model
    chosen = [name for name in names if name in (categorical or text_columns)]
    if len(chosen) != len(model.unplaced):
        raise InvalidInputError(
            f"The model has {len(model.unplaced)} categorical columns, and does not name them; {file} has "
            f"{len(chosen)} ({listed(chosen) or 'none'}). Name them all: --categorical a,b,c."
        )
    places = {list(names).index(name): values for name, values in zip(chosen, model.unplaced, strict=True)}
    return replace(model, categories=dict(places), unplaced=[])
