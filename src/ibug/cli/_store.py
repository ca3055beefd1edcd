"""The model file: what the command keeps in it beside the estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ibug
from ibug.cli._describe import schema_of_model
from ibug.cli._model_columns import ModelColumns, columns_of
from ibug.cli._schema import Schema
from ibug.exceptions import InvalidInputError
from ibug.persistence import inspect

#: The command's part of the metadata.
_KEY = "ibug.cli"


@dataclass(frozen=True)
class Origin:
    """Where a model's training rows came from."""

    path: str | None  # None for standard input
    n_rows: int
    id: str | None


@dataclass(frozen=True)
class StoredModel:
    """A model file's content."""

    path: str
    estimator: Any
    schema: Schema
    origin: Origin | None  # None for a model that was saved from Python
    versions: dict[str, Any]  # of the format and of the libraries that wrote it

    @property
    def id(self) -> str | None:
        """The column that names rows, in the training file and probably in others."""
        return None if self.origin is None else self.origin.id


def save(path: str, estimator: Any, schema: Schema, origin: Origin) -> None:
    """Write a model file, all or nothing. Of the training file its name is kept, as seen from the model file."""
    kept = {"schema": schema.to_json(), "train": {"path": origin.path, "rows": origin.n_rows, "id": origin.id}}
    estimator.save(path, metadata={_KEY: kept})


def load(path: str, *, jobs: int) -> StoredModel:
    """Load a model file, from the command or from Python."""
    manifest = read_manifest(path)
    estimator = ibug.load(path)
    if not hasattr(estimator, "kneighbors"):
        raise InvalidInputError(f"{path} holds a {type(estimator).__name__}; the command works with IBUGRegressor.")
    estimator.n_jobs = jobs
    estimator.verbose = 0
    kept = _kept(manifest)
    versions = {name: manifest[name] for name in ("format_version", "written_by")}
    if kept is None:
        return StoredModel(path, estimator, _schema_of(estimator), None, versions)
    train = kept.get("train") or {}
    origin = Origin(train.get("path"), int(train.get("rows") or 0), train.get("id"))
    return StoredModel(path, estimator, Schema.from_json(kept["schema"]), origin, versions)


def read_manifest(path: str) -> dict[str, Any]:
    """Read what a model file tells of itself, without loading the model."""
    if not Path(path).is_file():
        raise InvalidInputError(f"The model file {path} does not exist.")
    return inspect(path)


def _kept(manifest: dict[str, Any]) -> dict[str, Any] | None:
    kept = manifest["metadata"].get(_KEY)
    return kept if isinstance(kept, dict) and "schema" in kept else None


def _with_types(columns: ModelColumns, types: Sequence[Mapping[str, Any]]) -> ModelColumns:
    """Take from the training frame what the model itself does not tell: which columns are categories, and which."""
    found = {i: list(kind["categories"]) for i, kind in enumerate(types) if "categories" in kind}
    if not found or columns.any or columns.texts:
        return columns
    return replace(columns, categories=dict(found), unplaced=[])


def _schema_of(estimator: Any) -> Schema:
    """Find out what a model takes that was saved from Python."""
    columns = _with_types(columns_of(estimator.estimator_, estimator.n_features_in_), estimator.feature_types_)
    names = getattr(estimator, "feature_names_in_", None)
    if columns.unplaced or (any(values is None for values in columns.categories.values()) and not columns.texts):
        raise InvalidInputError(
            "The model has categorical columns, and its file does not tell their categories. Wrap it with ibug fit "
            "--model, which keeps them."
        )
    if names is not None:
        return schema_of_model(columns, [str(name) for name in names], None, named=True)
    placeholders = [f"column {i}" for i in range(columns.n)]
    schema = schema_of_model(columns, placeholders, None, named=False)
    return Schema(schema.columns, None, named=False, texts=schema.texts, placed=True)
