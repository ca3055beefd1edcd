"""Which training rows are behind an interval: what changes if one of them is removed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ibug._typing import Floats, Integers
from ibug._validation import check_at_least_one, check_probability
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch
from ibug.rule import Rule, one_target

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


def influence(estimator: Any, X: Any, *, coverage: float = 0.9, n_most: int = 10) -> Influence:
    """Remove each neighbour in turn, let the next one move up, and see how the interval changes.

    The result is what an index without that row would give; the model and the rule stay as they are. A training row
    that is no neighbour changes nothing. A rule that looks at all training rows looks at all that are left.

    Parameters
    ----------
    estimator : IBUGRegressor
        A fitted regressor of one target.
    X : array-like or data frame of shape (n_rows, n_features)
        The rows.
    coverage : float, default=0.9
        The coverage of the intervals.
    n_most : int, default=10
        The number of training rows to return for each row; at most as many as the rule looks at.
    """
    check_is_fitted(estimator)
    source, rule = estimator.source_, one_target(estimator.rule_, "influence")
    level = check_probability(coverage, "coverage")
    check_at_least_one(n_most, "n_most")
    trained = [quantity for quantity in rule.needs if quantity == "targets" or source.has_training_residuals]
    if not trained:
        raise InvalidInputError("The intervals are made of validation rows: no training row has influence on them.")
    left = source.index.n_rows - 1
    fewer = rule.at_most(dict.fromkeys(trained, left))
    own = {quantity: fewer.needs[quantity] for quantity in trained}
    k = max(own.values())
    if not 1 <= k <= left:
        raise InvalidInputError(
            f"The rule looks at {k} neighbours, and there are {left + 1} training rows: none can be removed."
        )
    asked = {quantity: own.get(quantity, n - 1) + 1 for quantity, n in rule.needs.items()}
    size = max(1, _NUMBERS_PER_BLOCK // (k * (k + 1) * len(asked)))
    parts = [
        _most((rule, fewer), batch.take(slice(start, start + size)), own, n_most, level)
        for batch in estimator.batches(X, asked)
        for start in range(0, batch.n_rows, size)
    ]
    fields = ([getattr(part, each.name) for part in parts] for each in dataclasses.fields(Influence))
    return Influence(*map(np.concatenate, fields))


def _most(rules: tuple[Rule, Rule], batch: Batch, own: Mapping[str, int], n_most: int, coverage: float) -> Influence:
    """Return the neighbours of a few rows that matter most."""
    n_rows, k = batch.n_rows, max(rules[0].needs[quantity] for quantity in own)
    interval = _intervals(rules[0], batch, coverage)
    without = _intervals(rules[1], _without(batch, own, np.arange(k)), coverage).reshape(n_rows, k, 2)
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

    Shapes: removed (n_removed,).
    """
    times = len(removed)

    def kept(values: Any, n: int) -> Any:
        places = np.arange(n) + (np.arange(n) >= removed[:, None])
        return values[:, places].reshape(len(values) * times, n)

    values, weights = (
        {
            quantity: kept(each, own[quantity]) if quantity in own else np.repeat(each, times, axis=0)
            for quantity, each in part.items()
        }
        for part in (batch.values, batch.weights)
    )
    row_context = {name: np.repeat(each, times, axis=0) for name, each in batch.row_context.items()}
    k = batch.rows.shape[1] - 1
    mean = np.repeat(batch.mean, times)
    affinities, rows = kept(batch.affinities, k), kept(batch.rows, k)
    return Batch(slice(0, len(mean)), mean, affinities, rows, values, batch.n_trees, row_context, weights)


def _intervals(rule: Rule, batch: Batch, coverage: float) -> Floats:
    return np.stack(rule.distribution(batch).interval(coverage), axis=1)
