"""The compiled kernel itself: ranges, instruction sets, and arrays that do not fit together."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

from ibug._compiled import search
from tests.oracles import nearest_rows

pytestmark = [pytest.mark.once, pytest.mark.kernel]

LEAVES = np.random.default_rng(0).integers(0, 3, (200, 9))
N_TILES, WIDTH = 16, 12  # 200 rows in tiles of 16, four at a time; nine trees, filled up to twelve


@pytest.fixture(params=[np.uint8, np.uint16, np.uint32])
def tiles(request):
    padded = np.zeros((N_TILES * 16, WIDTH), request.param)
    padded[:200, :9] = LEAVES
    return np.ascontiguousarray(padded.reshape(N_TILES, 16, WIDTH).swapaxes(1, 2))


ORDER = np.arange(200, dtype=np.uint32)
NUMBERING = np.tile(np.arange(3, dtype=np.int32), (9, 1))  # the codes are the leaf numbers
LEAF_COUNTS = np.full(9, 3, np.int32)
QUERIES = LEAVES.astype(np.int32)


def index_of(tiles, *cells):
    return search.Index(tiles, ORDER, NUMBERING, LEAF_COUNTS, *cells)


def cells_of(tiles):
    """Return five cells of 40 rows each, around the first rows."""
    return {"prototypes": tiles[:4].copy(), "cell_starts": np.arange(0, 201, 40, dtype=np.uint32)}


def codes(leaves, dtype):
    padded = np.ones((len(leaves), WIDTH), dtype)
    padded[:, :9] = leaves
    return padded


def output(n_queries, k):
    return np.full((n_queries, k), -7, np.int32), np.full((n_queries, k), -7, np.int64)


def test_baseline_is_always_there():
    assert search.instruction_sets()[0] == "baseline"


@pytest.mark.parametrize("instruction_set", search.instruction_sets())
def test_a_range_call_writes_only_its_own_queries(tiles, instruction_set):
    affinities, rows = output(10, 5)
    index_of(tiles).scan(QUERIES[:10], 3, 7, 0, N_TILES, affinities, rows, instruction_set)
    expected = nearest_rows(LEAVES, LEAVES[3:7], 5)
    np.testing.assert_array_equal(affinities[3:7], expected[0])
    np.testing.assert_array_equal(rows[3:7], expected[1])
    for written in (affinities, rows):
        assert np.all(written[:3] == -7)
        assert np.all(written[7:] == -7)


def test_a_range_of_tiles_sees_only_its_own_rows(tiles):
    affinities, rows = output(2, 30)
    index_of(tiles).scan(QUERIES[:2], 0, 2, 12, 16, affinities, rows)  # from row 192 on
    expected = nearest_rows(LEAVES[192:], LEAVES[:2], 8)
    np.testing.assert_array_equal(affinities[:, :8], expected[0])
    np.testing.assert_array_equal(rows[:, :8], expected[1] + 192)
    assert np.all(affinities[:, 8:] == -1)
    assert np.all(rows[:, 8:] == -1)


def test_the_benchmark_loop_counts_what_the_search_counts(tiles):
    queries = codes(LEAVES[:3], tiles.dtype)
    expected = (LEAVES[:3, None] == LEAVES[None, :64]).sum(-1).ravel()
    four = np.ascontiguousarray(tiles[:4])
    for instruction_set in search.instruction_sets():
        total = search.count_repeatedly(four, queries, expected.size, instruction_set)
        assert total == expected.sum()  # pass i adds its i-th count


def test_rows_are_moved_where_the_order_says(tiles):
    order = np.random.default_rng(1).permutation(200).astype(np.uint32)
    search.permute_rows(tiles, 9, order, 4)
    moved = tiles.swapaxes(1, 2).reshape(-1, WIDTH)
    np.testing.assert_array_equal(moved[:200, :9], LEAVES[order])
    assert not moved[200:].any()
    assert not moved[:, 9:].any()


@pytest.mark.parametrize("instruction_set", search.instruction_sets())
def test_the_nearest_prototype_of_rows(tiles, instruction_set):
    cells = np.full(120, -1)
    search.nearest_prototypes(tiles, 200, 9, tiles[:4].copy(), 60, cells, 50, instruction_set)
    np.testing.assert_array_equal(cells, nearest_rows(LEAVES[:50], LEAVES[60:180], 1)[1][:, 0])
    for n, message in ((65, "exceeds the tiles"), (0, "as many as their tiles")):
        with pytest.raises(ValueError, match=message):
            search.nearest_prototypes(tiles, 200, 9, tiles[:4].copy(), 60, cells, n, instruction_set)
    with pytest.raises(ValueError, match="cells must be of rows of the tiles"):
        search.nearest_prototypes(tiles, 200, 9, tiles[:4].copy(), 81, cells, 50, instruction_set)


def test_an_index_keeps_its_arrays_alive():
    numbering, counts = np.zeros((1, 1), np.int32), np.ones(1, np.int32)
    index = search.Index(np.zeros((4, 4, 16), np.uint8), np.arange(3, dtype=np.uint32)[::-1].copy(), numbering, counts)
    watched = weakref.ref(numbering)
    del numbering, counts
    gc.collect()
    affinities, rows = output(1, 3)
    index.scan(np.zeros((1, 1), np.int32), 0, 1, 0, 4, affinities, rows)
    np.testing.assert_array_equal(rows, [[0, 1, 2]])
    np.testing.assert_array_equal(affinities, [[1, 1, 1]])
    assert watched() is not None
    del index
    gc.collect()
    assert watched() is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiles": np.zeros((15, 12, 16), np.uint8)}, "tiles must be"),
        ({"tiles": np.zeros((16, 9, 16), np.uint8)}, "tiles must be"),
        ({"leaf_counts": np.full(13, 3, np.int32)}, "tiles must be"),
        ({"leaf_counts": np.zeros(0, np.int32)}, "from 1 to 65534 trees"),
        ({"leaf_counts": np.zeros(9, np.int32)}, "leaf_counts must be from 1"),
        ({"leaf_counts": np.full(9, 257, np.int32)}, "leaf_counts must be from 1"),
        ({"leaf_counts": np.full(9, -(2**31), np.int32)}, "leaf_counts must be from 1"),
        ({"numbering": np.zeros((8, 3), np.int32)}, "numbering and leaf_counts"),
        ({"order": np.zeros(257, np.uint32)}, "n_rows exceeds"),
        ({"order": np.zeros(0, np.uint32)}, "at least one row"),
        ({"order": np.zeros(801, np.uint8)[1:].view(np.uint32)}, "aligned"),
    ],
)
def test_arrays_of_an_index_that_do_not_fit_are_refused(change, message):
    arrays = {
        "tiles": np.zeros((16, 12, 16), np.uint8),
        "order": ORDER,
        "numbering": NUMBERING,
        "leaf_counts": LEAF_COUNTS,
    }
    search.Index(**arrays)
    with pytest.raises(ValueError, match=message):
        search.Index(**{**arrays, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prototypes": np.zeros((8, 12, 16), np.uint8)}, "prototypes must be as many as the cells"),
        ({"prototypes": np.zeros((4, 8, 16), np.uint8)}, "tiles must be"),
        ({"cell_starts": np.zeros(1, np.uint32)}, "there must be a cell"),
        ({"cell_starts": np.array([0, 199], np.uint32)}, "cells must have all rows"),
        ({"cell_starts": np.array([1, 200], np.uint32)}, "cells must have all rows"),
        ({"cell_starts": np.array([0, 90, 80, 200], np.uint32)}, "cells must follow each other"),
        ({"cell_starts": np.array([0, 201, 200], np.uint32)}, "cells must follow each other"),
    ],
)
def test_cells_that_do_not_fit_are_refused(change, message):
    tiles = np.zeros((16, 12, 16), np.uint8)
    index_of(tiles, *cells_of(tiles).values())
    with pytest.raises(ValueError, match=message):
        index_of(tiles, *{**cells_of(tiles), **change}.values())


def test_tiles_are_as_many_as_their_rows_need():
    with pytest.raises(ValueError, match="tiles must be as many as the rows need"):
        index_of(np.zeros((1024, 12, 16), np.uint8), *cells_of(np.zeros((16, 12, 16), np.uint8)).values())


# What each search takes beside leaves, a range of queries, and the arrays for its results.
TILES = {"tile_start": 0, "tile_stop": 16}
SEARCHES = {
    "scan": TILES,
    "search": {"n_cells": 1, "visited": np.zeros(1, np.int64)},
}
WRONG = [
    ({"leaves": np.zeros((1, 8), np.int32)}, "leaves must be"),
    ({"leaves": np.full((1, 9), -1, np.int32)}, "leaf numbers must be from 0"),
    ({"leaves": np.full((1, 9), 2**31 - 1, np.int32)}, "leaf numbers must be from 0"),
    ({"query_stop": 2}, "query range"),
    ({"rows": np.zeros((1, 4), np.int64)}, "affinities and rows"),
    ({"rows": np.zeros((1, 0), np.int64), "affinities": np.zeros((1, 0), np.int32)}, "affinities and rows"),
    ({"instruction_set": "mmx"}, "'mmx' is not available"),
]
WRONG_TILES = [
    ({"tile_stop": 20}, "tile range exceeds"),
    ({"tile_stop": 2**58}, "tile range exceeds"),
    ({"tile_start": 8, "tile_stop": 4}, "tile range exceeds"),
    ({"tile_start": 2}, "cuts tiles apart"),
    ({"tile_stop": 6}, "cuts tiles apart"),
]
WRONG_CELLS = [
    ({"n_cells": 0}, "a query visits a cell at least"),
    ({"visited": np.zeros(2, np.int64)}, "visited must be"),
]


@pytest.mark.parametrize(
    ("search", "change", "message"),
    [
        *((name, *wrong) for name in SEARCHES for wrong in WRONG),
        *(("scan", *wrong) for wrong in WRONG_TILES),
        *(("search", *wrong) for wrong in WRONG_CELLS),
    ],
)
def test_arrays_that_do_not_fit_are_refused(search, change, message):
    arguments = {
        "leaves": np.zeros((1, 9), np.int32),
        "query_start": 0,
        "query_stop": 1,
        "affinities": np.zeros((1, 3), np.int32),
        "rows": np.zeros((1, 3), np.int64),
        **SEARCHES[search],
    }
    tiles = np.zeros((16, 12, 16), np.uint8)
    function = getattr(index_of(tiles, *cells_of(tiles).values()), search)
    function(**arguments)
    with pytest.raises(ValueError, match=message):
        function(**{**arguments, **change})


def test_what_an_index_cannot_do_is_refused(tiles):
    index, visited = index_of(tiles), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="the index has no cells"):
        index.search(QUERIES[:1], 0, 1, 1, *output(1, 3), visited)
    with pytest.raises(ValueError, match="k must be at most n_rows"):
        index_of(tiles, *cells_of(tiles).values()).search(QUERIES[:1], 0, 1, 1, *output(1, 201), visited)
    with pytest.raises(ValueError, match="codes must be of the shape of leaves"):
        index.number(QUERIES[:2], np.zeros((1, 9), np.int32))


@pytest.mark.parametrize("instruction_set", search.instruction_sets())
def test_a_search_of_cells_writes_only_its_own_queries(tiles, instruction_set):
    (affinities, rows), visited = output(10, 5), np.full(10, -7)
    index = index_of(tiles, *cells_of(tiles).values())
    index.search(QUERIES[:10], 3, 7, 10**6, affinities, rows, visited, instruction_set)
    expected = nearest_rows(LEAVES, LEAVES[3:7], 5)
    np.testing.assert_array_equal(affinities[3:7], expected[0])
    np.testing.assert_array_equal(rows[3:7], expected[1])
    np.testing.assert_array_equal(visited, [-7] * 3 + [200] * 4 + [-7] * 3)
    for written in (affinities, rows):
        assert np.all(written[:3] == -7)
        assert np.all(written[7:] == -7)


def test_codes_of_leaves(tiles):
    leaves = np.array([[0, 1, 2, 3, 99, 2, 1, 0, 2**31 - 2]], np.int32)
    codes = np.empty_like(leaves)
    index_of(tiles).number(leaves, codes)
    np.testing.assert_array_equal(codes, [[0, 1, 2, -1, -1, 2, 1, 0, -1]])


def test_rows_of_each_leaf(tiles):
    sizes = np.empty(27, np.int64)
    index_of(tiles).count_rows(sizes)
    np.testing.assert_array_equal(sizes, [(LEAVES[:, tree] == code).sum() for tree in range(9) for code in range(3)])
    with pytest.raises(ValueError, match="sizes must be"):
        index_of(tiles).count_rows(np.empty(28, np.int64))


def test_leaves_of_another_type_are_refused(tiles):
    for dtype in (np.int64, np.uint8, np.float64):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            index_of(tiles).scan(np.zeros((1, 9), dtype), 0, 1, 0, 16, *output(1, 3))


def test_a_leaf_outside_the_table_is_refused():
    with pytest.raises(ValueError, match="outside the table"):
        search.number_leaves(np.array([[5]], np.int32), np.full((1, 5), -1, np.int32), np.zeros(1, np.int32))


def test_rows_outside_the_tiles_are_refused():
    leaves, numbering, tiles = np.zeros((3, 1), np.int32), np.zeros((1, 1), np.int32), np.zeros((4, 4, 16), np.uint8)
    for first_row in (62, 2**64 - 1):
        with pytest.raises(ValueError, match="more rows than the tiles hold"):
            search.pack_rows(leaves, numbering, first_row, tiles)


def test_the_benchmark_loop_needs_a_query():
    with pytest.raises(ValueError, match="at least one query"):
        search.count_repeatedly(np.zeros((4, 12, 16), np.uint8), np.zeros((0, 12), np.uint8), 3)


def test_without_the_extension_importing_says_how_to_build_it():
    code = "import sys; sys.modules['ibug._core'] = None; from ibug import LeafIndex"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "MissingExtensionError" in run.stderr
    assert "pip install ." in run.stderr
