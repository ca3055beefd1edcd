"""How a model came to the values of its leaves, in one form for all libraries: what is needed to leave a row out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats


class RecipeError(Exception):
    """The leaf values of this model cannot be redone; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Loss:
    """A loss, whose gradients and hessians make leaf values.

    Parameters
    ----------
    name : {"squared", "huber", "pseudo_huber", "poisson", "gamma", "tweedie"}
        Which one; of raw predictions, which are logarithms for the last three.
    parameter : float
        The slope of Huber's, the power of Tweedie's, and what Poisson's adds to a raw prediction for its hessian.
    """

    name: str = "squared"
    parameter: float = 0.0

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
    """The model's own values, by tree and leaf number.

    Parameters
    ----------
    first : ndarray of shape (n_trees + 1,)
        Where each tree's leaves begin.
    values : ndarray of shape (n_numbers,)
        The values; there may be gaps in the numbers of a tree's leaves.
    """

    first: NDArray[np.int64]
    values: Floats

    @classmethod
    def of(cls, trees: Sequence[Floats]) -> LeafValues:
        """Return the values of trees, each under its leaves' numbers."""
        first = np.concatenate([[0], np.cumsum([len(values) for values in trees], dtype=np.int64)])
        return cls(first.astype(np.int64), np.concatenate(trees).astype(np.float64))

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.first) - 1

    def at(self, trees: NDArray[np.intp], leaves: NDArray[np.intp]) -> Floats:
        """Return the values of leaves, each given by its tree and its number, (n,)."""
        places = self.first[trees] + leaves
        if np.any(places >= self.first[trees + 1]):
            raise RecipeError("its leaves are not numbered as expected")
        return np.asarray(self.values[places])


@dataclass(frozen=True, eq=False)
class Boosting:
    """Trees one after another: a leaf's value is −rate · G/(H + l2), of the gradients and hessians of its rows.

    Parameters
    ----------
    leaves : LeafValues
        The model's own values; the first tree's without `start`.
    loss : Loss
        Its gradients and hessians make the values.
    start : float
        The raw prediction before the first tree.
    rates : ndarray of shape (n_trees,)
        The learning rate of each tree; 0 for a tree that has one value for all rows.
    targets : ndarray of shape (n_rows,)
        As the library has them: most keep them in single precision.
    weights : ndarray of shape (n_rows,) or None
        The rows' weights.
    link : function of raw predictions, (n_rows,)
        Returns predictions in the unit of the target.
    l1, l2 : float, default 0.0
        The penalties.
    max_step : float, default 0.0
        The largest size of a value before the rate; 0 for any.
    single : bool, default False
        Whether the library adds leaf values in single precision.
    suspects : str, default ""
        What may be the cause where the values cannot be made again, as far as the parameters show.
    sampled : bool, default False
        Whether trees have seen samples of the rows, or may have.
    refusal : str, default ""
        Why values cannot be made again without a row, though they are known: trees have seen samples, say.
    """

    leaves: LeafValues
    loss: Loss
    start: float
    rates: Floats
    targets: Floats
    weights: Floats | None
    link: Callable[[Floats], Floats]
    l1: float = 0.0
    l2: float = 0.0
    max_step: float = 0.0
    single: bool = False
    suspects: str = ""
    sampled: bool = False
    refusal: str = ""


@dataclass(frozen=True, eq=False)
class Bagging:
    """Trees side by side, each on a random sample of the rows: a leaf's value is the mean of its sampled targets.

    Parameters
    ----------
    leaves, parents : LeafValues
        The model's own values; and those of the nodes above the leaves, under the leaves' numbers.
    samples : function without arguments
        Returns the rows that each tree has seen, as often as they were drawn.
    targets : ndarray of shape (n_rows,)
        As the library has them.
    weights : ndarray of shape (n_rows,) or None
        The rows' weights.
    link : function of means, (n_rows,)
        Returns predictions in the unit of the target.
    drawn : float
        The share of the rows that each tree has seen.
    refusal : str
        As in Boosting.
    """

    leaves: LeafValues
    parents: LeafValues
    samples: Callable[[], Sequence[NDArray[np.intp]]]
    targets: Floats
    weights: Floats | None
    link: Callable[[Floats], Floats]
    drawn: float = 1.0
    refusal: str = ""


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
    edges = np.cumsum([0, *counts], dtype=np.int64)
    return [values[start:stop] for start, stop in pairwise(edges)]


def suspected(**causes: bool) -> str:
    """Return the names of what is true, with commas."""
    return ", ".join(name for name, true in causes.items() if true)
