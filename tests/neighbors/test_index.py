"""LeafIndex against brute force: ties, widths, shards, threads, instruction sets."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibug import LeafIndex
from ibug.exceptions import InvalidInputError
from ibug.neighbors import _search, instruction_sets, merge_top_k
from tests.oracles import nearest_rows

pytestmark = [pytest.mark.once, pytest.mark.kernel]


def assert_equals_oracle(train, queries, k, **options):
    affinities, rows = LeafIndex.build(train).query(queries, k, **options)
    expected_affinities, expected_rows = nearest_rows(train, queries, k)
    np.testing.assert_array_equal(affinities, expected_affinities)
    np.testing.assert_array_equal(rows, expected_rows)


def random_leaves(seed, n_rows, n_trees, n_leaves):
    return np.random.default_rng(seed).integers(0, n_leaves, (n_rows, n_trees))


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 300),
    n_queries=st.integers(0, 40),
    n_trees=st.integers(1, 600),
    n_leaves=st.sampled_from([1, 2, 3, 31, 255, 256, 257, 300, 70_000]),
    k_share=st.floats(0, 1),
    instruction_set=st.sampled_from(instruction_sets()),
)
def test_query_equals_brute_force(seed, n_rows, n_queries, n_trees, n_leaves, k_share, instruction_set):
    train = random_leaves(seed, n_rows, n_trees, n_leaves)
    queries = random_leaves(seed + 1, n_queries, n_trees, n_leaves + 2)  # some leaves without training rows
    k = max(1, round(k_share * n_rows))
    assert_equals_oracle(train, queries, k, instruction_set=instruction_set)


@pytest.mark.parametrize("instruction_set", instruction_sets())
@pytest.mark.parametrize("n_trees", [1, 254, 255, 256, 510, 511, 1000])
def test_byte_counters_spill_at_the_right_tree(n_trees, instruction_set):
    # All leaves shared: the affinity is the number of trees, the largest count there is.
    leaves = np.zeros((130, n_trees), int)
    affinities, rows = LeafIndex.build(leaves).query(leaves[:9], k=130, instruction_set=instruction_set)
    assert np.all(affinities == n_trees)
    np.testing.assert_array_equal(rows, np.tile(np.arange(130), (9, 1)))


@pytest.mark.parametrize(
    ("n_leaves", "code_type"), [(1, "uint8"), (256, "uint8"), (257, "uint16"), (65_536, "uint16"), (65_537, "uint32")]
)
@pytest.mark.parametrize("instruction_set", instruction_sets())
def test_codes_are_as_wide_as_the_leaves_need(n_leaves, code_type, instruction_set):
    one_row_each = np.arange(n_leaves)[:, None] * [1, 0, 1]
    index = LeafIndex.build(one_row_each)
    assert index.code_type == code_type
    some = np.unique(np.linspace(0, n_leaves - 1, 7).astype(int))
    affinities, rows = index.query(one_row_each[some], 1, instruction_set=instruction_set)
    assert np.all(affinities == 3)
    np.testing.assert_array_equal(rows[:, 0], some)


def test_unseen_leaf_matches_nothing_even_when_256_codes_are_taken():
    train = np.stack([np.arange(256), np.zeros(256, int)], axis=1)
    index = LeafIndex.build(train)
    assert index.code_type == np.uint8
    affinities, rows = index.query([[256, 0], [9, 0], [2**31 - 2, 5]], k=2)
    np.testing.assert_array_equal(affinities, [[1, 1], [2, 1], [0, 0]])
    np.testing.assert_array_equal(rows, [[0, 1], [9, 0], [0, 1]])
    assert index.code_type == np.uint8  # a query changes nothing
    affinities, rows = index.query([[9, 0]], k=1)  # and it stays right
    assert (affinities[0, 0], rows[0, 0]) == (2, 9)


def test_ties_are_in_row_order():
    train = np.array([[0, 1], [0, 0], [1, 1], [0, 1], [1, 0], [0, 0]])
    affinities, rows = LeafIndex.build(train).query([[0, 0]], k=6)
    np.testing.assert_array_equal(affinities, [[2, 2, 1, 1, 1, 0]])
    np.testing.assert_array_equal(rows, [[1, 5, 0, 3, 4, 2]])


def test_late_ties_do_not_displace_early_rows():
    # Row 5 is as near as the 100 rows after the first tile; only the first k of them may come back.
    train = np.ones((200, 3), int)
    train[[5, *range(100, 200)]] = 0
    _, rows = LeafIndex.build(train).query([[0, 0, 0]], k=4)
    np.testing.assert_array_equal(rows, [[5, 100, 101, 102]])


def test_rising_affinities_displace_all_earlier_rows():
    # Each row is nearer than all before it, so that every tile replaces the whole selection.
    n = 500
    train = (np.arange(n)[None, :] > np.arange(n)[:, None]).astype(int)
    assert_equals_oracle(train, np.zeros((1, n), int), k=3)
    assert_equals_oracle(train[::-1], np.zeros((3, n), int), k=67)


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 7])
@pytest.mark.parametrize("n_queries", [1, 5, 200])
def test_threads_do_not_change_the_result(n_jobs, n_queries, monkeypatch):
    monkeypatch.setattr(_search, "COMPARISONS_PER_TASK", 1000)
    train, queries = random_leaves(0, 1000, 40, 4), random_leaves(1, n_queries, 40, 4)
    assert_equals_oracle(train, queries, 33, n_jobs=n_jobs)


@pytest.mark.parametrize("unit", [1, 4])
@pytest.mark.parametrize(("n_queries", "n_tiles", "n_threads"), [(1, 100, 4), (500, 100, 4), (100, 1, 8), (130, 9, 3)])
def test_tasks_cover_every_query_and_tile_once(n_queries, n_tiles, n_threads, unit):
    covered = np.zeros((n_queries, n_tiles), int)
    tasks = _search.divide(n_queries, n_tiles, unit, n_threads, group=16)
    for first_query, last_query, first_tile, last_tile in tasks:
        covered[first_query:last_query, first_tile:last_tile] += 1
        assert first_tile % unit == 0
    assert np.all(covered == 1)
    assert 1 < len(tasks) <= n_threads or n_tiles == 1


def test_chunks_do_not_change_the_result():
    leaves = random_leaves(3, 777, 20, 300)
    whole = LeafIndex.build(leaves)
    parts = LeafIndex.from_chunks(np.array_split(leaves, [1, 2, 65, 65, 700]), n_rows=777)
    np.testing.assert_array_equal(parts._tiles, whole._tiles)
    for one, other in zip(parts.query(leaves[:50], 20), whole.query(leaves[:50], 20), strict=True):
        np.testing.assert_array_equal(one, other)


def test_query_order_and_company_do_not_change_the_result():
    train, queries = random_leaves(4, 400, 300, 5), random_leaves(5, 70, 300, 5)
    index = LeafIndex.build(train)
    affinities, rows = index.query(queries, 10)
    shuffled = np.random.default_rng(0).permutation(70)
    np.testing.assert_array_equal(index.query(queries[shuffled], 10)[1], rows[shuffled])
    for i in (0, 17, 69):
        alone = index.query(queries[i : i + 1], 10)
        np.testing.assert_array_equal(alone[0], affinities[i : i + 1])
        np.testing.assert_array_equal(alone[1], rows[i : i + 1])


@pytest.mark.parametrize("edges", [[10], [64], [3, 64, 65, 400]])
def test_merged_shards_equal_one_index(edges):
    leaves, queries = random_leaves(6, 500, 12, 3), random_leaves(7, 30, 12, 3)
    k, parts, first = 25, [], 0
    for shard in np.split(leaves, edges):
        affinities, rows = LeafIndex.build(shard).query(queries, min(k, len(shard)))
        parts.append((affinities, rows + first))
        first += len(shard)
    for merged, expected in zip(merge_top_k(parts, k), nearest_rows(leaves, queries, k), strict=True):
        np.testing.assert_array_equal(merged, expected)


def test_merge_leaves_empty_places_last():
    parts = [(np.array([[3, -1]]), np.array([[7, -1]])), (np.array([[0, -1]]), np.array([[2, -1]]))]
    affinities, rows = merge_top_k(parts, 3)
    np.testing.assert_array_equal(affinities, [[3, 0, -1]])
    np.testing.assert_array_equal(rows, [[7, 2, -1]])


def test_one_byte_per_row_and_tree():
    index = LeafIndex.build(random_leaves(0, 6400, 200, 31))
    assert index.nbytes / (6400 * 200) < 1.1
    assert (index.n_rows, len(index), index.n_trees) == (6400, 6400, 200)
    assert repr(index) == "LeafIndex(n_rows=6400, n_trees=200, code_type=uint8)"


def test_codes_start_on_a_cache_line():
    assert LeafIndex.build(random_leaves(0, 100, 7, 300))._tiles.ctypes.data % 64 == 0


def test_pickled_index_answers_the_same():
    leaves = random_leaves(0, 300, 30, 9)
    index = LeafIndex.build(leaves)
    again = pickle.loads(pickle.dumps(index))
    np.testing.assert_array_equal(again.query(leaves[:20], 7)[1], index.query(leaves[:20], 7)[1])


def test_no_queries_give_no_rows():
    affinities, rows = LeafIndex.build([[0], [1]]).query(np.empty((0, 1), int), 2)
    assert affinities.shape == rows.shape == (0, 2)


@pytest.mark.parametrize("k", [0, -1, 4, 1.5, True, "2", None])
def test_wrong_k(k):
    with pytest.raises(InvalidInputError, match=r"k must be an integer from 1 to the number of training rows, 3"):
        LeafIndex.build([[0], [1], [2]]).query([[0]], k)


@pytest.mark.parametrize(
    ("leaves", "message"),
    [
        ([0, 1], r"shape \(n_rows, n_trees\); got int64 of shape \(2,\)"),
        ([[0.5]], "must be integers"),
        ([[-1]], "from 0 to"),
        (np.array([[-1]], np.int8), "got numbers from -1 to -1"),
        (np.array([[3, -1]], np.int32), "got numbers from -1 to 3"),
        (np.array([[2**31 - 1]], np.int32), "from 0 to"),
        (np.array([[2**63]], np.uint64), "from 0 to"),
        ([[2**31 - 1]], "from 0 to"),
        ([[2**30] * 9], "numbers up to 1073741824 in 9 trees"),
        (np.empty((3, 0), int), "from 1 to 65534 trees, got 0"),
        (np.zeros((1, 65_535), int), "from 1 to 65534 trees, got 65535"),
        (np.empty((0, 3), int), "at least 1"),
    ],
)
def test_wrong_leaves(leaves, message):
    with pytest.raises(InvalidInputError, match=message):
        LeafIndex.build(leaves)


def test_most_trees_that_can_be_counted():
    leaves = np.zeros((70, 65_534), int)
    leaves[3, 0] = 1
    affinities, rows = LeafIndex.build(leaves).query(leaves[:1], 70)
    assert affinities[0, 0] == 65_534
    assert (affinities[0, -1], rows[0, -1]) == (65_533, 3)


def test_queries_of_another_model():
    with pytest.raises(InvalidInputError, match="The queries have 3 trees, the index has 2"):
        LeafIndex.build([[0, 0]]).query([[0, 0, 0]], 1)


def test_chunks_that_do_not_add_up():
    with pytest.raises(InvalidInputError, match="hold 1 rows, but n_rows=3"):
        LeafIndex.from_chunks([[[0]]], n_rows=3)
    with pytest.raises(InvalidInputError, match="more than the announced n_rows=1"):
        LeafIndex.from_chunks([[[0], [1]]], n_rows=1)
    with pytest.raises(InvalidInputError, match="A chunk has 2 trees, the first had 1"):
        LeafIndex.from_chunks([[[0]], [[0, 1]]], n_rows=2)


def test_leaf_sizes_count_training_rows():
    train = random_leaves(0, 150, 6, 300)
    queries = np.concatenate([train[:9], np.full((1, 6), 999)])  # the last is in leaves without training rows
    expected = (queries[:, None, :] == train[None]).sum(axis=1)
    index = LeafIndex.build(train)
    np.testing.assert_array_equal(index.leaf_sizes(queries), expected)
    np.testing.assert_array_equal(index.leaf_sizes(queries), expected)  # also from the table that it keeps
