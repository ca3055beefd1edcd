"""The affinity threshold of a model that was trained on all rows, where other models have chosen the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ibug._typing import Floats, Integers
from ibug.neighbors import LocalSource
from ibug.rule import AnyRule, affinity_threshold

#: The number of training rows that are asked.
ROWS_FOR_THRESHOLD = 1000


def for_final_model(rule: AnyRule, source: LocalSource, X: Any, n_jobs: int | None) -> AnyRule:
    """Return the rule with the affinity threshold of the final model, and a reference for it.

    Held-out rows have the scores of models of fewer rows, which are lower. The threshold is that of training rows in
    the final model, none of which is its own neighbour. Their scores are near those of new rows, but not equal in
    distribution: they have shaped the trees. So `monitor` compares no affinity scores, unless the rule is learned again
    on rows that the final model has not seen.
    """
    n_index = source.index.n_rows
    if n_index < 2:
        return replace(rule, reference=rule.reference.for_other_model())
    numbers = np.arange(len(source.targets)) if source.rows is None else source.rows
    numbers = numbers[:: -(-len(numbers) // ROWS_FOR_THRESHOLD)]
    found = source.neighbors(_safe_indexing(X, numbers), min(rule.k + 1, n_index), n_jobs=n_jobs)
    return with_own_threshold(rule, *found, numbers, source.n_trees)


def with_own_threshold(
    rule: AnyRule, affinities: NDArray[np.int32], rows: Integers, numbers: NDArray[np.intp], n_trees: int
) -> AnyRule:
    """Return the rule with the affinity threshold of these training rows, and a reference without affinity scores.

    Shapes: affinities, rows (n_rows, k + 1); numbers (n_rows,).
    """
    scores = _without_self(affinities, rows, numbers) / n_trees
    reference = rule.reference.for_other_model()
    return replace(rule, affinity_threshold=affinity_threshold(scores, None), reference=reference)


def _without_self(affinities: NDArray[np.int32], rows: Integers, numbers: NDArray[np.intp]) -> Floats:
    """Return the mean affinity of each row's neighbours, (n_rows,), without the row itself.

    It is not among them where more rows than were asked for share all of its leaves; then the last one is left out.
    """
    itself = rows == numbers[:, None]
    itself[~itself.any(axis=1), -1] = True
    return np.asarray(affinities[~itself].reshape(len(rows), -1).mean(axis=1))
