"""How familiar rows are to the model that was trained on everything, where its clones have chosen the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ibug._typing import Floats, Integers
from ibug.neighbors import LocalSource
from ibug.rule import AnyRule, affinity_threshold, kept

#: The number of training rows that are asked.
ROWS_FOR_FAMILIARITY = 1000


def familiar_to_model(rule: AnyRule, source: LocalSource, X: Any, n_jobs: int | None) -> AnyRule:
    """Return the rule with the threshold and the reference of affinity scores that the final model has.

    Out-of-fold rows have the scores of clones, which have fewer training rows, and so lower scores. New rows are to be
    compared with training rows of the final model, none of which is its own neighbour: their scores are alike.

    Parameters
    ----------
    rule
        What the out-of-fold rows have chosen.
    source
        The final model, with its training rows.
    X : array-like or data frame
        The training rows.
    n_jobs
        As in IBUGRegressor.
    """
    n_index = source.index.n_rows
    if n_index < 2:
        return rule
    numbers = np.arange(len(source.targets)) if source.rows is None else source.rows
    numbers = numbers[:: -(-len(numbers) // ROWS_FOR_FAMILIARITY)]
    found = source.neighbors(_safe_indexing(X, numbers), min(rule.k + 1, n_index), n_jobs=n_jobs)
    return with_familiarity(rule, *found, numbers, source.n_trees)


def with_familiarity(
    rule: AnyRule, affinities: NDArray[np.int32], rows: Integers, numbers: NDArray[np.intp], n_trees: int
) -> AnyRule:
    """Return the rule with the threshold and the reference of these training rows.

    Parameters
    ----------
    rule
        The rule.
    affinities, rows : ndarray of shape (n_rows, k + 1)
        What was found for some training rows: one more than k, since each may be its own neighbour.
    numbers : ndarray of shape (n_rows,)
        Which training rows they are.
    n_trees
        The number of trees.
    """
    scores = _without_self(affinities, rows, numbers) / n_trees
    reference = replace(rule.reference, familiarity=kept(scores))
    return replace(rule, affinity_threshold=affinity_threshold(scores, None), reference=reference)


def _without_self(affinities: NDArray[np.int32], rows: Integers, numbers: NDArray[np.intp]) -> Floats:
    """Return the mean affinity of each row's neighbours, (n_rows,), without the row itself.

    It is not among them where more rows than were asked for share all of its leaves; then the last one is left out.
    """
    itself = rows == numbers[:, None]
    itself[~itself.any(axis=1), -1] = True
    return np.asarray(affinities[~itself].reshape(len(rows), -1).mean(axis=1))
