"""Many queries at a time, which share bitmaps of their leaves, against brute force and against the same ones alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibug import LeafIndex
from ibug._compiled import search
from ibug.neighbors import _search, instruction_sets
from tests.oracles import nearest_rows

pytestmark = [pytest.mark.once, pytest.mark.kernel]

MANY = max(200, *map(search.least_queries, instruction_sets()))  # bitmaps are shared by all instruction sets


def full_index(train):
    """Return an index without cells."""
    arrays = LeafIndex.build(train).arrays()
    return LeafIndex.from_arrays({name: arrays[name] for name in LeafIndex.REQUIRED_ARRAYS})


def index_in_order(leaves, n_rows):
    """Return the compiled index of the first rows of leaves (1024, 8), each at its own place."""
    tiles = np.ascontiguousarray(leaves.reshape(64, 16, 8).swapaxes(1, 2))
    numbering = np.tile(np.arange(3, dtype=np.int32), (8, 1))
    return search.Index(tiles, np.arange(n_rows, dtype=np.uint32), numbering, np.full(8, 3, np.int32))


def assert_equals_oracle(train, queries, k, **options):
    affinities, rows = full_index(train).query(queries, k, **options)
    expected_affinities, expected_rows = nearest_rows(train, queries, k)
    np.testing.assert_array_equal(affinities, expected_affinities)
    np.testing.assert_array_equal(rows, expected_rows)


@settings(deadline=None, max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 1200),
    n_queries=st.integers(MANY, 2 * MANY),
    n_trees=st.sampled_from([1, 2, 3, 5, 15, 17, 111, 112, 113, 130, 255, 300]),
    n_leaves=st.sampled_from([1, 2, 3, 31, 255, 256, 257]),
    k_share=st.floats(0, 1),
    instruction_set=st.sampled_from(instruction_sets()),
)
def test_query_equals_brute_force(seed, n_rows, n_queries, n_trees, n_leaves, k_share, instruction_set):
    rng = np.random.default_rng(seed)
    train = rng.integers(0, n_leaves, (n_rows, n_trees))
    queries = rng.integers(0, n_leaves + 2, (n_queries, n_trees))  # some leaves without training rows
    assert_equals_oracle(train, queries, max(1, round(k_share**3 * n_rows)), instruction_set=instruction_set)


@pytest.mark.parametrize("instruction_set", instruction_sets())
@pytest.mark.parametrize("n_trees", [1, 16, 63, 64, 112, 127, 128, 224, 255, 256, 1023, 1024])
def test_sums_have_as_many_bits_as_they_need(n_trees, instruction_set):
    # All leaves shared: the affinity is the number of trees, the largest sum there is.
    leaves = np.zeros((600, n_trees), int)
    affinities, rows = full_index(leaves).query(leaves[:MANY], k=600, instruction_set=instruction_set)
    assert np.all(affinities == n_trees)
    np.testing.assert_array_equal(rows, np.tile(np.arange(600), (MANY, 1)))


@pytest.mark.parametrize("instruction_set", instruction_sets())
@pytest.mark.parametrize("n_trees", [15, 16, 17, 31, 32, 33, 48])
def test_a_block_of_trees_ends_where_its_bitmaps_are_too_many(n_trees, instruction_set):
    # All 256 leaves of every tree occur among the queries: 16 trees have 4,096 bitmaps, and 32 would have too many.
    rng = np.random.default_rng(n_trees)
    train = np.stack([rng.permutation(256) for _ in range(n_trees)], axis=1)
    queries = np.stack([rng.permutation(np.arange(512) % 256) for _ in range(n_trees)], axis=1)
    queries[:100] = train[:100]  # which have neighbours that share more than one leaf
    assert_equals_oracle(train, queries, 9, instruction_set=instruction_set)


@pytest.mark.parametrize("instruction_set", instruction_sets())
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 511, 512, 513, 1023, 1024, 1025])
def test_rows_at_the_ends_of_words_and_bitmaps(n_rows, instruction_set):
    rng = np.random.default_rng(n_rows)
    train, queries = rng.integers(0, 4, (n_rows, 30)), rng.integers(0, 4, (MANY, 30))
    for k in {1, min(10, n_rows), n_rows}:
        assert_equals_oracle(train, queries, k, instruction_set=instruction_set)


@pytest.mark.parametrize("instruction_set", instruction_sets())
def test_ties_are_by_row_number_also_where_they_are_more_than_there_is_room_for(instruction_set):
    rng = np.random.default_rng(3)
    train = np.repeat(rng.integers(0, 2, (4, 6)), 700, axis=0)  # hundreds of rows are the same
    rng.shuffle(train)
    for k in (1, 5, 64, 699, 701):
        assert_equals_oracle(train, np.resize(train[:30], (MANY, 6)), k, instruction_set=instruction_set)


def test_blocks_of_queries_do_not_matter():
    rng = np.random.default_rng(4)
    train, queries = rng.integers(0, 20, (700, 120)), rng.integers(0, 20, (1100, 120))
    index = full_index(train)
    affinities, rows = index.query(queries, 7)
    alone = [index.query(queries[i : i + 1], 7) for i in range(len(queries))]
    np.testing.assert_array_equal(affinities, np.concatenate([a for a, _ in alone]))
    np.testing.assert_array_equal(rows, np.concatenate([r for _, r in alone]))


@pytest.mark.parametrize("n_jobs", [2, 3, 30])
def test_threads_do_not_matter(n_jobs, monkeypatch):
    monkeypatch.setattr(_search, "COMPARISONS_PER_TASK", 1000)
    rng = np.random.default_rng(5)
    train, queries = rng.integers(0, 20, (5000, 200)), rng.integers(0, 20, (400, 200))
    index = full_index(train)
    for one, several in zip(index.query(queries, 9), index.query(queries, 9, n_jobs=n_jobs), strict=True):
        np.testing.assert_array_equal(one, several)


@pytest.mark.parametrize("instruction_set", instruction_sets())
def test_a_range_of_tiles_sees_only_its_own_rows(instruction_set):
    rng = np.random.default_rng(6)
    leaves = rng.integers(0, 3, (1024, 8)).astype(np.uint8)
    affinities, rows = np.empty((MANY, 5), np.int32), np.empty((MANY, 5), np.int64)
    index, queries = index_in_order(leaves, 1000), leaves[:MANY].astype(np.int32)
    for first, last in ((0, 4), (4, 8), (8, 44), (36, 64)):
        index.scan(queries, 0, MANY, first, last, affinities, rows, instruction_set)
        expected = nearest_rows(leaves[first * 16 : min(1000, last * 16)], leaves[:MANY], 5)
        np.testing.assert_array_equal(affinities, expected[0])
        np.testing.assert_array_equal(rows, expected[1] + first * 16)


@pytest.mark.parametrize("instruction_set", instruction_sets())
def test_a_range_without_enough_rows_or_without_any(instruction_set):
    leaves = np.random.default_rng(9).integers(0, 3, (1024, 8)).astype(np.uint8)
    affinities, rows = np.empty((MANY, 40), np.int32), np.empty((MANY, 40), np.int64)
    queries = leaves[:MANY].astype(np.int32)
    index_in_order(leaves, 1000).scan(queries, 0, MANY, 60, 64, affinities, rows, instruction_set)  # 40 rows
    np.testing.assert_array_equal(rows, nearest_rows(leaves[960:1000], leaves[:MANY], 40)[1] + 960)
    index_in_order(leaves, 900).scan(queries, 0, MANY, 56, 64, affinities, rows, instruction_set)  # 4 rows
    np.testing.assert_array_equal(rows[:, :4], nearest_rows(leaves[896:900], leaves[:MANY], 4)[1] + 896)
    assert np.all(rows[:, 4:] == -1)
    assert np.all(affinities[:, 4:] == -1)
    index_in_order(leaves, 900).scan(queries, 0, MANY, 60, 64, affinities, rows, instruction_set)
    assert np.all(rows == -1)


@pytest.mark.parametrize("instruction_set", instruction_sets())
def test_many_trees(instruction_set):
    # 13 bits, and several thousand trees in more than one block.
    rng = np.random.default_rng(10)
    train, queries = rng.integers(0, 3, (40, 5000)), rng.integers(0, 3, (MANY, 5000))
    queries[:40, :4900] = train[:, :4900]
    assert_equals_oracle(train, queries, 7, instruction_set=instruction_set)


def test_several_blocks_of_queries_that_want_many_rows():
    rng = np.random.default_rng(11)
    train, queries = rng.integers(0, 3, (12_000, 4)), rng.integers(0, 3, (3 * MANY, 4))
    expected = nearest_rows(train, queries, 8_000)
    for instruction_set in instruction_sets():
        for one, other in zip(
            full_index(train).query(queries, 8_000, instruction_set=instruction_set), expected, strict=True
        ):
            np.testing.assert_array_equal(one, other, err_msg=instruction_set)


def test_more_rows_asked_for_than_many_queries_have_memory_for():
    rng = np.random.default_rng(8)
    train, queries = rng.integers(0, 5, (70_000, 3)), rng.integers(0, 5, (MANY, 3))
    affinities, rows = full_index(train).query(queries, 65_536)
    for i in (0, MANY - 1):
        expected_affinities, expected_rows = nearest_rows(train, queries[i : i + 1], 65_536)
        np.testing.assert_array_equal(affinities[i : i + 1], expected_affinities)
        np.testing.assert_array_equal(rows[i : i + 1], expected_rows)
