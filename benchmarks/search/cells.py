"""The search that `fit` chooses against the one among all training rows, on a dataset."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.bars import Bar
from benchmarks.common.folds import fold_of
from benchmarks.common.quiet import quiet
from benchmarks.common.statistics import compare, mean_and_error
from benchmarks.common.timing import ALONE, Task, best, in_turn, one_by_one, seconds, single_rows
from benchmarks.search.indexes import table, trained_model
from ibug import IBUGRegressor

LARGE = 100_000  # rows: such a dataset has one fold
ONE_FOLD = 10  # a dataset with one fold: the first of ten
MOST = 10_000  # rows to validate, and rows to test
BATCH = 2048  # rows of a batch
K = 63  # neighbours whose recall is told, and that searches alone look for

LEAST_BATCH, LEAST_ALONE, MOST_LOSS = 6.0, 10.0, 0.002  # of large datasets
MOST_SLOWDOWN = 1.03  # of the others
MOST_FIT = {"flights_delay": 10.0}  # seconds


def folds_of(name: str, n_trees: int, options: argparse.Namespace) -> list[Fold]:
    """Return the folds of a dataset that are to be measured."""
    X, y = table(name, options.data)
    n_folds = 1 if len(y) >= LARGE else options.folds
    return [Fold(name, X, y, n_trees, number, n_folds, options.models, options.rounds) for number in range(n_folds)]


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to train, to validate and to test, and a model of the first."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    n_trees: int
    number: int
    n_folds: int
    models: Path | None
    n_rounds: int

    def __str__(self) -> str:
        return f"{self.name}, {self.n_trees:,} trees, fold {self.number + 1} of {self.n_folds}"

    def parts(self) -> tuple[NDArray[np.intp], ...]:
        """Return the rows to train, to validate and to test."""
        n_folds = self.n_folds if self.n_folds > 1 else ONE_FOLD
        train, test = fold_of(len(self.y), self.number, n_folds)
        train = np.random.default_rng(self.number).permutation(train)
        n_val = min(MOST, len(train) // 10)
        return train[n_val:], train[:n_val], test[:MOST]

    def model(self) -> Any:
        """Return the model of this fold, trained or read."""
        train = self.parts()[0]
        file = f"{self.name}-{self.n_trees}-{self.number}-of-{self.n_folds}.txt"
        kept = None if self.models is None else self.models / file
        return trained_model(self.X[train], self.y[train], self.n_trees, kept)

    def measure(self) -> dict[str, Any]:
        """Return times, CRPS and what is found, by name."""
        model = self.model()
        train, validation, test = self.parts()
        X, y = self.X[test], self.y[test]
        ways: dict[str, Any] = {}
        fit: dict[str, float] = {}
        with quiet():
            for way in ("exact", "auto"):
                u = ways[way] = IBUGRegressor(model, prefit=True, search=way, random_state=0)
                data = (self.X[train], self.y[train], self.X[validation], self.y[validation])
                fit[way] = seconds(lambda u=u, data=data: u.fit(*data[:2], X_val=data[2], y_val=data[3]))
        auto = ways["auto"]
        crps = {way: u.predict_dist(X).crps(y) for way, u in ways.items()}
        losses = (crps["auto"] - crps["exact"]) / crps["exact"].mean()
        index, plan = auto.source_.index, auto.search_
        k = min(K, index.n_rows)
        leaves = np.concatenate([*auto.source_.leaves_of(X)])
        nearest, _ = index.query(leaves, k)
        found, _ = index.query(leaves, k, n_cells=plan.n_cells)
        recall = np.mean(found >= nearest[:, -1:], axis=1)
        return {
            "name": self.name,
            "n_trees": self.n_trees,
            "n_folds": self.n_folds,
            "fold": self.number,
            "n_rows": len(train),
            "n_val": len(validation),
            "n_test": len(test),
            "fit": fit,
            "crps": {way: float(each.mean()) for way, each in crps.items()},
            "loss": float(losses.mean()),
            "error": float(losses.std() / np.sqrt(len(losses))),
            "all_cells": index.n_cells,
            "n_cells": plan.n_cells,
            "visited": float(index.visited(leaves[:: max(1, len(leaves) // 1000)], k, plan.n_cells).mean()),
            "recall": float(recall.mean()),
            "least_recall": float(np.quantile(recall, 0.01)),
            "bytes": index.nbytes / (index.n_rows * index.n_trees),
            "words": str(plan),
            "seconds": times(model, ways, X[:BATCH], leaves[:BATCH], k, self.n_rounds),
        }


def times(
    model: Any, ways: dict[str, Any], X: NDArray[np.float64], leaves: NDArray[Any], k: int, n_rounds: int
) -> dict[str, float]:
    """Return seconds a row of intervals and of searches alone, in a batch and one by one; and of the model."""
    tasks = {"model batch": Task(lambda: model.predict(X, num_threads=1), len(X))}
    tasks["model alone"] = one_by_one(lambda row: model.predict(row, num_threads=1), single_rows(X))
    for way, u in ways.items():
        index, n_cells = u.source_.index, u.search_.n_cells
        tasks |= {
            f"{way} batch": Task(lambda u=u: u.predict_interval(X), len(X)),
            f"{way} alone": one_by_one(u.predict_interval, single_rows(X)),
            f"{way} search batch": Task(search(index, leaves, k, n_cells), len(X)),
            f"{way} search alone": one_by_one(
                lambda row, index=index, n_cells=n_cells: index.query(row, k, n_cells=n_cells),
                [leaves[i : i + 1] for i in range(ALONE)],
            ),
        }
    return best(in_turn(tasks, n_rounds, alternate=True))


def search(index: Any, leaves: NDArray[Any], k: int, n_cells: int | None) -> Callable[[], Any]:
    """Return the search for all rows in a batch."""
    return lambda: index.query(leaves, k, n_cells=n_cells)


def report(rows: list[dict[str, Any]]) -> str:
    """Return tables and bars; of several folds the means."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    by_name = {name: [row for row in rows if row["name"] == name] for name in names}
    widths = (14, 9, 7, 7, 8, 10, 8, 7, 7, 9, 9, 17)
    head = ("", "rows", "trees", "cells", "visits", "compared", "recall", "least", "bytes", "fit", "exact", "CRPS, %")
    lines = ['What search="auto" chooses, and what it finds', _line(head, widths)]
    for name, folds in by_name.items():
        loss, error = loss_of(folds)
        first = folds[0]
        lines.append(
            _line(
                (
                    name,
                    f"{first['n_rows']:,}",
                    f"{first['n_trees']}",
                    f"{first['all_cells']:,}",
                    "/".join(dict.fromkeys(str(row["n_cells"] or "all") for row in folds)),
                    f"{_mean(folds, 'visited'):.1%}",
                    f"{_mean(folds, 'recall'):.1%}",
                    f"{_mean(folds, 'least_recall'):.0%}",
                    f"{_mean(folds, 'bytes'):.3f}",
                    f"{np.mean([row['fit']['auto'] for row in folds]):.1f} s",
                    f"{np.mean([row['fit']['exact'] for row in folds]):.1f} s",
                    f"{100 * loss:+.3f} ± {100 * error:.3f}",
                ),
                widths,
            )
        )
    lines += [
        "",
        "visits: cells that a row visits. compared: the share of rows, prototypes too. recall, least: the share of",
        "the 63 nearest that is found, the mean and the 1st percentile over test rows. bytes: per row and tree.",
        "fit: of auto, then of exact.",
        "CRPS: of auto, relative to exact, with its standard error, over test rows or over folds.",
        "",
        "Milliseconds a row, auto / exact = ratio",
    ]
    kinds = ("batch", "alone", "search batch", "search alone")
    spans = (14, *(25 for _ in kinds), 15)
    lines.append(_line(("", *kinds, "model"), spans))
    for name, folds in by_name.items():
        lines.append(_line((name, *(_times(folds, kind) for kind in kinds), _model(folds)), spans))
    lines += [
        "",
        "batch, alone: predict_interval. search: LeafIndex.query. model: LightGBM's predict, batch and alone.",
    ]
    lines += ["", "Bars", *(bar.line() for name, folds in by_name.items() for bar in bars(name, folds))]
    return "\n".join(lines)


def bars(name: str, folds: list[dict[str, Any]]) -> list[Bar]:
    """Return the bars of a dataset."""
    loss, _ = loss_of(folds)
    found = []
    if name in MOST_FIT:
        fit = folds[0]["fit"]["auto"]
        found.append(Bar(f"{name}: fit takes at most {MOST_FIT[name]:g} s", f"{fit:.1f} s", fit <= MOST_FIT[name]))
    if folds[0]["n_rows"] >= LARGE:
        batch, alone = speedup(folds, "batch"), speedup(folds, "search alone")
        return [
            *found,
            Bar(
                f"{name}: a batch at least {LEAST_BATCH:g} x faster than exact", f"{batch:.2f} x", batch >= LEAST_BATCH
            ),
            Bar(
                f"{name}: the search of one row at least {LEAST_ALONE:g} x faster than exact",
                f"{alone:.2f} x",
                alone >= LEAST_ALONE,
            ),
            Bar(f"{name}: CRPS within {MOST_LOSS:.1%} of exact", f"{loss:+.3%}", loss <= MOST_LOSS),
        ]
    for kind in ("batch", "alone"):
        slower = 1 / speedup(folds, kind)
        text = f"{name}: time of {kind} at most {MOST_SLOWDOWN:g} x that of exact"
        found.append(Bar(text, f"{slower:.2f} x", slower <= MOST_SLOWDOWN))
    if len(folds) > 1:
        ours, theirs = ({row["fold"]: row["crps"][way] for row in folds} for way in ("auto", "exact"))
        text = f"{name}: no higher CRPS by a t-test over {len(folds)} folds"
        found.append(Bar(text, f"{loss:+.3%}", compare(ours, theirs) >= 0))
    return found


def loss_of(folds: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the share by which the CRPS of auto is higher, and its standard error, over rows or folds."""
    if len(folds) == 1:
        return folds[0]["loss"], folds[0]["error"]
    return mean_and_error({row["fold"]: row["loss"] for row in folds})


def speedup(folds: list[dict[str, Any]], kind: str) -> float:
    """Return how many times as long exact takes as auto, by the mean times of the folds."""
    exact, auto = (np.mean([row["seconds"][f"{way} {kind}"] for row in folds]) for way in ("exact", "auto"))
    return float(exact / auto)


def _times(folds: list[dict[str, Any]], kind: str) -> str:
    auto, exact = (1e3 * np.mean([row["seconds"][f"{way} {kind}"] for row in folds]) for way in ("auto", "exact"))
    return f"{auto:.3f} / {exact:.3f} = {exact / auto:.1f} x"


def _model(folds: list[dict[str, Any]]) -> str:
    return " ".join(
        f"{1e3 * np.mean([row['seconds'][f'model {kind}'] for row in folds]):.3f}" for kind in ("batch", "alone")
    )


def _mean(folds: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([row[name] for row in folds]))


def _line(texts: tuple[str, ...], widths: tuple[int, ...]) -> str:
    first, *others = texts
    return f"  {first:<{widths[0]}}" + "".join(
        f"{text:>{width}}" for text, width in zip(others, widths[1:], strict=True)
    )
