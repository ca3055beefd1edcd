"""The measurements behind ``speed.py``: one model, its index, and the same tasks timed in turn."""

from __future__ import annotations

import resource
import sys
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
VALIDATION = 500  # rows on which k is tuned when the time of `fit` is measured
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
    n_features: int = 9

    def __str__(self) -> str:
        features = "" if self.n_features == 9 else f" of {self.n_features} features"
        return f"{self.library}, {self.n_rows:,} rows{features}, {self.n_trees:,} trees"

    @property
    def is_huge(self) -> bool:
        """Whether a walk over leaf members would need more memory than most machines have."""
        return self.n_rows * self.n_trees > WALKED_CODES // 4

    @property
    def n_validation(self) -> int:
        """The rows to tune k on."""
        return VALIDATION // 10 if self.is_huge else VALIDATION


@dataclass(frozen=True)
class Figures:
    """What was measured for one setting. Times are in seconds, those of `per_row` for one row.

    `ratios` are medians of the ratios within each round, so that a machine that slows down for some rounds does not
    change them; `per_row` are medians of the times themselves.
    """

    setting: Setting
    code_type: str
    how: str
    training_time: float
    fit_time: float
    n_validation: int
    peak_memory: int
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
    peak_memory: int  # bytes that `fit` needed beyond what was needed before

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
    tasks = _prediction_tasks(subject)
    fastest, walk_bytes = "none", 0
    n_codes = subject.index.n_rows * subject.index.n_trees
    if not setting.is_huge:
        report("preparing the walk over leaf members")
        leaves = subject.reader.read_leaves(subject.rows)
        walk = LeafWalk(leaves, int(max(leaves.max(), subject.leaves.max())) + 1)
        fastest, walk_bytes = _fastest_walk(subject, walk), walk.nbytes
        tasks |= _walk_tasks(subject, walk, walk.walks[fastest])
    report("timing the predictions")
    times = _in_turn(tasks, n_rounds)
    for alone in ("", " alone"):
        times[f"leaves + predict{alone}"] = times[f"leaves{alone}"] + times[f"predict{alone}"]
    return Figures(
        setting=setting,
        code_type=str(subject.index.code_type),
        how=subject.reader.how,
        training_time=subject.training_time,
        fit_time=subject.fit_time,
        n_validation=setting.n_validation,
        peak_memory=subject.peak_memory,
        index_bytes=subject.index.nbytes,
        bytes_per_row_and_tree=subject.index.nbytes / n_codes,
        walk_bytes_per_row_and_tree=walk_bytes / n_codes,
        kernel_share=_ratio(kernel, "peak", "kernel"),
        best_kernel_rate=1 / float(kernel["kernel"].min()),
        best_peak_rate=1 / float(kernel["peak"].min()),
        fastest_walk=fastest,
        per_row={name: float(np.median(seconds)) for name, seconds in times.items()},
        ratios={f"{slow} / {fast}": _ratio(times, slow, fast) for slow, fast in RATIOS if slow in times},
    )


def _train(setting: Setting, report: Report) -> Subject:
    n_rows, n_validation = setting.n_rows, setting.n_validation
    X, y = synthetic_rows(n_rows + BATCH + n_validation, setting.n_features)
    rows, targets, queries = X[:n_rows], y[:n_rows], X[n_rows : n_rows + BATCH]
    report(f"{setting}: training the model")
    model = MODELS[setting.library](setting.n_trees)
    training_time = _seconds(lambda: model.fit(rows, targets))
    report("indexing the training rows and tuning k")
    regressor = IBUGRegressor(model, prefit=True, n_jobs=1)
    validation = {"X_val": X[-n_validation:], "y_val": y[-n_validation:]}
    before = _peak_memory()
    fit_time = _seconds(lambda: regressor.fit(rows, targets, **validation))
    peak = _peak_memory() - before
    regressor.k_ = min(K, setting.n_rows)  # predictions are measured with the same k for all
    reader = read_leaves_of(model)
    reader.prepare(rows)
    leaves = reader.leaves(queries)
    return Subject(model, regressor, reader, rows, targets, queries, leaves, training_time, fit_time, peak)


def _peak_memory() -> int:
    """Return the most memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def synthetic_rows(n_rows: int, n_features: int = 9) -> tuple[Floats, Floats]:
    """Draw rows (n_rows, n_features) and targets (n_rows,): a smooth mean of 8 features, noise that varies with one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, n_features))
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


def _xgboost(n_trees: int) -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=n_trees, max_depth=6, learning_rate=0.05, n_jobs=1)


def _hist_gradient_boosting(n_trees: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=n_trees, max_leaf_nodes=31, learning_rate=0.05, early_stopping=False)


MODELS: Mapping[str, Callable[[int], Any]] = {
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "CatBoost": _catboost,
    "HistGradientBoosting": _hist_gradient_boosting,
}

RATIOS = (
    ("predict_dist", "predict"),
    ("predict_dist alone", "predict alone"),
    ("leaves + predict", "read"),
    ("leaves + predict alone", "read alone"),
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


def _prediction_tasks(subject: Subject) -> dict[str, Task]:
    """Return the model's predictions, ibug's and their parts, in rows."""
    model, reader, index, k = subject.model, subject.reader, subject.index, subject.k
    queries, leaves = subject.queries, subject.leaves
    return {
        "predict": Task(lambda: model.predict(queries), BATCH),
        "leaves": Task(lambda: reader.leaves(queries), BATCH),
        "read": Task(lambda: reader.read(queries), BATCH),
        "search": Task(lambda: index.query(leaves, k), BATCH),
        "predict_dist": Task(lambda: subject.regressor.predict_dist(queries), BATCH),
        "predict alone": _one_by_one(model.predict, queries),
        "leaves alone": _one_by_one(reader.leaves, queries),
        "read alone": _one_by_one(reader.read, queries),
        "search alone": _one_by_one(partial(index.query, k=k), leaves),
        "predict_dist alone": _one_by_one(subject.regressor.predict_dist, queries),
    }


def _walk_tasks(subject: Subject, walk: LeafWalk, affinities: Callable[[Leaves], Any]) -> dict[str, Task]:
    """Return predictions by a walk over leaf members, and other ways to search, in rows."""
    queries, leaves, k, walked = subject.queries, subject.leaves, subject.k, subject.n_walked
    by_walk = partial(_predict_by_walk, subject, affinities)
    return {
        "walk": Task(lambda: by_walk(queries[:walked]), walked),
        "walk search": Task(lambda: top_k(affinities(leaves[:walked]), k), walked),
        "scan search": Task(lambda: top_k(walk.scan(leaves[:SCANNED]), k), SCANNED),
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
