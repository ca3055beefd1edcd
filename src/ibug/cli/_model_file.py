"""The model file: an estimator, the schema of its columns, and where its training rows came from."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from ibug.cli._columns import listed, match, require_columns, targets_named
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
    def target_names(self) -> list[str]:
        """The names of several targets; none of one."""
        return self.estimator.target_names_ or []

    def require_one_target(self, command: str) -> None:
        """Refuse a model of several targets."""
        if self.target_names:
            raise InvalidInputError(
                f"ibug {command} is for one target, and the model has {len(self.target_names)}: "
                f"{', '.join(self.target_names)}. Fit a model for each."
            )

    def known_blocks(self, table: InputTable) -> tuple[str, ...]:
        """Return the blocks that the model has learned from, if the table has columns of their names; else none."""
        names = () if self.estimator.dependence_ is None else self.estimator.dependence_.names
        return tuple(names) if set(names) <= set(table.columns) else ()

    @property
    def id(self) -> str | None:
        """The column that names rows, in the training file and probably in others."""
        return None if self.origin is None else self.origin.id

    def targets(self, given: Sequence[str] | None, table: InputTable, session: Session) -> tuple[str, ...]:
        """Return the columns of observed values, in the order of the model's targets, which go by their names."""
        names = self.target_names
        if given:
            found = targets_named(given, table.columns)
        elif self.schema.target is None:
            what = f"its {len(names)} targets: name their columns, in order" if names else "the target: name its column"
            raise typer.BadParameter(f"the model file does not name {what}.", param_hint="--target")
        else:
            found = self.schema.targets(table.columns) if names else (self.schema.target,)
        require_columns(table, "target", *found)
        if len(found) != max(1, len(names)):
            if not names:
                wrong = f"one target, and {len(found)} are named: {listed(found)}."
            elif not _are_named(names):
                wrong = f"{len(names)} targets, without names: name their columns, in order."
            else:
                wrong = f"{len(names)} targets: name all, {_option(names)}."
            raise typer.BadParameter(f"the model has {wrong}", param_hint="--target")
        if not names or set(found) == set(names):
            return tuple(names) or found
        if _are_named(names):
            raise typer.BadParameter(
                f"the model's targets are {listed(names)}, not {listed(found)}. Rows must have them under these names: "
                f"{_option(names)}.",
                param_hint="--target",
            )
        session.note(f"The model has no names for its targets: {listed(found)} are taken in this order.")
        return found

    def read_labelled(
        self,
        table: InputTable,
        targets: Sequence[str],
        session: Session,
        *,
        ids: Sequence[str] = (),
        weight: str | None = None,
        groups: str | None = None,
        blocks: Sequence[str] = (),
        strict: bool,
    ) -> LabelledRows:
        """Read all rows of a table with their targets."""
        require_columns(table, "weight", weight)
        require_columns(table, "groups", groups)
        require_columns(table, "block", *blocks)
        others = [*targets, weight, self.id, groups, *blocks, *ids]
        schema = match(table, self.schema, others, session, strict=strict)
        return read_labelled(table, schema, targets, session, weight=weight, more=dict.fromkeys([groups, *blocks]))

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
            folders = {os.path.dirname(os.path.realpath(file)) for file in (path, self.path)}  # with links followed
            if len(folders) > 1:
                session.note(
                    f"The model file names {path} as its training file, which is in another folder: features are not "
                    f"compared. If that is the right file, confirm it: --train {path}."
                )
                return None
            if not Path(path).is_file():
                session.note(f"The training file {path} does not exist: features are not compared. Name it by --train.")
                return None
        if path is None or self.schema.target is None:
            session.note(
                "The model file does not name its training file: features are not compared. Name it by --train."
            )
            return None
        return path


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
    kept = manifest["metadata"].get(_KEY)
    versions = {name: manifest[name] for name in ("format_version", "written_by")}
    facts = versions, manifest["metadata"], parameters
    if not isinstance(kept, dict) or "schema" not in kept:
        return StoredModel(path, estimator, _schema_of(estimator), None, *facts)
    train = kept.get("train") or {}
    origin = Origin(train.get("path"), int(train.get("rows") or 0), train.get("id"))
    return StoredModel(path, estimator, Schema.from_json(kept["schema"]), origin, *facts)


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
    targets = estimator.target_names_ or []
    return schema.of_targets(targets) if _are_named(targets) else schema


def _option(names: Sequence[str]) -> str:
    """Return how --target names several columns."""
    if any("," in name for name in names):
        return " ".join(f"--target {shlex.quote(name)}" for name in names)
    return f"--target {shlex.quote(','.join(names))}"


def _are_named(targets: Sequence[str]) -> bool:
    """Return whether several targets have names of their own, not only target_0, target_1, …."""
    from ibug._validation import are_default_names  # takes long to import

    return bool(targets) and not are_default_names(targets)


def _with_types(columns: ModelColumns, types: Sequence[Mapping[str, Any]]) -> ModelColumns:
    """Take the categories of the training frame, which the model itself may not know."""
    found = {i: list(kind["categories"]) for i, kind in enumerate(types) if "categories" in kind}
    if not found or columns.any or columns.texts:
        return columns
    return replace(columns, categories=dict(found), unplaced=[])
