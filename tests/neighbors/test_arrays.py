"""An index as plain arrays: taken apart, mapped from a file, put together, and refused when damaged."""

import numpy as np
import pytest

from ibug import LeafIndex
from ibug.exceptions import InvalidInputError
from ibug.neighbors import _build

pytestmark = [pytest.mark.once, pytest.mark.kernel]

LEAVES = np.random.default_rng(0).integers(0, 9, (300, 30))


def clustered_index():
    """An index with cells, of rows of 40 kinds that differ in few trees."""
    rng = np.random.default_rng(2)
    rows = np.repeat(rng.integers(0, 9, (40, 30)), 100, axis=0)
    rows[rng.random(rows.shape) < 0.05] = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_build, "_LEAST_CODES", 1)
        patched.setattr(_build, "_LEAST_ROWS", 1)
        return LeafIndex.build(rng.permutation(rows))


def saved_and_mapped(arrays, folder):
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays}


@pytest.mark.parametrize("n_leaves", [9, 256, 257, 70_000])
def test_a_mapped_index_answers_the_same(n_leaves, tmp_path):
    rng = np.random.default_rng(1)
    train, queries = rng.integers(0, n_leaves, (300, 5)), rng.integers(0, n_leaves + 3, (20, 5))
    index = LeafIndex.build(train)
    mapped = saved_and_mapped(index.arrays(), tmp_path)
    again = LeafIndex.from_arrays(mapped)
    assert np.shares_memory(again.arrays()["tiles"], mapped["tiles"])
    assert (len(again), again.n_trees, again.nbytes) == (len(index), index.n_trees, index.nbytes)
    for one, other in zip(again.query(queries, 7), index.query(queries, 7), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.leaf_sizes(queries), index.leaf_sizes(queries))


def test_a_mapped_index_answers_queries_in_leaves_for_which_no_code_is_free(tmp_path):
    # 256 leaves take all 8-bit codes; a query in another leaf has none.
    index = LeafIndex.build(np.arange(256)[:, None])
    again = LeafIndex.from_arrays(saved_and_mapped(index.arrays(), tmp_path))
    affinities, rows = again.query([[300], [9]], 1)
    np.testing.assert_array_equal(affinities, [[0], [1]])
    np.testing.assert_array_equal(rows, [[0], [9]])
    assert again.code_type == np.uint8


def test_arrays_are_not_copied():
    index = LeafIndex.build(LEAVES)
    again = LeafIndex.from_arrays(index.arrays())
    assert all(np.shares_memory(one, again.arrays()[name]) for name, one in index.arrays().items() if one.ndim)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiles": np.zeros((20, 32, 16), np.int16)}, "tiles must be an array of uint8 or uint16 or uint32 with 3"),
        ({"tiles": np.zeros((20, 32, 16), np.uint8, order="F")}, "tiles must be stored row by row"),
        ({"tiles": np.zeros((20, 32, 64), np.uint8)}, r"must be of shape \(20, 32, 16\); got \(20, 32, 64\)"),
        ({"tiles": np.zeros((20, 28, 16), np.uint8)}, r"got \(20, 28, 16\)"),
        ({"tiles": np.zeros((16, 32, 16), np.uint8)}, "tiles of 300 rows and 30 trees"),
        ({"tiles": np.zeros((0, 32, 16), np.uint8), "order": np.zeros(0, np.uint32)}, "tiles of 0 rows"),
        ({"order": np.zeros(300, np.uint32)}, "order must hold each row number from 0 to 299 once"),
        ({"order": np.arange(1, 301, dtype=np.uint32)}, "order must hold each row number from 0 to 299 once"),
        ({"order": np.zeros(300, np.int64)}, "order must be an array of uint32"),
        ({"order": 300}, "got int"),
        ({"leaf_counts": np.zeros(30, np.int32)}, "leaf_counts must be from 1"),
        ({"leaf_counts": np.full(30, 257, np.int32)}, "leaf_counts must be from 1 to what uint8 can tell apart, 256"),
        ({"leaf_counts": np.full(30, 3, np.int32)}, "numbering must hold -1, or codes"),
        ({"leaf_counts": np.full(29, 9, np.int32)}, "numbering has 30 trees, leaf_counts has 29"),
        ({"numbering": np.full((30, 9), -2, np.int32)}, "numbering must hold -1, or codes"),
    ],
)
def test_arrays_that_do_not_fit_together(change, message):
    with pytest.raises(InvalidInputError, match=message):
        LeafIndex.from_arrays({**LeafIndex.build(LEAVES).arrays(), **change})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("prototypes", lambda a: a[:-4], "prototypes must be of shape"),
        ("prototypes", lambda a: a.astype(np.uint16), "prototypes must be an array of uint8"),
        ("cell_starts", lambda a: a[:-1], "cell_starts must rise from 0 to the number of rows"),
        ("cell_starts", lambda a: a[::-1].copy(), "cell_starts must rise"),
        ("cell_starts", lambda a: a[-1:], "cell_starts must rise"),
        ("cell_starts", lambda a: a.astype(np.int64), "cell_starts must be an array of uint32"),
    ],
)
def test_cells_that_do_not_fit_together(name, change, message):
    arrays = clustered_index().arrays()
    with pytest.raises(InvalidInputError, match=message):
        LeafIndex.from_arrays({**arrays, name: change(arrays[name])})


@pytest.mark.parametrize("name", ["numbering", "prototypes"])
def test_missing_arrays(name):
    arrays = clustered_index().arrays()
    del arrays[name]
    with pytest.raises(InvalidInputError, match=rf"needs the arrays tiles, order, .*; missing: {name}"):
        LeafIndex.from_arrays(arrays)


def test_a_mapped_index_with_cells_answers_the_same(tmp_path):
    index = clustered_index()
    again = LeafIndex.from_arrays(saved_and_mapped(index.arrays(), tmp_path))
    assert not again.arrays()["prototypes"].flags.writeable
    queries = np.random.default_rng(3).integers(0, 9, (20, 30))
    for n_cells in (None, 2):
        found = again.query(queries, 7, n_cells=n_cells)
        for one, other in zip(found, index.query(queries, 7, n_cells=n_cells), strict=True):
            np.testing.assert_array_equal(one, other)


def unaligned(array):
    """Return a copy that starts at an odd address."""
    buffer = np.empty(array.nbytes + 1, np.uint8)
    copy = buffer[1:].view(array.dtype).reshape(array.shape) if array.itemsize > 1 else array.copy()
    copy[...] = array
    return copy


def test_arrays_at_any_address():
    leaves = np.random.default_rng(4).integers(0, 300, (4000, 30), np.int32)
    index = LeafIndex.build(leaves)
    again = LeafIndex.from_arrays({name: unaligned(array) for name, array in index.arrays().items()})
    queries = unaligned(leaves[:9])
    assert not queries.flags.aligned
    for one, other in zip(again.query(queries, 7), index.query(leaves[:9], 7), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.leaf_sizes(queries), index.leaf_sizes(leaves[:9]))
    for one, other in zip(index.query(leaves[::2][:9], 7), index.query(leaves[:18:2].copy(), 7), strict=True):
        np.testing.assert_array_equal(one, other)
