"""The compiled kernel itself: ranges, instruction sets, and arrays that do not fit together."""

import subprocess
import sys

import numpy as np
import pytest
from oracles import nearest_rows

from ibug.neighbors import _kernel

LEAVES = np.random.default_rng(0).integers(0, 3, (200, 9))


@pytest.fixture(params=[np.uint8, np.uint16, np.uint32])
def tiles(request):
    padded = np.zeros((256, 9), request.param)
    padded[:200] = LEAVES
    return np.ascontiguousarray(padded.reshape(4, 64, 9).swapaxes(1, 2))


def output(n_queries, k):
    return np.full((n_queries, k), -7, np.int32), np.full((n_queries, k), -7, np.int64)


def test_baseline_is_always_there():
    assert _kernel.instruction_sets()[0] == "baseline"


@pytest.mark.parametrize("instruction_set", _kernel.instruction_sets())
def test_a_range_call_writes_only_its_own_queries(tiles, instruction_set):
    queries = LEAVES[:10].astype(tiles.dtype)
    affinities, rows = output(10, 5)
    _kernel.top_k(tiles, 200, queries, 0, 4, 3, 7, affinities, rows, instruction_set)
    expected = nearest_rows(LEAVES, LEAVES[3:7], 5)
    np.testing.assert_array_equal(affinities[3:7], expected[0])
    np.testing.assert_array_equal(rows[3:7], expected[1])
    for written in (affinities, rows):
        assert np.all(written[:3] == -7)
        assert np.all(written[7:] == -7)


def test_a_range_of_tiles_sees_only_its_own_rows(tiles):
    queries = LEAVES[:2].astype(tiles.dtype)
    affinities, rows = output(2, 30)
    _kernel.top_k(tiles, 200, queries, 3, 4, 0, 2, affinities, rows)  # the last tile: rows 192 to 199
    expected = nearest_rows(LEAVES[192:], LEAVES[:2], 8)
    np.testing.assert_array_equal(affinities[:, :8], expected[0])
    np.testing.assert_array_equal(rows[:, :8], expected[1] + 192)
    assert np.all(affinities[:, 8:] == -1)
    assert np.all(rows[:, 8:] == -1)


def test_the_benchmark_loop_counts_what_the_search_counts(tiles):
    queries = LEAVES[:3].astype(tiles.dtype)
    expected = (LEAVES[:3, None] == LEAVES[None, :64]).sum(-1).ravel()
    one_tile = np.ascontiguousarray(tiles[:1])
    for instruction_set in _kernel.instruction_sets():
        total = _kernel.count_repeatedly(one_tile, queries, expected.size, instruction_set)
        assert total == expected.sum()  # pass i adds its i-th count


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": np.zeros((1, 8), np.uint8)}, "tiles and queries"),
        ({"n_rows": 257}, "n_rows exceeds"),
        ({"tile_stop": 5}, "tile range"),
        ({"tile_stop": 2**58}, "tile range"),
        ({"tile_start": 2, "tile_stop": 1}, "tile range"),
        ({"query_stop": 2}, "query range"),
        ({"rows": np.zeros((1, 4), np.int64)}, "affinities and rows"),
        ({"rows": np.zeros((1, 0), np.int64), "affinities": np.zeros((1, 0), np.int32)}, "affinities and rows"),
        ({"instruction_set": "mmx"}, "'mmx' is not available"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    arguments = {
        "tiles": np.zeros((4, 9, 64), np.uint8),
        "n_rows": 200,
        "queries": np.zeros((1, 9), np.uint8),
        "tile_start": 0,
        "tile_stop": 4,
        "query_start": 0,
        "query_stop": 1,
        "affinities": np.zeros((1, 3), np.int32),
        "rows": np.zeros((1, 3), np.int64),
    }
    with pytest.raises(ValueError, match=message):
        _kernel.top_k(**{**arguments, **change})


def test_codes_of_different_width_are_refused():
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _kernel.top_k(
            np.zeros((4, 9, 64), np.uint8), 200, np.zeros((1, 9), np.uint16), 0, 4, 0, 1, *output(1, 3)
        )  # fmt: skip


def test_a_leaf_outside_the_table_is_refused():
    with pytest.raises(ValueError, match="outside the table"):
        _kernel.number_leaves(np.array([[5]], np.int32), np.full((1, 5), -1, np.int32), np.zeros(1, np.int32))


def test_rows_outside_the_tiles_are_refused():
    leaves, numbering, tiles = np.zeros((3, 1), np.int32), np.zeros((1, 1), np.int32), np.zeros((1, 1, 64), np.uint8)
    for first_row in (62, 2**64 - 1):
        with pytest.raises(ValueError, match="more rows than the tiles hold"):
            _kernel.pack_rows(leaves, numbering, first_row, tiles)


def test_the_benchmark_loop_needs_a_query():
    with pytest.raises(ValueError, match="at least one query"):
        _kernel.count_repeatedly(np.zeros((1, 9, 64), np.uint8), np.zeros((0, 9), np.uint8), 3)


def test_without_the_extension_importing_says_how_to_build_it():
    code = "import sys; sys.modules['ibug.neighbors._kernel'] = None; import ibug"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "MissingExtensionError" in run.stderr
    assert "pip install ." in run.stderr
