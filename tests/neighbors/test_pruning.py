"""The search that skips rows, against brute force: it must find the same rows, ties included, however it gets there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibug import LeafIndex
from ibug.neighbors import _build, _search, instruction_sets
from tests.oracles import nearest_rows

pytestmark = [pytest.mark.once, pytest.mark.kernel]


@pytest.fixture(autouse=True)
def bounds_everywhere(monkeypatch):
    """Keep the bounds of small indexes too, and of those where they do not pay."""
    monkeypatch.setattr(_build, "_LEAST_TILES", 4)
    monkeypatch.setattr(_build, "_MOST_MEMORY", 1e9)
    monkeypatch.setattr(_build, "_MOST_VISITED", 2.0)


def clustered(seed, n_rows, n_trees, n_leaves, n_kinds, noise):
    """Return rows of some kinds, each changed in a share of the trees, so that there are near, far and equal rows."""
    rng = np.random.default_rng(seed)
    kinds = np.random.default_rng(0).integers(0, n_leaves, (n_kinds, n_trees))
    rows = kinds[rng.integers(0, n_kinds, n_rows)]
    return np.where(rng.random(rows.shape) < noise, rng.integers(0, n_leaves, rows.shape), rows)


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def pruned(index, queries, k, *, most_visits=None, instruction_set=""):
    """Return what the search by bounds finds, and the number of tiles that it visits if it never gives up."""
    leaves, n_tiles = np.ascontiguousarray(queries, np.int32), len(index.arrays()["tiles"])
    n, most_visits = len(leaves), n_tiles if most_visits is None else most_visits
    affinities, rows, visits = np.empty((n, k), np.int32), np.empty((n, k), np.int64), np.empty(n, np.int64)
    index._kernel.search(leaves, 0, n, 0, n_tiles, most_visits, affinities, rows, instruction_set)
    index._kernel.count_visits(leaves, k, visits, instruction_set)
    return (affinities, rows), visits


@settings(deadline=None, max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 1500),
    n_queries=st.integers(0, 12),
    n_trees=st.integers(1, 300),
    n_leaves=st.sampled_from([1, 2, 3, 31, 256, 257, 70_000]),
    n_kinds=st.integers(1, 30),
    noise=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    k_share=st.sampled_from([0.0, 0.01, 0.2, 1.0]),
    most_visits=st.sampled_from([None, 0, 3, 20]),
    instruction_set=st.sampled_from(instruction_sets()),
)
def test_search_equals_brute_force(
    seed, n_rows, n_queries, n_trees, n_leaves, n_kinds, noise, k_share, most_visits, instruction_set
):
    train = clustered(seed, n_rows, n_trees, n_leaves, n_kinds, noise)
    queries = clustered(seed + 1, n_queries, n_trees, n_leaves + 1, n_kinds, noise)  # some leaves without training rows
    k = max(1, round(k_share * n_rows))
    index, expected = LeafIndex.build(train), nearest_rows(train, queries, k)
    assert_same(index.query(queries, k, instruction_set=instruction_set), expected)
    options = {"most_visits": most_visits, "instruction_set": instruction_set}
    assert_same(pruned(index, queries, k, **options)[0], expected)


@pytest.mark.parametrize("instruction_set", instruction_sets())
@pytest.mark.parametrize("n_rows", [8191, 8192, 8193, 20_000, 70_000])
def test_many_chunks(n_rows, instruction_set):
    # From one chunk of 8,192 rows on, and from one group of eight chunks on, further tables come into play.
    train = clustered(1, n_rows, 12, 6, 50, 0.1)
    queries = clustered(2, 9, 12, 6, 50, 0.2)
    index = LeafIndex.build(train)
    expected = nearest_rows(train, queries, 25)
    for most_visits in (None, 40):
        found, _ = pruned(index, queries, 25, most_visits=most_visits, instruction_set=instruction_set)
        assert_same(found, expected)


def test_all_rows_alike_are_found_in_row_order():
    # Every row has the same affinity: the smallest row numbers win, and tiles with larger ones only are skipped.
    train = np.zeros((3000, 8), int)
    found, visits = pruned(LeafIndex.build(train), train[:2], 5)
    np.testing.assert_array_equal(found[1], [[0, 1, 2, 3, 4]] * 2)
    assert np.all(found[0] == 8)
    assert np.all(visits < 100)


def test_ties_at_the_kth_place_over_many_tiles():
    rng = np.random.default_rng(5)
    train = np.repeat(rng.integers(0, 2, (3, 40)), 700, axis=0)[rng.permutation(2100)]
    index = LeafIndex.build(train)
    for k in (1, 10, 699, 700, 701, 1500, 2100):
        assert_same(pruned(index, train[:5], k)[0], nearest_rows(train, train[:5], k))


@pytest.mark.parametrize("n_trees", [252, 253, 256, 504, 505, 1009])
@pytest.mark.parametrize("instruction_set", instruction_sets())
def test_bounds_of_many_trees_do_not_overflow(n_trees, instruction_set):
    train = np.zeros((200, n_trees), int)
    train[100:, ::3] = 1
    found, _ = pruned(LeafIndex.build(train), train[[0, 150]], 150, instruction_set=instruction_set)
    assert_same(found, nearest_rows(train, train[[0, 150]], 150))


def test_queries_in_leaves_that_no_row_has():
    train = clustered(3, 500, 10, 4, 5, 0.1)
    queries = np.full((3, 10), 99)
    queries[1, 4] = train[7, 4]
    found, _ = pruned(LeafIndex.build(train), queries, 6)
    assert_same(found, nearest_rows(train, queries, 6))


def test_most_tiles_are_skipped_where_rows_are_similar():
    train, queries = clustered(6, 20_000, 60, 8, 200, 0.05), clustered(7, 20, 60, 8, 200, 0.05)
    index = LeafIndex.build(train)
    _, visits = pruned(index, queries, 10)
    assert visits.mean() < 0.05 * len(index._tiles)


def test_bounds_are_not_kept_where_they_do_not_pay(monkeypatch):
    monkeypatch.undo()
    noise = np.random.default_rng(0).integers(0, 8, (5000, 60))
    assert LeafIndex.build(noise)._bounds is None
    assert LeafIndex.build(clustered(6, 5000, 60, 8, 200, 0.05))._bounds is not None
    assert LeafIndex.build(clustered(6, 500, 60, 8, 20, 0.05))._bounds is None  # too few rows
    one_row_each = np.repeat(np.arange(5000)[:, None], 4, axis=1)
    assert LeafIndex.build(one_row_each)._bounds is None  # too much memory


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("n_queries", [1, 40])
def test_threads_do_not_change_the_result(n_jobs, n_queries, monkeypatch):
    monkeypatch.setattr(_search, "COMPARISONS_PER_TASK", 1000)
    train, queries = clustered(8, 30_000, 20, 5, 40, 0.1), clustered(9, n_queries, 20, 5, 40, 0.1)
    index = LeafIndex.build(train)
    assert index._bounds is not None
    assert_same(index.query(queries, 33, n_jobs=n_jobs), nearest_rows(train, queries, 33))


def test_the_index_does_not_depend_on_the_chunks():
    leaves = clustered(10, 5000, 30, 300, 40, 0.1)
    whole = LeafIndex.build(leaves).arrays()
    parts = LeafIndex.from_chunks(np.array_split(leaves, [1, 70, 4000]), n_rows=5000).arrays()
    assert whole.keys() == parts.keys()
    for name, array in whole.items():
        np.testing.assert_array_equal(parts[name], array)
