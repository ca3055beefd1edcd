"""Which rows of a pool to label."""

import numpy as np
import pytest

from ibug.exceptions import InvalidInputError
from ibug.explain import rank_for_labelling
from ibug.explain._labelling import greedy
from tests.explain.conftest import NOISY, noisy_rows
from tests.oracles import greedy_cover

pytestmark = pytest.mark.once


def test_it_is_the_greedy_choice(u):
    pool = noisy_rows(90, 5)[0]
    found = rank_for_labelling(u, pool)
    leaves = np.concatenate([chunk.leaves for chunk in u.source_.leaves.chunks(pool)])
    affinity = (leaves[:, None] == leaves[None]).mean(axis=2)
    nearest = u.kneighbors(pool, 1)[0][:, 0] / u.source_.index.n_trees
    spread = np.sqrt(u.predict_var(pool))
    expected = greedy_cover(affinity, spread, nearest, len(pool))
    gains = [np.maximum(affinity[i] - nearest, 0) @ spread for i in expected[:1]]
    assert found.gain[0] == pytest.approx(gains[0])
    positive = int(np.sum(found.gain > 1e-9))
    assert positive > 5
    assert found.rows[:positive].tolist() == expected[:positive]
    assert sorted(found.rows) == list(range(90))
    assert np.all(np.diff(found.gain) <= 1e-9)


def test_a_label_counts_for_the_nearest_rows_only():
    shares, rows = np.array([[1.0, 0.5], [1.0, 0.5], [1.0, 0.9]]), np.array([[0, 1], [1, 0], [2, 0]])
    affinity = np.zeros((3, 3))
    affinity[rows, np.arange(3)[:, None]] = shares
    spread, covered = np.array([1.0, 2.0, 5.0]), np.array([0.1, 0.2, 0.3])
    order, gain = greedy(shares, rows, spread, covered, 3)
    assert order.tolist() == greedy_cover(affinity, spread, covered, 3)
    assert gain[0] == pytest.approx(0.9 + 0.3 * 2 + 0.6 * 5)


def test_uncertain_rows_come_before_certain_ones_and_twins_once(u):
    pool = np.concatenate([noisy_rows(40, 6)[0]] * 2)
    order = rank_for_labelling(u, pool, n_rows=10).rows
    assert len(set(order % 40)) == 10
    assert pool[order, NOISY].mean() > pool[:, NOISY].mean()


def test_too_many_rows(u, rows):
    with pytest.raises(InvalidInputError, match="at most the 60 rows of the pool; got 61"):
        rank_for_labelling(u, rows, 61)
