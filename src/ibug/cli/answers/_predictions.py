"""The table of predictions, one chunk after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug._warnings import tell_infinite
from ibug.cli.answers._several import several_columns, several_names
from ibug.cli.rows import ModelRows, Unseen
from ibug.describe import Predictions


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
        if self.targets:
            names = several_names(self)
        else:
            names = ["prediction", "std"]
            names += [f"{side}_{100 * level:g}" for level in self.intervals for side in ("lower", "upper")]
            names += [f"q{level:g}" for level in self.quantiles]
        if self.flags:
            names += ["affinity", "unfamiliar", "unseen"]
        for i in range(1, self.neighbors + 1):
            near = [f"{name}_{i}" for name in self.targets] or [f"target_{i}"]
            names += [f"neighbor_{i}", *near, f"affinity_{i}"]
        return names + [f"sample_{i}" for i in range(1, self.samples + 1)]

    def empty(self, ids: Sequence[str]) -> Any:
        """Return the table of no rows, after the columns to keep."""
        special = {"unfamiliar": pa.bool_(), "unseen": pa.string()}
        types = {name: special.get(name, pa.float64()) for name in self.columns()}
        types |= {f"neighbor_{i}": pa.int64() for i in range(1, self.neighbors + 1)}
        return pa.schema([*((name, pa.string()) for name in ids), *types.items()]).empty_table()


@dataclass
class Predictor:
    """Predicts chunk after chunk. The predictions of a row do not depend on where chunks begin.

    Parameters
    ----------
    estimator : IBUGRegressor
        Fitted.
    wanted
        What is to be predicted.
    seed
        The seed of the samples.
    """

    estimator: Any
    wanted: OutputSpec
    seed: int = 0
    n_rows: int = 0
    n_unfamiliar: int = 0
    first_unfamiliar: int | None = None
    unseen: Unseen = field(default_factory=Unseen)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._threshold = float(self.estimator.affinity_threshold_)

    def predict(self, rows: ModelRows, kept: dict[str, Any]) -> Any:
        """Return the table of predictions for a chunk, after the columns to keep."""
        u, wanted = self.estimator, self.wanted
        found, neighbors = Predictions.with_neighbors(u, rows.X, wanted.neighbors)
        columns = several_columns(u.rule_, wanted, found) if wanted.targets else self._of_one(found)
        score, indices, affinities = neighbors.similarity, neighbors.indices, neighbors.affinities
        unfamiliar = score < self._threshold  # which is NaN where it is not known
        unseen = self.unseen.add(rows.unseen, rows.texts, self.n_rows)
        if wanted.flags:
            columns += [score, unfamiliar, _named(rows, unseen, len(score))]
        for i in range(wanted.neighbors):
            near = indices[:, i]
            had = u.training_targets_[near]
            columns += [near, *(had.T if had.ndim > 1 else [had]), affinities[:, i] / u.index_.n_trees]
        if wanted.samples:
            columns += list(self._samples(found.distribution, len(score)).T)
        self._count(unfamiliar)
        arrays = [pa.array(column) for column in columns]
        return pa.table({**kept, **dict(zip(wanted.columns(), arrays, strict=True))})

    def _of_one(self, found: Predictions) -> list[Any]:
        """Return prediction, deviation, intervals and quantiles of one target."""
        distribution, wanted = found.distribution, self.wanted
        columns: list[Any] = [found.points, distribution.std()]
        for level in wanted.intervals:
            ends = distribution.interval(level)
            tell_infinite(ends, level, "predict", conformal=self.estimator.conformal_)
            columns += ends
        if wanted.quantiles:
            columns += list(distribution.ppf(np.asarray(wanted.quantiles)[None, :]).T)
        return columns

    def _samples(self, distribution: Any, n_rows: int) -> Floats:
        """Return draws of shape (n_rows, samples). Uniform numbers come row by row, so that chunks do not matter."""
        uniform = self._random.random((n_rows, self.wanted.samples))
        return np.asarray(distribution.ppf(np.maximum(uniform, np.finfo(float).tiny)))

    def _count(self, unfamiliar: NDArray[np.bool_]) -> None:
        if unfamiliar.any() and self.first_unfamiliar is None:
            self.first_unfamiliar = self.n_rows + int(np.argmax(unfamiliar))
        self.n_unfamiliar += int(unfamiliar.sum())
        self.n_rows += len(unfamiliar)

    def facts(self) -> dict[str, Any]:
        """Return the report of all chunks: rows, unfamiliar rows, unseen categories."""
        return {
            "rows": self.n_rows,
            "unfamiliar": {
                "rows": self.n_unfamiliar,
                "first_row": self.first_unfamiliar,
                "affinity_threshold": self._threshold,
            },
            "unseen_categories": {
                "rows": self.unseen.n_rows,
                "first_row": self.unseen.first_row,
                "columns": {
                    name: {"rows": count, "examples": self.unseen.examples[name]}
                    for name, count in self.unseen.rows.items()
                },
            },
        }


def _named(rows: ModelRows, unseen: NDArray[np.bool_] | None, n_rows: int) -> list[str]:
    """Return for each row the columns with categories that the model does not know, with commas."""
    if unseen is None:
        return [""] * n_rows
    return [",".join(name for name, mask in rows.unseen.items() if mask[i]) for i in range(n_rows)]
