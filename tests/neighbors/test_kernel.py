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


def index_of(tiles, *bounds):
    return search.Index(tiles, ORDER, NUMBERING, LEAF_COUNTS, *bounds)


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


def test_the_order_has_every_row_once(tiles):
    order = np.zeros(200, np.uint32)
    search.order_rows(tiles, 9, 5, order)
    np.testing.assert_array_equal(np.sort(order), np.arange(200))
    assert np.any(order != np.arange(200))


def test_similar_rows_come_together():
    # Four kinds of rows, mixed up: each tile of the order has one kind.
    kinds = np.random.default_rng(2).permutation(np.repeat(np.arange(4), 64))
    tiles = np.ascontiguousarray(np.repeat(kinds, 8).reshape(16, 16, 8).swapaxes(1, 2).astype(np.uint8))
    order = np.zeros(256, np.uint32)
    search.order_rows(tiles, 8, 8, order)
    assert all(len(set(kinds[tile])) == 1 for tile in order.reshape(16, 16))


def bounds_of(tiles):
    masks, starts = np.empty(9 * 3 + 7, np.uint8), np.empty((27, 1), np.uint32)
    words = search.find_places(tiles, 200, LEAF_COUNTS, masks, starts, 1000)
    first_leaf = np.arange(0, 30, 3, dtype=np.uint32)
    return {"masks": masks, "starts": starts, "words": words, "first_leaf": first_leaf, "least_row": ORDER[::13].copy()}


def three_leaves():
    """Return tiles that have all three leaves of each tree."""
    tiles = np.zeros((N_TILES, WIDTH, 16), np.uint8)
    tiles[:, :9] = np.arange(3, dtype=np.uint8).repeat(6)[:16]
    return tiles


def test_places_tell_in_which_tiles_a_leaf_is(tiles):
    bounds = bounds_of(tiles)
    masks, starts, words = bounds["masks"], bounds["starts"], bounds["words"]
    index_of(tiles, *bounds.values())  # they fit together
    np.testing.assert_array_equal(masks[:27], 1)  # one superblock, where every leaf occurs
    for leaf in range(27):
        tree, code = divmod(leaf, 3)
        expected = [bool(np.any(LEAVES[16 * i : 16 * i + 16, tree] == code)) for i in range(64)]
        found = [bool(int(words[starts[leaf, 0]]) >> i & 1) for i in range(64)]
        assert found == expected
    assert search.find_places(tiles, 200, LEAF_COUNTS, masks, starts, 26) is None
    assert search.find_places(tiles, 200, np.full(9, 2, np.int32), np.empty(25, np.uint8),
                               np.empty((18, 1), np.uint32), 1000) is None  # fmt: skip


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
        ({"masks": np.zeros(27, np.uint8)}, "masks must be"),
        ({"masks": np.zeros(34, np.uint8)}, "masks, starts and words of the index do not fit together"),
        ({"masks": np.full(34, 3, np.uint8)}, "masks, starts and words of the index do not fit together"),
        ({"starts": np.zeros((27, 2), np.uint32)}, "masks must be"),
        ({"starts": np.zeros((27, 1), np.uint32)}, "masks, starts and words of the index do not fit together"),
        ({"words": np.zeros(33, np.uint64)}, "masks, starts and words of the index do not fit together"),
        ({"first_leaf": np.zeros(1, np.uint32)}, "first_leaf must be"),
        ({"first_leaf": np.arange(0, 40, 4, dtype=np.uint32)}, "first_leaf must be the running sum"),
        ({"first_leaf": np.arange(1, 31, 3, dtype=np.uint32)}, "first_leaf must be"),
        ({"least_row": np.zeros(15, np.uint32)}, "least_row must be"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(change, message):
    tiles = three_leaves()
    bounds = bounds_of(tiles)
    index_of(tiles, *bounds.values())
    with pytest.raises(ValueError, match=message):
        index_of(tiles, *{**bounds, **change}.values())


def test_bounds_need_just_the_tiles_of_their_rows():
    bounds = {**bounds_of(three_leaves()), "least_row": np.zeros(1024, np.uint32)}
    with pytest.raises(ValueError, match="tiles must be as many as the rows need"):
        index_of(np.zeros((1024, 12, 16), np.uint8), *bounds.values())


# What each search takes beside leaves, a range of queries, and the arrays for its results.
TILES = {"tile_start": 0, "tile_stop": 16}
SEARCHES = {
    "scan": TILES,
    "search": {**TILES, "most_visits": 16},
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


@pytest.mark.parametrize(
    ("search", "change", "message"),
    [
        *((name, *wrong) for name in SEARCHES for wrong in WRONG),
        *((name, *wrong) for name in ("scan", "search") for wrong in WRONG_TILES),
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
    tiles = three_leaves()
    function = getattr(index_of(tiles, *bounds_of(tiles).values()), search)
    function(**arguments)
    with pytest.raises(ValueError, match=message):
        function(**{**arguments, **change})


def test_what_an_index_cannot_do_is_refused(tiles):
    index, k3 = index_of(tiles), output(1, 3)
    visits = np.zeros(1, np.int64)
    for ask in (
        lambda: index.search(QUERIES[:1], 0, 1, 0, 16, 16, *k3),
        lambda: index.count_visits(QUERIES[:1], 3, visits),
        lambda: index.count_visits_of_rows(np.zeros(1, np.int64), 3, visits),
    ):
        with pytest.raises(ValueError, match="the index has no bounds"):
            ask()
    bounded = index_of(tiles, *bounds_of(tiles).values())
    with pytest.raises(ValueError, match="cuts tiles apart"):
        bounded.search(QUERIES[:1], 0, 1, 0, 8, 16, *k3)
    with pytest.raises(ValueError, match="k must be from 1 to n_rows, visits"):
        bounded.count_visits(QUERIES[:2], 3, visits)
    with pytest.raises(ValueError, match="k must be from 1 to n_rows, visits"):
        bounded.count_visits_of_rows(np.zeros(1, np.int64), 201, visits)
    for place in (-1, 200):
        with pytest.raises(ValueError, match="a place is not in the index"):
            bounded.count_visits_of_rows(np.full(1, place), 3, visits)
    with pytest.raises(ValueError, match="codes must be of the shape of leaves"):
        index.number(QUERIES[:2], np.zeros((1, 9), np.int32))


def test_a_search_among_no_tiles_finds_nothing(tiles):
    index = index_of(tiles, *bounds_of(tiles).values())
    affinities, rows = output(2, 3)
    index.search(QUERIES[:2], 0, 2, 0, 0, 16, affinities, rows)
    assert np.all(rows == -1)
    assert np.all(affinities == -1)


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
