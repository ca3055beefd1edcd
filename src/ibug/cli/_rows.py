"""Rows as the model takes them, and the categories in them that it does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.cli._columns import as_days, as_numbers, as_texts, decoded, kind_of_type, match, require_columns
from ibug.cli._reading import InputTable
from ibug.cli._schema import ANY, CATEGORY, DATE, MISSING_TEXT, NUMBER, Column, Schema
from ibug.cli._terminal import Session
from ibug.exceptions import InvalidInputError

_MOST_EXAMPLES = 5


@dataclass
class Unseen:
    """Categories that the model does not know, by column: the number of rows, and some of the texts."""

    rows: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    n_rows: int = 0
    first_row: int | None = None

    def add(self, found: dict[str, NDArray[np.bool_]], texts: dict[str, Any], start: int) -> NDArray[np.bool_] | None:
        """Count the unseen categories of a chunk; return which rows have some, (n_rows,), or None if no row has any."""
        if not found:
            return None
        anywhere: NDArray[np.bool_] = np.any(np.stack(list(found.values())), axis=0)
        for name, mask in found.items():
            self.rows[name] = self.rows.get(name, 0) + int(mask.sum())
            examples = self.examples.setdefault(name, [])
            for text in pc.unique(texts[name].filter(pa.array(mask))).to_pylist():
                if text not in examples and len(examples) < _MOST_EXAMPLES:
                    examples.append(text)
        if self.first_row is None:
            self.first_row = start + int(np.argmax(anywhere))
        self.n_rows += int(anywhere.sum())
        return anywhere

    def describe(self) -> str:
        """Return the unseen categories in words."""
        parts = []
        for name, count in self.rows.items():
            shown = ", ".join(map(repr, self.examples[name]))
            more = ", …" if len(self.examples[name]) == _MOST_EXAMPLES else ""
            parts.append(f"{name} ({count}: {shown}{more})")
        return "; ".join(parts)


@dataclass(frozen=True)
class ModelRows:
    """Rows as the model takes them."""

    X: Any  # data frame or array, (n_rows, n_features)
    unseen: dict[str, NDArray[np.bool_]]  # by column with unseen categories: the rows that have one, (n_rows,)
    texts: dict[str, Any]  # the texts of these columns


def rows_of(chunk: Any, schema: Schema, file: str) -> ModelRows:
    """Return the model's rows of a chunk that has the columns of the schema."""
    import pandas as pd  # takes long to import

    unseen: dict[str, NDArray[np.bool_]] = {}
    texts: dict[str, Any] = {}
    data: dict[str, Any] = {}
    for column in schema.columns:
        values = chunk.column(column.name).combine_chunks()
        if column.kind == CATEGORY:
            as_text = as_texts(values, column.name, file)
            data[column.name], mask = _categories(as_text, column, schema.texts)
            if mask.any():
                unseen[column.name], texts[column.name] = mask, as_text
        elif column.kind == DATE:
            data[column.name] = as_days(values, column.name, file)
        else:
            plain = decoded(values)
            is_numeric = column.kind != ANY or kind_of_type(plain.type) in ("number", "boolean")
            data[column.name] = as_numbers(plain, column.name, file) if is_numeric else plain.to_pandas()
    X = pd.DataFrame(data, copy=False) if schema.named else np.column_stack(list(data.values()))
    return ModelRows(X, unseen, texts)


def _categories(texts: Any, column: Column, as_text: bool) -> tuple[Any, NDArray[np.bool_]]:
    """Return the values for the model, and which of them the model does not know, (n_rows,)."""
    import pandas as pd  # takes long to import

    known = pa.array(column.categories or (), pa.string())
    codes = pc.index_in(texts, value_set=known)
    present = texts.is_valid()
    unseen = pc.and_(present, pc.is_null(codes)).to_numpy(zero_copy_only=False)
    if column.categories is None:
        unseen = np.zeros(len(texts), np.bool_)
    if as_text:
        return pc.fill_null(texts, MISSING_TEXT).to_pandas().to_numpy(object), unseen
    places = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)
    values = column.categories if column.values is None else column.values
    return pd.Categorical.from_codes(places, categories=pd.Index(list(values or ()))), unseen


@dataclass(frozen=True)
class LabelledRows:
    """Rows with their observed values."""

    X: Any  # data frame or array, (n_rows, n_features)
    y: Floats  # (n_rows,), or (n_rows, n_targets) of several targets
    weight: Floats | None  # (n_rows,)
    data: Any  # the table of Arrow that they were made of


def read_table(
    table: InputTable, columns: Sequence[str], types: Mapping[str, Any], numeric: Sequence[str], session: Session
) -> Any:
    """Read columns of a whole table: texts as these types, and further columns that must be numbers."""
    with session.progress(f"reading {table.name}", None):
        data = table.read([*dict.fromkeys([*columns, *numeric])], {**types, **dict.fromkeys(numeric, pa.float64())})
    if not data.num_rows:
        raise InvalidInputError(f"{table.name} has a header, but no rows.")
    return data


def labelled(
    data: Any, schema: Schema, targets: Sequence[str], weight: str | None, table: InputTable, session: Session
) -> LabelledRows:
    """Return rows with their targets, of the data that were read from a table."""
    values = [_numbers(data, name, "target", table) for name in targets]
    y = values[0] if len(values) == 1 else np.stack(values, axis=1)
    weights = None if weight is None else _weights(data, weight, table)
    return LabelledRows(_known_rows(data, schema, table, session), y, weights, data)


def read_labelled(
    table: InputTable,
    schema: Schema,
    targets: Sequence[str],
    session: Session,
    *,
    weight: str | None = None,
    more: Mapping[str | None, Any] | None = None,
) -> LabelledRows:
    """Read a whole table that has the columns of the schema; and more columns, by name, as these types."""
    types = {name: kind for name, kind in (more or {}).items() if name is not None} | schema.types
    data = read_table(table, [*types], types, [*targets, *([] if weight is None else [weight])], session)
    return labelled(data, schema, targets, weight, table, session)


def groups_of(rows: LabelledRows, groups: str | None) -> Any:
    """Return the column by which rows are grouped, as a series of pandas; None for none."""
    return None if groups is None else rows.data.column(groups).to_pandas().rename(groups)


def label_frame(data: Any, names: Sequence[str]) -> Any:
    """Return columns that say what rows belong to, as a frame of pandas."""
    import pandas as pd  # takes long to import

    return pd.DataFrame({name: decoded(data.column(name)).to_pandas() for name in names})


def read_unlabelled(table: InputTable, schema: Schema, session: Session) -> Any:
    """Return all rows of a table as the model takes them, without targets."""
    return _known_rows(read_table(table, schema.names, schema.types, (), session), schema, table, session)


def _known_rows(data: Any, schema: Schema, table: InputTable, session: Session) -> Any:
    """Return rows as the model takes them, and note categories that it does not know."""
    rows, unseen = rows_of(data, schema, table.name), Unseen()
    if unseen.add(rows.unseen, rows.texts, 0) is not None:
        session.note(
            f"{table.name}: {unseen.n_rows} rows have categories that the model does not know: {unseen.describe()}."
        )
    return rows.X


def _numbers(data: Any, name: str, role: str, table: InputTable) -> Floats:
    values = as_numbers(data.column(name).combine_chunks(), name, table.name)
    bad = ~np.isfinite(values)
    if bad.any():
        first = int(np.argmax(bad))
        what = "missing" if np.isnan(values[first]) else "infinite"
        raise InvalidInputError(
            f"{table.name}: the {role}, column {name!r}, is missing or infinite in {int(bad.sum())} of {len(values)} "
            f"rows, first ({what}) in {table.where(first)}. Leave these rows out."
        )
    return values


def _weights(data: Any, name: str, table: InputTable) -> Floats:
    values = _numbers(data, name, "weight", table)
    if (values < 0).any() or not values.any():
        raise InvalidInputError(f"{table.name}: weights, column {name!r}, must not be negative or all zero.")
    return values


_ROWS_AT_A_TIME = 2**16


@dataclass(frozen=True)
class TrainingRows:
    """Some rows of the training file."""

    values: list[dict[str, Any]]  # by column; numbers, texts or None
    ids: list[Any] | None
    scales: dict[str, float]  # the standard deviation of each numeric column over all training rows
    sample: Any  # other rows of it as the model takes them, data frame or array; None if none were asked for


def read_training_rows(
    table: InputTable,
    schema: Schema,
    rows: Sequence[int],
    targets: Floats,
    id: str | None,
    session: Session,
    sample: Sequence[int] = (),
) -> TrainingRows:
    """Read some rows, and check that the file is the one that the model was fitted on. Shapes: targets (n_train,)."""
    target = schema.target
    assert target is not None, "without a target there is no training file"
    require_columns(table, "target", target)
    ids = [] if id is None or id not in table.columns else [id]
    schema = match(table, schema, [*table.columns], session, strict=False)
    table.verbatim = frozenset(ids) - set(schema.names)
    types = {**dict.fromkeys(ids, pa.string()), **schema.types, target: pa.float64()}
    found: dict[int, dict[str, Any]] = {}
    sampled = []
    moments = {column.name: np.zeros(3) for column in schema.columns if column.kind == NUMBER}
    start = 0
    with session.progress(f"reading {table.name}", table.size) as progress:
        for chunk in table.chunks(types, _ROWS_AT_A_TIME):
            _same_targets(chunk, target, targets[start : start + chunk.num_rows], table)
            for name, sums in moments.items():
                sums += _moments(as_numbers(chunk.column(name).combine_chunks(), name, table.name))
            inside = [row for row in rows if start <= row < start + chunk.num_rows]
            some = chunk.take(pa.array([row - start for row in inside], pa.int64()))
            for i, row in enumerate(inside):
                found[row] = {name: some.column(name)[i] for name in [*ids, *schema.names]}
            drawn = [row - start for row in sample if start <= row < start + chunk.num_rows]
            sampled.append(chunk.take(pa.array(drawn, pa.int64())))
            start += chunk.num_rows
            progress(table.position)
    if start != len(targets):
        raise other_file(table, f"it has {start} rows, and the model was fitted on {len(targets)}")
    return TrainingRows(
        [plain_values(found[row], schema) for row in rows],
        [found[row][ids[0]].as_py() for row in rows] if ids else None,
        {name: _deviation(sums) for name, sums in moments.items()},
        rows_of(_joined(sampled), schema, table.name).X if len(sample) else None,
    )


def _joined(chunks: list[Any]) -> Any:
    """Return one table of Arrow; a column can have other categories in each chunk."""
    return pa.concat_tables([pa.table(chunk) for chunk in chunks], promote_options="permissive").unify_dictionaries()


def plain_values(row: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the features of a row, given as scalars of Arrow, as numbers and texts; None where missing."""
    values: dict[str, Any] = {}
    for column in schema.columns:
        value = row[column.name]
        if column.kind == CATEGORY:
            value = as_texts(pa.array([value.as_py()], value.type), column.name, "")[0]
        plain = value.cast(pa.string()).as_py() if column.kind == DATE else value.as_py()
        if column.kind == NUMBER and isinstance(plain, str):  # as `as_numbers` reads it
            plain = float(plain)
        values[column.name] = None if isinstance(plain, float) and np.isnan(plain) else plain
    return values


def _same_targets(chunk: Any, target: str, expected: Floats, table: InputTable) -> None:
    given = as_numbers(chunk.column(target).combine_chunks(), target, table.name)
    if len(expected) != len(given) or not np.array_equal(given, expected):
        raise other_file(table, f"its column {target!r} does not have the targets that the model was fitted on")


def other_file(table: InputTable, why: str) -> InvalidInputError:
    """Return the error for a file that is not the one that the model was fitted on."""
    return InvalidInputError(
        f"{table.name} is not the file that the model was fitted on, or has changed since: {why}. Name the right one "
        "by --train, or leave the features out by --no-features."
    )


def _moments(values: Floats) -> Floats:
    values = values[np.isfinite(values)]
    return np.array([len(values), values.sum(), np.square(values).sum()])


def _deviation(sums: Floats) -> float:
    n, total, squares = sums
    return float(np.sqrt(max(0.0, squares / n - (total / n) ** 2))) if n else 0.0


def shown_features(data: Any, schema: Schema, file: str) -> Any:
    """Return the features as people know them: categories as texts, also those that the model does not know."""
    import pandas as pd  # takes long to import

    columns = {}
    for column in schema.columns:
        values = data.column(column.name).combine_chunks()
        if column.kind == NUMBER:
            columns[column.name] = as_numbers(values, column.name, file)
            continue
        if column.kind == CATEGORY:
            values = as_texts(values, column.name, file)
        elif column.kind == DATE:
            values = values.cast(pa.string())
        columns[column.name] = np.array(values.to_pylist(), object)
    return pd.DataFrame(columns, copy=False)
