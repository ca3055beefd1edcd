"""The distributions of several batches of rows as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Integers
from ibug.distributions import Stack
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch


def joined(distributions: list[Any]) -> Any:
    """Return the distributions of several batches as one."""
    if not distributions:
        raise InvalidInputError("There are no rows: every partition is empty.")
    return type(distributions[0]).concatenate(distributions)


def gathered(distributions: Iterator[Any], n_rows: int) -> Any:
    """Return the distributions of several batches as one; those that take much memory are never there twice."""
    first = next(distributions, None)
    if isinstance(first, Stack) and len(first) < n_rows:
        return Stack.gather(chain([first], distributions), n_rows)
    return joined([] if first is None else [first, *distributions])


def with_neighbors(rule: Any, batches: Iterable[Batch], k: int) -> tuple[Any, NDArray[Any], Integers]:
    """Return the distributions of all batches, with affinities and training rows of the k nearest, (n_rows, k)."""
    distributions, affinities, rows = [], [], []
    for batch in batches:
        distributions.append(rule.distribution(batch))
        affinities.append(batch.affinities[:, :k])
        rows.append(batch.rows[:, :k])
    return joined(distributions), np.concatenate(affinities), np.concatenate(rows)
