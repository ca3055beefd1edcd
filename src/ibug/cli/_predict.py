"""``ibug predict``: intervals, quantiles, samples and neighbours for every row of a table of any size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug._warnings import warn_infinite
from ibug.cli import _options as o
from ibug.cli._columns import divided, match, require_columns
from ibug.cli._errors import guarded
from ibug.cli._reading import STANDARD_STREAM, InputTable, ReadOptions, format_of, open_table
from ibug.cli._rows import ModelRows, Unseen, rows_of
from ibug.cli._terminal import Session, words
from ibug.cli._totals import TotalOptions, predicted_totals
from ibug.cli._writing import check_output, writing
from ibug.describe import Predictions, percent, predict_rows
from ibug.exceptions import InvalidInputError

_LEVEL = 0.9  # of the interval, where nothing is asked for
_NUMBERS_PER_CHUNK = 2**22  # read and written: about 32 MB
_LEAST_ROWS, _MOST_ROWS = 256, 2**16

HELP = """
Predict every row of DATA, in chunks, so that files larger than memory work.

Without --interval, --quantiles and --samples the 90 % interval is written. --joint writes boxes in place of intervals,
also with --quantiles. The output has one line per row, in the same order: ids, prediction, std, then the columns
asked for; those of several targets begin with the target's name. Neighbours are rows of the training file, counted
from 0. With --total-by one line per group is written: the sum of its rows, with all rows read at once.

[dim]Examples:[/]

  ibug predict model.ibug new.csv --id order --interval 0.5,0.9 -o out.csv

  ibug predict model.ibug new.parquet --quantiles 0.05,0.5,0.95 --neighbors 5 -o out.parquet

  ibug predict model.ibug new.csv --total-by day --blocks day -o days.csv

  zcat new.csv.gz | ibug predict model.ibug - --samples 100 --seed 1 > draws.csv
"""


@guarded
def predict(
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
        bool, typer.Option("--flags", help="Mark rows of low similarity to the training data, and unseen categories.")
    ] = False,
    joint: Annotated[
        bool, typer.Option("--joint", help="With several targets: boxes that hold all of them at once.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of --samples.")] = 0,
    total_by: Annotated[
        list[str] | None, typer.Option("--total-by", help="Columns by which rows are added up: a total for each group.")
    ] = None,
    blocks: Annotated[
        list[str] | None,
        typer.Option(
            "--blocks",
            help="Columns that say which rows of a total belong together, as in ibug fit; 'none': no rows do.",
        ),
    ] = None,
    *,
    loading: o.LoadOptions,
    chunk_rows: Annotated[
        int | None, typer.Option("--chunk-rows", min=1, help="Rows at a time; fewer take less memory.")
    ] = None,
    reading: ReadOptions,
    strict: o.Strict = False,
    session: Session,
) -> None:
    """Predict every row; see HELP."""
    started = time.perf_counter()
    wanted = _wanted(interval, quantiles, samples, neighbors, flags, joint)
    totals = TotalOptions(tuple(total_by or ()), tuple(blocks or ()))
    totals.check(
        {
            "--quantiles": quantiles,
            "--samples": samples,
            "--neighbors": neighbors,
            "--flags": flags,
            "--joint": joint,
            "--id": id,
            "--chunk-rows": chunk_rows,
        }
    )
    check_output(output, data, model, streams=True)
    if output != STANDARD_STREAM:
        format_of(output)
    stored = loading.load(model)
    wanted = _of_targets(wanted, stored.target_names)
    if neighbors > stored.estimator.source_.index.n_rows:
        raise InvalidInputError(
            f"--neighbors {neighbors}: the model has only {stored.estimator.source_.index.n_rows} training rows."
        )
    table = open_table(data, reading, session)
    if totals.by:
        found, facts = predicted_totals(stored, table, totals, wanted.intervals, strict, session)
        with writing(output) as writer:
            writer.write(found)
        _report_totals(facts, output, time.perf_counter() - started, session)
        return
    ids = _ids(id or (), table, wanted)
    schema = match(table, stored.schema, [*ids, stored.id], session, strict=strict)
    table.verbatim = frozenset(ids) - set(schema.names)
    types = {**dict.fromkeys(ids, pa.string()), **schema.types}
    n_columns = len(types) + len(wanted.columns())
    size = chunk_rows or min(_MOST_ROWS, max(_LEAST_ROWS, _NUMBERS_PER_CHUNK // n_columns))
    predictor = Predictor(stored.estimator, wanted, seed)
    with writing(output) as writer, session.progress(f"predicting {table.name}", table.size) as progress:
        for chunk in table.chunks(types, size):
            kept = {name: chunk.column(name) for name in ids}
            writer.write(predictor.predict(rows_of(chunk, schema, table.name), kept))
            progress(table.position)
        if not predictor.n_rows:
            writer.write(wanted.empty(ids))
            session.note(f"{table.name} has a header, but no rows; so has the output.")
    _report(predictor, table, output, time.perf_counter() - started, session)


def _ids(given: Sequence[str], table: InputTable, wanted: OutputSpec) -> tuple[str, ...]:
    """Return the columns to keep, which the table must have, and the predictions must not."""
    ids = divided(given, table.columns)
    for name in ids:
        if name in wanted.columns():
            raise typer.BadParameter(f"{name!r} is also the name of a column of the output.", param_hint="--id")
        require_columns(table, "id", name)
    return ids


def _wanted(
    interval: list[str] | None, quantiles: list[str] | None, samples: int, neighbors: int, flags: bool, joint: bool
) -> OutputSpec:
    intervals = o.probabilities(interval, "--interval")
    levels = o.probabilities(quantiles, "--quantiles")
    if not intervals and (joint or not (levels or samples)):
        intervals = [_LEVEL]
    return OutputSpec(tuple(intervals), tuple(levels), samples, neighbors, flags, joint=joint)


def _of_targets(wanted: OutputSpec, names: list[str]) -> OutputSpec:
    """Return what is wanted of the model's targets; refuse what several, or one, cannot have."""
    if wanted.joint and not names:
        raise typer.BadParameter("the model has one target; boxes are for several.", param_hint="--joint")
    if wanted.samples and names:
        raise typer.BadParameter(
            "samples of several targets are drawn in Python: u.predict_dist(X).rvs(size).", param_hint="--samples"
        )
    return replace(wanted, targets=tuple(names))


def _report(predictor: Predictor, table: InputTable, output: str, seconds: float, session: Session) -> None:
    facts: dict[str, Any] = {"output": output, **predictor.facts(), "seconds": round(seconds, 3)}
    unseen, n = predictor.unseen, predictor.n_rows
    if unseen.first_row is not None:
        session.note(
            f"{table.name}: {unseen.n_rows} of {n} rows have categories that the model does not know, first "
            f"{table.where(unseen.first_row)}: {unseen.describe()}."
        )
    if predictor.first_low is not None:
        session.note(
            f"{table.name}: {predictor.n_low} of {n} rows ({percent(predictor.n_low / n, 1)}; 1 % is "
            f"usual) have a low similarity to the training data, first {table.where(predictor.first_low)}. "
            "--flags marks them."
        )
    if session.json:
        session.report(facts, to_stderr=output == STANDARD_STREAM)
    elif output != STANDARD_STREAM:
        session.say(words(("✓", "good"), f" {n:,} rows in {seconds:.1f} s → ", (output, "value")))


def _report_totals(facts: dict[str, Any], output: str, seconds: float, session: Session) -> None:
    if session.json:
        session.report({"output": output, **facts, "seconds": round(seconds, 3)}, to_stderr=output == STANDARD_STREAM)
    elif output != STANDARD_STREAM:
        text = f" {facts['groups']:,} totals of {facts['rows']:,} rows in {seconds:.1f} s → "
        session.say(words(("✓", "good"), text, (output, "value")))


@dataclass(frozen=True)
class OutputSpec:
    """What is to be predicted."""

    intervals: tuple[float, ...] = ()
    quantiles: tuple[float, ...] = ()
    samples: int = 0
    neighbors: int = 0
    flags: bool = False
    targets: tuple[str, ...] = ()  # the names of several targets; none of one
    joint: bool = False  # boxes in place of intervals

    def columns(self) -> list[str]:
        """Return the names of the columns that will be written."""
        side = "box_" if self.joint else ""
        names = []
        for prefix in [f"{target}_" for target in self.targets] or [""]:
            names += [f"{prefix}prediction", f"{prefix}std"]
            names += [f"{prefix}{side}{end}_{100 * level:g}" for level in self.intervals for end in ("lower", "upper")]
            names += [f"{prefix}q{level:g}" for level in self.quantiles]
        if self.flags:
            names += ["affinity", "low_affinity", "unseen"]
        for i in range(1, self.neighbors + 1):
            near = [f"{name}_{i}" for name in self.targets] or [f"target_{i}"]
            names += [f"neighbor_{i}", *near, f"affinity_{i}"]
        return names + [f"sample_{i}" for i in range(1, self.samples + 1)]

    def empty(self, ids: Sequence[str]) -> Any:
        """Return the table of no rows, after the columns to keep."""
        special = {"low_affinity": pa.bool_(), "unseen": pa.string()}
        types = {name: special.get(name, pa.float64()) for name in self.columns()}
        types |= {f"neighbor_{i}": pa.int64() for i in range(1, self.neighbors + 1)}
        return pa.schema([*((name, pa.string()) for name in ids), *types.items()]).empty_table()


@dataclass
class Predictor:
    """Predicts chunk after chunk. The predictions of a row do not depend on where chunks begin."""

    estimator: Any  # a fitted IBUGRegressor
    wanted: OutputSpec
    seed: int = 0  # of the samples
    n_rows: int = 0
    n_low: int = 0
    first_low: int | None = None
    unseen: Unseen = field(default_factory=Unseen)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._threshold = float(self.estimator.affinity_threshold_)

    def predict(self, rows: ModelRows, kept: dict[str, Any]) -> Any:
        """Return the table of predictions for a chunk, after the columns to keep."""
        u, wanted = self.estimator, self.wanted
        found = predict_rows(u, rows.X, wanted.neighbors)
        assert found.nearest is not None, "a model file has an IBUGRegressor"
        columns = self._distributions(found)
        score, indices, affinities = found.nearest.similarity, found.nearest.indices, found.nearest.affinities
        low_affinity = score < self._threshold  # which is NaN where it is not known
        unseen = self.unseen.add(rows.unseen, rows.texts, self.n_rows)
        if wanted.flags:
            columns += [score, low_affinity, _named(rows, unseen, len(score))]
        for i in range(wanted.neighbors):
            targets = np.atleast_2d(u.training_targets_[indices[:, i]].T)
            columns += [indices[:, i], *targets, affinities[:, i] / u.source_.index.n_trees]
        if wanted.samples:
            columns += list(self._samples(found.distribution, len(score)).T)
        if low_affinity.any() and self.first_low is None:
            self.first_low = self.n_rows + int(np.argmax(low_affinity))
        self.n_low += int(low_affinity.sum())
        self.n_rows += len(score)
        arrays = [pa.array(column) for column in columns]
        return pa.table({**kept, **dict(zip(wanted.columns(), arrays, strict=True))})

    def _distributions(self, found: Predictions) -> list[Any]:
        """Return prediction, deviation, intervals and quantiles, one target after the other."""
        wanted, rule, distribution = self.wanted, self.estimator.rule_, found.distribution
        n, d = len(found.points), max(1, len(wanted.targets))
        ends = [rule.ends(distribution, level, joint=wanted.joint) for level in wanted.intervals]
        if wanted.joint or self.estimator.conformal_ is not None:
            for each, level in zip(ends, wanted.intervals, strict=True):
                warn_infinite(each, level, "predict", joint=wanted.joint, conformal=self.estimator.conformal_)
        parts = [found.points, distribution.std(), *ends]
        if wanted.quantiles:
            parts.append(rule.quantiles(distribution, np.asarray(wanted.quantiles)))
        return [*np.concatenate([part.reshape(n, d, -1) for part in parts], axis=2).reshape(n, -1).T]

    def _samples(self, distribution: Any, n_rows: int) -> Floats:
        """Return draws of shape (n_rows, samples). Uniform numbers come row by row, so that chunks do not matter."""
        uniform = self._random.random((n_rows, self.wanted.samples))
        return np.asarray(distribution.ppf(np.maximum(uniform, np.finfo(float).tiny)))

    def facts(self) -> dict[str, Any]:
        """Return the report of all chunks: rows, rows of low affinity, unseen categories."""
        unseen = self.unseen
        columns = {name: {"rows": n, "examples": unseen.examples[name]} for name, n in unseen.rows.items()}
        return {
            "rows": self.n_rows,
            "low_affinity": {"rows": self.n_low, "first_row": self.first_low, "affinity_threshold": self._threshold},
            "unseen_categories": {"rows": unseen.n_rows, "first_row": unseen.first_row, "columns": columns},
        }


def _named(rows: ModelRows, unseen: NDArray[np.bool_] | None, n_rows: int) -> list[str]:
    """Return for each row the columns with categories that the model does not know, with commas."""
    if unseen is None:
        return [""] * n_rows
    return [",".join(name for name, mask in rows.unseen.items() if mask[i]) for i in range(n_rows)]
