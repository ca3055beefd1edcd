"""The measurements behind ``speed.py``: one model, its index, and the same tasks timed in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from speed_walk import LeafWalk, top_k

from ibug import IBUGRegressor, LeafIndex
from ibug.leaves import LeafReader, read_leaves_of
from ibug.neighbors import _kernel

K = 100
BATCH = 512  # queries of a batch
WALKED, WALKED_CODES = 16, 2**30  # so many queries at least for the walk, which is slow; more where the index is small
SCANNED = 64  # queries of a batch for the dense product, which gains from many
ALONE = 16  # queries that come one by one
# What the peak is measured on: 25 KiB of codes and counts, less than any first-level cache of today.
PEAK_TREES, PEAK_QUERIES = 255, 8
PEAK_PASSES = 10_000
LEAST_TIME = 0.1  # seconds that each timing lasts

Floats = NDArray[np.float64]
Leaves = NDArray[np.int32]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Setting:
    """What is measured: a library's model on a number of rows and trees."""

    library: str
    n_rows: int
    n_trees: int

    def __str__(self) -> str:
        return f"{self.library}, {self.n_rows:,} rows, {self.n_trees:,} trees"


@dataclass(frozen=True)
class Figures:
    """What was measured for one setting. Times are in seconds, those of `per_row` for one row.

    `ratios` are medians of the ratios within each round, so that a machine that slows down for some rounds does not
    change them; `per_row` are medians of the times themselves.
    """

    setting: Setting
    code_type: str
    training_time: float
    fit_time: float
    index_bytes: int
    bytes_per_row_and_tree: float
    walk_bytes_per_row_and_tree: float
    kernel_share: float
    best_kernel_rate: float
    best_peak_rate: float
    fastest_walk: str
    per_row: dict[str, float]
    ratios: dict[str, float]


@dataclass(frozen=True)
class Task:
    """Work to be timed, which is repeated where it is short, and how many rows or comparisons it does."""

    work: Callable[[], object]
    units: int

    def time(self) -> float:
        """Return the seconds per unit."""
        calls, elapsed = 0, 0.0
        while elapsed < LEAST_TIME:
            elapsed += _seconds(self.work)
            calls += 1
        return elapsed / calls / self.units


@dataclass(frozen=True)
class Subject:
    """A trained model wrapped by ibug, with its training rows and the rows to predict."""

    model: Any
    regressor: IBUGRegressor
    reader: LeafReader
    rows: Floats  # (n_rows, n_features)
    targets: Floats  # (n_rows,)
    queries: Floats  # (BATCH, n_features)
    leaves: Leaves  # (BATCH, n_trees), of the queries
    training_time: float
    fit_time: float

    @property
    def index(self) -> LeafIndex:
        """The index of the training rows' leaves."""
        return self.regressor.index_

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
    report("timing the kernel")
    kernel = _in_turn(_kernel_tasks(subject), 2 * n_rounds)
    report("preparing the walk")
    leaves = subject.reader.leaves(subject.rows)
    walk = LeafWalk(leaves, int(max(leaves.max(), subject.leaves.max())) + 1)
    fastest = _fastest_walk(subject, walk)
    report("timing the predictions and the walk")
    times = _in_turn(_prediction_tasks(subject, walk, walk.walks[fastest]), n_rounds)
    return Figures(
        setting=setting,
        code_type=str(subject.index.code_type),
        training_time=subject.training_time,
        fit_time=subject.fit_time,
        index_bytes=subject.index.nbytes,
        bytes_per_row_and_tree=subject.index.nbytes / leaves.size,
        walk_bytes_per_row_and_tree=walk.nbytes / leaves.size,
        kernel_share=_ratio(kernel, "peak", "kernel"),
        best_kernel_rate=1 / float(kernel["kernel"].min()),
        best_peak_rate=1 / float(kernel["peak"].min()),
        fastest_walk=fastest,
        per_row={name: float(np.median(seconds)) for name, seconds in times.items()},
        ratios={f"{slow} / {fast}": _ratio(times, slow, fast) for slow, fast in RATIOS},
    )


def _train(setting: Setting, report: Report) -> Subject:
    X, y = synthetic_rows(setting.n_rows + BATCH)
    rows, targets, queries = X[: setting.n_rows], y[: setting.n_rows], X[setting.n_rows :]
    report(f"{setting}: training the model")
    model = MODELS[setting.library](setting.n_trees)
    training_time = _seconds(lambda: model.fit(rows, targets))
    report("indexing the training rows")
    regressor = IBUGRegressor(model, prefit=True, k=min(K, setting.n_rows), calibrate=False, n_jobs=1)
    fit_time = _seconds(lambda: regressor.fit(rows, targets))
    reader = read_leaves_of(model)
    leaves = reader.leaves(queries)
    return Subject(model, regressor, reader, rows, targets, queries, leaves, training_time, fit_time)


def synthetic_rows(n_rows: int) -> tuple[Floats, Floats]:
    """Draw rows of 9 features, (n_rows, 9), and targets, (n_rows,): a smooth mean, and noise that varies over x."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, 9))
    mean = np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + np.exp(X[:, 3]) + X[:, 4] ** 2 * X[:, 5]
    mean += np.cos(4 * X[:, 6] * X[:, 7]) / 2
    return X, mean + (0.1 + 0.4 * np.abs(X[:, 8])) * rng.normal(size=n_rows)


def _lightgbm(n_trees: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=n_trees, num_leaves=31, learning_rate=0.05, n_jobs=1, verbose=-1)


def _catboost(n_trees: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        iterations=n_trees, depth=7, thread_count=1, random_seed=0, allow_writing_files=False, verbose=False
    )


MODELS: Mapping[str, Callable[[int], Any]] = {"LightGBM": _lightgbm, "CatBoost": _catboost}

RATIOS = (
    ("predict_dist", "predict"),
    ("predict_dist alone", "predict alone"),
    ("walk", "predict_dist"),
    ("walk alone", "predict_dist alone"),
    ("walk search", "search"),
    ("scan search", "search"),
)


def _kernel_tasks(subject: Subject) -> dict[str, Task]:
    """Return the peak of the counting loop and the whole search, in comparisons."""
    index, leaves = subject.index, subject.leaves
    tiles, codes = index._encode(leaves[:PEAK_QUERIES])
    tile = tiles[:1, :PEAK_TREES]  # contiguous, and on a cache line as the index is
    codes = np.ascontiguousarray(codes[:, :PEAK_TREES])
    return {
        "peak": Task(lambda: _kernel.count_repeatedly(tile, codes, PEAK_PASSES), PEAK_PASSES * tile.size * len(codes)),
        "kernel": Task(lambda: index.query(leaves, subject.k), leaves.size * index.n_rows),
    }


def _prediction_tasks(subject: Subject, walk: LeafWalk, affinities: Callable[[Leaves], Any]) -> dict[str, Task]:
    """Return the ways to predict and their parts, in rows."""
    model, reader, index, k = subject.model, subject.reader, subject.index, subject.k
    queries, leaves = subject.queries, subject.leaves
    walked = subject.n_walked
    by_walk = partial(_predict_by_walk, subject, affinities)
    return {
        "predict": Task(lambda: model.predict(queries), BATCH),
        "leaves": Task(lambda: reader.leaves(queries), BATCH),
        "search": Task(lambda: index.query(leaves, k), BATCH),
        "predict_dist": Task(lambda: subject.regressor.predict_dist(queries), BATCH),
        "walk": Task(lambda: by_walk(queries[:walked]), walked),
        "walk search": Task(lambda: top_k(affinities(leaves[:walked]), k), walked),
        "scan search": Task(lambda: top_k(walk.scan(leaves[:SCANNED]), k), SCANNED),
        "predict alone": _one_by_one(model.predict, queries),
        "leaves alone": _one_by_one(reader.leaves, queries),
        "search alone": _one_by_one(partial(index.query, k=k), leaves),
        "predict_dist alone": _one_by_one(subject.regressor.predict_dist, queries),
        "walk alone": _one_by_one(by_walk, queries),
    }


def _one_by_one(work: Callable[[Any], object], rows: NDArray[Any]) -> Task:
    def all_alone() -> None:
        for i in range(ALONE):
            work(rows[i : i + 1])

    return Task(all_alone, ALONE)


def _predict_by_walk(subject: Subject, affinities: Callable[[Leaves], Any], X: Floats) -> tuple[Any, Floats]:
    """Do the work of `predict_dist` with a walk: return the means and the standard deviations, (n_rows,) each."""
    _, rows = top_k(affinities(subject.reader.leaves(X)), subject.k)
    variance = np.var(subject.targets[rows], axis=1)
    return subject.reader.predict(X), np.sqrt(np.maximum(variance, subject.regressor.min_variance_))


def _fastest_walk(subject: Subject, walk: LeafWalk) -> str:
    """Choose the fastest way to walk, after a check that they all find the affinities that ibug finds."""
    leaves = subject.leaves[: subject.n_walked]
    expected = subject.regressor.kneighbors(subject.queries[: subject.n_walked])[0]
    for name, affinities in {**walk.walks, "scan": walk.scan}.items():
        found, _ = top_k(affinities(leaves), subject.k)
        np.testing.assert_array_equal(found, expected, err_msg=name)
    times = _in_turn(
        {name: Task(partial(affinities, leaves), len(leaves)) for name, affinities in walk.walks.items()}, 2
    )
    return min(times, key=lambda name: float(times[name].min()))


def _seconds(work: Callable[[], object]) -> float:
    """Return the processor's time and not the clock's: what others do on the same machine is not to be measured."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _in_turn(tasks: Mapping[str, Task], n_rounds: int) -> dict[str, Floats]:
    """Time the tasks one after another, `n_rounds` times: seconds per unit, (n_rounds,) for each.

    In turn, so that what slows the machine down for a while touches all of them.
    """
    for task in tasks.values():
        task.work()
    rounds = [{name: task.time() for name, task in tasks.items()} for _ in range(n_rounds)]
    return {name: np.array([times[name] for times in rounds]) for name in tasks}


def _ratio(times: Mapping[str, Floats], slow: str, fast: str) -> float:
    return float(np.median(times[slow] / times[fast]))
