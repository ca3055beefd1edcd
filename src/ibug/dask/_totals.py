"""Totals of rows on a cluster: each partition adds up its rows, and the sums of all are added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from dask.delayed import Delayed
from sklearn.utils.validation import _num_samples

from ibug.dask._rows import dask_compute, is_dask
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError
from ibug.rule import Rule
from ibug.totals import Dependence, Plan, Sums, TotalDistribution, blocks_of, check_total_weights, groups_of

# Rows whose sums are made at a time: their quantiles take 41 numbers each.
_ROWS_AT_A_TIME = 1 << 16


def totals_on_cluster(
    rule: Rule,
    dependence: Dependence | None,
    X: Any,
    parts: Sequence[Delayed],
    distributions: Sequence[Delayed],
    by: Any,
    weights: Any,
    blocks: Any,
) -> TotalDistribution:
    """Return the distributions of totals of rows whose distributions are in partitions, as in the local `total_dist`.

    The labels of all rows are here; what comes back from the cluster does not grow with the number of rows.
    """
    lengths = dask_compute([delayed(_num_samples)(part) for part in parts])
    kinds = () if dependence is None or blocks is not None else dependence.columns or ()
    frame = label_frame(X, sum(lengths), by, blocks, kinds)
    groups, counts = groups_of(here(by), frame), check_total_weights(here(weights), len(frame))
    codes = blocks_of(dependence, here(blocks), frame, rule)
    plan = Plan.of(groups, counts, codes, dependence if codes else None)
    shared, starts = delayed(plan, traverse=False), np.cumsum([0, *lengths[:-1]]).tolist()
    sums = [delayed(_sums)(shared, start, one) for start, one in zip(starts, distributions, strict=True)]
    while len(sums) > 1:
        pairs = [sums[i : i + 2] for i in range(0, len(sums), 2)]
        sums = [delayed(_added)(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    (found,) = dask_compute(sums)
    return Sums(plan).plus(found).distribution()


def label_frame(X: Any, n_rows: int, *labels: Any) -> pd.DataFrame:
    """Return the columns of X that labels name, here, with as many rows as X has."""
    names = [one for given in labels for one in ([given] if isinstance(given, str) else _names(given))]
    there = [str(name) for name in getattr(X, "columns", ())]
    columns = list(dict.fromkeys(name for name in names if name in there))
    if not columns:
        return pd.DataFrame(index=range(n_rows))
    some = X[columns]
    return (some.compute() if isinstance(some, dd.DataFrame) else some).reset_index(drop=True)


def here(labels: Any) -> Any:
    """Return labels or weights of all rows that are on the cluster."""
    if callable(labels):
        raise InvalidInputError("On a cluster labels are columns of X, or one label for each row; got a function.")
    return np.asarray(labels.compute()) if is_dask(labels) else labels


def _names(given: Any) -> list[str]:
    return [one for one in given if isinstance(one, str)] if isinstance(given, (list, tuple)) else []


def _sums(plan: Plan, start: int, distribution: Distribution | None) -> tuple[Any, ...]:
    """Return the sums of one partition's rows, of which the first has this number."""
    sums = Sums(plan)
    if distribution is None:  # of a partition without rows
        return sums.values()
    for i in range(0, len(distribution), _ROWS_AT_A_TIME):
        some = distribution[i : i + _ROWS_AT_A_TIME]
        sums.add(slice(start + i, start + i + len(some)), some)
    return sums.values()


def _added(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one + other for one, other in zip(first, second, strict=True))
