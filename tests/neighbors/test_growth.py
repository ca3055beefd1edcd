"""An index that takes more rows, and forgets the oldest, finds what an index of all rows at once finds."""

import pickle

import numpy as np
import pytest

from ibug import LeafIndex
from ibug.exceptions import InvalidInputError

pytestmark = [pytest.mark.once, pytest.mark.kernel]


def structured(n_rows, n_trees=24, depth=4, seed=0):
    """Leaves of rows that lie on a line, nearly: those that are near each other share most leaves."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(size=n_rows)
    cuts = np.random.default_rng(1).uniform(size=(n_trees, 2**depth - 1))
    return np.stack([np.searchsorted(np.sort(c), place) for c in cuts], axis=1).astype(np.int32)


def assert_same(index, leaves, queries, k=12):
    expected = LeafIndex.build(leaves)
    for found, wanted in zip(index.query(queries, k), expected.query(queries, k), strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(index.leaf_sizes(queries), expected.leaf_sizes(queries))
    assert index.n_rows == len(leaves)


@pytest.mark.parametrize(("n", "parts"), [(1, [1, 1]), (40, [30, 70]), (3000, [1, 63, 500, 700]), (5000, [2000, 10])])
def test_rows_that_are_added_are_found(n, parts):
    leaves, queries = structured(n + sum(parts)), structured(40, seed=7)
    index, stop = LeafIndex.build(leaves[:n]), n
    for more in parts:
        before = index.query(queries, 1)
        grown = index.extended([leaves[stop : stop + more // 2], leaves[stop + more // 2 : stop + more]], more)
        np.testing.assert_array_equal(before[1], index.query(queries, 1)[1])  # which has not changed
        stop += more
        assert_same(grown, leaves[:stop], queries, k=min(12, stop))
        index = grown
    assert_same(pickle.loads(pickle.dumps(index)), leaves, queries, k=min(12, n))
    assert_same(LeafIndex.from_arrays(index.arrays()), leaves, queries, k=min(12, n))


def test_leaves_that_are_new_and_codes_that_become_wider():
    rng = np.random.default_rng(0)
    leaves = rng.integers(0, 200, size=(900, 6)).astype(np.int32)
    more = rng.integers(0, 700, size=(200, 6)).astype(np.int32)
    queries = np.concatenate([leaves[:20], more[:20]])
    index = LeafIndex.build(leaves)
    assert index.code_type == np.uint8
    grown = index.extended([more], len(more))
    assert grown.code_type == np.uint16
    assert_same(grown, np.concatenate([leaves, more]), queries)


@pytest.mark.parametrize("gone", [0, 1, 64, 2999, 4999])
def test_rows_that_are_forgotten_are_not_found(gone):
    leaves, queries = structured(5000), structured(40, seed=7)
    index = LeafIndex.build(leaves[:4800]).extended([leaves[4800:]], 200).without_first(gone)
    assert_same(index, leaves[gone:], queries, k=min(12, 5000 - gone))
    assert_same(index.extended([leaves[:50]], 50), np.concatenate([leaves[gone:], leaves[:50]]), queries, k=5)


def test_what_cannot_be_added():
    index = LeafIndex.build(structured(100))
    with pytest.raises(InvalidInputError, match="trees"):
        index.extended([structured(10, n_trees=5)], 10)
    with pytest.raises(InvalidInputError, match="announced"):
        index.extended([structured(10)], 11)
    with pytest.raises(InvalidInputError, match="announced"):
        index.extended([], 0)
    for gone in (-1, 100):
        with pytest.raises(InvalidInputError, match="can be left out"):
            index.without_first(gone)
