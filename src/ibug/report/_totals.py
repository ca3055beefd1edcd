"""Totals of blocks, predicted and observed: for models that know what rows of a block have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.describe import number
from ibug.report._summary import coverage_line
from ibug.totals import TotalDistribution, group_sums

# The most totals that are drawn of one kind of block; the others are in the shares.
_MOST_DRAWN = 1000
# Of fewer blocks a share says nothing.
_FEWEST = 2


def totals_of_blocks(estimator: Any, X: Any, shown: Any, y: Floats, blocks: Any, coverage: float) -> list[Any]:
    """Return the totals of blocks for each target, as text and arrays; None for each where there are none.

    `blocks` are labels of the rows; None: the columns of the rows that have the names of the model's blocks. Shapes:
    y (n_rows,) or (n_rows, n_targets).
    """
    values = y.reshape(len(y), -1).T
    dependence = getattr(estimator, "dependence_", None)
    if dependence is None:
        return [None] * len(values)
    labels = _labels(dependence.names, X, shown, blocks)
    if labels is None:
        return [None] * len(values)
    own: Any = labels[0] if len(labels) == 1 else np.stack([one.astype(object) for one in labels], axis=1)
    kinds: list[list[dict[str, Any]]] = [[] for _ in values]
    for name, column in zip(dependence.names, labels, strict=True):
        if len(set(column.tolist())) < _FEWEST:
            continue
        found = estimator.total_dist(X, column, blocks=own)
        each: Sequence[TotalDistribution] = found if isinstance(found, list) else [found]
        for kind, one, observed in zip(kinds, each, values, strict=True):
            kind.append(_kind(name, one, group_sums(observed, column), coverage))
    return [{"about": str(dependence), "kinds": kind} if kind else None for kind in kinds]


def _labels(names: Sequence[str], X: Any, shown: Any, blocks: Any) -> list[NDArray[Any]] | None:
    """Return the labels of each kind of block; None where they are not known."""
    if blocks is not None:
        if hasattr(blocks, "columns"):
            return [np.asarray(blocks[name]) for name in blocks.columns]
        array = np.asarray(blocks)
        return [array] if array.ndim == 1 else list(array.T)
    for frame in (X, shown):
        if set(names) <= {str(one) for one in getattr(frame, "columns", ())}:
            return [np.asarray(frame[name]) for name in names]
    return None


def _kind(name: str, found: TotalDistribution, observed: Floats, coverage: float) -> dict[str, Any]:
    """Return totals by one kind of block: in words, and those that are drawn."""
    lower, upper = found.interval(coverage)
    inside = (lower <= observed) & (observed <= upper)
    drawn = np.unique(np.linspace(0, len(observed) - 1, min(len(observed), _MOST_DRAWN)).astype(int))
    assert found.groups is not None, "groups have labels"
    return {
        "name": name,
        "line": coverage_line(inside, coverage, "observed totals are", "intervals of totals", "total"),
        "n": len(observed),
        "width": number(float(np.median(upper - lower)), 3),
        "crps": number(float(np.mean(found.crps(observed))), 3),
        "groups": [str(one) for one in found.groups[drawn]],
        "observed": observed[drawn],
        "median": found.median()[drawn],
        "lower": lower[drawn],
        "upper": upper[drawn],
        "inside": inside[drawn],
    }
