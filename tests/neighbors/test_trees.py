"""Indexes of some of the trees, and the trees that tell most of a target."""

import numpy as np
import pytest

from ibug import LeafIndex
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Sampling
from tests.oracles import nearest_rows

pytestmark = [pytest.mark.once, pytest.mark.kernel]


def leaves_of(rng, n_rows, widths):
    """Draw leaf numbers; tree t has widths[t] leaves."""
    return np.stack([rng.integers(width, size=n_rows) for width in widths], axis=1)


@pytest.mark.parametrize("n_rows", [1, 17, 300, 3000])
def test_an_index_of_some_trees_finds_what_one_of_their_leaves_finds(n_rows):
    rng = np.random.default_rng(n_rows)
    widths = rng.integers(1, 9, 40)
    leaves = leaves_of(rng, n_rows, widths)
    queries = leaves_of(rng, 20, widths + 1)  # some leaves have no training row
    trees = np.array([0, 3, 4, 11, 38, 39])
    part = LeafIndex.build(leaves).of_trees(trees)
    assert (part.n_rows, part.n_trees) == (n_rows, 6)
    k = min(n_rows, 25)
    for found, true in zip(
        part.query(queries[:, trees], k), nearest_rows(leaves[:, trees], queries[:, trees], k), strict=True
    ):
        np.testing.assert_array_equal(found, true)


def test_an_index_of_some_trees_is_smaller_and_can_grow_and_be_stored():
    rng = np.random.default_rng(1)
    leaves = leaves_of(rng, 4000, [300, *[7] * 63])
    whole = LeafIndex.build(leaves)
    part = whole.of_trees(np.arange(1, 17))
    assert whole.code_type == np.uint16
    assert part.code_type == np.uint8  # the one wide tree is gone
    assert part.nbytes < whole.nbytes / 6
    later = leaves_of(rng, 50, [300, *[7] * 63])
    grown = LeafIndex.from_arrays(part.extended([later[:, 1:17]], 50).arrays())
    every, queries = np.concatenate([leaves, later])[:, 1:17], later[:, 1:17]
    for found, true in zip(grown.query(queries, 9), nearest_rows(every, queries, 9), strict=True):
        np.testing.assert_array_equal(found, true)


@pytest.mark.parametrize("trees", [[], [1, 1], [2, 1], [-1, 0], [0, 5], [0.0], [[0]]])
def test_impossible_trees(trees):
    index = LeafIndex.build(np.zeros((4, 5), int))
    with pytest.raises(InvalidInputError, match="ascending numbers from 0 to 4"):
        index.of_trees(np.array(trees, int if not trees or isinstance(trees[0], (int, list)) else float))


def test_the_share_of_the_variance_between_leaves():
    """Against the decomposition of variance, leaf by leaf; rows have another order in the index."""
    rng = np.random.default_rng(2)
    leaves, y = leaves_of(rng, 500, [1, 2, 5, 40]), rng.exponential(size=500)
    y += 3 * leaves[:, 2]
    shares = []
    for tree in leaves.T:
        means = np.array([y[tree == leaf].mean() for leaf in tree])  # that of each row's leaf
        shares.append(1 - np.mean((y - means) ** 2) / np.var(y))
    found = LeafIndex.build(leaves).explained(y)
    np.testing.assert_allclose(found, shares, atol=1e-12)
    assert found[0] == pytest.approx(0, abs=1e-12)
    assert np.argmax(found) == 2
    assert LeafIndex.build(leaves).explained(np.full(500, 0.1)).tolist() == [0, 0, 0, 0]


def test_the_trees_of_a_share():
    gains, rng = np.array([0.1, 0.5, 0.3, 0.5, 0.2]), np.random.RandomState(0)
    assert Sampling(0.4, "gain").trees_of_most_gain(gains).tolist() == [1, 3]
    assert Sampling(0.2, "gain").trees_of_most_gain(gains).tolist() == [1]  # of equals, the earlier one
    assert Sampling(0.01, "gain").trees_of_most_gain(gains).tolist() == [1]
    assert Sampling(0.5, "gain").trees(7, rng) is None  # all are read first
    assert Sampling(0.6, "first").trees(5, rng).tolist() == [0, 1, 2]
    assert Sampling(0.6, "last").trees(5, rng).tolist() == [2, 3, 4]
    assert Sampling(1.0, "random").trees(5, rng) is None
    drawn = np.random.RandomState(3).choice(5, 3, replace=False)
    assert Sampling(0.6, "random").trees(5, np.random.RandomState(3)).tolist() == sorted(drawn)
    with pytest.raises(InvalidInputError, match="up to 1; got 'most'"):
        Sampling("most")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tree_fraction": 0}, "tree_fraction must be a number above 0 and up to 1; got 0"),
        ({"tree_fraction": 1.5}, "tree_fraction must be"),
        ({"tree_order": "middle"}, r"tree_order must be one of \('first', 'last', 'random', 'gain'\); got 'middle'"),
        ({"row_fraction": True}, "row_fraction must be"),
        ({"row_fraction": "half"}, "row_fraction must be"),
        ({"weight_neighbors": "yes"}, "weight_neighbors must be True or False"),
        ({"output_weights": [1, 0.5]}, "output_weights must be whole numbers"),
    ],
)
def test_a_sampling_is_checked_when_it_is_made(parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        Sampling(**parameters)


def test_samplings_are_compared_by_value():
    assert Sampling(output_weights=np.array([2, 1])) == Sampling(output_weights=[2, 1])
    assert hash(Sampling(0.5)) == hash(Sampling(0.5)) != hash(Sampling(0.4))
