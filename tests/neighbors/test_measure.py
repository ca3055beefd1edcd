"""What benchmarks ask: instruction sets and the peak of the counting loop."""

from functools import cache

import numpy as np
import pytest

from ibug import LeafIndex
from ibug.exceptions import InvalidInputError
from ibug.neighbors import CountingLoop, instruction_sets, least_queries

pytestmark = [pytest.mark.once, pytest.mark.kernel]


def test_baseline_comes_first():
    assert instruction_sets()[0] == "baseline"


@pytest.mark.parametrize("instruction_set", [None, *instruction_sets()])
def test_least_queries_are_where_sharing_begins(instruction_set):
    assert least_queries(instruction_set) > 1


@cache
def index_of(n_leaves):
    """Return an index of rows in few leaves, but in as many leaves of the first tree."""
    rows = np.random.default_rng(1).integers(0, 3, (max(n_leaves, 64), 260))
    rows[:n_leaves, 0] = np.arange(n_leaves)
    return LeafIndex.build(rows)


@pytest.mark.parametrize("instruction_set", [None, *instruction_sets()])
@pytest.mark.parametrize("n_leaves", [9, 300, 70_000])
def test_the_counting_loop_counts_shared_leaves(n_leaves, instruction_set):
    index = index_of(n_leaves)
    codes = index.arrays()["tiles"][:4, :252].swapaxes(1, 2).reshape(64, 252)
    expected = (codes[:3, None] == codes[None]).sum(axis=2).ravel()
    loop = CountingLoop(index, passes=expected.size, n_queries=3, instruction_set=instruction_set)
    assert loop() == expected.sum()  # pass i adds its i-th count
    assert loop.comparisons == expected.size * 3 * 64 * 252


def test_a_counting_loop_of_few_trees():
    index = LeafIndex.build(np.zeros((64, 6), int))
    assert CountingLoop(index, passes=2, n_queries=5).comparisons == 2 * 5 * 64 * 8
    assert CountingLoop(index, passes=2, n_queries=5, n_trees=3).comparisons == 2 * 5 * 64 * 4


@pytest.mark.parametrize("change", [{"passes": 0}, {"n_queries": 0}, {"n_queries": 65}, {"n_trees": 0}])
def test_a_counting_loop_of_nothing(change):
    with pytest.raises(InvalidInputError, match="A counting loop needs passes and trees, and from 1 to 64 queries"):
        CountingLoop(LeafIndex.build(np.zeros((64, 6), int)), **{"passes": 1, **change})
