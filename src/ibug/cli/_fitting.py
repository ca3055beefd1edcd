"""The work of ``ibug fit``: from files to a fitted estimator and the schema of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ibug import IBUGRegressor
from ibug.cli._boosters import BOOSTERS, Booster, Training
from ibug.cli._convert import kind_of_type
from ibug.cli._describe import found_categories, names_in_file, place_categories, schema_of_model, schema_of_table
from ibug.cli._match import features, listed, match, require_column
from ibug.cli._model_columns import ModelColumns, columns_of
from ibug.cli._reading import ReadOptions, Table, open_table
from ibug.cli._schema import BOOLEAN, CATEGORY, NUMBER, Column, Schema
from ibug.cli._session import Session
from ibug.cli._training_data import LabelledRows, read_labelled
from ibug.exceptions import IBUGError, InvalidInputError
from ibug.leaves import read_leaves_of

_NUMBERS_FOR_ONE_THREAD = 200_000


@dataclass(frozen=True)
class Request:
    """What is to be fitted."""

    train: str
    target: str
    valid: str | None
    ids: tuple[str, ...]
    drop: tuple[str, ...]
    categorical: tuple[str, ...]
    weight: str | None
    reading: ReadOptions
    options: dict[str, Any]  # of IBUGRegressor
    jobs: int


@dataclass(frozen=True)
class Fitted:
    """What came of it."""

    estimator: Any
    schema: Schema
    n_rows: int
    n_valid: int | None


def wrap(model: Any, request: Request, session: Session) -> Fitted:
    """Wrap a trained model."""
    columns, written_as = columns_of(model), read_leaves_of(model).written_as
    table, names = _open(request, session)
    names = names_in_file(columns, written_as, names, table.name)
    types = {names[i]: pa.string() for i in columns.categories}
    types |= {name: pa.string() for name in request.categorical if name in names}

    def schema_for(data: Any) -> Schema:
        texts = [name for name in names if kind_of_type(data.schema.field(name).type) == "text"]
        placed = place_categories(columns, names, request.categorical, texts, table.name)
        schema = schema_of_model(placed, names, request.target, named=placed.names is not None)
        return _completed(schema, placed, data, table, session)

    rows, schema = _read(table, names, types, request, schema_for, session)
    valid = _read_valid(request, schema, session)
    estimator = IBUGRegressor(model, prefit=True, n_jobs=request.jobs, **request.options)
    with session.stages():
        _fit(estimator, "the model", rows, valid)
    return Fitted(estimator, schema, len(rows.y), None if valid is None else len(valid.y))


def train(booster: Booster, training: Training, request: Request, session: Session) -> Fitted:
    """Train a model, and its clones, and wrap it."""
    booster.require()
    table, names = _open(request, session)
    for name in request.categorical:
        require_column(table, name, "category")
    types = dict.fromkeys(request.categorical, pa.string())

    def schema_for(data: Any) -> Schema:
        return schema_of_table(data, names, request.categorical, request.target, table.name, texts=booster.texts)

    rows, schema = _read(table, names, types, request, schema_for, session)
    _look_at_categories(schema, len(rows.y), booster, table.name, session)
    valid = _read_valid(request, schema, session)
    categorical = tuple(column.name for column in schema.columns if column.kind == CATEGORY)
    # On few numbers threads wait for each other most of the time.
    small = len(rows.y) * len(names) < _NUMBERS_FOR_ONE_THREAD
    training = replace(training, categorical=categorical, jobs=1 if small and training.jobs < 0 else training.jobs)
    with session.stages():
        with _explained(booster.library), session.status("finding the number of trees"):
            model, _ = booster.estimator(training, rows.X, rows.y, rows.weight)
        # One clone after another, each with all threads: the boosters use them well.
        estimator = IBUGRegressor(model, n_jobs=1, **request.options)
        with _explained(booster.library):
            _fit(estimator, booster.library, rows, valid)
    return Fitted(estimator, schema, len(rows.y), None if valid is None else len(valid.y))


def _open(request: Request, session: Session) -> tuple[Table, list[str]]:
    table = open_table(request.train, request.reading, session)
    require_column(table, request.target, "target")
    for name, role in [(request.weight, "weight"), *((name, "id") for name in request.ids)]:
        if name is not None:
            require_column(table, name, role)
    for name in request.drop:
        require_column(table, name, "column to leave out")
    others = {request.target, request.weight, *request.ids, *request.drop}
    names = features(table.columns, others)
    if not names:
        raise InvalidInputError(f"{table.name} has no column beside the target {request.target!r}.")
    aside = [name or "(no name)" for name in table.columns if name not in names and name not in others]
    if aside:
        session.note(f"{table.name}: row numbers of pandas are left out: {listed(aside)}.")
    return table, names


def _read(
    table: Table,
    names: list[str],
    types: dict[str, Any],
    request: Request,
    schema_for: Callable[[Any], Schema],
    session: Session,
) -> tuple[LabelledRows, Schema]:
    return read_labelled(table, names, types, request.target, request.weight, schema_for, session)


def _read_valid(request: Request, schema: Schema, session: Session) -> LabelledRows | None:
    if request.valid is None:
        return None
    table = open_table(request.valid, request.reading, session)
    require_column(table, request.target, "target")
    others = [request.target, request.weight, *request.ids, *request.drop]
    schema = match(table, schema, others, session, strict=False)
    rows, _ = read_labelled(table, schema.names, schema.types, request.target, None, lambda data: schema, session)
    return rows


def _completed(schema: Schema, model: ModelColumns, data: Any, table: Table, session: Session) -> Schema:
    """Take from the training rows what the model does not tell: categories, and which numbers are true or false."""
    columns: list[Column] = []
    guessed = []
    for column in schema.columns:
        kind = kind_of_type(data.schema.field(column.name).type)
        if column.kind == CATEGORY and column.categories is None:
            found = found_categories(data.column(column.name), column.name, table.name, schema.texts)
            columns.append(replace(column, categories=found))
            guessed.append(column.name)
        else:
            columns.append(replace(column, kind=BOOLEAN) if (column.kind, kind) == (NUMBER, "boolean") else column)
    if guessed and not model.texts:
        session.note(
            f"The model file does not keep the categories of {listed(guessed)}: those of {table.name} are taken in "
            "alphabetical order, as pandas makes them."
        )
    return replace(schema, columns=tuple(columns))


def _look_at_categories(schema: Schema, n_rows: int, booster: Booster, file: str, session: Session) -> None:
    for column in schema.columns:
        n = len(column.categories or ())
        if n > booster.most_categories:
            raise InvalidInputError(
                f"{file}: column {column.name!r} has {n} categories; scikit-learn takes {booster.most_categories} at "
                f"most. Choose another --booster, or leave it out (--drop {column.name})."
            )
        if n > 100 and n > n_rows / 2:
            session.note(
                f"{file}: column {column.name!r} has {n} different texts in {n_rows} rows. If it is an id, say so: "
                f"--id {column.name}."
            )


def _fit(estimator: Any, what: str, rows: LabelledRows, valid: LabelledRows | None) -> None:
    given: dict[str, Any] = {} if rows.weight is None else {"sample_weight": rows.weight}
    if valid is not None:
        given |= {"X_val": valid.X, "y_val": valid.y}
    estimator.fit(rows.X, rows.y, **given)


@contextmanager
def _explained(library: str) -> Iterator[None]:
    """Make whatever a booster complains of an error of ours; each library has errors of its own."""
    try:
        yield
    except (IBUGError, MemoryError, OSError):
        raise
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        raise InvalidInputError(f"{library} could not be trained: {text.splitlines()[0]}") from error


def default_booster() -> str:
    """Return the first library that is installed; scikit-learn always is."""
    for name, booster in BOOSTERS.items():
        try:
            booster.require()
        except IBUGError:
            continue
        return name
    raise AssertionError("scikit-learn is a core dependency")
