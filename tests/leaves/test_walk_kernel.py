"""The compiled walk on random trees, against an oracle that goes down row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ibug._compiled import walk as kernel
from ibug.leaves._walk import NODE, NotWalkableError, Trees, TreeWalk, new_nodes, offsets
from tests.oracles import walk_trees

pytestmark = [pytest.mark.once, pytest.mark.kernel]

N_FEATURES = 4
SPECIAL = [np.nan, 0.0, -0.0, 1e-36, -1e-40, 5e-324, 1e30, -1e30, 1e300, -1e300, -0.5, -1.0, 2.5, 1e6]
READINGS = {
    "plain": {},
    "as LightGBM": {"tiny_is_zero": True, "truncated": True},
    "as XGBoost": {"single": True, "single_sums": True, "members_left": False, "missing": 1.0, "start": 0.1},
    "as HistGradientBoosting": {"others_as_missing": True, "start": -2.5},
}


def random_tree(rng, n_leaves, cuts, sets, gaps):
    """Split a random leaf again and again; leaves are numbered at random, with gaps where asked for."""
    nodes = new_nodes(2 * n_leaves - 1)
    leaves = [0]
    for i in range(n_leaves - 1):
        at = leaves.pop(rng.integers(len(leaves)))
        nodes["left"][at], nodes["right"][at] = 2 * i + 1, 2 * i + 2
        leaves += [2 * i + 1, 2 * i + 2]
    split = nodes["left"] >= 0
    feature = rng.integers(0, N_FEATURES, len(nodes))
    nodes["feature"] = np.where(split, feature, 0)
    nodes["threshold"] = np.where(split, rng.choice(cuts, len(nodes)), 0.0)
    nodes["missing"], nodes["default_left"] = rng.integers(0, 3, len(nodes)), rng.integers(0, 2, len(nodes))
    if sets:  # the last feature is categorical
        categorical = split & (feature == N_FEATURES - 1)
        nodes["categories"] = np.where(categorical, rng.integers(0, len(sets), len(nodes)), -1)
    nodes["value"] = np.where(split, 0.0, rng.normal(size=len(nodes)))
    nodes["number"][~split] = rng.choice(n_leaves * (3 if gaps else 1), n_leaves, replace=False)
    return nodes


def random_trees(rng, sizes, reading, *, categorical=False, n_cuts=40, gaps=False):
    precision = np.float32 if reading.get("single") else np.float64
    cuts = np.append(np.round(rng.normal(size=n_cuts), 3), [0.0, 1e30, -1e30]).astype(precision).astype(np.float64)
    sets = [np.flatnonzero(rng.random(9) < 0.5).astype(np.int32) for _ in range(5)] if categorical else []
    parts = [random_tree(rng, n_leaves, cuts, sets, gaps) for n_leaves in sizes]
    n_categories = {N_FEATURES - 1: int(rng.integers(0, 12))} if categorical else {}
    reading = {"n_features": N_FEATURES, **reading}
    return Trees(offsets([len(p) for p in parts]), np.concatenate(parts), reading, sets, n_categories)


def random_rows(rng, trees, n_rows):
    """Rows of which many values are thresholds of the trees, categories, or special."""
    rows = rng.choice(trees.nodes["threshold"], (n_rows, N_FEATURES))
    rows = np.where(rng.random(rows.shape) < 0.3, rng.normal(size=rows.shape), rows)
    rows = np.where(rng.random(rows.shape) < 0.2, rng.choice(SPECIAL, rows.shape), rows)
    rows[:, -1] = np.where(rng.random(n_rows) < 0.7, rng.integers(-2, 12, n_rows), rows[:, -1])
    return rows


def assert_walks(trees, rows):
    expected = walk_trees(trees, rows)
    walk = TreeWalk(trees)
    for instruction_set in kernel.instruction_sets():
        leaves, sums = walk(rows, instruction_set=instruction_set)
        assert leaves.dtype == np.int32
        assert_array_equal(leaves, expected[0])
        assert_array_equal(sums, expected[1])
    return walk


@pytest.mark.parametrize("reading", READINGS)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=20),
    n_rows=st.integers(1, 40),
    categorical=st.booleans(),
    gaps=st.booleans(),
)
def test_random_trees(reading, seed, sizes, n_rows, categorical, gaps):
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, sizes, READINGS[reading], categorical=categorical, gaps=gaps)
    assert_walks(trees, random_rows(rng, trees, n_rows))


@pytest.mark.parametrize("n_leaves", [256, 257, 512, 513, 1500])
@pytest.mark.parametrize("categorical", [False, True])
def test_many_leaves(n_leaves, categorical):
    rng = np.random.default_rng(n_leaves)
    trees = random_trees(rng, [n_leaves, 3, 1, n_leaves], {}, categorical=categorical)
    walk = assert_walks(trees, random_rows(rng, trees, 150))
    assert walk._forest.bits == (8 if n_leaves == 256 else 16)


@pytest.mark.parametrize(("n_cuts", "bits"), [(255, 8), (256, 16), (30_000, 16)])
def test_many_thresholds(n_cuts, bits):
    rng = np.random.default_rng(0)
    nodes = random_trees(rng, [2] * n_cuts, {}, n_cuts=3).nodes
    nodes["feature"], nodes["threshold"] = 0, np.repeat(np.sort(rng.normal(size=n_cuts)), 3)
    trees = Trees(offsets([3] * n_cuts), nodes, {"n_features": N_FEATURES})
    assert assert_walks(trees, random_rows(rng, trees, 3))._forest.bits == bits


@pytest.mark.parametrize(("n_rows", "n_trees"), [(1, 130), (4, 17), (5, 16), (16, 129), (127, 1), (129, 33), (300, 2)])
def test_blocks_of_rows_and_trees(n_rows, n_trees):
    rng = np.random.default_rng(n_rows + n_trees)
    trees = random_trees(rng, rng.integers(1, 6, n_trees), {})
    assert_walks(trees, random_rows(rng, trees, n_rows))


def test_many_columns():
    rng = np.random.default_rng(0)
    nodes = random_trees(rng, [30] * 50, {}).nodes
    nodes["feature"] = rng.integers(0, 700, len(nodes))
    trees = Trees(offsets([59] * 50), nodes, {"n_features": 700})
    assert_walks(trees, rng.normal(size=(70, 700)))


def test_single_precision_rows():
    rng = np.random.default_rng(0)
    trees = random_trees(rng, [20] * 30, READINGS["as XGBoost"])
    with np.errstate(over="ignore"):
        rows = random_rows(rng, trees, 200).astype(np.float32)
    for found, expected in zip(TreeWalk(trees)(rows), walk_trees(trees, rows), strict=True):
        assert_array_equal(found, expected)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), depths=st.lists(st.integers(0, 10), min_size=1, max_size=20))
def test_oblivious_trees(seed, depths):
    rng = np.random.default_rng(seed)
    levels = random_trees(rng, [2] * (sum(depths) + 1), {"single": True}).nodes[::3][:-1].copy()
    values = rng.normal(size=sum(2**depth for depth in depths))
    reading = {"n_features": N_FEATURES, "single": True}
    trees = Trees(offsets(depths), levels, reading, leaf_values=values)
    rows = rng.choice(np.append(SPECIAL, rng.normal(size=20)), (int(rng.integers(1, 150)), N_FEATURES))
    assert_walks(trees, rows)


@pytest.mark.parametrize("n_rows", [1, 3, 40, 140])  # which go different ways: few, one block, more than one
@pytest.mark.parametrize("oblivious", [False, True])
def test_chosen_trees(oblivious, n_rows):
    rng = np.random.default_rng(n_rows)
    if oblivious:
        levels = random_trees(rng, [2] * 1200, {}).nodes[::3].copy()
        values = rng.normal(size=16 * 300)
        trees = Trees(offsets([4] * 300), levels, {"n_features": N_FEATURES}, leaf_values=values)
    else:
        trees = random_trees(rng, rng.integers(1, 600, 300), {}, categorical=True)
    walk, rows = TreeWalk(trees), random_rows(rng, trees, n_rows)
    every = walk_trees(trees, rows)[0]
    for chosen in (np.arange(300), np.array([299]), rng.permutation(300)[:270], np.array([5, 5, 0])):
        for instruction_set in kernel.instruction_sets():
            leaves, _ = walk(rows, trees=chosen.astype(np.int32), instruction_set=instruction_set)
            assert_array_equal(leaves, every[:, chosen])
    for wrong in ([300], [-1]):
        with pytest.raises(ValueError, match="not there"):
            walk(rows, trees=np.array(wrong, np.int32))


def test_a_range_call_writes_only_its_own_rows():
    rng = np.random.default_rng(0)
    trees = random_trees(rng, [10] * 20, {})
    rows = random_rows(rng, trees, 300)
    forest = TreeWalk(trees)._forest
    leaves, sums = np.full((300, 20), -7, np.int32), np.full(300, np.nan)
    assert forest.walk(rows, 140, 290, leaves, sums)
    expected = walk_trees(trees, rows[140:290])
    assert_array_equal(leaves[140:290], expected[0])
    assert_array_equal(sums[140:290], expected[1])
    assert (np.delete(leaves, np.s_[140:290], axis=0) == -7).all()
    assert np.isnan(np.delete(sums, np.s_[140:290])).all()


def test_threads_do_not_change_the_result(monkeypatch):
    monkeypatch.setattr("ibug.leaves._walk._LEAVES_PER_TASK", 100)
    rng = np.random.default_rng(0)
    trees = random_trees(rng, [10] * 20, {})
    rows = random_rows(rng, trees, 333)
    walk = TreeWalk(trees)
    for alone, together in zip(walk(rows), walk(rows, n_jobs=3), strict=True):
        assert_array_equal(alone, together)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
def test_infinite_values_are_refused_where_the_library_refuses_them(value):
    trees = random_trees(np.random.default_rng(0), [3], {"single": True, "refuse_infinite": True})
    rows = np.zeros((200, N_FEATURES))
    assert TreeWalk(trees)(rows) is not None
    rows[150, 2] = value
    assert TreeWalk(trees)(rows) is None


def broken(change):
    trees = random_trees(np.random.default_rng(0), [5, 5], {})
    change(trees.nodes)
    return trees


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda nodes: nodes["feature"].__setitem__(0, 4), "feature that is not there"),
        (lambda nodes: nodes["feature"].__setitem__(0, -1), "feature that is not there"),
        (lambda nodes: nodes["left"].__setitem__(0, 0), "children"),
        (lambda nodes: nodes["right"].__setitem__(0, 99), "children"),
        (lambda nodes: nodes["right"].__setitem__(0, -1), "children"),
        (lambda nodes: nodes["missing"].__setitem__(0, 3), "missing value"),
        (lambda nodes: nodes["threshold"].__setitem__(0, np.nan), "threshold"),
        (lambda nodes: nodes["categories"].__setitem__(0, 0), "categories"),
        (lambda nodes: nodes["number"].__setitem__(slice(None), -1), "number"),
        (lambda nodes: nodes["number"].__setitem__(slice(None), 65_536), "number"),
    ],
)
def test_broken_trees_are_refused(change, message):
    with pytest.raises(NotWalkableError, match=message):
        TreeWalk(broken(change))


def test_nodes_with_two_parents_are_refused():
    # Each level's node is both children of the one above: 30 levels would be a billion leaves.
    nodes = new_nodes(31)
    nodes["left"][:30] = nodes["right"][:30] = np.arange(1, 31)
    with pytest.raises(NotWalkableError, match="two splits have the same child"):
        TreeWalk(Trees(offsets([31]), nodes, {"n_features": 1}))


def test_arrays_that_do_not_fit_are_refused():
    forest = TreeWalk(random_trees(np.random.default_rng(0), [5, 5], {}))._forest
    rows, leaves, sums = np.zeros((3, N_FEATURES)), np.zeros((3, 2), np.int32), np.zeros(3)
    assert forest.walk(rows, 0, 3, leaves, sums)
    for wrong in (
        (rows[:, :3].copy(), 0, 3, leaves, sums),
        (rows, 0, 4, leaves, sums),
        (rows, 2, 1, leaves, sums),
        (rows, 0, 3, leaves[:2], sums),
        (rows, 0, 3, leaves[:, :1].copy(), sums),
        (rows, 0, 3, leaves, sums[:2]),
    ):
        with pytest.raises(ValueError, match=r"features|range|must be"):
            forest.walk(*wrong)
    with pytest.raises(ValueError, match="not available"):
        forest.walk(rows, 0, 3, leaves, sums, "mmx")
    with pytest.raises(TypeError):
        forest.walk(rows.astype(np.float16), 0, 3, leaves, sums)


def test_a_node_has_no_unnamed_bytes():
    assert NODE.itemsize == 40 == sum(NODE[name].itemsize for name in NODE.names)
