"""The model file: an estimator, the schema of its columns, and where its training rows came from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from ibug.cli.columns import ModelColumns, Schema, columns_of, schema_of_model
from ibug.cli.screen import Session
from ibug.cli.tables import STANDARD_STREAM
from ibug.exceptions import InvalidInputError
from ibug.persistence import load_with_manifest

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
    """The content of a model file."""

    path: str
    estimator: Any
    schema: Schema
    origin: Origin | None  # None for a model that was saved from Python
    versions: dict[str, Any]  # of the format and of the libraries that wrote it
    metadata: dict[str, Any]  # all that was kept along with the estimator
    parameters: dict[str, Any]  # of the estimator, which the command has set for itself

    @property
    def id(self) -> str | None:
        """The column that names rows, in the training file and probably in others."""
        return None if self.origin is None else self.origin.id

    def training_file(self, train: str | None, session: Session) -> str | None:
        """Return the path of the training file, or None, with a note, where it is not known.

        A model file of someone else may name any file as its training file. What it names is opened only if it stands
        beside the model file; a file elsewhere must be named by the user.

        Parameters
        ----------
        train
            The value of --train; by default it is the path that the model file keeps.
        session
            Gets the note.
        """
        if train == STANDARD_STREAM:
            raise typer.BadParameter("name a file.", param_hint="--train")
        path = train
        if path is None and self.origin is not None and self.origin.path is not None:
            path = os.path.join(os.path.dirname(self.path), self.origin.path)
            if not _is_beside(path, self.path):
                session.note(
                    f"The model file names {path} as its training file, which is not beside it: features are not "
                    f"compared. If that is the right file, confirm it: --train {path}."
                )
                return None
            if not Path(path).is_file():
                session.note(f"The training file {path} is not there: features are not compared. --train names it.")
                return None
        if path is None or self.schema.target is None:
            session.note("The model file does not tell its training file: features are not compared. --train names it.")
            return None
        return path


def _is_beside(path: str, model: str) -> bool:
    """Tell whether a file is in the folder of the model file, with links followed."""
    return os.path.dirname(os.path.realpath(path)) == os.path.dirname(os.path.realpath(model))


def save(path: str, estimator: Any, schema: Schema, origin: Origin) -> None:
    """Write a model file, all or nothing."""
    kept = {"schema": schema.to_json(), "train": {"path": origin.path, "rows": origin.n_rows, "id": origin.id}}
    estimator.save(path, metadata={_KEY: kept})


def save_again(path: str, stored: StoredModel, trusted: Sequence[str] | None = None) -> None:
    """Write a model file that was loaded, with what it kept, after its estimator has learned more."""
    for name, value in stored.parameters.items():
        setattr(stored.estimator, name, value)
    stored.estimator.save(path, metadata=stored.metadata, trusted=trusted or ())


def load(path: str, *, jobs: int, trusted: Sequence[str] | None = None, isolate: bool = False) -> StoredModel:
    """Load a model file that ``ibug fit`` or ``u.save`` has written; it is opened once.

    Parameters
    ----------
    path
        The file.
    jobs
        The number of threads of its predictions.
    trusted
        Types of the user's own that it may hold, as --trusted names them.
    isolate
        Whether a process of its own tries the file first.
    """
    if not Path(path).is_file():
        raise InvalidInputError(f"The model file {path} does not exist.")
    estimator, manifest = load_with_manifest(path, trusted=trusted or (), isolate=isolate)
    if not hasattr(estimator, "predict_with_neighbors"):
        raise InvalidInputError(f"{path} holds a {type(estimator).__name__}; the command works with IBUGRegressor.")
    parameters = {name: getattr(estimator, name) for name in ("n_jobs", "verbose")}
    estimator.n_jobs, estimator.verbose = jobs, 0
    kept = _kept(manifest)
    versions = {name: manifest[name] for name in ("format_version", "written_by")}
    facts = versions, manifest["metadata"], parameters
    if kept is None:
        return StoredModel(path, estimator, _schema_of(estimator), None, *facts)
    train = kept.get("train") or {}
    origin = Origin(train.get("path"), int(train.get("rows") or 0), train.get("id"))
    return StoredModel(path, estimator, Schema.from_json(kept["schema"]), origin, *facts)


def _kept(manifest: dict[str, Any]) -> dict[str, Any] | None:
    kept = manifest["metadata"].get(_KEY)
    return kept if isinstance(kept, dict) and "schema" in kept else None


def _schema_of(estimator: Any) -> Schema:
    """Return the schema of a model that was saved from Python."""
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


def _with_types(columns: ModelColumns, types: Sequence[Mapping[str, Any]]) -> ModelColumns:
    """Take the categories of the training frame, which the model itself may not tell."""
    found = {i: list(kind["categories"]) for i, kind in enumerate(types) if "categories" in kind}
    if not found or columns.any or columns.texts:
        return columns
    return replace(columns, categories=dict(found), unplaced=[])
