"""Measure one local cluster: times, peaks of memory, and bytes between workers."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import lightgbm
import numpy as np
from dask import delayed
from dask.utils import key_split
from distributed import Client, LocalCluster, futures_of

from benchmarks.common.progress import say
from ibug.dask import IBUGRegressor

N_FEATURES = 20
N_NEIGHBORS = 100
TRAINED_ON = 50_000  # rows; all rows are indexed
MEGABYTE = 2**20


@dataclass(frozen=True)
class Setting:
    """What is measured."""

    n_rows: int
    n_trees: int
    n_queries: int
    n_parts: int
    n_validation: int
    rounds: int


@dataclass(frozen=True)
class Figures:
    """What was measured on one cluster."""

    n_workers: int
    n_rows: int
    k: int  # neighbours that a prediction asks for
    fit_seconds: float
    predict_seconds: float  # for all queries, the best round
    work_seconds: list[float]  # processor time of each worker for it, the mean of all rounds
    libraries: list[int]  # bytes that each worker has before there are any rows
    shares: list[int]  # bytes of the index and targets on each worker
    peaks: list[int]  # bytes that each worker had at most beyond the libraries
    bytes_by_kind: dict[str, float]  # between workers, per query
    messages: float  # bytes per query of all messages, those of client and scheduler and all headers included

    @property
    def beyond(self) -> int:
        """What a worker needs at most beyond libraries and its share."""
        return max(peak - share for peak, share in zip(self.peaks, self.shares, strict=True))

    @property
    def bytes_per_query(self) -> float:
        """All that is sent between workers for one query."""
        return sum(self.bytes_by_kind.values())


def block(seed: int, n_rows: int) -> tuple[Any, Any]:
    """Return rows and targets; each partition is made where it is needed."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES)).astype(np.float32)
    mean = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + X[:, 3:8].sum(axis=1) / 2
    return X, mean + np.exp(X[:, 8] / 2) * rng.normal(size=n_rows)


def collections(seed: int, n_rows: int, n_parts: int) -> tuple[Any, Any]:
    """Return rows and targets as Dask Arrays."""
    sizes = np.diff(np.linspace(0, n_rows, n_parts + 1).astype(int)).tolist()
    parts = [delayed(block)(seed + i, size) for i, size in enumerate(sizes)]
    X = [da.from_delayed(part[0], (n, N_FEATURES), np.float32) for part, n in zip(parts, sizes, strict=True)]
    y = [da.from_delayed(part[1], (n,), np.float64) for part, n in zip(parts, sizes, strict=True)]
    return da.concatenate(X), da.concatenate(y)


def train(setting: Setting, folder: Path) -> Any:
    """Return the model that is wrapped, trained on some of the rows; a file in the folder keeps it for the next run."""
    n_rows = min(TRAINED_ON, setting.n_rows)
    path = folder / f"lightgbm-{lightgbm.__version__}-{setting.n_trees}-trees-{n_rows}-rows.txt"
    if not path.exists():
        X, y = block(0, n_rows)
        model = lightgbm.LGBMRegressor(n_estimators=setting.n_trees, learning_rate=0.05, verbose=-1)
        model.fit(X, y, callbacks=[_tell_training])
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        model.booster_.save_model(unfinished)
        unfinished.replace(path)
    return lightgbm.Booster(model_file=path)


def _tell_training(environment: Any) -> None:
    """Tell LightGBM's progress: a tenth of the trees a line."""
    done, total = environment.iteration + 1, environment.end_iteration
    if done % max(1, total // 10) == 0:
        say(f"[scale_out] training: {done} of {total} trees")


def measure(model: Any, setting: Setting, n_workers: int) -> Figures:
    """Fit and predict on a cluster of single-threaded processes."""
    with (
        # The same configuration as a cluster has by default, but no limit of memory: it is measured here.
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(warm, model)
        before = client.run(memory, "VmRSS")
        client.run(forget_peak)
        start = time.perf_counter()
        X, y = collections(0, setting.n_rows, setting.n_parts)
        X_val, y_val = collections(10**6, setting.n_validation, 2)
        u = IBUGRegressor(model, prefit=True, k=N_NEIGHBORS, verbose=1).fit(X, y, X_val=X_val, y_val=y_val)
        fitted = time.perf_counter() - start
        rows = collections(2 * 10**6, setting.n_queries, 8)[0].persist()
        u.predict_interval(rows[:10]).compute()
        moved, sent, busy = client.run(received), loopback(), client.run(time.process_time)
        seconds = _predict(u, rows, setting.rounds)
        sent, n_queries = loopback() - sent, setting.rounds * setting.n_queries
        worked = [(now - busy[worker]) / setting.rounds for worker, now in client.run(time.process_time).items()]
        moved_since = total(client.run(received)) - total(moved)
        peaks = client.run(memory, "VmHWM")
        shares = shares_of(client, u)
        return Figures(
            n_workers,
            setting.n_rows,
            max(u.rule_.needs.values()),
            fitted,
            min(seconds),
            worked,
            [before[worker] for worker in peaks],
            [shares[worker] for worker in peaks],
            [peak - before[worker] for worker, peak in peaks.items()],
            {kind: size / n_queries for kind, size in moved_since.items()},
            sent / n_queries,
        )


def _predict(u: Any, rows: Any, n_rounds: int) -> list[float]:
    """Predict all rows again and again, and return how long each round took."""
    seconds = []
    for number in range(n_rounds):
        start = time.perf_counter()
        u.predict_interval(rows).compute()
        seconds.append(time.perf_counter() - start)
        say(f"[scale_out] predicting: round {number + 1} of {n_rounds}, {seconds[-1]:.1f} s")
    return seconds


def shares_of(client: Client, u: Any) -> dict[str, int]:
    """Return how many bytes of the index each worker holds."""
    shards = u.shards_.shards
    held = client.who_has(futures_of(shards))
    sizes = dask.compute(*[delayed(_nbytes)(shard) for shard in shards])
    shares = dict.fromkeys(client.scheduler_info(n_workers=-1)["workers"], 0)
    for shard, size in zip(shards, sizes, strict=True):
        for worker in held[shard.key]:
            shares[worker] += size
    return shares


def _nbytes(shard: Any) -> int:
    return sys.getsizeof(shard)


def warm(model: Any) -> None:
    """Load the libraries, so that they do not count."""
    model.predict(block(1, 10)[0])


def memory(name: str) -> int:
    """Return a line of the process's status in bytes: VmRSS, the memory now, or VmHWM, its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise OSError(f"This system does not tell {name}.")


def forget_peak() -> None:
    """Let the peak begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def received(dask_worker: Any) -> Counter[str]:
    """Return how many bytes a worker has got from other workers up to now, by the kind of what was sent."""
    kinds: Counter[str] = Counter()
    for entry in dask_worker.transfer_incoming_log:
        for key, size in entry["keys"].items():
            kinds[key_split(key)] += size or 0
    return kinds


def loopback() -> int:
    """Return the bytes that this machine has sent to itself: a local cluster's messages, if nothing else runs."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    raise OSError("This system does not tell what it sends to itself.")


def total(counts: dict[str, Counter[str]]) -> Counter[str]:
    """Add up what all workers have received."""
    return sum(counts.values(), Counter())


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
