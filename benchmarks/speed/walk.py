"""What the speed of ibug is compared with: affinities by a walk over leaf members, written with scipy.sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Affinities = NDArray[np.uint16]


class LeafWalk:
    """The members of every leaf as a sparse matrix, and several ways to sum those of a query's leaves.

    For each tree, a walk visits the training rows in the query's leaf and adds one to their affinity (paper,
    Algorithm 1). Affinities are counted in 16 bits: with scipy the time goes by the bytes that are moved.

    Parameters
    ----------
    leaves : ndarray of int32, shape (n_rows, n_trees)
        The training rows' leaf numbers.
    n_leaves
        More than the largest leaf number, of training rows and of queries.
    """

    def __init__(self, leaves: NDArray[np.int32], n_leaves: int) -> None:
        self._n_leaves = n_leaves
        self._rows = self._one_hot(leaves)  # (n_rows, n_trees * n_leaves)
        self._members = self._rows.T.tocsr()  # (n_trees * n_leaves, n_rows)
        self.walks: dict[str, Callable[[NDArray[np.int32]], Affinities]] = {
            "joint product": self._by_one_product,
            "product by row": self._by_products,
            "sum of leaves": self._by_selection,
        }

    @property
    def nbytes(self) -> int:
        """The memory of the leaves' members, in bytes."""
        return sum(part.nbytes for part in (self._members.data, self._members.indices, self._members.indptr))

    def scan(self, leaves: NDArray[np.int32]) -> Affinities:
        """Count without a walk: the training rows' one-hot matrix times the dense one of the queries.

        It visits every row in every tree, for all queries at once, and not the members of their leaves alone.

        Parameters
        ----------
        leaves : ndarray of int32, shape (n_queries, n_trees)

        Returns
        -------
        ndarray of shape (n_queries, n_rows)
        """
        return np.asarray(self._rows @ self._one_hot(leaves).T.toarray()).T

    def _by_one_product(self, leaves: NDArray[np.int32]) -> Affinities:
        return np.asarray((self._one_hot(leaves) @ self._members).toarray())

    def _by_products(self, leaves: NDArray[np.int32]) -> Affinities:
        return np.concatenate([self._by_one_product(leaves[i : i + 1]) for i in range(len(leaves))])

    def _by_selection(self, leaves: NDArray[np.int32]) -> Affinities:
        ones = np.ones(leaves.shape[1], np.uint16)
        return np.stack([ones @ self._members[self._columns(leaves[i])] for i in range(len(leaves))])

    def _one_hot(self, leaves: NDArray[np.int32]) -> Any:
        n_rows, n_trees = leaves.shape
        ends = np.arange(0, leaves.size + 1, n_trees, dtype=np.int32)  # scipy takes the wider type for all
        parts = (np.ones(leaves.size, np.uint16), self._columns(leaves).ravel(), ends)
        return sp.csr_array(parts, shape=(n_rows, n_trees * self._n_leaves))

    def _columns(self, leaves: NDArray[np.int32]) -> NDArray[np.int32]:
        return leaves + np.arange(leaves.shape[-1], dtype=np.int32) * np.int32(self._n_leaves)


def top_k(affinities: Affinities, k: int) -> tuple[Affinities, NDArray[np.intp]]:
    """Return the k highest affinities of each query, descending, and their rows.

    Parameters
    ----------
    affinities : ndarray of shape (n_queries, n_rows)
    k
        From 1 to ``n_rows``.

    Returns
    -------
    affinities : ndarray of shape (n_queries, k)
    rows : ndarray of shape (n_queries, k)
        Of equal affinities any may be chosen: a walk needs no total order.
    """
    rows = np.argpartition(affinities, -k, axis=1)[:, -k:]
    found = np.take_along_axis(affinities, rows, axis=1)
    order = np.argsort(found, axis=1)[:, ::-1]
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(rows, order, axis=1)
