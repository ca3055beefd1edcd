"""A fitted estimator and the schema of its columns, made of a training file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.multioutput import MultiOutputRegressor

from ibug import IBUGRegressor
from ibug._progress import Progress
from ibug.cli._boosters import Booster, Training
from ibug.cli._columns import as_days, divided, features, kind_of_type, listed, match, require_columns, targets_named
from ibug.cli._reading import InputTable, ReadOptions, open_table
from ibug.cli._rows import LabelledRows, label_frame, labelled, read_labelled, read_table
from ibug.cli._schema import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    Column,
    ModelColumns,
    Schema,
    columns_of,
    found_categories,
    names_in_file,
    place_categories,
    schema_of_model,
    schema_of_table,
)
from ibug.cli._terminal import Session
from ibug.describe import model_facts
from ibug.exceptions import IBUGError, IBUGWarning, InvalidInputError
from ibug.leaves import reader_of

_NUMBERS_FOR_ONE_THREAD = 200_000


@dataclass(frozen=True)
class Request:
    """The options of a fit."""

    train: str
    target: tuple[str, ...]  # as it was given
    valid: str | None
    ids: tuple[str, ...]
    drop: tuple[str, ...]
    categorical: tuple[str, ...]
    weight: str | None
    reading: ReadOptions
    options: dict[str, Any]  # of IBUGRegressor
    jobs: int
    blocks: tuple[str, ...] = ()  # columns of the validation rows; the model's features they are not
    targets: tuple[str, ...] = ()  # the target, or several, as the table has them

    @property
    def numeric(self) -> list[str]:
        """The columns that must be numbers."""
        return [*self.targets, *([] if self.weight is None else [self.weight])]

    def for_columns(self, columns: Sequence[str]) -> Request:
        """Return the same with the names of columns as the table has them, separated where they came with commas."""
        ids, drop, categorical = (divided(given, columns) for given in (self.ids, self.drop, self.categorical))
        return replace(
            self,
            ids=ids,
            drop=drop,
            categorical=categorical,
            blocks=divided(self.blocks, columns),
            targets=targets_named(self.target, columns),
        )


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator, its columns, and the numbers of rows that it was fitted on."""

    estimator: Any
    schema: Schema
    n_rows: int
    n_valid: int | None  # None without a file of validation rows
    id: str | None  # the column that names rows

    def facts(self) -> dict[str, Any]:
        """Return the model as plain values, with the score that it had on validation rows."""
        return {
            **model_facts(self.estimator),
            "categorical": [column.name for column in self.schema.columns if column.kind == CATEGORY],
            "target": self.schema.target,
            "validation_rows": self.n_valid,
            "validation_score": _validation_scores(self.estimator),
        }


def wrap(model: Any, request: Request, session: Session) -> Fitted:
    """Wrap a trained model."""
    columns, reader = columns_of(model), reader_of(model)
    request, table, names = _open(request, session, columns.names or ())
    table.values = columns.values
    _check_targets(reader.n_outputs, request.targets)
    names = names_in_file(columns, reader.written_as, names, table.name)
    types = {names[i]: pa.string() for i in columns.categories}
    types |= {name: pa.string() for name in request.categorical if name in names}
    data = read_table(table, names, types, request.numeric, session)
    texts = [name for name in names if kind_of_type(data.schema.field(name).type) == "text"]
    placed = place_categories(columns, names, request.categorical, texts, table.name)
    schema = schema_of_model(placed, names, named=placed.names is not None).of_targets(request.targets)
    schema = _completed(schema, placed, data, table, session)
    rows = labelled(data, schema, request.targets, request.weight, table, session)
    valid = _read_valid(request, schema, session)
    estimator = IBUGRegressor(model, prefit=True, n_jobs=request.jobs, **request.options)
    with session.stages():
        return _fitted(estimator, schema, rows, valid, request)


def _check_targets(n_outputs: int, targets: Sequence[str]) -> None:
    """Refuse more or fewer targets than a trained model predicts."""
    if n_outputs == len(targets):
        return
    named = f"and --target names {'one' if len(targets) == 1 else len(targets)}: {listed(targets)}."
    if n_outputs == 1:
        raise InvalidInputError(
            f"The model predicts one target, {named} Name that one; or leave --model out, and a model for each is "
            "trained."
        )
    example = ",".join("abc"[:n_outputs]) + (",…" if n_outputs > 3 else "")
    raise InvalidInputError(
        f"The model predicts {n_outputs} targets, {named} Name all of them, in the order in which it was trained: "
        f"--target {example}."
    )


def train(booster: Booster, training: Training, request: Request, session: Session) -> Fitted:
    """Train a model, and its clones, and wrap it."""
    booster.require()
    booster.check(training)
    request, table, names = _open(request, session)
    require_columns(table, "category", *request.categorical)
    types = dict.fromkeys(request.categorical, pa.string())
    data = read_table(table, names, types, request.numeric, session)
    schema = schema_of_table(data, names, request.categorical, table.name, texts=booster.texts)
    schema = schema.of_targets(request.targets)
    rows = labelled(data, schema, request.targets, request.weight, table, session)
    check_categories(schema, len(rows.y), booster.most_categories, table.name)
    note_columns(schema, rows.data, table.name, session)
    valid = _read_valid(request, schema, session)
    categorical = tuple(column.name for column in schema.columns if column.kind == CATEGORY)
    # On small data threads mostly wait for each other.
    small = len(rows.y) * len(names) < _NUMBERS_FOR_ONE_THREAD
    training = replace(training, categorical=categorical, jobs=1 if small and training.jobs < 0 else training.jobs)
    with session.stages(), _explained(booster.library):
        with Progress("finding the number of trees", 1, enabled=False):
            model = _untrained(booster, training, rows)
        # One clone after another: each uses all threads, and uses them well.
        estimator = IBUGRegressor(model, n_jobs=1, **request.options)
        return _fitted(estimator, schema, rows, valid, request)


def _untrained(booster: Booster, training: Training, rows: LabelledRows) -> Any:
    """Return the model to train; several targets have one each, with the number of trees that is best on average."""
    if rows.y.ndim == 1:
        return booster.estimator(training, rows.X, rows.y, rows.weight)[0]
    found = [booster.estimator(training, rows.X, column, rows.weight) for column in rows.y.T]
    n_trees = max(1, round(float(np.mean([trees for _, trees in found]))))
    return MultiOutputRegressor(found[0][0].set_params(**{booster.trees: n_trees}))


def _open(request: Request, session: Session, known: Sequence[str] = ()) -> tuple[Request, InputTable, list[str]]:
    """Open the training file; return the columns that are features. Blocks are, where a model knows them."""
    table = open_table(request.train, request.reading, session)
    request = request.for_columns(table.columns)
    require_columns(table, "target", *request.targets)
    require_columns(table, "weight", request.weight)
    require_columns(table, "id", *request.ids)
    require_columns(table, "column to leave out", *request.drop)
    blocks = [name for name in request.blocks if name not in known]
    others = {*request.targets, request.weight, *request.ids, *request.drop, *blocks}
    names = features(table.columns, others)
    if not names:
        raise InvalidInputError(f"{table.name} has no column besides the target, {listed(request.targets)}.")
    left_out = [name or "(no name)" for name in table.columns if name not in names and name not in others]
    if left_out:
        session.note(f"{table.name}: pandas row numbers are left out: {listed(left_out)}.")
    return request, table, names


def _read_valid(request: Request, schema: Schema, session: Session) -> LabelledRows | None:
    if request.valid is None:
        return None
    table = open_table(request.valid, request.reading, session)
    require_columns(table, "target", *request.targets)
    require_columns(table, "block", *request.blocks)
    others = [*request.targets, request.weight, *request.ids, *request.drop, *request.blocks]
    schema = match(table, schema, others, session, strict=False)
    return read_labelled(table, schema, request.targets, session, more=dict.fromkeys(request.blocks))


def _completed(schema: Schema, model: ModelColumns, data: Any, table: InputTable, session: Session) -> Schema:
    """Complete the schema of a model by the training rows: categories, and the numbers that are true or false."""
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


def _fitted(estimator: Any, schema: Schema, rows: LabelledRows, valid: LabelledRows | None, request: Request) -> Fitted:
    """Fit an estimator on these rows."""
    given: dict[str, Any] = {} if rows.weight is None else {"sample_weight": rows.weight}
    if valid is not None:
        given |= {"X_val": valid.X, "y_val": valid.y}
        if request.blocks:
            given["blocks_val"] = label_frame(valid.data, request.blocks)
    y = rows.y if rows.y.ndim == 1 else pd.DataFrame(rows.y, columns=list(request.targets))  # to name several targets
    estimator.fit(rows.X, y, **given)
    return Fitted(estimator, schema, len(y), None if valid is None else len(valid.y), next(iter(request.ids), None))


@contextmanager
def _explained(library: str) -> Iterator[None]:
    """Turn the errors of a library, which are of many kinds, into one of ours."""
    try:
        yield
    except (IBUGError, IBUGWarning, MemoryError, OSError):
        raise
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        raise InvalidInputError(f"{library} could not be trained: {text.splitlines()[0]}") from error


def _validation_scores(estimator: Any) -> dict[str, float | None]:
    """Return the validation score of the chosen candidate, and the best one before calibration."""
    table = estimator.tuning_
    rule = estimator.rule_
    if rule.coupling is not None:
        score = float(rule.coupling.score)
        return {"calibrated": score if np.isfinite(score) else None, "uncalibrated": None}
    if not len(table["score"]):
        return {"calibrated": None, "uncalibrated": None}
    chosen = (table["spread"] == estimator.spread_) & (table["distribution"] == estimator.distribution_)
    targets = (table["spread"] == "targets") & (table["distribution"] == rule.parts[0].family.name)
    before = table["score"][targets if targets.any() else chosen]
    return {"calibrated": _least(table["calibrated"][chosen]), "uncalibrated": _least(before)}


def _least(values: Any) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.min()) if len(finite) else None


# A column with more different values than this, and in most rows another one, is probably an id.
_LEAST_VALUES_OF_AN_ID = 100
_DATE_LIKE = r"^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b"


def check_categories(schema: Schema, n_rows: int, most: int, file: str) -> None:
    """Refuse a column with more categories than the library takes."""
    for column in schema.columns:
        n = len(column.categories or ())
        if n > most:
            raise InvalidInputError(
                f"{file}: column {column.name!r} has {n} categories in {n_rows} rows; scikit-learn takes {most} at "
                f"most. Choose another --booster, or leave it out (--drop {quoted(column.name)})."
            )


def note_columns(schema: Schema, data: Any, file: str, session: Session) -> None:
    """Note which columns are probably ids, and how dates become numbers."""
    for column in schema.columns:
        values = data.column(column.name)
        if column.kind == DATE:
            _note_dates(column, values, file, session)
        elif column.kind == CATEGORY:
            _note_texts(column, data.num_rows, file, session)
        elif column.kind == NUMBER and pa.types.is_integer(values.type):
            _note_numbers(column, values, file, session)


def _note_dates(column: Column, values: Any, file: str, session: Session) -> None:
    known = values.drop_null()
    example = ""
    if len(known):
        first = known.slice(0, 1).combine_chunks()
        example = f" ({first.cast(pa.string())[0]} is {as_days(first, column.name, file)[0]:.10g})"
    times = pa.types.is_time(values.type) or pa.types.is_duration(values.type)
    since = "days, 12:00 as 0.5" if times else "days since 1970-01-01"
    session.note(f"{file}: column {column.name!r} has dates or times. The model gets them as {since}{example}.")


def _note_texts(column: Column, n_rows: int, file: str, session: Session) -> None:
    texts = column.categories or ()
    like_dates = pc.match_substring_regex(pa.array(texts, pa.string()), _DATE_LIKE)
    if texts and pc.sum(like_dates.cast(pa.int64())).as_py() > 0.9 * len(texts):
        session.note(
            f"{file}: column {column.name!r} looks like dates ({texts[0]!r}, say), but is read as {len(texts)} "
            "categories. Written as 2024-12-31 they would be numbers."
        )
    elif len(texts) > _LEAST_VALUES_OF_AN_ID and len(texts) > n_rows / 2:
        session.note(
            f"{file}: column {column.name!r} has {len(texts)} different texts in {n_rows} rows. If it is an id, say "
            f"so: --id {quoted(column.name)}."
        )


def _note_numbers(column: Column, values: Any, file: str, session: Session) -> None:
    n = len(values)
    if n > _LEAST_VALUES_OF_AN_ID and pc.count_distinct(values, mode="all").as_py() == n:
        session.note(
            f"{file}: column {column.name!r} has a different whole number in each of the {n} rows. If it is an id, say "
            f"so: --id {quoted(column.name)}."
        )


def quoted(name: str) -> str:
    """Return a name as it is typed in a shell."""
    return name if name.replace("_", "").replace("-", "").isalnum() else f"'{name}'"
