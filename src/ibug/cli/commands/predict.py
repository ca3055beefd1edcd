"""``ibug predict``: intervals, quantiles, samples and neighbours for every row of a table of any size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer

from ibug.cli.columns import divided, match, require_column
from ibug.cli.commands import _options as o
from ibug.cli.screen import Session, guarded, words
from ibug.cli.tables import STANDARD_STREAM, Table, check_output, format_of, open_table, writing
from ibug.describe import percent
from ibug.exceptions import InvalidInputError

if TYPE_CHECKING:
    from ibug.cli.answers import OutputSpec, Predictor

_LEVEL = 0.9  # of the interval, where nothing is asked for
_NUMBERS_PER_CHUNK = 2**22  # read and written: about 32 MB
_LEAST_ROWS, _MOST_ROWS = 256, 2**16

HELP = """
Predict every row of DATA, in chunks, so that files larger than memory work.

Without --interval, --quantiles and --samples the 90 % interval is written. --joint writes boxes in place of intervals,
also beside --quantiles. The output has one line per row, in the same order: ids, prediction, std, then the columns
asked for; those of several targets begin with the target's name. Neighbours are rows of the training file, counted
from 0.

[dim]Examples:[/]

  ibug predict model.ibug new.csv --id order --interval 0.5,0.9 -o out.csv

  ibug predict model.ibug new.parquet --quantiles 0.05,0.5,0.95 --neighbors 5 -o out.parquet

  zcat new.csv.gz | ibug predict model.ibug - --samples 100 --seed 1 > draws.csv
"""


@guarded
def predict(
    session: Session,
    model: o.ModelFile,
    data: o.DataFile,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file to write, by its ending; - is CSV on standard output.")
    ] = STANDARD_STREAM,
    interval: Annotated[
        list[str] | None, typer.Option("--interval", "-i", help="Coverages of central intervals: 0.5,0.9.")
    ] = None,
    quantiles: Annotated[list[str] | None, typer.Option("--quantiles", help="Probabilities: 0.05,0.5,0.95.")] = None,
    neighbors: Annotated[
        int, typer.Option("--neighbors", min=0, help="The number of nearest training rows to list.")
    ] = 0,
    samples: Annotated[int, typer.Option("--samples", min=0, help="The number of random draws.")] = 0,
    id: Annotated[list[str] | None, typer.Option("--id", help="Columns to keep: a,b.")] = None,
    flags: Annotated[
        bool, typer.Option("--flags", help="Mark rows unlike the training data, and unseen categories.")
    ] = False,
    joint: Annotated[
        bool, typer.Option("--joint", help="Of several targets: boxes that hold all of them at once.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of --samples.")] = 0,
    *,
    loading: o.Loading,
    chunk_rows: Annotated[
        int | None, typer.Option("--chunk-rows", min=1, help="Rows at a time; fewer take less memory.")
    ] = None,
    reading: o.Reading,
    strict: o.Strict = False,
) -> None:
    """Predict every row; see HELP."""
    from ibug.cli.answers import Predictor
    from ibug.cli.rows import rows_of

    started = time.perf_counter()
    read = reading.options()
    wanted = _wanted(interval, quantiles, samples, neighbors, flags, joint)
    check_output(output, data, model, streams=True)
    if output != STANDARD_STREAM:
        format_of(output)
    stored = loading.load(model)
    wanted = _of_targets(wanted, getattr(stored.estimator, "target_names_", None))
    if neighbors > stored.estimator.index_.n_rows:
        raise InvalidInputError(
            f"--neighbors {neighbors}: the model has only {stored.estimator.index_.n_rows} training rows."
        )
    table = open_table(data, read, session)
    ids = _ids(id or (), table, wanted)
    schema = match(table, stored.schema, [*ids, stored.id], session, strict=strict)
    table.verbatim = frozenset(ids) - set(schema.names)
    types = {**dict.fromkeys(ids, pa.string()), **schema.types}
    size = chunk_rows or _chunk_rows(len(types) + len(wanted.columns()))
    predictor = Predictor(stored.estimator, wanted, seed)
    with writing(output) as writer, session.progress(f"predicting {table.name}", table.size) as progress:
        for chunk in table.chunks(types, size):
            kept = {name: chunk.column(name) for name in ids}
            writer.write(predictor.predict(rows_of(chunk, schema, table.name), kept))
            progress(table.position)
        if not predictor.n_rows:
            writer.write(wanted.empty(ids))
            session.note(f"{table.name} has a header, but no rows; so has the output.")
    _tell(predictor, table, output, time.perf_counter() - started, session)


def _ids(given: Sequence[str], table: Table, wanted: OutputSpec) -> tuple[str, ...]:
    """Return the columns to keep, which the table must have, and the predictions must not."""
    ids = divided(given, table.columns)
    for name in ids:
        if name in wanted.columns():
            raise typer.BadParameter(f"{name!r} is also the name of a column of the output.", param_hint="--id")
        require_column(table, name, "id")
    return ids


def _wanted(
    interval: list[str] | None, quantiles: list[str] | None, samples: int, neighbors: int, flags: bool, joint: bool
) -> OutputSpec:
    from ibug.cli.answers import OutputSpec

    intervals = o.probabilities(interval, "--interval")
    levels = o.probabilities(quantiles, "--quantiles")
    if not intervals and (joint or not (levels or samples)):
        intervals = [_LEVEL]
    return OutputSpec(tuple(intervals), tuple(levels), samples, neighbors, flags, joint=joint)


def _of_targets(wanted: OutputSpec, names: list[str] | None) -> OutputSpec:
    """Return what is wanted of the model's targets; refuse what several, or one, cannot have."""
    if names is None:
        if wanted.joint:
            raise typer.BadParameter("the model has one target: boxes are of several.", param_hint="--joint")
        return wanted
    if wanted.samples:
        raise typer.BadParameter(
            "samples of several targets are drawn in Python: u.predict_dist(X).rvs(size).", param_hint="--samples"
        )
    return replace(wanted, targets=tuple(names))


def _chunk_rows(n_columns: int) -> int:
    return min(_MOST_ROWS, max(_LEAST_ROWS, _NUMBERS_PER_CHUNK // n_columns))


def _tell(predictor: Predictor, table: Table, output: str, seconds: float, session: Session) -> None:
    facts: dict[str, Any] = {"output": output, **predictor.facts(), "seconds": round(seconds, 3)}
    unseen, n = predictor.unseen, predictor.n_rows
    if unseen.n_rows:
        assert unseen.first_row is not None
        session.note(
            f"{table.name}: {unseen.n_rows} of {n} rows have categories that the model does not know, first "
            f"{table.where(unseen.first_row)}: {unseen.describe()}."
        )
    if predictor.n_unfamiliar:
        assert predictor.first_unfamiliar is not None
        session.note(
            f"{table.name}: {predictor.n_unfamiliar} of {n} rows ({percent(predictor.n_unfamiliar / n, 1)}; 1 % is "
            f"usual) are unlike the training data, first {table.where(predictor.first_unfamiliar)}. --flags marks them."
        )
    if session.json:
        session.report(facts, to_stderr=output == STANDARD_STREAM)
    elif output != STANDARD_STREAM:
        session.say(words(("✓", "good"), f" {n:,} rows in {seconds:.1f} s → ", (output, "value")))
