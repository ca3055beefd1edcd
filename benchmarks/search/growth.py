"""How the time of a row grows with the training rows, and what the largest index costs from `fit` to a mapped file."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.bars import Bar
from benchmarks.common.processes import result_of
from benchmarks.common.progress import say
from benchmarks.common.quiet import quiet
from benchmarks.common.timing import ALONE, Task, best, in_turn, one_by_one, peak_memory, seconds, single_rows
from benchmarks.search.indexes import table, trained_model
from ibug import IBUGRegressor, LeafIndex

QUERIES = 10_000  # rows to predict, that no index has
VALIDATED = 10_000
BATCH = 2048
EXACT = 256  # rows of a batch that is compared with all training rows
K = 63
NOISE = 0.05  # of a column's standard deviation, on rows that are repeated
CHUNK = 8192

# Times, by the heads of their columns.
KINDS = {
    "batch": "batch",
    "alone": "alone",
    "search batch": "search",
    "search alone": "alone",
    "exact search batch": "exact",
    "model": "model",
}

MOST_GROWTH = {640_000: 4.0, 2_500_000: 8.0}  # of the time of a row, from 40,000 rows on
MOST_BYTES = 1.1  # per row and tree

# What is told on paper; the memory is that of a worker for its share of the index.
PAPER_ROWS, PAPER_TREES, PAPER_MEMORY = 50_000_000, 1000, 2.6e9


class Grown:
    """A table of any number of rows: its own, then the same again, with noise; and a model of its own rows."""

    def __init__(self, name: str, n_trees: int, options: argparse.Namespace) -> None:
        X, y = table(name, options.data)
        kept = min(QUERIES, len(y) // 10)
        self.name, self.n_trees, self._models, self._n_rounds = name, n_trees, options.models, options.rounds
        self.X_new, self.X_val, self._X = X[:kept], X[kept : 2 * kept], X[2 * kept :]
        self.y_new, self.y_val, self._y = y[:kept], y[kept : 2 * kept], y[2 * kept :]

    def __str__(self) -> str:
        return f"{self.name} grown, {self.n_trees:,} trees"

    def rows(self, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return training rows and targets."""
        chosen = np.resize(np.arange(len(self._X)), n)
        rows = self._X[chosen]
        scale = NOISE * np.nan_to_num(np.nanstd(self._X, axis=0))
        again = slice(len(self._X), n)
        rows[again] += scale * np.random.default_rng(0).normal(size=rows[again].shape)
        return rows, self._y[chosen]

    def model(self) -> Any:
        """Return the model, trained or read."""
        kept = None if self._models is None else self._models / f"{self.name}-{self.n_trees}-grown.txt"
        return trained_model(self._X, self._y, self.n_trees, kept)

    def task(self, n: int, *, mapped: bool) -> Callable[[], dict[str, Any]]:
        """Return the task to measure an index of n rows."""
        return partial(self.measure, n, mapped)

    def measure(self, n: int, mapped: bool) -> dict[str, Any]:
        """Return times by name; if `mapped`, also those of a file that is larger than the memory it may have."""
        model = self.model()
        X, y = self.rows(n)
        u: Any = IBUGRegressor(model, prefit=True, random_state=0)
        with quiet():
            fit = seconds(lambda: u.fit(X, y, X_val=self.X_val, y_val=self.y_val))
        peak = peak_memory()
        index, plan = u.source_.index, u.search_
        build = build_seconds(index)
        leaves = np.concatenate([*u.source_.leaves_of(self.X_new[:BATCH])])
        k = min(K, index.n_rows)
        batch, some = self.X_new[:BATCH], leaves[:EXACT]
        tasks = {
            "model": Task(lambda: model.predict(batch, num_threads=1), len(batch)),
            "batch": Task(lambda: u.predict_interval(batch), len(batch)),
            "alone": one_by_one(u.predict_interval, single_rows(batch)),
            "search batch": Task(lambda: index.query(leaves, k, n_cells=plan.n_cells), len(leaves)),
            "search alone": one_by_one(
                lambda row: index.query(row, k, n_cells=plan.n_cells), [leaves[i : i + 1] for i in range(ALONE)]
            ),
            "exact search batch": Task(lambda: index.query(some, k), len(some)),
        }
        found = {
            "n_rows": n,
            "n_trees": index.n_trees,
            "n_cells": plan.n_cells,
            "all_cells": index.n_cells,
            "visited": float(index.visited(leaves[:EXACT], k, plan.n_cells).mean()),
            "words": str(plan),
            "bytes": index.nbytes / (index.n_rows * index.n_trees),
            "fit": fit,
            "build": build,
            "peak": peak,
            "seconds": best(in_turn(tasks, self._n_rounds, alternate=True)),
        }
        if mapped:
            found["mapped"] = self._mapped(u)
        return found

    def _mapped(self, u: Any) -> dict[str, Any]:
        with TemporaryDirectory(prefix="ibug-") as folder:
            path, queries = Path(folder) / "model.ibug", Path(folder) / "queries.npy"
            start = time.perf_counter()
            u.save(path, compress=False)
            saved = time.perf_counter() - start
            np.save(queries, self.X_new)
            n_bytes = u.source_.index.nbytes
            arguments = [str(path), str(queries), "--limit", str(n_bytes // 4)]
            return {
                "save": saved,
                "index": n_bytes,
                **result_of("benchmarks.search.mapped", *arguments, tell=lambda line: say(f"    {line}")),
            }


def build_seconds(index: LeafIndex) -> float:
    """Return how long the same index takes to be made of its leaf numbers, without the time to read these."""
    arrays = index.arrays()
    places = np.empty(index.n_rows, np.int64)
    places[arrays["order"]] = np.arange(index.n_rows)
    tiles, reading = arrays["tiles"], 0.0

    def chunks() -> Iterator[NDArray[np.int32]]:
        nonlocal reading
        for start in range(0, index.n_rows, CHUNK):
            began = time.process_time()
            some = places[start : start + CHUNK]
            codes = tiles[some // tiles.shape[2], : index.n_trees, some % tiles.shape[2]].astype(np.int32)
            reading += time.process_time() - began
            yield codes

    total = seconds(lambda: LeafIndex.from_chunks(chunks(), index.n_rows))
    return total - reading


def report(rows: list[dict[str, Any]]) -> str:
    """Return a table of the growth, bars, and what the largest index costs."""
    heads = ("rows", "cells", "visits", "compared", "bytes", "build", "fit")
    widths = (11, 8, 8, 10, 7, 9, 9)
    lines = [
        f"{rows[0]['key'].split(',')[0]}, {rows[0]['n_trees']} trees of 63 leaves: ms a row",
        " "
        + "".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))
        + "".join(f"{head:>9}" for head in KINDS.values()),
    ]
    for row in rows:
        texts = (
            f"{row['n_rows']:,}",
            f"{row['all_cells']:,}",
            str(row["n_cells"] or "all"),
            f"{row['visited']:.2%}",
            f"{row['bytes']:.3f}",
            f"{row['build']:.1f} s",
            f"{row['fit']:.1f} s",
        )
        lines.append(
            " "
            + "".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))
            + "".join(f"{1e3 * row['seconds'][kind]:9.3f}" for kind in KINDS)
        )
    lines += [
        "",
        "visits: cells that a row visits. compared: the share of the rows that a row is compared with, prototypes",
        f"included. bytes: per row and tree. batch, alone: predict_interval. search, alone: LeafIndex.query, k = {K};",
        "exact: among all rows, in a batch. build: of leaf numbers; fit: all of it, with 10,000 validation rows.",
    ]
    found = bars({row["n_rows"]: row for row in rows})
    if found:
        lines += ["", "Bars", *(bar.line() for bar in found)]
    for row in rows:
        if "mapped" in row:
            lines += ["", *mapped_lines(row), "", *on_paper(row)]
    return "\n".join(lines)


def on_paper(row: dict[str, Any]) -> list[str]:
    """Return what many more rows and trees would take, from the figures of an index.

    Codes are compared as fast as in this one. A row is compared with all prototypes, and with the rows of as many cells
    as in this index, or of four times as many; to build, each row is compared with all prototypes.
    """
    t, size, new = row["seconds"], row["n_rows"] * row["n_trees"], PAPER_ROWS * PAPER_TREES
    n_cells = row["n_cells"] or 0
    prototypes = 8 * math.sqrt(PAPER_ROWS)
    build = row["build"] * (new * prototypes) / (size * max(1, row["all_cells"]))
    rest = (row["fit"] - row["build"]) * new / size
    lines = [
        f"On paper: {PAPER_ROWS:,} rows x {PAPER_TREES:,} trees, from {row['n_rows']:,} x {row['n_trees']}, one thread",
        f"  index                {new * row['bytes'] / 1e9:8.0f} GB",
        f"  build                {build / 3600:8.1f} h: each row is compared with {prototypes:,.0f} prototypes",
        f"  rest of fit          {rest / 3600:8.1f} h at most: leaves of all rows, residuals",
    ]
    for visits in (n_cells, 4 * n_cells):
        compared = prototypes + visits * PAPER_ROWS / prototypes
        more = compared * PAPER_TREES / (row["visited"] * size)
        lines.append(
            f"  {visits:4} cells a row      {1e3 * more * t['search batch']:8.1f} ms a row in a batch, "
            f"{1e3 * more * t['search alone']:.1f} alone: {compared:,.0f} rows, {compared / PAPER_ROWS:.2%} of all"
        )
    exact, n_bytes = 1e3 * t["exact search batch"] * new / size, new * row["bytes"]
    lines.append(f"  all rows             {exact:8.0f} ms a row in a batch")
    lines.append(
        f"  a cluster, all rows  {math.ceil(n_bytes / PAPER_MEMORY):8} workers with "
        f"{PAPER_MEMORY / 1e9:.1f} GB of the index each: {exact * PAPER_MEMORY / n_bytes:.1f} ms a row"
    )
    return lines


def bars(rows: dict[int, dict[str, Any]]) -> list[Bar]:
    """Return whether the bars of the growth are met."""
    found = []
    for n, most in MOST_GROWTH.items():
        if not {40_000, n} <= rows.keys():
            continue
        for kind in ("batch", "alone", "search batch", "search alone"):
            ratio = rows[n]["seconds"][kind] / rows[40_000]["seconds"][kind]
            text = f"{kind}: a row at {n:,} rows at most {most:g} x that at 40,000"
            found.append(Bar(text, f"{ratio:.2f} x", ratio <= most))
    for n, row in rows.items():
        found.append(
            Bar(
                f"{n:,} rows: bytes per row and tree at most {MOST_BYTES}",
                f"{row['bytes']:.3f}",
                row["bytes"] <= MOST_BYTES,
            )
        )
    return found


def mapped_lines(row: dict[str, Any]) -> list[str]:
    """Return what the largest index costs, from the rows to a file that is mapped into memory."""
    m = row["mapped"]
    size = f"an index of {m['index'] / 1e6:,.0f} MB"
    lines = [
        f"{row['n_rows']:,} rows x {row['n_trees']} trees, {size}; by the clock, but for fit",
        f"  fit           {row['fit']:9.2f} s, of which the index {row['build']:.1f} s; "
        f"at most {row['peak'] / 1e6:,.0f} MB of memory, rows and libraries included",
        f"  save          {m['save']:9.2f} s, not compressed",
    ]
    if "failed" in m:
        return [*lines, f"  FAILED: {m['failed']}"]
    n = f"{m['n_queries']:,} rows"
    return [
        *lines,
        f"  load, mapped  {m['load']:9.2f} s; {m['verified']:.2f} s with checksums verified",
        f"  first row     {m['first']:9.4f} s from the disk, {m['first_bytes'] / 1e6:.1f} MB of the file in memory",
        f"  {n:<14}{m['limited']:9.2f} s with a limit of {m['limit'] / 1e6:,.0f} MB of the file in memory; "
        f"{m['largest'] / 1e6:,.0f} MB were",
        f"{'':28}the most that was seen, {m['read'] / 1e6:,.0f} MB were read from the disk",
        f"  {n:<14}{m['free']:9.2f} s without a limit, the file in the system's memory",
        f"  results of both {'are' if m['equal'] else 'ARE NOT'} equal",
    ]
