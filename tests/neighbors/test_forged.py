"""Arrays of the right shapes with any contents, as a damaged or forged file has them: wrong answers, but never a crash.

`make sanitize` runs these with every access to memory checked.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibug import LeafIndex
from ibug.neighbors import _build, instruction_sets

pytestmark = [pytest.mark.once, pytest.mark.kernel]

MANY = 200  # more than any instruction set needs to share bitmaps
TYPES = {9: np.uint8, 300: np.uint16, 70_000: np.uint32}  # code types by the number of leaves


def arrays_of(n_rows, n_trees, n_leaves):
    """Return the arrays of an index with cells, each a copy."""
    rng = np.random.default_rng(0)
    leaves = rng.integers(0, 9, (7, n_trees))[rng.integers(0, 7, n_rows)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_build, "_LEAST_CODES", 1)
        patched.setattr(_build, "_LEAST_ROWS", 1)
        arrays = LeafIndex.build(leaves).arrays()
    codes = {name: arrays[name].astype(TYPES[n_leaves]) for name in ("tiles", "prototypes")}
    return leaves.astype(np.int32), {**{name: array.copy() for name, array in arrays.items()}, **codes}


def ask(arrays, queries, ks):
    """Ask in every way; answers may be wrong, but rows are rows of the index, and each comes once."""
    celled = LeafIndex.from_arrays(arrays)
    full = LeafIndex.from_arrays({name: arrays[name] for name in LeafIndex.REQUIRED_ARRAYS})
    n_rows, most = len(full), arrays["tiles"].shape[1]
    for instruction_set in instruction_sets():
        for index, n_cells in ((celled, 2), (full, None)):
            for k in ks:
                affinities, rows = index.query(queries, k, n_cells=n_cells, instruction_set=instruction_set)
                assert np.all((rows >= -1) & (rows < n_rows))
                assert np.all((affinities >= -1) & (affinities <= most))
                assert np.all(np.diff(np.sort(rows, axis=1), axis=1) > 0)
    full.leaf_sizes(queries)


@pytest.mark.parametrize("n_leaves", TYPES)
@pytest.mark.parametrize("n_trees", [1, 2, 3, 4, 5, 6, 7, 8, 253, 254, 255, 256])
def test_trees_that_fill_up_may_match(n_trees, n_leaves):
    # Queries hold the code 1 in the trees that fill up a line: counts go beyond the number of trees.
    rows = 200
    leaves, arrays = arrays_of(rows, n_trees, n_leaves)
    arrays["tiles"][...] = arrays["tiles"][:, :1, :1]  # every row in the same leaves
    arrays["tiles"][:, n_trees:] = 1
    for queries in (leaves[:2], np.resize(leaves, (MANY, n_trees))):
        ask(arrays, queries, (1, 5, rows))


def test_trees_that_fill_up_the_widest_index_may_match():
    leaves = np.zeros((70, 65_534), np.int32)
    arrays = {name: array.copy() for name, array in LeafIndex.build(leaves).arrays().items()}
    arrays["tiles"][:, 65_534:] = 1
    for instruction_set in instruction_sets():
        affinities, rows = LeafIndex.from_arrays(arrays).query(leaves[:2], 70, instruction_set=instruction_set)
        assert np.all((rows >= 0) & (rows < 70))
        assert np.all(affinities >= 0)


def test_the_index_of_a_forged_file():
    leaves = np.zeros((200, 5), int)
    arrays = {name: array.copy() for name, array in LeafIndex.build(leaves).arrays().items()}
    arrays["tiles"][:, 5:] = 1
    _, rows = LeafIndex.from_arrays(arrays).query(leaves[:2], 5)
    assert np.all((rows >= 0) & (rows < 200))


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.sampled_from([1, 63, 64, 65, 700, 1025]),
    n_trees=st.integers(1, 40),
    n_leaves=st.sampled_from(list(TYPES)),
    n_values=st.sampled_from([1, 2, 3, 2**8, 2**32]),
    n_queries=st.sampled_from([1, 9, MANY]),
)
def test_any_contents(seed, n_rows, n_trees, n_leaves, n_values, n_queries):
    rng = np.random.default_rng(seed)
    _, arrays = arrays_of(n_rows, n_trees, n_leaves)
    forge(arrays, rng, n_values)
    queries = rng.integers(0, 12, (n_queries, n_trees))
    ask(arrays, queries, (1, max(1, n_rows // 9), n_rows))


@pytest.mark.parametrize("n_rows", [8193, 70_000])
def test_any_contents_of_many_rows(n_rows):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        _, arrays = arrays_of(n_rows, 6, 9)
        forge(arrays, rng, 3)
        ask(arrays, rng.integers(0, 12, (9, 6)), (1, 60))


def forge(arrays, rng, n_values):
    """Write anything where contents are not checked: codes of rows and prototypes, and those in the look-up table."""
    tiles = arrays["tiles"]
    tiles[...] = rng.integers(0, min(n_values, np.iinfo(tiles.dtype).max + 1), tiles.shape)
    prototypes = arrays["prototypes"]
    prototypes[...] = rng.integers(0, min(n_values, np.iinfo(tiles.dtype).max + 1), prototypes.shape)
    numbering, counts = arrays["numbering"], arrays["leaf_counts"]
    numbering[...] = rng.integers(-1, counts[:, None], numbering.shape)
