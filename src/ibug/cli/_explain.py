"""``ibug explain``: one prediction, its interval, the training rows behind it, and in which features they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from rich.console import Group
from rich.text import Text

from ibug.cli import _options as o
from ibug.cli._columns import match, require_columns
from ibug.cli._errors import guarded
from ibug.cli._model_file import StoredModel
from ibug.cli._reading import InputTable, ReadOptions, open_table
from ibug.cli._rows import TrainingRows, plain_values, read_training_rows, rows_of
from ibug.cli._schema import Schema
from ibug.cli._terminal import Session, plain_table, words
from ibug.describe import mean_distances, number, percent
from ibug.exceptions import InvalidInputError

_COMPARED_WITH = 1000
_ROWS_AT_A_TIME = 2**14

# Widths are compared with those of training rows, or of the rows of the same file if these are enough.
_BACKGROUND = 50
_LEAST_ROWS = 20
# From it on, a floating-point number stands for several whole numbers.
_FIRST_INEXACT = 2**53

HELP = """
Explain one prediction: its interval, the nearest training rows, and which features differ. Why is this row uncertain?

Rows are counted from 0. The features of training rows are read from the training file, which the model file remembers
by name only; --train names it if it has moved.

[dim]Examples:[/]

  ibug explain model.ibug new.csv --row 17

  ibug explain model.ibug new.csv --id order=A-1042 --neighbors 8

  ibug explain model.ibug new.csv --row 17 --width

  ibug explain model.ibug new.parquet --row 0 --train /data/train.parquet --json
"""


@guarded
def explain(
    model: o.ModelFile,
    data: o.DataFile,
    row: Annotated[int | None, typer.Option("--row", min=0, help="The row, counted from 0.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="The row by name: COLUMN=VALUE.")] = None,
    coverage: o.Coverage = "0.9",
    neighbors: Annotated[
        int, typer.Option("--neighbors", min=1, help="The number of nearest training rows to list.")
    ] = 5,
    train: o.TrainFile = None,
    features: o.Features = True,
    width: Annotated[
        bool, typer.Option("--width", help="Show which features make the distribution wide (extra explain).")
    ] = False,
    *,
    loading: o.LoadOptions,
    reading: ReadOptions,
    strict: o.Strict = False,
    session: Session,
) -> None:
    """Explain one prediction; see HELP."""
    level = o.coverage(coverage)
    if (row is None) == (id is None):
        raise typer.BadParameter("name one row: --row 17, or --id column=value.", param_hint="--row / --id")
    column, value = _parse_id(id)
    if width:
        from ibug.explain import shap_package

        shap_package()  # before anything takes time
    stored = loading.load(model)
    stored.require_one_target("explain")
    table = open_table(data, reading, session)
    require_columns(table, "id", column)
    schema = match(table, stored.schema, [column, stored.id], session, strict=strict)
    number, chunk, at = _find(table, schema, row, column, value)
    first = max(0, min(at, chunk.num_rows - _COMPARED_WITH))
    rows = rows_of(chunk.slice(first, _COMPARED_WITH), schema, table.name)  # the row, and others to compare it with
    n_neighbors = min(neighbors, stored.estimator.source_.index.n_rows)
    facts: dict[str, Any] = {"row": number, "where": table.where(number)}
    facts |= explain_row(stored.estimator, rows.X, at - first, level, n_neighbors)
    here = plain_values({name: chunk.column(name)[at] for name in schema.names}, schema)
    training = _training(stored, facts, train, reading, session, width) if features else None
    if training is not None:
        compare(facts, here, training)
    facts["features"] = here
    _note_large(here, session)
    if width:
        background = _background(rows.X, training, table)
        with session.stages():
            facts["width"] = widening(stored.estimator, rows.X, at - first, background, here)
    facts["unseen"] = [name for name, unseen in rows.unseen.items() if unseen[at - first]]
    facts["reasons"] = reasons(facts, facts["unseen"])
    if session.json:
        session.report(facts)
    else:
        session.show(explanation_text(facts, table.name))


def _note_large(features: dict[str, Any], session: Session) -> None:
    """Note which features are whole numbers that floating-point numbers round."""
    numbers = {name: value for name, value in features.items() if isinstance(value, (int, float))}
    large = [name for name, value in numbers.items() if abs(value) >= _FIRST_INEXACT and float(value).is_integer()]
    if large:
        session.note(
            f"Whole numbers beyond 2^53 lose digits, because models read floating-point numbers, in: "
            f"{', '.join(large)}. If such a column names rows, leave it out of the model by ibug fit --id."
        )


def _parse_id(id: str | None) -> tuple[str | None, str | None]:
    if id is None:
        return None, None
    column, equals, value = id.partition("=")
    if not equals or not column:
        raise typer.BadParameter(f"COLUMN=VALUE is expected, not {id!r}.", param_hint="--id")
    return column, value


def _find(
    table: InputTable, schema: Schema, row: int | None, column: str | None, value: str | None
) -> tuple[int, Any, int]:
    """Return the number of the row, the chunk that it is in, and its place there."""
    table.verbatim = frozenset([] if column is None else [column]) - set(schema.names)
    types = {**({} if column is None else {column: pa.string()}), **schema.types}
    start = 0
    for chunk in table.chunks(types, _ROWS_AT_A_TIME):
        if row is not None and row < start + chunk.num_rows:
            return row, chunk, row - start
        if column is not None:
            texts = chunk.column(column).cast(pa.string()).to_pylist()
            if value in texts:
                return start + texts.index(value), chunk, texts.index(value)
        start += chunk.num_rows
    if column is not None:
        raise InvalidInputError(f"{table.name} has no row whose {column!r} is {value!r}.")
    raise InvalidInputError(f"{table.name} has {start} rows, counted from 0: there is no row {row}.")


def _training(
    stored: StoredModel, facts: dict[str, Any], train: str | None, reading: ReadOptions, session: Session, width: bool
) -> TrainingRows | None:
    """Read the nearest training rows, if the training file is known and there; and some more, to compare widths."""
    path = stored.training_file(train, session)
    if path is None:
        return None
    # The format is that of DATA alone; the other options probably hold for both files.
    table = open_table(path, replace(reading, format=None), session)
    rows = [neighbor["row"] for neighbor in facts["neighbors"]]
    targets = stored.estimator.training_targets_
    n_drawn = min(_BACKGROUND, len(targets)) if width else 0
    drawn = np.sort(np.random.default_rng(0).choice(len(targets), n_drawn, replace=False)).tolist()
    return read_training_rows(table, stored.schema, rows, targets, stored.id, session, drawn)


def _background(X: Any, training: TrainingRows | None, table: InputTable) -> Any:
    """Return the rows whose widths that of a row is compared with: of the training file, else of the same file."""
    if training is not None:
        return training.sample
    if len(X) < _LEAST_ROWS:
        raise InvalidInputError(
            f"--width compares with other rows, and {table.name} has only {len(X)}: name the training file by --train."
        )
    return X


def explain_row(estimator: Any, X: Any, at: int, coverage: float, n_neighbors: int) -> dict[str, Any]:
    """Return prediction, interval and neighbours of one row of X, and how its spread compares with that of others."""
    from sklearn.utils import _safe_indexing  # takes long to import

    k = estimator.k_
    distribution, affinities, indices = estimator.predict_with_neighbors(X, max(k, n_neighbors))
    spread = distribution.std()
    lower, upper = (float(end[0]) for end in distribution[at : at + 1].interval(coverage))
    targets = estimator.training_targets_[indices[at]]
    shares = affinities[at] / estimator.source_.index.n_trees
    used = targets[:k]
    neighborhood: dict[str, float] = {"neighbors": int(k), "mean": float(used.mean()), "std": float(used.std())}
    neighborhood |= {"min": float(used.min()), "max": float(used.max())}
    listed = zip(indices[at, :n_neighbors], targets[:n_neighbors], shares[:n_neighbors], strict=True)
    return {
        "prediction": float(estimator.predict(_safe_indexing(X, [at]))[0]),
        "std": float(spread[at]),
        "interval": {"coverage": coverage, "lower": lower, "upper": upper},
        "wider_than": float(np.mean(spread < spread[at])),
        "compared_with": len(spread),
        "affinity": float(affinities[at, :k].mean() / estimator.source_.index.n_trees),
        "affinity_threshold": float(estimator.affinity_threshold_),
        "neighborhood": neighborhood,
        "neighbors": [
            {"row": int(row), "target": float(target), "affinity": float(share)} for row, target, share in listed
        ],
    }


def compare(facts: dict[str, Any], here: dict[str, Any], training: TrainingRows) -> None:
    """Add the neighbours' features to an explanation, and those in which the row differs, largest distance first."""
    for i, neighbor in enumerate(facts["neighbors"]):
        if training.ids is not None:
            neighbor["id"] = training.ids[i]
        neighbor["features"] = training.values[i]
    found = []
    for name, value in here.items():
        there = [row[name] for row in training.values]
        values, others = np.array([value], object), np.array([there], object)
        distance = float(mean_distances(values, others, training.scales.get(name))[0])
        if distance > 0:
            found.append({"feature": name, "here": value, "neighbors": there, "distance": distance})
    facts["differences"] = sorted(found, key=lambda difference: -difference["distance"])


def widening(estimator: Any, X: Any, at: int, background: Any, here: dict[str, Any]) -> dict[str, Any]:
    """Return what each feature of one row does to σ, the largest effect first."""
    from sklearn.utils import _safe_indexing  # takes long to import

    from ibug.explain import Attributor

    parts = Attributor(estimator, _safe_indexing(X, [at]), background)
    _, values, base = parts.row(0)
    names, features = list(here), []
    for j in np.argsort(-np.abs(values), kind="stable"):
        effect = {"log_std": float(values[j]), "factor": float(np.exp(values[j]))}
        features.append({"feature": names[j], "here": here[names[j]], **effect})
    return {"typical_std": float(np.exp(base)), "compared_with": parts.n_background, "features": features}


def reasons(facts: dict[str, Any], unseen: list[str]) -> list[str]:
    """Return sentences on why the prediction is certain or not."""
    near, share = facts["neighborhood"], facts["affinity"]
    lines = []
    if unseen:
        lines.append(f"The model does not know its category in: {', '.join(unseen)}.")
    threshold = facts["affinity_threshold"]
    if share < threshold:
        lines.append(
            f"Its similarity to the training data is low: its neighbours share {percent(share)} of the leaves with it, "
            f"and all but 1 % of the validation rows had {percent(threshold)} or more."
        )
    else:
        lines.append(f"Its {near['neighbors']} nearest training rows share {percent(share)} of the leaves with it.")
    lines.append(
        f"Their targets go from {number(near['min'])} to {number(near['max'])}, mean {number(near['mean'])}, standard "
        f"deviation {number(near['std'])}."
    )
    if facts["compared_with"] > 1:
        lines.append(
            f"Its spread is wider than that of {percent(facts['wider_than'])} of the {facts['compared_with']} rows it "
            "was compared with."
        )
    return lines


_MOST_FEATURES = 10
_BAR = 10
# Features are shown as they are: a year is no 2,020. Large ones have no fraction, and very large ones a power of ten.
_WHOLE, _LARGEST = 1e6, 1e15


def explanation_text(facts: dict[str, Any], file: str) -> Any:
    """Return prediction, reasons, neighbours and differences, one below the other."""
    interval = facts["interval"]
    head = words(
        (number(facts["prediction"]), "value"),
        (f"  {100 * interval['coverage']:g} % interval ", "label"),
        f"{number(interval['lower'])} … {number(interval['upper'])}",
        ("  std ", "label"),
        number(facts["std"]),
    )
    parts: list[Any] = [words((f"{file}, {facts['where']}", "label")), head, ""]
    parts += [f"• {line}" for line in facts["reasons"]]
    if "width" in facts:
        parts += ["", _width(facts["width"])]
    parts += ["", _neighbors(facts)]
    if facts.get("differences"):
        parts += ["", _differences(facts)]
    elif "differences" in facts:
        parts += ["", Text("All features are the same as those of these neighbours.")]
    return Group(*parts)


def _neighbors(facts: dict[str, Any]) -> Any:
    with_id = any("id" in neighbor for neighbor in facts["neighbors"])
    table = plain_table("training row", *(["id"] if with_id else []), "target", "affinity", first="right")
    table.add_column("")
    for neighbor in facts["neighbors"]:
        share = neighbor["affinity"]
        bar = "█" * round(share * _BAR)
        identity = [str(neighbor.get("id"))] if with_id else []
        cells = [str(neighbor["row"]), *identity, number(neighbor["target"]), percent(share)]
        table.add_row(*cells, Text(bar.ljust(_BAR, "░"), style="cyan"))
    return table


def _width(width: dict[str, Any]) -> Any:
    """Return what widens and what narrows: a bar to the right or to the left for each feature."""
    shown = width["features"][:_MOST_FEATURES]
    longest = max((abs(each["log_std"]) for each in shown), default=0.0) or 1.0
    table = plain_table("feature", "this row", "factor of std")
    table.add_column("narrows │ widens")
    for each in shown:
        length = round(_BAR * abs(each["log_std"]) / longest) * "█"
        left, right = (length, "") if each["log_std"] < 0 else ("", length)
        bar = Text.assemble((left.rjust(_BAR), "cyan"), "│", (right, "yellow"))
        table.add_row(each["feature"], words((_value(each["here"]), "value")), f"{each['factor']:.2f}", bar)
    rest = len(width["features"]) - len(shown)
    more = f"; {rest} more features matter less" if rest else ""
    note = f"Compared with {width['compared_with']} rows, whose typical std is {number(width['typical_std'])}{more}."
    return Group(table, Text(note, style="label"))


def _differences(facts: dict[str, Any]) -> Any:
    shown = facts["differences"][:_MOST_FEATURES]
    table = plain_table("feature that differs", "this row", "training rows, the nearest first")
    table.columns[2].justify = "left"
    table.columns[2].no_wrap = False
    for found in shown:
        there = Text(", ").join(
            words((_value(value), "label" if value == found["here"] else "")) for value in found["neighbors"]
        )
        table.add_row(found["feature"], words((_value(found["here"]), "value")), there)
    same = len(facts["features"]) - len(facts["differences"])
    rest = len(facts["differences"]) - len(shown)
    more = f"{rest} more differ less; " if rest else ""
    return Group(table, Text(f"{more}{same} of {len(facts['features'])} features are the same.", style="label"))


def _value(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.0f}" if _WHOLE <= abs(value) < _LARGEST else f"{value:.6g}"
    return str(value)
