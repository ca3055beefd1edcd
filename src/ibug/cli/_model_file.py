"""The model file: an estimator, the schema of its columns, and where its training rows came from."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from ibug.cli._columns import listed, match, require_column, targets_named
from ibug.cli._reading import STANDARD_STREAM, InputTable
from ibug.cli._rows import LabelledRows, read_labelled
from ibug.cli._schema import ModelColumns, Schema, columns_of, schema_of_model
from ibug.cli._terminal import Session
from ibug.exceptions import InvalidInputError

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

    def targets(self, given: Sequence[str] | None, table: InputTable, session: Session) -> tuple[str, ...]:
        """Return the columns of observed values, in the order of the model's targets, which go by their names."""
        names: list[str] = getattr(self.estimator, "target_names_", None) or []
        if given:
            found = targets_named(given, table.columns)
        elif self.schema.target is None:
            what = f"its {len(names)} targets: name their columns, in order" if names else "the target: name its column"
            raise typer.BadParameter(f"the model file does not name {what}.", param_hint="--target")
        else:
            found = self.schema.targets(table.columns) if names else (self.schema.target,)
        for name in found:
            require_column(table, name, "target")
        if len(found) != max(1, len(names)):
            raise typer.BadParameter(self._miscounted(found, names), param_hint="--target")
        if not names or set(found) == set(names):
            return tuple(names) or found
        if _known_targets(self.estimator) is not None:
            raise typer.BadParameter(
                f"the model's targets are {listed(names)}, not {listed(found)}. Rows must have them under these names: "
                f"{_option(names)}.",
                param_hint="--target",
            )
        session.note(f"The model knows no names of its targets: {listed(found)} are taken in this order.")
        return found

    def _miscounted(self, found: Sequence[str], names: Sequence[str]) -> str:
        """Say that as many targets must be named as the model has."""
        if not names:
            return f"the model has one target, and {len(found)} are named: {listed(found)}."
        known = _known_targets(self.estimator)
        if known is None:
            return f"the model has {len(names)} targets, without names: name their columns, in order."
        return f"the model has {len(names)} targets: name all, {_option(known)}."

    def read_labelled(
        self,
        table: InputTable,
        targets: Sequence[str],
        session: Session,
        *,
        ids: Sequence[str] = (),
        weight: str | None = None,
        groups: str | None = None,
        strict: bool,
    ) -> LabelledRows:
        """Read all rows of a table with their targets."""
        for name, role in ((weight, "weight"), (groups, "groups")):
            if name is not None:
                require_column(table, name, role)
        schema = match(table, self.schema, [*targets, weight, self.id, groups, *ids], session, strict=strict)
        return read_labelled(table, schema, targets, session, weight=weight, more={groups: None})

    def training_file(self, train: str | None, session: Session) -> str | None:
        """Return the path of the training file, or None, with a note, where it is not known.

        A model file of someone else may name any file as its training file. What it names is opened only if it is
        in the folder of the model file; a file elsewhere must be named by the user.
        """
        if train == STANDARD_STREAM:
            raise typer.BadParameter("name a file.", param_hint="--train")
        path = train
        if path is None and self.origin is not None and self.origin.path is not None:
            path = os.path.join(os.path.dirname(self.path), self.origin.path)
            if not _in_same_folder(path, self.path):
                session.note(
                    f"The model file names {path} as its training file, which is in another folder: features are not "
                    f"compared. If that is the right file, confirm it: --train {path}."
                )
                return None
            if not Path(path).is_file():
                session.note(f"The training file {path} is not there: features are not compared. --train names it.")
                return None
        if path is None or self.schema.target is None:
            session.note("The model file does not name its training file: features are not compared. --train names it.")
            return None
        return path


def _in_same_folder(path: str, model: str) -> bool:
    """Return whether a file is in the folder of the model file, with links followed."""
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
    """Load a model file that ``ibug fit`` or ``u.save`` has written, to predict with `jobs` threads; it is opened once.

    `trusted` types of the user's own may be in it; with `isolate` a process of its own tries the file first.
    """
    from ibug.persistence import load_with_manifest  # takes long to import

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
            "The model has categorical columns, and its file does not have their categories. Wrap it with ibug fit "
            "--model, which keeps them."
        )
    if names is not None:
        schema = schema_of_model(columns, [str(name) for name in names], named=True)
    else:
        placeholders = [f"column {i}" for i in range(columns.n)]
        schema = replace(schema_of_model(columns, placeholders, named=False), placed=True)
    targets = _known_targets(estimator)
    return schema if targets is None else schema.of_targets(targets)


def _option(names: Sequence[str]) -> str:
    """Return how --target names several columns."""
    if any("," in name for name in names):
        return " ".join(f"--target {shlex.quote(name)}" for name in names)
    return f"--target {shlex.quote(','.join(names))}"


def _known_targets(estimator: Any) -> tuple[str, ...] | None:
    """Return the names of several targets; None of one, and of those that have no names but target_0, target_1, …."""
    from ibug._validation import are_default_names  # takes long to import

    names = getattr(estimator, "target_names_", None)
    return None if names is None or are_default_names(names) else tuple(names)


def _with_types(columns: ModelColumns, types: Sequence[Mapping[str, Any]]) -> ModelColumns:
    """Take the categories of the training frame, which the model itself may not know."""
    found = {i: list(kind["categories"]) for i, kind in enumerate(types) if "categories" in kind}
    if not found or columns.any or columns.texts:
        return columns
    return replace(columns, categories=dict(found), unplaced=[])
