"""Which training rows are behind an interval: what changes if one of them is removed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibug._inputs import check_probabilities
from ibug._typing import Floats, Integers
from ibug.describe import at_least_one
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch, LocalSource
from ibug.rule import Rule

# Neighbours of rows without one of their neighbours: this many numbers at a time.
_NUMBERS_PER_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Influence:
    """The training rows whose removal changes the intervals most.

    Attributes
    ----------
    interval : ndarray of shape (n_rows, 2)
        The intervals as they are.
    rows : ndarray of shape (n_rows, n_most)
        Numbers of training rows; those that change lower and upper end most, both together, come first.
    without : ndarray of shape (n_rows, n_most, 2)
        The interval if the training row were not there.
    affinities : ndarray of shape (n_rows, n_most)
        The affinities of the training rows.
    """

    interval: Floats
    rows: Integers
    without: Floats
    affinities: Integers

    @property
    def width_change(self) -> Floats:
        """How much wider the interval would be without the training row, (n_rows, n_most); negative: narrower."""
        width = self.interval[:, 1] - self.interval[:, 0]
        return np.asarray(self.without[..., 1] - self.without[..., 0] - width[:, None])


def influence(
    source: LocalSource,
    rule: Rule,
    X: Any,
    *,
    coverage: float = 0.9,
    n_most: int = 10,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Influence:
    """Remove each neighbour in turn, let the next one move up, and see how the interval changes.

    The result is what an index without that row would give; the model and the rule stay as they are. A training row
    that is no neighbour changes nothing.

    Parameters
    ----------
    source, rule
        Where neighbours come from, and what is made of them.
    X
        The rows, checked.
    coverage
        The coverage of the intervals.
    n_most
        The number of training rows to return for each row; at most as many as the rule looks at.
    n_jobs, verbose
        As in IBUGRegressor.
    """
    level = float(check_probabilities(coverage, "coverage"))
    at_least_one(n_most, "n_most")
    others = {"residuals"} if source.residual_index is not None else set()  # neighbours that are no training rows
    own = {quantity: n for quantity, n in rule.needs.items() if quantity not in others}
    k = max(own.values(), default=0)
    if not k:
        raise InvalidInputError("The intervals are made of validation rows: no training row has influence on them.")
    if k >= source.index.n_rows:
        raise InvalidInputError(
            f"The rule looks at {k} neighbours, and there are {source.index.n_rows} training rows: none can be removed."
        )
    asked = {quantity: n + (quantity in own) for quantity, n in rule.needs.items()}
    size = max(1, _NUMBERS_PER_BLOCK // (k * (k + 1) * len(asked)))
    parts = [
        _most(rule, _rows(batch, start, size), own, k, min(n_most, k), level)
        for batch in source.batches(X, asked, n_jobs=n_jobs, verbose=verbose)
        for start in range(0, batch.n_rows, size)
    ]
    fields = ([getattr(part, each.name) for part in parts] for each in dataclasses.fields(Influence))
    return Influence(*map(np.concatenate, fields))


def _rows(batch: Batch, start: int, size: int) -> Batch:
    """Return some rows of a batch."""
    here = slice(start, start + size)
    values = {quantity: each[here] for quantity, each in batch.values.items()}
    mean, affinities, rows = batch.mean[here], batch.affinities[here], batch.rows[here]
    return Batch(slice(0, len(mean)), mean, affinities, rows, values, batch.n_trees)


def _most(rule: Rule, batch: Batch, own: Mapping[str, int], k: int, n_most: int, coverage: float) -> Influence:
    """Return the neighbours of a few rows that matter most.

    Parameters
    ----------
    rule, coverage
        As in `influence`.
    batch
        The rows, with one neighbour more than the rule looks at.
    own
        The number of neighbours that the rule looks at, by quantity of training rows.
    k
        The largest of these numbers.
    n_most
        The number of neighbours to return.
    """
    n_rows = batch.n_rows
    interval = _intervals(rule, _without(batch, own, np.array([k])), coverage)  # the last one, which is not looked at
    without = _intervals(rule, _without(batch, own, np.arange(k)), coverage).reshape(n_rows, k, 2)
    change = np.abs(np.where(without == interval[:, None], 0.0, without - interval[:, None])).sum(axis=2)
    chosen = np.argsort(-change, axis=1, kind="stable")[:, :n_most]
    return Influence(
        interval,
        np.take_along_axis(batch.rows, chosen, axis=1),
        np.take_along_axis(without, chosen[..., None], axis=1),
        np.take_along_axis(batch.affinities, chosen, axis=1),
    )


def _without(batch: Batch, own: Mapping[str, int], removed: Integers) -> Batch:
    """Return each row of a batch once for each of its neighbours that is removed, the next ones moved up.

    Parameters
    ----------
    batch
        The rows, with one neighbour more than is kept.
    own
        The number of neighbours that are kept, by quantity.
    removed : ndarray of shape (n_removed,)
        The places of the neighbours that are removed, one at a time.
    """
    times = len(removed)

    def kept(values: Any, n: int) -> Any:
        places = np.arange(n) + (np.arange(n) >= removed[:, None])
        return values[:, places].reshape(len(values) * times, n)

    values = {
        quantity: kept(each, own[quantity]) if quantity in own else np.repeat(each, times, axis=0)
        for quantity, each in batch.values.items()
    }
    k = batch.rows.shape[1] - 1
    mean = np.repeat(batch.mean, times)
    affinities, rows = kept(batch.affinities, k), kept(batch.rows, k)
    return Batch(slice(0, len(mean)), mean, affinities, rows, values, batch.n_trees)


def _intervals(rule: Rule, batch: Batch, coverage: float) -> Floats:
    return np.stack(rule.distribution(batch).interval(coverage), axis=1)
