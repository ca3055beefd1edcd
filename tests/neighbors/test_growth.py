"""An index that takes more rows, and forgets the oldest, finds what an index of all rows at once finds."""

import pickle

import numpy as np
import pytest

from ibug import LeafIndex
from ibug.exceptions import InvalidInputError
from ibug.neighbors._build import find_bounds, first_to_sort

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


@pytest.mark.parametrize("more", [1, 300, 1000])
def test_bounds_of_a_grown_index_are_those_that_a_look_at_all_rows_finds(more):
    leaves = structured(9000 + more)
    leaves[9000:, 3] += 5  # leaves that were not there before
    grown = LeafIndex.build(leaves[:9000]).extended([leaves[9000:]], more)
    assert grown.bounds_nbytes
    arrays = grown.arrays()
    names = ("tiles", "order", "numbering", "leaf_counts")
    fresh = find_bounds(*(arrays[name] for name in names))
    for name, array in fresh.arrays().items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)


def runs_of(n_rows, parts):
    """Return the rows at which runs begin, and how often each row was sorted: by keeping a list of runs."""
    times, starts, stop = [], [], 0
    for more in parts:
        first = first_to_sort(n_rows, n_rows + stop, n_rows + stop + more) - n_rows
        stop += more
        times += [0] * more
        for row in range(first, stop):
            times[row] += 1
        starts = [start for start in starts if start < first] + [first]
    return starts, times


@pytest.mark.parametrize("parts", [[1] * 300, [10] * 100, [7, 100, 3, 3, 500, 1, 1, 64], [1000], [33] * 40])
def test_rows_that_were_added_lie_in_few_runs_and_are_not_sorted_often(parts):
    starts, times = runs_of(10_000, parts)
    assert starts[0] == 0
    assert min(times) >= 1  # no row is left out
    most = np.log2(sum(parts) / min(parts)) + 2
    assert len(starts) <= most
    assert np.mean(times) <= most


def test_all_rows_are_put_in_order_again_once_there_are_half_as_many_more():
    leaves, queries = structured(14_000), structured(60, seed=7)
    some = LeafIndex.build(leaves[:9000])
    for start in range(9000, 13_000, 250):
        some = some.extended([leaves[start : start + 250]], 250)
    assert_same(some, leaves[:13_000], queries)
    assert some.arrays()["n_sorted"] == 9000
    every = some.extended([leaves[13_000:]], 1000)
    assert "n_sorted" not in every.arrays()
    at_once = LeafIndex.build(leaves).visited(queries, 10).mean()
    assert every.visited(queries, 10).mean() < 1.2 * at_once
    assert some.visited(queries, 10).mean() < 1.5 * at_once


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
    arrays = index.extended([structured(10)], 10).arrays()
    for wrong in (np.array([0]), np.array([111]), np.array([1, 2]), np.array([1.0])):
        with pytest.raises(InvalidInputError, match="n_sorted"):
            LeafIndex.from_arrays({**arrays, "n_sorted": wrong})
