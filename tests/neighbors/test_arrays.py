"""An index as plain arrays: taken apart, mapped from a file, put together, and refused when damaged."""

import numpy as np
import pytest

from ibug import LeafIndex
from ibug.exceptions import InvalidInputError

LEAVES = np.random.default_rng(0).integers(0, 9, (300, 30))


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


def test_a_mapped_index_can_still_be_widened(tmp_path):
    # 256 leaves take all 8-bit codes; a query in another leaf needs wider ones, which the file does not have.
    index = LeafIndex.build(np.arange(256)[:, None])
    again = LeafIndex.from_arrays(saved_and_mapped(index.arrays(), tmp_path))
    affinities, rows = again.query([[300], [9]], 1)
    np.testing.assert_array_equal(affinities, [[0], [1]])
    np.testing.assert_array_equal(rows, [[0], [9]])


def test_arrays_are_not_copied():
    index = LeafIndex.build(LEAVES)
    again = LeafIndex.from_arrays(index.arrays())
    assert all(np.shares_memory(one, again.arrays()[name]) for name, one in index.arrays().items() if one.ndim)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiles": np.zeros((5, 30, 64), np.int16)}, "tiles must be an array of uint8 or uint16 or uint32 with 3"),
        ({"tiles": np.zeros((5, 30, 64), np.uint8, order="F")}, "tiles must be stored row by row"),
        ({"tiles": np.zeros((5, 30, 32), np.uint8)}, r"\(n_tiles, n_trees, 64\)"),
        ({"tiles": np.zeros((5, 0, 64), np.uint8)}, "with 1 to 65534 trees"),
        ({"tiles": np.zeros((4, 30, 64), np.uint8)}, "n_rows is 300, which does not fill 4 tiles"),
        ({"tiles": np.zeros((5, 29, 64), np.uint8)}, "tiles have 29 trees, numbering has 30"),
        ({"n_rows": np.array(0)}, "n_rows is 0"),
        ({"n_rows": np.array([300])}, "n_rows must be an array of int64 with 0 dimensions"),
        ({"n_rows": 300}, "got int"),
        ({"leaf_counts": np.zeros(30, np.int32)}, "leaf_counts must be from 1"),
        ({"leaf_counts": np.full(30, 257, np.int32)}, "leaf_counts must be from 1 to what uint8 can tell apart, 256"),
        ({"leaf_counts": np.full(30, 3, np.int32)}, "numbering must hold -1, or codes"),
        ({"numbering": np.full((30, 9), -2, np.int32)}, "numbering must hold -1, or codes"),
    ],
)
def test_arrays_that_do_not_fit_together(change, message):
    with pytest.raises(InvalidInputError, match=message):
        LeafIndex.from_arrays({**LeafIndex.build(LEAVES).arrays(), **change})


def test_missing_arrays():
    arrays = LeafIndex.build(LEAVES).arrays()
    del arrays["numbering"]
    with pytest.raises(InvalidInputError, match=r"needs the arrays tiles, n_rows, .*; missing: numbering"):
        LeafIndex.from_arrays(arrays)
