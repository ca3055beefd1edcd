"""A query changes nothing: not even one in leaves that no training row has, where all codes of a tree are taken."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibug import LeafIndex
from ibug.neighbors import _build, _search, instruction_sets
from tests.oracles import nearest_rows

pytestmark = [pytest.mark.once, pytest.mark.kernel]

MANY = 200  # more than any instruction set needs to share bitmaps


def with_cells(train):
    """Return an index with cells, which small ones have not."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_build, "_LEAST_CODES", 1)
        patched.setattr(_build, "_LEAST_ROWS", 1)
        index = LeafIndex.build(train)
    assert index.n_cells
    return index


ALL_CELLS = 10**6


def without_cells(index):
    return LeafIndex.from_arrays({name: a for name, a in index.arrays().items() if name in LeafIndex.REQUIRED_ARRAYS})


def full_trees(n_rows, n_trees, n_full, n_leaves=256, seed=0):
    """Return training rows of few kinds; in the first `n_full` trees every one of `n_leaves` leaves has a row."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n_leaves, (12, n_trees))[rng.integers(0, 12, n_rows)]
    for tree in range(n_full):
        rows[rng.choice(n_rows, n_leaves, replace=False), tree] = np.arange(n_leaves)
    return rows


def strange(train, n_queries, n_leaves=256, share=0.1, seed=1):
    """Return queries near to training rows, some of whose leaves have no training row."""
    rng = np.random.default_rng(seed)
    queries = train[rng.integers(0, len(train), n_queries)].copy()
    queries[rng.random(queries.shape) < 0.1] = 0  # the code of leaf 0 is among those that an uncoded tree might match
    return np.where(rng.random(queries.shape) < share, n_leaves + rng.integers(0, 9, queries.shape), queries)


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("instruction_set", instruction_sets())
@pytest.mark.parametrize("n_leaves", [255, 256, 257])
@pytest.mark.parametrize("n_queries", [1, 5, MANY])
def test_queries_in_unseen_leaves_equal_brute_force(n_queries, n_leaves, instruction_set, monkeypatch):
    monkeypatch.setattr(_search, "COMPARISONS_PER_TASK", 1000)
    train = full_trees(900, 130, 40, n_leaves)
    index = with_cells(train)
    assert index.code_type == (np.uint8 if n_leaves <= 256 else np.uint16)
    for share in (0.1, 0.9, 1.0):
        queries = strange(train, n_queries, n_leaves, share)
        affinities, rows = nearest_rows(train, queries, 900)
        for k in (1, 2, 30, 900):
            expected = affinities[:, :k], rows[:, :k]
            for one in (index, without_cells(index)):
                for n_jobs in (None, 3):
                    found = one.query(queries, k, n_cells=ALL_CELLS, n_jobs=n_jobs, instruction_set=instruction_set)
                    assert_same(found, expected)
            assert_same(index.query(queries, k, instruction_set=instruction_set), expected)


@pytest.mark.parametrize("instruction_set", instruction_sets())
@pytest.mark.parametrize("n_queries", [1, 5])
def test_16_bit_codes_that_are_all_taken(n_queries, instruction_set):
    train = full_trees(66_000, 3, 2, 65_536)
    index = with_cells(train)
    assert index.code_type == np.uint16
    queries = strange(train, n_queries, 65_536, share=0.5)
    expected = nearest_rows(train, queries, 4)
    for one in (index, without_cells(index)):
        assert_same(one.query(queries, 4, n_cells=ALL_CELLS, instruction_set=instruction_set), expected)
    assert index.code_type == np.uint16


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_trees=st.integers(1, 140),
    full=st.floats(0, 1),
    n_queries=st.sampled_from([0, 1, 2, 7, MANY]),
    share=st.sampled_from([0.01, 0.3, 1.0]),
    k=st.sampled_from([1, 3, 50, 600]),
    instruction_set=st.sampled_from(instruction_sets()),
)
def test_any_queries_equal_brute_force(seed, n_trees, full, n_queries, share, k, instruction_set):
    train = full_trees(600, n_trees, round(full * n_trees), seed=seed)
    queries = strange(train, n_queries, share=share, seed=seed + 1)
    expected = nearest_rows(train, queries, k)
    index = with_cells(train)
    assert_same(index.query(queries, k, n_cells=ALL_CELLS, instruction_set=instruction_set), expected)
    assert_same(without_cells(index).query(queries, k, instruction_set=instruction_set), expected)


def state(index):
    return index.nbytes, index.n_cells, index.code_type, {name: a.copy() for name, a in index.arrays().items()}


def assert_unchanged(index, before, pickled):
    *numbers, arrays = before
    assert [index.nbytes, index.n_cells, index.code_type] == numbers
    assert index.arrays().keys() == arrays.keys()
    for name, array in index.arrays().items():
        assert array.dtype == arrays[name].dtype
        np.testing.assert_array_equal(array, arrays[name])
    assert pickle.dumps(index) == pickled


@pytest.mark.parametrize("n_leaves", [9, 256, 257])
def test_nothing_changes(n_leaves):
    train = full_trees(4000, 30, 10, n_leaves)
    index = with_cells(train)
    before, pickled = state(index), pickle.dumps(index)
    for n_queries in (1, MANY):
        queries = strange(train, n_queries, n_leaves)
        index.query(queries, 7)
        index.query(queries, 7, n_jobs=2)
        index.leaf_sizes(queries)
        index.visited(queries, 7, 1)
        index.query(queries, 7, n_cells=1)
    assert_unchanged(index, before, pickled)


def test_the_arrays_are_read_only():
    index = with_cells(full_trees(4000, 30, 10))
    for array in index.arrays().values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    own = {name: array.copy() for name, array in index.arrays().items()}
    LeafIndex.from_arrays(own)
    assert all(array.flags.writeable for array in own.values())  # what the caller has stays as it was


def test_threads_that_ask_at_once():
    train = full_trees(4000, 40, 20)
    index = LeafIndex.build(train)
    before, pickled = state(index), pickle.dumps(index)
    batches = [strange(train, n, share=share, seed=n) for n in (1, 2, 30, MANY) for share in (0.0, 0.2, 1.0)]
    expected = [(*nearest_rows(train, q, 9), (q[:, None] == train[None]).sum(axis=1)) for q in batches]
    errors, start = [], threading.Barrier(8)

    def ask(first):
        try:
            start.wait()
            for i in range(2 * len(batches)):
                queries, (affinities, rows, sizes) = batches[(first + i) % 12], expected[(first + i) % 12]
                assert_same(index.query(queries, 9), (affinities, rows))
                np.testing.assert_array_equal(index.leaf_sizes(queries), sizes)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert_unchanged(index, before, pickled)


@pytest.mark.parametrize("n_leaves", [3, 256, 257])
def test_leaf_sizes_of_unseen_leaves_are_zero(n_leaves):
    train = full_trees(700, 12, 6, n_leaves)
    queries = strange(train, 50, n_leaves, share=0.4)
    index = LeafIndex.build(train)
    np.testing.assert_array_equal(index.leaf_sizes(queries), (queries[:, None] == train[None]).sum(axis=1))
    np.testing.assert_array_equal(index.leaf_sizes(queries[:0]), np.empty((0, 12)))


def test_a_pickle_brings_an_index_that_cannot_be_written_to():
    leaves = np.random.default_rng(0).integers(0, 9, (300, 7))
    index = pickle.loads(pickle.dumps(LeafIndex.build(leaves)))
    assert not any(array.flags.writeable for array in index.arrays().values())
    np.testing.assert_array_equal(index.query(leaves[:5], 3)[1], LeafIndex.build(leaves).query(leaves[:5], 3)[1])
