"""Memory beyond index and output is bounded, however many rows, trees and neighbours there are."""

import tracemalloc

import numpy as np
import pytest

from ibug.affinity import AffinitySearch
from ibug.leaves import LeafReader

MOST_BYTES = 150e6


class ManyTrees(LeafReader):
    """A model of so many trees that the leaf numbers of all rows together would need gigabytes."""

    n_trees = 2000

    def leaves(self, X):
        return np.repeat(X[:, :1].astype(np.int32), self.n_trees, axis=1)


class FewTrees(ManyTrees):
    n_trees = 3


def peak(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("reader", "k", "tree_fraction"), [(ManyTrees, 5, 1.0), (ManyTrees, 5, 0.01), (FewTrees, 700, 1.0)]
)
def test_search_in_chunks(reader, k, tree_fraction):
    X = np.random.default_rng(0).integers(0, 7, (100_000, 1))
    search = AffinitySearch.build(
        reader(None), X[:1000], tree_fraction=tree_fraction, random_state=np.random.RandomState(0)
    )
    assert peak(lambda: [None for _ in search.chunks(X, k, n_jobs=1)]) < MOST_BYTES


def test_index_is_built_in_chunks():
    X = np.random.default_rng(0).integers(0, 7, (40_000, 1))
    assert peak(lambda: AffinitySearch.build(ManyTrees(None), X, random_state=np.random.RandomState(0))) < (
        MOST_BYTES + X.size * ManyTrees.n_trees
    )
