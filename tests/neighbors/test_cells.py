"""Rows in cells around prototypes, and queries that look at the nearest cells only: compared with slow oracles."""

import pickle

import numpy as np
import pytest

from ibug import LeafIndex
from ibug.neighbors import _build, instruction_sets

pytestmark = [pytest.mark.once, pytest.mark.kernel]


@pytest.fixture(autouse=True)
def small_indexes_have_cells(monkeypatch):
    monkeypatch.setattr(_build, "_LEAST_CODES", 1)
    monkeypatch.setattr(_build, "_LEAST_ROWS", 1)
    monkeypatch.setattr(_build, "_ROWS_PER_CELL", 4)


def clustered(rng, n_rows, n_trees, n_leaves=12, n_groups=9, noise=0.3):
    """Leaf numbers of rows that are alike within groups."""
    centres = rng.integers(0, n_leaves, (n_groups, n_trees))
    leaves = centres[rng.integers(0, n_groups, n_rows)]
    moved = rng.random(leaves.shape) < noise
    return np.where(moved, rng.integers(0, n_leaves, leaves.shape), leaves).astype(np.int32)


def nearest(affinities, k):
    """The k best columns of each row, ties by the lower number."""
    order = np.argsort(-affinities, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(affinities, order, axis=1), order


def affinity(queries, rows):
    return (queries[:, None, :] == rows[None, :, :]).sum(axis=2)


def cells_of(index, rows):
    """The prototypes as leaf numbers, and the rows of each cell, from the arrays of an index of these rows."""
    arrays = index.arrays()
    n_cells, n_trees = len(arrays["cell_starts"]) - 1, index.n_trees
    codes = arrays["prototypes"].transpose(0, 2, 1).reshape(-1, arrays["prototypes"].shape[1])[:n_cells, :n_trees]
    back = [{code: leaf for leaf, code in enumerate(each) if code >= 0} for each in arrays["numbering"].tolist()]
    prototypes = np.array([[back[t][int(code)] for t, code in enumerate(row)] for row in codes])
    return prototypes, np.split(arrays["order"].astype(int), arrays["cell_starts"][1:-1])


def visited_and_found(index, rows, query, k, n_cells):
    """What one query visits and finds: the nearest cells, at least as many as should have twice k rows."""
    prototypes, members = cells_of(index, rows)
    n_cells = max(n_cells, 2 * k * len(members) // len(rows) + 1)
    ranked = np.argsort(-affinity(query[None], prototypes)[0], kind="stable")[:n_cells]
    seen = np.sort(np.concatenate([members[cell] for cell in ranked]))
    seen = np.arange(len(rows)) if len(seen) < k else seen
    affinities, places = nearest(affinity(query[None], rows[seen]), k)
    return len(seen), affinities[0], seen[places[0]]


@pytest.mark.parametrize("n_leaves", [12, 256, 257])
@pytest.mark.parametrize("n_cells", [1, 3, 40, 1000])
def test_queries_find_the_best_rows_of_the_cells_that_they_visit(n_leaves, n_cells):
    rng = np.random.default_rng(n_leaves)
    rows, queries = clustered(rng, 700, 21, n_leaves), clustered(rng, 60, 21, n_leaves + 1)
    rows[: min(n_leaves, 700), 0] = np.arange(min(n_leaves, 700))  # so that there are all of them
    index = LeafIndex.build(rows)
    assert index.n_cells > 50
    affinities, found = index.query(queries, 7, n_cells=n_cells)
    share = index.visited(queries, 7, n_cells)
    for q, query in enumerate(queries):
        n, near, numbers = visited_and_found(index, rows, query, 7, n_cells)
        assert near.tolist() == affinities[q].tolist()
        assert numbers.tolist() == found[q].tolist()
        assert share[q] == pytest.approx((n + index.n_cells) / len(rows))


def test_each_row_is_in_the_cell_of_its_most_similar_prototype():
    rng = np.random.default_rng(0)
    rows = clustered(rng, 900, 30)
    prototypes, members = cells_of(LeafIndex.build(rows), rows)
    assert sorted(np.concatenate(members)) == list(range(900))
    for cell, some in enumerate(members):
        near = affinity(rows[some], prototypes)
        assert np.all(near[:, cell] == near.max(axis=1))


@pytest.mark.parametrize("instruction_set", instruction_sets())
@pytest.mark.parametrize("n_queries", [1, 3, 200])
def test_all_cells_find_what_a_scan_finds(instruction_set, n_queries):
    rng = np.random.default_rng(3)
    rows, queries = clustered(rng, 3000, 40), clustered(rng, n_queries, 40)
    index = LeafIndex.build(rows)
    exact = index.query(queries, 50)
    found = index.query(queries, 50, n_cells=10**6, instruction_set=instruction_set)
    assert np.array_equal(exact[0], found[0])
    assert np.array_equal(exact[1], found[1])


def test_results_depend_on_the_query_alone(monkeypatch):
    monkeypatch.setattr("ibug.neighbors._search.COMPARISONS_PER_TASK", 1)
    rng = np.random.default_rng(4)
    rows, queries = clustered(rng, 2000, 33), clustered(rng, 150, 33)
    index, n_cells = LeafIndex.build(rows), 3
    together = index.query(queries, 20, n_cells=n_cells)
    threaded = index.query(queries, 20, n_cells=n_cells, n_jobs=3)
    alone = [index.query(queries[q : q + 1], 20, n_cells=n_cells) for q in range(150)]
    for i in range(2):
        assert np.array_equal(together[i], threaded[i])
        assert np.array_equal(together[i], np.concatenate([one[i] for one in alone]))
        for name in instruction_sets():
            assert np.array_equal(together[i], index.query(queries, 20, n_cells=n_cells, instruction_set=name)[i])


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((500, 5), np.int32),  # all alike
        np.concatenate([np.zeros((480, 5), np.int32), np.arange(100).reshape(20, 5)]),  # one giant cell
        np.repeat(np.arange(200).reshape(40, 5), 15, axis=0),  # duplicates
        np.arange(400)[:, None] % 7,  # one tree
        np.arange(3)[:, None],  # hardly any rows
    ],
    ids=["alike", "giant", "duplicates", "one tree", "three rows"],
)
def test_hard_rows(rows):
    index, rows = LeafIndex.build(rows), rows.astype(np.int32)
    k = min(9, len(rows))
    queries = np.concatenate([rows[:: max(1, len(rows) // 20)], np.full((1, rows.shape[1]), 10**6, np.int32)])
    sizes = np.diff(index.arrays()["cell_starts"].astype(int))
    assert sizes.min() > 0
    assert sizes.max() <= np.ceil(8 * len(rows) / max(1, len(rows) // 4))
    for n_cells in (1, 2):
        affinities, found = index.query(queries, k, n_cells=n_cells)
        for q, query in enumerate(queries):
            _, near, numbers = visited_and_found(index, rows, query, k, n_cells)
            assert near.tolist() == affinities[q].tolist()
            assert numbers.tolist() == found[q].tolist()


def test_fewer_rows_than_neighbours_in_the_cells():
    rng = np.random.default_rng(6)
    rows, queries = clustered(rng, 400, 15), clustered(rng, 30, 15)
    index = LeafIndex.build(rows)
    found, exact = index.query(queries, 300, n_cells=1), index.query(queries, 300)
    assert np.array_equal(found[1], exact[1])
    assert np.all(index.visited(queries, 300, 1) > 1)


def test_added_and_forgotten_rows_are_in_cells():
    rng = np.random.default_rng(7)
    rows, queries, n_cells = clustered(rng, 1100, 25), clustered(rng, 40, 25), 2
    rows[1060:, 3] += 300  # leaves that the first rows have not, so that codes become wider
    index = LeafIndex.build(rows[:1000])
    n_before = index.n_cells
    for stop in (1001, 1050, 1100):
        index = index.extended([rows[index.n_rows : stop]], stop - index.n_rows)
    assert n_before <= index.n_cells < LeafIndex.build(rows).n_cells + 10
    for first in (0, 700):
        index, rows = index.without_first(first), rows[first:]
        everything = index.query(queries, 30, n_cells=10**6)
        exact = LeafIndex.build(rows).query(queries, 30)
        assert np.array_equal(everything[0], exact[0])
        assert np.array_equal(everything[1], exact[1])
        affinities, found = index.query(queries, 30, n_cells=n_cells)
        for q, query in enumerate(queries):
            _, near, numbers = visited_and_found(index, rows, query, 30, n_cells)
            assert near.tolist() == affinities[q].tolist()
            assert numbers.tolist() == found[q].tolist()


def test_prototypes_are_taken_anew_once_rows_have_doubled():
    rng = np.random.default_rng(8)
    rows = clustered(rng, 900, 20)
    index = LeafIndex.build(rows[:300])
    assert index.extended([rows[300:500]], 200).n_cells < LeafIndex.build(rows[:500]).n_cells
    assert index.extended([rows[300:]], 600).n_cells == pytest.approx(LeafIndex.build(rows).n_cells, rel=0.05)


def test_files_pickles_and_fewer_trees_keep_the_cells():
    rng = np.random.default_rng(9)
    rows, queries, n_cells = clustered(rng, 800, 18), clustered(rng, 25, 18), 2
    index = LeafIndex.build(rows)
    exact = index.query(queries, 10, n_cells=n_cells)
    for other in (LeafIndex.from_arrays(index.arrays()), pickle.loads(pickle.dumps(index))):
        assert other.n_cells == index.n_cells
        assert np.array_equal(exact[1], other.query(queries, 10, n_cells=n_cells)[1])
    trees = np.array([0, 3, 4, 17])
    fewer = index.of_trees(trees)
    assert fewer.n_cells == index.n_cells
    for q, query in enumerate(queries[:, trees]):
        _, near, numbers = visited_and_found(fewer, rows[:, trees], query, 10, n_cells)
        found = fewer.query(queries[q : q + 1, trees], 10, n_cells=n_cells)
        assert near.tolist() == found[0][0].tolist()
        assert numbers.tolist() == found[1][0].tolist()


def test_small_indexes_have_no_cells(monkeypatch):
    monkeypatch.setattr(_build, "_LEAST_CODES", 2**22)
    rows = np.random.default_rng(0).integers(0, 5, (300, 10))
    index = LeafIndex.build(rows)
    assert index.n_cells == 0
    assert np.array_equal(index.query(rows[:5], 3, n_cells=1)[1], index.query(rows[:5], 3)[1])
    assert np.all(index.visited(rows[:5], 3, 1) == 1)
