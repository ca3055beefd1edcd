"""The work of ``ibug predict``: what is written for each chunk of rows, and what is told of it at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ibug.cli._frames import Rows, Unseen

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Wanted:
    """What is to be predicted."""

    intervals: tuple[float, ...] = ()
    quantiles: tuple[float, ...] = ()
    samples: int = 0
    neighbors: int = 0
    flags: bool = False

    def columns(self) -> list[str]:
        """Return the names of the columns that will be written."""
        names = ["prediction", "std"]
        names += [f"{side}_{100 * level:g}" for level in self.intervals for side in ("lower", "upper")]
        names += [f"q{level:g}" for level in self.quantiles]
        if self.flags:
            names += ["affinity", "unfamiliar", "unseen"]
        for i in range(1, self.neighbors + 1):
            names += [f"neighbor_{i}", f"target_{i}", f"affinity_{i}"]
        return names + [f"sample_{i}" for i in range(1, self.samples + 1)]


@dataclass
class Predictor:
    """Predicts chunk after chunk; what it says of a row does not depend on where chunks begin.

    Parameters
    ----------
    estimator
        The fitted IBUGRegressor.
    wanted
        What is to be predicted.
    seed
        For samples.
    """

    estimator: Any
    wanted: Wanted
    seed: int = 0
    n_rows: int = 0
    n_unfamiliar: int = 0
    first_unfamiliar: int | None = None
    unseen: Unseen = field(default_factory=Unseen)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._threshold = float(self.estimator.affinity_threshold_)

    def predict(self, rows: Rows, kept: dict[str, Any]) -> Any:
        """Return the table of predictions for a chunk, after the columns to keep."""
        u, wanted = self.estimator, self.wanted
        law, (affinities, indices) = u._predict_with_neighbors(rows.X, max(u.k_, wanted.neighbors))
        shares = affinities / u.index_.n_trees
        score = affinities[:, : u.k_].mean(axis=1) / u.index_.n_trees
        unfamiliar = score < self._threshold  # which is NaN where it is not known
        unseen = self.unseen.add(rows.unseen, rows.texts, self.n_rows)
        columns: list[Any] = [np.asarray(u.predict(rows.X), np.float64), law.std()]
        for level in wanted.intervals:
            columns += law.interval(level)
        if wanted.quantiles:
            columns += list(law.ppf(np.asarray(wanted.quantiles)[None, :]).T)
        if wanted.flags:
            columns += [score, unfamiliar, _named(rows, unseen, len(score))]
        for i in range(wanted.neighbors):
            columns += [indices[:, i], u._targets[indices[:, i]], shares[:, i]]
        if wanted.samples:
            columns += list(self._samples(law, len(score)).T)
        self._count(unfamiliar)
        arrays = [pa.array(column) for column in columns]
        return pa.table({**kept, **dict(zip(wanted.columns(), arrays, strict=True))})

    def _samples(self, law: Any, n_rows: int) -> Floats:
        """Return draws of shape (n_rows, samples). Uniform numbers come row by row, so that chunks do not matter."""
        uniform = self._random.random((n_rows, self.wanted.samples))
        return np.asarray(law.ppf(np.maximum(uniform, np.finfo(float).tiny)))

    def _count(self, unfamiliar: NDArray[np.bool_]) -> None:
        if unfamiliar.any() and self.first_unfamiliar is None:
            self.first_unfamiliar = self.n_rows + int(np.argmax(unfamiliar))
        self.n_unfamiliar += int(unfamiliar.sum())
        self.n_rows += len(unfamiliar)

    def facts(self) -> dict[str, Any]:
        """Return what is to be told at the end."""
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


def _named(rows: Rows, unseen: NDArray[np.bool_] | None, n_rows: int) -> list[str]:
    """Return for each row the columns with categories that the model does not know, with commas."""
    if unseen is None:
        return [""] * n_rows
    return [",".join(name for name, mask in rows.unseen.items() if mask[i]) for i in range(n_rows)]
