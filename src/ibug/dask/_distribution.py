"""Distributions of rows that are on a cluster: the methods of a batch, answered partition by partition."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any
from uuid import uuid4

import numpy as np
from dask import delayed
from dask.delayed import Delayed
from sklearn.utils import check_random_state

from ibug._frames import quantile_names
from ibug.dask._cluster import graph_of
from ibug.dask._rows import Key, Partitions, dask_compute, framed, index_of, is_dask, no_answers, parts_of
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError
from ibug.rule import joined

#: Random numbers that are skipped at a time: eight megabytes.
_NUMBERS = 1 << 20


class LazyDistribution:
    """The distributions of all rows of a Dask collection, one batch per partition.

    ``mean var std median pdf logpdf cdf sf ppf interval rvs crps`` are those of ``ibug.distributions.Distribution``,
    and return what the methods of ``ibug.dask.IBUGRegressor`` return: a Dask Array for an Array, a Series or a
    DataFrame with the same index and divisions for a DataFrame. ``d.compute().to_frame()`` makes a local table. An
    argument is one number for all rows, an array of shape (1, m) with the same m numbers for all rows, or a Dask Array
    or Series with one number per row in the same partitions.

    Parameters
    ----------
    rows : Partitions
        The collection that they are predicted for.
    distributions : sequence of Delayed
        The batch of each partition.
    """

    def __init__(self, rows: Partitions, distributions: Sequence[Delayed]) -> None:
        self._rows = rows
        self._distributions = list(distributions)
        self._indices = [delayed(index_of)(part) for part in rows.parts] if rows.are_frames else None

    def __repr__(self) -> str:
        return f"<LazyDistribution: {len(self._distributions)} partitions>"

    @property
    def npartitions(self) -> int:
        """The number of partitions."""
        return len(self._distributions)

    def to_delayed(self) -> list[Delayed]:
        """Return the distributions of each partition; None for an empty one."""
        return list(self._distributions)

    def compute(self) -> Distribution:
        """Return the distributions of all rows as one local batch."""
        found: Distribution = joined([part for part in dask_compute(self._distributions) if part is not None])
        return found

    def mean(self) -> Any:
        """Return the means."""
        return self._call("mean")

    def var(self) -> Any:
        """Return the variances."""
        return self._call("var")

    def std(self) -> Any:
        """Return the standard deviations."""
        return self._call("std")

    def median(self) -> Any:
        """Return the medians."""
        return self._call("median")

    def pdf(self, y: Any) -> Any:
        """Return the density at y."""
        return self._call("pdf", y)

    def logpdf(self, y: Any) -> Any:
        """Return the log density at y."""
        return self._call("logpdf", y)

    def cdf(self, y: Any) -> Any:
        """Return the probability of a value of at most y."""
        return self._call("cdf", y)

    def sf(self, y: Any) -> Any:
        """Return the probability of a value above y."""
        return self._call("sf", y)

    def ppf(self, q: Any) -> Any:
        """Return the quantile at probability q."""
        return self._call("ppf", q)

    def crps(self, y: Any) -> Any:
        """Return the continuous ranked probability score."""
        return self._call("crps", y)

    def interval(self, confidence: float = 0.9) -> Any:
        """Return lower and upper ends of the central interval: the two columns of one frame or array."""
        return self._map(lambda j: (_interval, confidence), ["lower", "upper"])

    def rvs(self, size: int | None = None, random_state: Any = None) -> Any:
        """Draw samples: (n,), or (n, size).

        With an integer as the seed they are those of the local distributions, bit for bit, however the rows are
        partitioned: each sample takes one number of one generator, whose state is handed on from partition to
        partition.

        Parameters
        ----------
        size : int, optional
            How many for each row; one, without an axis of their own, for None.
        random_state : int, RandomState, Generator or None
            The seed. A generator draws a seed at once, as the number of samples is not known yet.
        """
        if not isinstance(random_state, numbers.Integral):
            generator = isinstance(random_state, np.random.Generator)
            draw = random_state.integers if generator else check_random_state(random_state).randint
            random_state = draw(0, 2**31 - 1)
        name = f"ibug-random-{uuid4().hex}"
        states: dict[Key, Any] = {(name, 0): (check_random_state, int(random_state))}
        for j, distribution in enumerate(self._distributions[:-1]):
            states[(name, j, "rows")] = (_n_rows, distribution.key)
            states[(name, j + 1)] = (_advanced, (name, j), (name, j, "rows"), size)
        columns = None if size is None else list(range(size))
        return self._map(lambda j: (_rvs, size, (name, j)), columns, extra=states)

    def _call(self, method: str, argument: Any = None) -> Any:
        """Return what a method says, of an argument if it has one: a number, (1, m), or a number for each row."""
        if argument is None:
            return self._map(lambda j: (_call, method), None)
        if is_dask(argument):
            parts = parts_of(argument)
            if len(parts) != self.npartitions:
                raise InvalidInputError(
                    f"The argument has {len(parts)} partitions, the distributions have {self.npartitions}."
                )
            return self._map(lambda j: (_call, method, parts[j].key), None, parts)
        values, columns = np.asarray(argument, np.float64), None
        if values.ndim == 2 and len(values) == 1:
            columns = list(range(values.shape[1])) if method != "ppf" else quantile_names(values[0])
        elif values.ndim != 0:
            raise InvalidInputError(
                f"An argument of shape {values.shape} cannot be divided among {self.npartitions} partitions: give a "
                "number, an array (1, m), or a Dask Array or Series with the same partitions."
            )
        return self._map(lambda j: (_call, method, values), columns)

    def _map(
        self,
        task: Any,
        columns: Sequence[Any] | None,
        dependencies: Sequence[Delayed] = (),
        extra: Mapping[Key, Any] | None = None,
    ) -> Any:
        name = f"ibug-distribution-{uuid4().hex}"
        keys = self._rows.keys(name, columns)
        tasks: dict[Key, Any] = dict(extra or {})
        for j, (key, distribution) in enumerate(zip(keys, self._distributions, strict=True)):
            function, *arguments = task(j)
            index = None if self._indices is None else self._indices[j].key
            tasks[key] = (_shaped, function, distribution.key, index, columns, arguments)
        every = [*self._distributions, *dependencies, *(self._indices or ())]
        return self._rows.gather(graph_of(name, tasks, every), keys, columns, np.float64)


def _shaped(function: Any, distribution: Any, index: Any, columns: Any, arguments: list[Any]) -> Any:
    """Return the answer of one partition's distributions as an array, or with the index of its frame."""
    values = no_answers(columns) if distribution is None else function(distribution, *arguments)
    return values if index is None else framed(values, index, columns)


def _call(distribution: Distribution, method: str, *arguments: Any) -> Any:
    plain = [np.asarray(argument, np.float64) for argument in arguments]
    return getattr(distribution, method)(*plain)


def _interval(distribution: Distribution, confidence: float) -> Any:
    return np.stack(distribution.interval(confidence), axis=1)


def _rvs(distribution: Distribution, size: int | None, state: np.random.RandomState) -> Any:
    return distribution.rvs(size, random_state=deepcopy(state))


def _n_rows(distribution: Distribution | None) -> int:
    return 0 if distribution is None else len(distribution)


def _advanced(state: np.random.RandomState, n_rows: int, size: int | None) -> np.random.RandomState:
    """Return the generator after the numbers of one partition's samples; that of the partition stays as it is."""
    state, left = deepcopy(state), n_rows * (1 if size is None else size)
    while left > 0:
        left -= len(state.random_sample(min(left, _NUMBERS)))
    return state
