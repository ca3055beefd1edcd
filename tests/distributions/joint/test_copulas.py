"""Copulas that differ from row to row: by loops, and against stacks whose one copula is that of a row."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from ibug.distributions import JointStack
from ibug.distributions.joint import copula_points, local_copulas, log_densities
from tests.distributions.joint.test_conditional import COPULA, D, N, made

pytestmark = pytest.mark.once


def copulas():
    rng = np.random.default_rng(3)
    return local_copulas(COPULA, rng.normal(size=(N, 9, D)) * [1.0, 5.0, 0.2] + rng.normal(size=(N, 9, 1)), 4.0)


def with_copulas(stack, found):
    return JointStack(stack.loc, stack.scale, stack.neighbors, stack.own, stack.mixture, found)


def with_one(stack, i, found):
    """Return the stack of one row, with the copula of that row for all."""
    one = stack[i : i + 1]
    return JointStack(one.loc, one.scale, one.neighbors, one.own, replace(stack.mixture, copula=found[i]))


def test_local_copulas_by_loops():
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=(5, 7, D)) * [1.0, 3.0, 0.1]
    residuals[2, :, 1] = 0.0  # a target that the neighbours all have right
    found = local_copulas(COPULA, residuals, 3.0)
    for i in range(5):
        for a in range(D):
            for b in range(D):
                one, other = residuals[i, :, a], residuals[i, :, b]
                size = np.sqrt(np.sum(one**2) * np.sum(other**2))
                own = np.sum(one * other) / size if size else 0.0
                expected = 1.0 if a == b else (3 * COPULA[a, b] + 7 * own) / 10
                np.testing.assert_allclose(found[i, a, b], expected)
        assert np.linalg.eigvalsh(found[i])[0] > 0
    np.testing.assert_allclose(local_copulas(COPULA, residuals, 1e12), np.broadcast_to(COPULA, (5, D, D)), atol=1e-9)


def test_points_and_densities_row_by_row():
    found, scores = copulas(), np.random.default_rng(1).normal(size=(N, D))
    points, density = copula_points(found), log_densities(found, scores)
    for i in range(N):
        np.testing.assert_array_equal(points[i], copula_points(found[i]))
        expected = multivariate_normal(np.zeros(D), found[i]).logpdf(scores[i]) - norm.logpdf(scores[i]).sum()
        np.testing.assert_allclose(density[i], expected)


def test_a_row_is_what_its_copula_says():
    plain, found = made([0.5, 0.1, 0.2, 0.2], own_weights=(0.5, 0.2, 0.3)), copulas()
    stack, y = with_copulas(plain, found), np.random.default_rng(2).normal(size=(N, D))
    given = {0: y[:, 0], 2: y[:, 2]}
    conditional = stack.conditional(1, given)
    for i in range(N):
        one = with_one(plain, i, found)
        np.testing.assert_allclose(stack.energy_score(y)[i], one.energy_score(y[i : i + 1])[0])
        np.testing.assert_allclose(stack.cov()[i], one.cov()[0])
        expected = one.conditional(1, {j: values[i] for j, values in given.items()})
        np.testing.assert_allclose(conditional.mean()[i], expected.mean()[0])
        np.testing.assert_allclose(conditional.std()[i], expected.std()[0])
    np.testing.assert_array_equal(stack.marginal(1).mean(), plain.marginal(1).mean())


def test_samples_have_the_copulas_of_their_rows():
    stack, found = with_copulas(made([1, 0, 0, 0]), copulas()), copulas()
    samples = stack.rvs(40_000, random_state=0)  # of normal distributions, so that scores are linear
    for i in range(N):
        np.testing.assert_allclose(np.corrcoef(samples[:, i].T), found[i], atol=0.03)


def test_rows_parts_and_pickles():
    stack, y = with_copulas(made([0.5, 0.1, 0.2, 0.2]), copulas()), np.zeros((N, D))
    score = stack.energy_score(y)
    assert stack[2].energy_score(y[2]) == score[2]
    joined = JointStack.concatenate([stack[:1], stack[1:]])
    np.testing.assert_array_equal(joined.copulas, stack.copulas)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(stack)).energy_score(y), score)
