"""The measurements behind ``speed.py``: one model, its index, and the same tasks timed in turn.

It prints one line of JSON: python -m benchmarks.speed.measure LightGBM 7000 500
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.processes import result_of
from benchmarks.common.progress import say
from benchmarks.common.timing import BATCH, Floats, Task, in_turn, medians, one_by_one, ratio, seconds, single_rows
from benchmarks.speed.models import MODELS, PACKAGES, USUAL_FEATURES, Rows, Setting, rows_of
from benchmarks.speed.walk import LeafWalk, top_k
from ibug import IBUGRegressor, LeafIndex
from ibug.leaves import LeafReader, reader_of
from ibug.neighbors import CountingLoop, chunk_size, instruction_sets
from ibug.training import own_residuals

K = 100
WALKED, WALKED_CODES = 16, 2**30  # the least number of queries for the slow walk; more where the index is small
SCANNED = 64  # queries of a batch for the dense product, which gains from many
PEAK_PASSES = 10_000  # of the counting loop, whose codes fit any first-level cache of today
MOST_FRAME_ROWS = 10_000  # up to here the model is trained on a data frame as well

Leaves = NDArray[np.int32]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Figures:
    """What was measured for one setting. Times are in seconds, those of `per_row` for one row.

    `ratios` are medians of the ratios within each round, so that a machine that slows down for some rounds does not
    change them; `per_row` are medians of the times themselves.
    """

    setting: Setting
    instruction_set: str
    versions: dict[str, str]
    code_type: str
    how: str
    training_time: float
    fit_time: float
    fresh: dict[str, float]  # what benchmarks.speed.fresh found in a process of its own
    index_bytes: int
    walk_bytes: int
    kernel_share: float
    best_kernel_rate: float
    best_peak_rate: float
    fastest_walk: str
    per_row: dict[str, float]
    ratios: dict[str, float]


@dataclass(frozen=True)
class Subject:
    """A trained model wrapped by ibug, with its rows."""

    model: Any
    regressor: IBUGRegressor  # by the paper's rule, with the same k for all
    default: IBUGRegressor  # with the default settings
    normal: IBUGRegressor  # a normal distribution in place of the stack
    reader: LeafReader
    rows: Rows
    leaves: Leaves  # (BATCH, n_trees), of the queries
    training_time: float
    fit_time: float

    @property
    def index(self) -> LeafIndex:
        """The index of the training rows' leaves."""
        return self.regressor.source_.index

    @property
    def k(self) -> int:
        """The number of neighbours."""
        return self.regressor.k_

    @property
    def n_walked(self) -> int:
        """The number of queries for the walk."""
        return int(np.clip(WALKED_CODES // (self.index.n_rows * self.index.n_trees), WALKED, BATCH))


def measure(setting: Setting, n_rounds: int, report: Report) -> Figures:
    """Train, index and measure one setting.

    Parameters
    ----------
    setting
        The library, the rows and the trees.
    n_rounds
        How often each task is timed; the kernel, on which most depends, twice as often.
    report
        Is told what comes next.
    """
    subject = _train(setting, report)
    report("fitting again in a process of its own, for the memory")
    fresh = _in_fresh_process(setting, subject.model)
    report("timing the kernel")
    kernel = in_turn(_kernel_tasks(subject), 2 * n_rounds)
    times, fastest, walk_bytes = _prediction_times(setting, subject, n_rounds, report)
    return Figures(
        setting=setting,
        instruction_set=instruction_sets()[-1],
        versions={name: version(name) for name in ("numpy", PACKAGES[setting.library])},
        code_type=str(subject.index.code_type),
        how=subject.reader.how,
        training_time=subject.training_time,
        fit_time=subject.fit_time,
        fresh=fresh,
        index_bytes=subject.index.nbytes,
        walk_bytes=walk_bytes,
        kernel_share=ratio(kernel, "peak", "kernel"),
        best_kernel_rate=1 / float(kernel["kernel"].min()),
        best_peak_rate=1 / float(kernel["peak"].min()),
        fastest_walk=fastest,
        per_row=medians(times),
        ratios={f"{slow} / {fast}": ratio(times, slow, fast) for slow, fast in RATIOS if slow in times},
    )


def _prediction_times(
    setting: Setting, subject: Subject, n_rounds: int, report: Report
) -> tuple[dict[str, Floats], str, int]:
    """Return the times of everything that predicts, the fastest way to walk, and the memory that it needs."""
    tasks = _prediction_tasks(subject)
    fastest, walk_bytes = "none", 0
    if not setting.is_huge:
        report("preparing the walk over leaf members")
        leaves = subject.reader.read_leaves(subject.rows.X)
        walk = LeafWalk(leaves, int(max(leaves.max(), subject.leaves.max())) + 1)
        fastest, walk_bytes = _fastest_walk(subject, walk), walk.nbytes
        tasks |= _walk_tasks(subject, walk, walk.walks[fastest])
    if setting.n_rows <= MOST_FRAME_ROWS:
        report("training on a data frame as well")
        tasks |= _frame_tasks(setting, subject.rows)
    report("timing the predictions")
    times = in_turn(tasks, n_rounds)
    for alone in ("", " alone"):
        times[f"leaves + predict{alone}"] = times[f"leaves{alone}"] + times[f"predict{alone}"]
    return times, fastest, walk_bytes


def _train(setting: Setting, report: Report) -> Subject:
    rows = rows_of(setting)
    report(f"{setting}: training the model")
    model = MODELS[setting.library](setting.n_trees)
    training_time = seconds(lambda: model.fit(rows.X, rows.y))
    report("indexing the training rows and tuning on validation rows")
    default = IBUGRegressor(model, prefit=True, n_jobs=1)
    fit_time = seconds(lambda: default.fit(rows.X, rows.y, X_val=rows.X_val, y_val=rows.y_val))
    normal = IBUGRegressor(model, prefit=True, distribution="normal", n_jobs=1)
    normal.fit(rows.X, rows.y, X_val=rows.X_val, y_val=rows.y_val)
    regressor = paper_rule(model, setting.n_rows).fit(rows.X, rows.y)
    reader = reader_of(model)
    reader.prepare(rows.X)
    leaves = reader.library_leaves(rows.queries)
    return Subject(model, regressor, default, normal, reader, rows, leaves, training_time, fit_time)


def paper_rule(model: Any, n_rows: int) -> IBUGRegressor:
    """Return what is compared with other ways to do the same: the variance of the k nearest targets, of all rows."""
    paper: dict[str, Any] = {"distribution": "normal", "spread": "targets", "calibrate": False, "search": "exact"}
    return IBUGRegressor(model, prefit=True, k=min(K, n_rows), **paper, n_jobs=1)


def _in_fresh_process(setting: Setting, model: Any) -> dict[str, float]:
    with TemporaryDirectory(prefix="ibug-") as folder:
        path = Path(folder) / "model.pickle"
        path.write_bytes(pickle.dumps((setting, model)))
        found = result_of("benchmarks.speed.fresh", str(path), tell=say)
    if "failed" in found:
        raise SystemExit(found["failed"])
    return found


RATIOS = (
    ("predict_dist", "predict"),
    ("predict_dist alone", "predict alone"),
    ("default", "predict"),
    ("default alone", "predict alone"),
    ("default", "normal"),
    ("default alone", "normal alone"),
    ("default interval", "predict"),
    ("default interval alone", "predict alone"),
    ("interval alone", "predict alone"),
    ("frame predict_dist alone", "frame predict alone"),
    ("leaves + predict", "read"),
    ("leaves + predict alone", "read alone"),
    ("walk", "predict_dist"),
    ("walk alone", "predict_dist alone"),
    ("walk search", "search"),
    ("scan search", "search"),
    ("residuals", "training leaves"),
)


def _kernel_tasks(subject: Subject) -> dict[str, Task]:
    """Return the peak of the counting loop and the whole search among all rows, in comparisons."""
    index, leaves = subject.index, subject.leaves
    loop = CountingLoop(index, passes=PEAK_PASSES)
    return {
        "peak": Task(loop, loop.comparisons),
        "kernel": Task(lambda: index.query(leaves, subject.k), leaves.size * index.n_rows),
    }


def _prediction_tasks(subject: Subject) -> dict[str, Task]:
    """Return the model's predictions, ibug's and their parts, in rows."""
    model, reader, index, k = subject.model, subject.reader, subject.index, subject.k
    queries, leaves = subject.rows.queries, subject.leaves
    singles, n_rows = single_rows(queries), len(subject.rows.y)
    return {
        "training leaves": Task(lambda: _read_training_leaves(model, subject.rows.X), n_rows),
        "residuals": Task(lambda: own_residuals(reader, index, subject.rows.y, None), n_rows),
        "predict": Task(lambda: model.predict(queries), BATCH),
        "leaves": Task(lambda: reader.library_leaves(queries), BATCH),
        "read": Task(lambda: reader.read(queries), BATCH),
        "search": Task(lambda: index.query(leaves, k), BATCH),
        "predict_dist": Task(lambda: subject.regressor.predict_dist(queries), BATCH),
        "default": Task(lambda: subject.default.predict_dist(queries), BATCH),
        "default interval": Task(lambda: subject.default.predict_interval(queries), BATCH),
        "normal": Task(lambda: subject.normal.predict_dist(queries), BATCH),
        "predict alone": one_by_one(model.predict, singles),
        "leaves alone": one_by_one(reader.library_leaves, singles),
        "read alone": one_by_one(reader.read, singles),
        "search alone": one_by_one(partial(index.query, k=k), single_rows(leaves)),
        "predict_dist alone": one_by_one(subject.regressor.predict_dist, singles),
        "interval alone": one_by_one(subject.regressor.predict_interval, singles),
        "default alone": one_by_one(subject.default.predict_dist, singles),
        "default interval alone": one_by_one(subject.default.predict_interval, singles),
        "normal alone": one_by_one(subject.normal.predict_dist, singles),
    }


def _read_training_leaves(model: Any, X: Floats) -> None:
    """Read the trees of a model and the leaves of its training rows in chunks, as `fit` does."""
    reader = reader_of(model)
    reader.prepare(X)
    size = chunk_size(reader.n_trees)
    for start in range(0, len(X), size):
        reader.read_leaves(X[start : start + size])


def _frame_tasks(setting: Setting, rows: Rows) -> dict[str, Task]:
    """Return predictions of single rows that come as pandas frames, by a model that was trained on one."""
    try:
        import pandas
    except ImportError:
        return {}
    names = [f"x{i}" for i in range(setting.n_features)]
    X, queries = pandas.DataFrame(rows.X, columns=names), pandas.DataFrame(rows.queries, columns=names)
    model = MODELS[setting.library](setting.n_trees).fit(X, rows.y)
    regressor, singles = paper_rule(model, setting.n_rows).fit(X, rows.y), single_rows(queries)
    return {
        "frame predict alone": one_by_one(model.predict, singles),
        "frame predict_dist alone": one_by_one(regressor.predict_dist, singles),
    }


def _walk_tasks(subject: Subject, walk: LeafWalk, affinities: Callable[[Leaves], Any]) -> dict[str, Task]:
    """Return predictions by a walk over leaf members, and other ways to search, in rows."""
    queries, leaves, k, walked = subject.rows.queries, subject.leaves, subject.k, subject.n_walked
    by_walk = partial(_predict_by_walk, subject, affinities)
    return {
        "walk": Task(lambda: by_walk(queries[:walked]), walked),
        "walk search": Task(lambda: top_k(affinities(leaves[:walked]), k), walked),
        "scan search": Task(lambda: top_k(walk.scan(leaves[:SCANNED]), k), SCANNED),
        "walk alone": one_by_one(by_walk, single_rows(queries)),
    }


def _predict_by_walk(subject: Subject, affinities: Callable[[Leaves], Any], X: Floats) -> tuple[Any, Floats]:
    """Do the work of `predict_dist` with a walk: return the means and the standard deviations, (n_rows,) each."""
    _, rows = top_k(affinities(subject.reader.library_leaves(X)), subject.k)
    variance = np.var(subject.rows.y[rows], axis=1)
    return subject.reader.predict(X), np.sqrt(np.maximum(variance, subject.regressor.rule_.min_variance))


def _fastest_walk(subject: Subject, walk: LeafWalk) -> str:
    """Choose the fastest way to walk, after a check that they all find the affinities that ibug finds."""
    leaves = subject.leaves[: subject.n_walked]
    expected = subject.regressor.kneighbors(subject.rows.queries[: subject.n_walked])[0]
    for name, affinities in {**walk.walks, "scan": walk.scan}.items():
        found, _ = top_k(affinities(leaves), subject.k)
        np.testing.assert_array_equal(found, expected, err_msg=name)
    times = in_turn(
        {name: Task(partial(affinities, leaves), len(leaves)) for name, affinities in walk.walks.items()}, 2
    )
    return min(times, key=lambda name: float(times[name].min()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", choices=MODELS)
    parser.add_argument("rows", type=int)
    parser.add_argument("trees", type=int)
    parser.add_argument("--features", type=int, default=USUAL_FEATURES)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    setting = Setting(options.library, options.rows, options.trees, options.features)
    figures = measure(setting, options.rounds, lambda text: say(f"... {text}"))
    print(json.dumps(asdict(figures)))


if __name__ == "__main__":
    main()
