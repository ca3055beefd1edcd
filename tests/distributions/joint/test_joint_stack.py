"""Joint stacks against their definition: samples by hand, sums over all points, and one target at a time."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from ibug.distributions import JointMixtureParams, JointStack, MixtureParams, Neighborhood, Stack
from ibug.distributions.joint import copula_points, mean_distances, normal_points, variogram
from ibug.exceptions import InvalidInputError

pytestmark = pytest.mark.once

N, D, K, N_TRAIN = 6, 3, 5, 40
WEIGHTS = np.array([0.3, 0.2, 0.5])  # of the normal part, the errors and the neighbours, where there is nothing else


BOUNDED = ((-0.5, np.inf), (-np.inf, np.inf), (-1.0, 0.4))


def made(apart, supports=((-np.inf, np.inf),) * D):
    """Return a joint stack; the share of the targets' own distributions is given, and their bounds."""
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(9, D)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0.2, 0, 1]])
    own = tuple(MixtureParams([0.5, 0.2, 0.3], errors[:, j], 0.3, 0.2, support=supports[j]) for j in range(D))
    correlation = np.array([[1, 0.6, -0.2], [0.6, 1, 0.1], [-0.2, 0.1, 1]])
    copula = np.array([[1, -0.5, 0.3], [-0.5, 1, 0.0], [0.3, 0.0, 1]])
    weights = np.array([apart, *((1 - apart) * WEIGHTS)])
    mixture = JointMixtureParams(weights, own, errors, correlation, copula, np.array([1.0, 2.0, 0.5]))
    rows = np.array([rng.choice(N_TRAIN, K, replace=False) for _ in range(N)])
    masses = rng.random((N, K + 3)).astype(np.float32)
    masses /= masses.sum(axis=1, keepdims=True)
    tables = rng.normal(size=(N_TRAIN, D)), rng.normal(size=(N_TRAIN, D))
    near = Neighborhood(rows, masses, *tables, K)
    loc, scale = rng.normal(size=(N, D)), 0.5 + rng.random((N, D))
    alone = tuple(Stack(loc[:, j], scale[:, j], rng.normal(size=(N, 4)), rng.random((N, 4)), own[j]) for j in range(D))
    return JointStack(loc, scale, near, alone, mixture)


@pytest.fixture(params=[0.4, 0.0])
def stack(request):
    return made(request.param)


@pytest.fixture(params=[(0.4,), (0.0,), (0.4, BOUNDED), (0.0, BOUNDED)], ids=str)
def any_stack(request):
    return made(*request.param)


@pytest.fixture
def plain():
    return made(0.0)


def points_of(stack, i):
    """Return errors and neighbours of one row as points with their probabilities, and the normal part's parameters."""
    near, mixture = stack.neighbors, stack.mixture
    targets = [near.targets[r] for r in near.rows[i]]
    residuals = [stack.loc[i] + near.residuals[r] for r in near.rows[i, :3]]
    errors = [stack.loc[i] + stack.scale[i] * e for e in mixture.errors]
    points = np.array(errors + targets + residuals)
    masses = np.concatenate([np.full(9, WEIGHTS[1] / 9), WEIGHTS[2] * near.masses[i].astype(float)])
    sizes = np.diag(stack.scale[i])
    return points, masses, sizes @ mixture.correlation @ sizes


def test_mean_and_covariance_by_definition(plain):
    stack = plain
    for i in range(N):
        points, masses, cov = points_of(stack, i)
        mean = WEIGHTS[0] * stack.loc[i] + masses @ points
        second = WEIGHTS[0] * (cov + np.outer(stack.loc[i], stack.loc[i])) + (points.T * masses) @ points
        np.testing.assert_allclose(stack.mean()[i], mean, rtol=1e-6)
        np.testing.assert_allclose(stack.cov()[i], second - np.outer(mean, mean), rtol=1e-5, atol=1e-7)


def test_variances_and_correlations(any_stack):
    stack = any_stack
    np.testing.assert_allclose(np.diagonal(stack.cov(), axis1=1, axis2=2), stack.var(), rtol=1e-6)
    correlation = stack.correlation()
    np.testing.assert_allclose(
        correlation[2, 0, 1], stack.cov()[2, 0, 1] / np.sqrt(stack.var()[2, 0] * stack.var()[2, 1]), rtol=1e-6
    )
    assert np.all(correlation[:, [0, 1, 2], [0, 1, 2]] == 1)


def test_a_marginal_is_the_mixture_of_its_parts():
    """Of the target's own distribution, and of the stack that the joint parts make."""
    stack, plain = made(0.4), made(0.0)
    y = np.linspace(-2, 2, N)
    for j in range(D):
        found, own, joint = stack.marginal(j), stack.own[j], plain.marginal(j)
        np.testing.assert_allclose(found.cdf(y), 0.4 * own.cdf(y) + 0.6 * joint.cdf(y), atol=1e-6)
        np.testing.assert_allclose(found.mean(), 0.4 * own.mean() + 0.6 * joint.mean(), atol=1e-6)
        np.testing.assert_allclose(found.pdf(y), 0.4 * own.pdf(y) + 0.6 * joint.pdf(y), atol=1e-6)


def test_a_marginal_is_the_stack_of_its_target(plain):
    stack, near = plain, plain.neighbors
    for j in range(D):
        atoms = np.concatenate(
            [near.targets[near.rows][:, :, j], stack.loc[:, [j]] + near.residuals[near.rows[:, :3]][:, :, j]], axis=1
        )
        expected = Stack(stack.loc[:, j], stack.scale[:, j], atoms, near.masses, stack.mixture.marginals[j])
        found = stack.marginal(j)
        y = np.linspace(-1, 1, N)
        for name in ("cdf", "logpdf", "crps"):
            np.testing.assert_allclose(getattr(found, name)(y), getattr(expected, name)(y), rtol=1e-6)
        np.testing.assert_allclose(stack.interval(0.8)[1][:, j], expected.interval(0.8)[1], rtol=1e-5)
        np.testing.assert_allclose(stack.ppf([0.1, 0.5])[:, j], expected.ppf([[0.1, 0.5]]), rtol=1e-5)
        np.testing.assert_allclose(stack.median()[:, j], expected.median(), rtol=1e-5)
    assert stack.interval([0.5, 0.9])[0].shape == (N, D, 2)
    np.testing.assert_array_equal(stack.marginal(-1).loc, stack.loc[:, 2])


def test_samples_have_the_moments_and_the_marginals(any_stack):
    stack = any_stack
    samples = stack.rvs(40_000, random_state=0)
    assert samples.shape == (40_000, N, D)
    np.testing.assert_allclose(samples.mean(axis=0), stack.mean(), atol=0.05)
    for i in range(N):
        np.testing.assert_allclose(np.cov(samples[:, i].T), stack.cov()[i], atol=0.08)
        for j in range(D):
            y = np.median(samples[:, i, j])
            np.testing.assert_allclose(stack.marginal(j).cdf(y)[i], np.mean(samples[:, i, j] <= y), atol=0.02)
    assert stack.rvs(random_state=1).shape == (N, D)
    np.testing.assert_array_equal(stack.rvs(3, random_state=1), stack.rvs(3, random_state=1))
    lower, upper = np.array([one.support for one in stack.mixture.own]).T
    assert np.all((samples >= lower) & (samples <= upper))
    generator = stack.rvs(2, random_state=np.random.default_rng(0))
    assert generator.shape == (2, N, D)


def test_energy_score_by_samples(any_stack):
    stack = any_stack
    y = np.random.default_rng(3).normal(size=(N, D))
    first, second = (stack.rvs(40_000, random_state=seed) / stack.mixture.unit for seed in (1, 2))
    away = np.sqrt(np.square(first - y / stack.mixture.unit).sum(axis=2)).mean(axis=0)
    apart = np.sqrt(np.square(first - second).sum(axis=2)).mean(axis=0)
    np.testing.assert_allclose(stack.energy_score(y), away - apart / 2, rtol=0.015)


def test_energy_score_of_points_is_exact(stack):
    """Without a continuous part, all is a sum over points."""
    mixture = replace(stack.mixture, weights=np.array([0.0, 0.0, 0.4, 0.6]))
    plain = JointStack(stack.loc, stack.scale, stack.neighbors, stack.own, mixture)
    y = np.random.default_rng(3).normal(size=(N, D))
    for i in range(N):
        points, masses, _ = points_of(stack, i)
        masses = np.concatenate([np.full(9, 0.4 / 9), 0.6 * stack.neighbors.masses[i].astype(float)])
        points, target = points / mixture.unit, y[i] / mixture.unit
        score = sum(m * np.linalg.norm(p - target) for m, p in zip(masses, points, strict=True))
        for m, p in zip(masses, points, strict=True):
            score -= 0.5 * m * sum(o * np.linalg.norm(p - q) for o, q in zip(masses, points, strict=True))
        np.testing.assert_allclose(plain.energy_score(y)[i], score, rtol=1e-6)
        expected = 0.0
        for a in range(D):
            for b in range(a + 1, D):
                mean = masses @ np.abs(points[:, a] - points[:, b]) ** 0.5
                expected += (abs(target[a] - target[b]) ** 0.5 - mean) ** 2
        np.testing.assert_allclose(plain.variogram_score(y)[i], expected, rtol=1e-5)


def test_distances_by_loops():
    rng = np.random.default_rng(0)
    points, weights, y = rng.normal(size=(4, 11, 3)), rng.random((4, 2, 11)), rng.normal(size=(4, 3))
    weights[:, 1, :6] = 0  # a measure on some of the points
    weights[2, 0] = 0
    to_target, to_each_other = mean_distances(points, weights, y)
    for i in range(4):
        for a in range(2):
            away = [np.linalg.norm(point - y[i]) for point in points[i]]
            np.testing.assert_allclose(to_target[i, a], weights[i, a] @ away)
            for b in range(2):
                apart = np.array([[np.linalg.norm(p - q) for q in points[i]] for p in points[i]])
                np.testing.assert_allclose(to_each_other[i, a, b], weights[i, a] @ apart @ weights[i, b])
    assert variogram(points, weights[:, 1], y, 1.0).shape == (4,)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_points_of_a_normal_distribution(d):
    correlation = 0.7 * np.ones((d, d)) + 0.3 * np.eye(d)
    points = normal_points(correlation)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(points.T @ points / len(points), correlation, atol=1e-12)
    rng = np.random.default_rng(0)
    y = rng.multivariate_normal(np.zeros(d), correlation, 20_000)
    exact = np.linalg.norm(y - 0.5, axis=1).mean()
    assert abs(np.linalg.norm(points - 0.5, axis=1).mean() - exact) < 0.01 * exact


def test_points_of_a_copula():
    correlation = np.array([[1, -0.8], [-0.8, 1]])
    points = copula_points(correlation)
    np.testing.assert_allclose(np.sort(points, axis=0), np.tile((np.arange(128)[:, None] + 0.5) / 128, 2))
    assert np.corrcoef(norm.ppf(points).T)[0, 1] == pytest.approx(-0.8, abs=0.03)


def test_targets_that_are_one(stack):
    """A correlation of 1 has no Cholesky factor, and samples all the same."""
    ones = replace(stack.mixture, correlation=np.ones((D, D)), copula=np.ones((D, D)))
    samples = JointStack(stack.loc, stack.scale, stack.neighbors, stack.own, ones).rvs(10, random_state=0)
    assert np.isfinite(samples).all()


def test_rows_and_pickles(stack):
    one, some = stack[2], stack[1:4]
    assert one.shape == (D,)
    assert some.shape == (3, D)
    np.testing.assert_array_equal(one.mean(), stack.mean()[2])
    np.testing.assert_array_equal(one.cov(), stack.cov()[2])
    assert one.rvs(7, random_state=0).shape == (7, D)
    assert one.rvs(random_state=0).shape == (D,)
    y = np.zeros((N, D))
    assert one.energy_score(y[2]) == stack.energy_score(y)[2]
    assert one.variogram_score(y[2]) == stack.variogram_score(y)[2]
    np.testing.assert_array_equal(one.crps(y[2]), stack.crps(y)[2])
    np.testing.assert_array_equal(one.interval(0.9)[0], stack.interval(0.9)[0][2])
    np.testing.assert_array_equal(one.ppf([0.2, 0.4]), stack.ppf([0.2, 0.4])[2])
    assert "one row" in repr(one)
    assert "6 rows, 3 targets" in repr(stack)
    back = pickle.loads(pickle.dumps(stack[:2]))
    assert len(back.neighbors.targets) < N_TRAIN  # nobody else's neighbours
    np.testing.assert_array_equal(back.energy_score(y[:2]), stack.energy_score(y)[:2])
    joined = JointStack.concatenate([stack[:2], stack[2:]])
    np.testing.assert_array_equal(joined.cov(), stack.cov())
    with pytest.raises(InvalidInputError, match="cannot be joined"):
        JointStack.concatenate([stack, back])
    for action in (lambda: one[0], lambda: len(one)):
        with pytest.raises(TypeError, match="single row"):
            action()
    with pytest.raises(IndexError):
        stack[N]


def test_what_is_refused(stack):
    with pytest.raises(InvalidInputError, match=r"must have the shape \(6, 3\); got \(6, 2\)"):
        stack.energy_score(np.zeros((N, 2)))
    with pytest.raises(InvalidInputError, match="from 0 to 2; got 3"):
        stack.marginal(3)
    with pytest.raises(InvalidInputError, match="above zero"):
        stack.variogram_score(np.zeros((N, D)), p=0)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        stack.interval(1.5)
    with pytest.raises(InvalidInputError, match="several in a list"):
        stack.ppf(np.zeros((2, 2)))
    for size in ((2, 3), -1, 2.0, True):
        with pytest.raises(InvalidInputError, match=r"None or one number m.*\(m, n, d\); got"):
            stack.rvs(size)
    mixture = stack.mixture
    wrong = {
        "errors": (mixture.errors[:, ::-1], "do not agree"),
        "correlation": (2 * np.eye(D), "no correlation matrix"),
        "copula": (-np.ones((D, D)) + 2 * np.eye(D), "no correlation matrix"),
        "weights": (np.array([1.0, 0.0, 0.0]), "four weights"),
        "own": (mixture.own[:1], "at least two"),
        "unit": (np.zeros(D), "above zero"),
    }
    for name, (value, message) in wrong.items():
        with pytest.raises(InvalidInputError, match=message):
            replace(mixture, **{name: value})


@pytest.mark.parametrize("name", ["pdf", "logpdf", "cdf"])
def test_there_is_no_joint_density_and_the_error_says_what_to_do(stack, name):
    for one in (stack, stack[0], pickle.loads(pickle.dumps(stack))):
        with pytest.raises(AttributeError, match=rf"no {name}: .*marginal\(j\)\.{name}.*energy_score"):
            getattr(one, name)(np.zeros(D))
        assert not hasattr(one, name)
    with pytest.raises(AttributeError, match="'JointStack' object has no attribute 'density'"):
        _ = stack.density
