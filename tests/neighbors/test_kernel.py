"""The compiled kernel itself: ranges, instruction sets, and arrays that do not fit together."""

import subprocess
import sys

import numpy as np
import pytest

from ibug.neighbors import _kernel
from tests.oracles import nearest_rows

LEAVES = np.random.default_rng(0).integers(0, 3, (200, 9))
N_TILES, WIDTH = 16, 12  # 200 rows in tiles of 16, four at a time; nine trees, filled up to twelve


@pytest.fixture(params=[np.uint8, np.uint16, np.uint32])
def tiles(request):
    padded = np.zeros((N_TILES * 16, WIDTH), request.param)
    padded[:200, :9] = LEAVES
    return np.ascontiguousarray(padded.reshape(N_TILES, 16, WIDTH).swapaxes(1, 2))


ORDER = np.arange(200, dtype=np.uint32)


def codes(leaves, dtype):
    padded = np.ones((len(leaves), WIDTH), dtype)
    padded[:, :9] = leaves
    return padded


def output(n_queries, k):
    return np.full((n_queries, k), -7, np.int32), np.full((n_queries, k), -7, np.int64)


def test_baseline_is_always_there():
    assert _kernel.instruction_sets()[0] == "baseline"


@pytest.mark.parametrize("instruction_set", _kernel.instruction_sets())
def test_a_range_call_writes_only_its_own_queries(tiles, instruction_set):
    affinities, rows = output(10, 5)
    queries = codes(LEAVES[:10], tiles.dtype)
    _kernel.scan(tiles, ORDER, 9, queries, 0, N_TILES, 3, 7, affinities, rows, instruction_set)
    expected = nearest_rows(LEAVES, LEAVES[3:7], 5)
    np.testing.assert_array_equal(affinities[3:7], expected[0])
    np.testing.assert_array_equal(rows[3:7], expected[1])
    for written in (affinities, rows):
        assert np.all(written[:3] == -7)
        assert np.all(written[7:] == -7)


def test_a_range_of_tiles_sees_only_its_own_rows(tiles):
    affinities, rows = output(2, 30)
    _kernel.scan(tiles, ORDER, 9, codes(LEAVES[:2], tiles.dtype), 12, 16, 0, 2, affinities, rows)  # from row 192 on
    expected = nearest_rows(LEAVES[192:], LEAVES[:2], 8)
    np.testing.assert_array_equal(affinities[:, :8], expected[0])
    np.testing.assert_array_equal(rows[:, :8], expected[1] + 192)
    assert np.all(affinities[:, 8:] == -1)
    assert np.all(rows[:, 8:] == -1)


def test_the_benchmark_loop_counts_what_the_search_counts(tiles):
    queries = codes(LEAVES[:3], tiles.dtype)
    expected = (LEAVES[:3, None] == LEAVES[None, :64]).sum(-1).ravel()
    four = np.ascontiguousarray(tiles[:4])
    for instruction_set in _kernel.instruction_sets():
        total = _kernel.count_repeatedly(four, queries, expected.size, instruction_set)
        assert total == expected.sum()  # pass i adds its i-th count


def test_rows_are_moved_where_the_order_says(tiles):
    order = np.random.default_rng(1).permutation(200).astype(np.uint32)
    _kernel.permute_rows(tiles, 9, order, 4)
    moved = tiles.swapaxes(1, 2).reshape(-1, WIDTH)
    np.testing.assert_array_equal(moved[:200, :9], LEAVES[order])
    assert not moved[200:].any()
    assert not moved[:, 9:].any()


def test_the_order_has_every_row_once(tiles):
    order = np.zeros(200, np.uint32)
    _kernel.order_rows(tiles, 9, 5, order)
    np.testing.assert_array_equal(np.sort(order), np.arange(200))
    assert np.any(order != np.arange(200))


def test_similar_rows_come_together():
    # Four kinds of rows, mixed up: each tile of the order has one kind.
    kinds = np.random.default_rng(2).permutation(np.repeat(np.arange(4), 64))
    tiles = np.ascontiguousarray(np.repeat(kinds, 8).reshape(16, 16, 8).swapaxes(1, 2).astype(np.uint8))
    order = np.zeros(256, np.uint32)
    _kernel.order_rows(tiles, 8, 8, order)
    assert all(len(set(kinds[tile])) == 1 for tile in order.reshape(16, 16))


def test_places_tell_in_which_tiles_a_leaf_is(tiles):
    masks, starts = np.empty(9 * 3 + 7, np.uint8), np.empty((27, 1), np.uint32)
    counts = np.full(9, 3, np.int32)
    words = _kernel.find_places(tiles, 200, counts, masks, starts, 1000)
    assert _kernel.check_places(masks, starts, 200, len(words))
    np.testing.assert_array_equal(masks[:27], 1)  # one superblock, where every leaf occurs
    for leaf in range(27):
        tree, code = divmod(leaf, 3)
        expected = [bool(np.any(LEAVES[16 * i : 16 * i + 16, tree] == code)) for i in range(64)]
        found = [bool(int(words[starts[leaf, 0]]) >> i & 1) for i in range(64)]
        assert found == expected
    assert _kernel.find_places(tiles, 200, counts, masks, starts, 26) is None
    assert _kernel.find_places(tiles, 200, np.full(9, 2, np.int32), np.empty(25, np.uint8),
                               np.empty((18, 1), np.uint32), 1000) is None  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": np.zeros((1, 8), np.uint8)}, "tiles and queries"),
        ({"tiles": np.zeros((15, 12, 16), np.uint8)}, "tiles must be"),
        ({"tiles": np.zeros((16, 9, 16), np.uint8)}, "tiles must be"),
        ({"n_trees": 13}, "tiles must be"),
        ({"n_trees": 0}, "from 1 to 65534 trees"),
        ({"order": np.zeros(257, np.uint32)}, "n_rows exceeds"),
        ({"tile_stop": 20}, "tile range exceeds"),
        ({"tile_stop": 2**58}, "tile range exceeds"),
        ({"tile_start": 8, "tile_stop": 4}, "tile range exceeds"),
        ({"tile_start": 2}, "cuts tiles apart"),
        ({"tile_stop": 6}, "cuts tiles apart"),
        ({"query_stop": 2}, "query range"),
        ({"rows": np.zeros((1, 4), np.int64)}, "affinities and rows"),
        ({"rows": np.zeros((1, 0), np.int64), "affinities": np.zeros((1, 0), np.int32)}, "affinities and rows"),
        ({"instruction_set": "mmx"}, "'mmx' is not available"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    arguments = {
        "tiles": np.zeros((16, 12, 16), np.uint8),
        "order": ORDER,
        "n_trees": 9,
        "queries": np.zeros((1, 12), np.uint8),
        "tile_start": 0,
        "tile_stop": 16,
        "query_start": 0,
        "query_stop": 1,
        "affinities": np.zeros((1, 3), np.int32),
        "rows": np.zeros((1, 3), np.int64),
    }
    with pytest.raises(ValueError, match=message):
        _kernel.scan(**{**arguments, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masks": np.zeros(27, np.uint8)}, "masks must be"),
        ({"starts": np.zeros((27, 2), np.uint32)}, "masks must be"),
        ({"first_leaf": np.zeros(1, np.uint32)}, "first_leaf must be"),
        ({"first_leaf": np.arange(0, 40, 4, dtype=np.uint32)}, "masks must be"),
        ({"least_row": np.zeros(15, np.uint32)}, "least_row must be"),
        ({"visits": np.zeros(2, np.int64)}, "least_row must be"),
        ({"tile_stop": 8}, "cuts tiles apart"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(change, message):
    arguments = {
        "tiles": np.zeros((16, 12, 16), np.uint8),
        "order": ORDER,
        "masks": np.zeros(34, np.uint8),
        "starts": np.zeros((27, 1), np.uint32),
        "words": np.zeros(7, np.uint64),
        "first_leaf": np.arange(0, 30, 3, dtype=np.uint32),
        "least_row": np.zeros(16, np.uint32),
        "queries": np.zeros((1, 12), np.uint8),
        "tile_start": 0,
        "tile_stop": 16,
        "query_start": 0,
        "query_stop": 1,
        "most_visits": 16,
        "affinities": np.zeros((1, 3), np.int32),
        "rows": np.zeros((1, 3), np.int64),
        "visits": np.zeros(1, np.int64),
    }
    with pytest.raises(ValueError, match=message):
        _kernel.search(**{**arguments, **change})


def test_codes_of_different_width_are_refused():
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _kernel.scan(
            np.zeros((16, 12, 16), np.uint8), ORDER, 9, np.zeros((1, 12), np.uint16), 0, 16, 0, 1, *output(1, 3)
        )


def test_a_leaf_outside_the_table_is_refused():
    with pytest.raises(ValueError, match="outside the table"):
        _kernel.number_leaves(np.array([[5]], np.int32), np.full((1, 5), -1, np.int32), np.zeros(1, np.int32))


def test_rows_outside_the_tiles_are_refused():
    leaves, numbering, tiles = np.zeros((3, 1), np.int32), np.zeros((1, 1), np.int32), np.zeros((4, 4, 16), np.uint8)
    for first_row in (62, 2**64 - 1):
        with pytest.raises(ValueError, match="more rows than the tiles hold"):
            _kernel.pack_rows(leaves, numbering, first_row, tiles)


def test_the_benchmark_loop_needs_a_query():
    with pytest.raises(ValueError, match="at least one query"):
        _kernel.count_repeatedly(np.zeros((4, 12, 16), np.uint8), np.zeros((0, 12), np.uint8), 3)


def test_without_the_extension_importing_says_how_to_build_it():
    code = "import sys; sys.modules['ibug.neighbors._kernel'] = None; import ibug"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "MissingExtensionError" in run.stderr
    assert "pip install ." in run.stderr
