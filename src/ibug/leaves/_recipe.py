"""How a model came to the values of its leaves, in one form for all libraries: what is needed to leave a row out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats


class RecipeError(Exception):
    """The leaf values of this model cannot be redone; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Loss:
    """A loss, whose gradients and hessians make leaf values."""

    name: str = "squared"  # or "huber", "pseudo_huber", "poisson", "gamma", "tweedie"
    parameter: float = 0.0  # Huber's slope, Tweedie's power, what Poisson adds to a raw prediction for its hessian

    @property
    def has_log_link(self) -> bool:
        """Whether raw predictions are logarithms."""
        return self.name in ("poisson", "gamma", "tweedie")

    def link(self, raw: Floats) -> Floats:
        """Return the predictions that raw ones stand for, (n_rows,)."""
        return np.exp(raw) if self.has_log_link else raw

    def slopes(self, raw: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return gradients and hessians at raw predictions, (n_rows,) each, as cpp/refit/losses.hpp has them."""
        error, one, p = raw - y, np.ones(len(y)), self.parameter
        if self.name == "huber":
            return np.clip(error, -p, p), one
        if self.name == "pseudo_huber":
            square = 1.0 + (error / p) ** 2
            return error / np.sqrt(square), square**-1.5
        if self.name == "poisson":
            return np.exp(raw) - y, np.exp(raw + p)
        if self.name == "gamma":
            ratio = y * np.exp(-raw)
            return 1.0 - ratio, ratio
        if self.name == "tweedie":
            a, b = y * np.exp((1.0 - p) * raw), np.exp((2.0 - p) * raw)
            return b - a, (2.0 - p) * b - (1.0 - p) * a
        return error, one


@dataclass(frozen=True, eq=False)
class LeafValues:
    """The model's own values, by tree and leaf number."""

    first: NDArray[np.int64]  # (n_trees + 1,), where each tree's leaves begin
    values: Floats  # (n_numbers,); there may be gaps in the numbers of a tree's leaves

    @classmethod
    def of(cls, trees: Sequence[Floats]) -> LeafValues:
        """Return the values of trees, each under its leaves' numbers."""
        first = np.cumsum([0, *map(len, trees)], dtype=np.int64)
        return cls(first, np.concatenate(trees).astype(np.float64))

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.first) - 1

    def places(self, trees: NDArray[np.intp], leaves: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return where the values of leaves are, each given by its tree and its number, (n,)."""
        places = self.first[trees] + leaves
        if np.any(places >= self.first[trees + 1]):
            raise RecipeError("its leaves are not numbered as expected")
        return np.asarray(places)

    def at(self, trees: NDArray[np.intp], leaves: NDArray[np.intp]) -> Floats:
        """Return the values of leaves, each given by its tree and its number, (n,)."""
        return np.asarray(self.values[self.places(trees, leaves)])


@dataclass(frozen=True, eq=False)
class Boosting:
    """Trees one after another: a leaf's value is −rate · G/(H + l2), of the gradients and hessians of its rows."""

    leaves: LeafValues  # the model's own values; the first tree's without `start`
    loss: Loss
    start: float  # the raw prediction before the first tree
    rates: Floats  # (n_trees,), the learning rates; 0 for a tree that has one value for all rows
    targets: Floats  # (n_rows,), as the library has them: most keep them in single precision
    weights: Floats | None  # (n_rows,)
    link: Callable[[Floats], Floats]  # from raw predictions to the unit of the target, (n_rows,)
    l1: float = 0.0
    l2: float | Floats = 0.0  # of all leaves, or (n_numbers,), of each as `leaves` has its value
    max_step: float = 0.0  # the largest size of a value before the rate; 0 for any
    # Whether trees have seen each row, if not all have: (n_trees, n_rows), or (1, n_rows) for all these trees.
    seen: Callable[[slice], NDArray[np.bool_]] | None = None
    single: bool = False  # whether the library adds leaf values in single precision
    suspects: str = ""  # the parameters that may be the cause where the values cannot be made again
    sampled: bool = False  # whether trees have seen samples of the rows, or may have
    refusal: str = ""  # why values cannot be made again without a row, though they are known


@dataclass(frozen=True, eq=False)
class Bagging:
    """Trees side by side, each on a random sample of the rows: a leaf's value is the mean of its sampled targets."""

    leaves: LeafValues  # the model's own values
    parents: LeafValues  # those of the nodes above the leaves, under the leaves' numbers
    samples: Callable[[], Sequence[NDArray[np.intp]]]  # the rows that each tree has seen, as often as they were drawn
    targets: Floats  # (n_rows,), as the library has them
    weights: Floats | None  # (n_rows,)
    link: Callable[[Floats], Floats]  # from means to the unit of the target, (n_rows,)
    drawn: float = 1.0  # the share of the rows that each tree has seen
    refusal: str = ""  # as in Boosting


def identity(raw: Floats) -> Floats:
    """Return raw predictions as they are."""
    return raw


def in_single(targets: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Return targets and weights as they are after single precision, in which most libraries keep them."""
    if weights is not None:
        weights = weights.astype(np.float32).astype(np.float64)
    return targets.astype(np.float32).astype(np.float64), weights


def by_tree(values: Floats, counts: Sequence[int]) -> list[Floats]:
    """Cut the values of all trees, one after another, into those of each."""
    return np.split(values, np.cumsum(counts))[:-1]
