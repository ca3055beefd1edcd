"""Conditional distributions of joint stacks against Bayes' theorem: samples, closed forms, and one expert at a time."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from ibug.distributions import JointMixtureParams, JointStack, MixtureParams, Neighborhood, Stack
from ibug.distributions.joint._conditional import TAIL, _Kernels, best_factor, kernel_factor
from ibug.exceptions import InvalidInputError

pytestmark = pytest.mark.once

N, D, K = 4, 3, 30
CORRELATION = np.array([[1, 0.6, -0.2], [0.6, 1, 0.1], [-0.2, 0.1, 1]])
COPULA = np.array([[1, -0.5, 0.3], [-0.5, 1, 0.0], [0.3, 0.0, 1]])


def made(weights, *, own_weights=(1.0, 0.0, 0.0), copula=COPULA, correlation=CORRELATION, errors=None, targets=None):
    """Return a joint stack with these weights; neighbours and errors are dependent."""
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(CORRELATION)
    if errors is None:
        errors = rng.normal(size=(60, D)) @ root.T
    if targets is None:
        targets = 0.7 * rng.normal(size=(80, D)) @ root.T
    mixtures = tuple(MixtureParams(np.array(own_weights), errors[:, j], 0.3, 0.2) for j in range(D))
    mixture = JointMixtureParams(np.array(weights), mixtures, errors, correlation, copula, np.ones(D))
    rows = np.array([rng.choice(len(targets), K, replace=False) for _ in range(N)])
    masses = rng.random((N, K)).astype(np.float32)
    near = Neighborhood(rows, masses / masses.sum(axis=1, keepdims=True), targets, None, K)
    loc, scale = 0.3 * rng.normal(size=(N, D)), 0.7 + 0.5 * rng.random((N, D))
    atoms, own_masses = rng.normal(size=(N, 5)), rng.random((N, 5))
    own = tuple(Stack(loc[:, j], scale[:, j], atoms, own_masses, mixtures[j]) for j in range(D))
    return JointStack(loc, scale, near, own, mixture)


def by_samples(stack, target, given, width, size=400_000):
    """Return mean and deviation of each row by brute force: samples, weighed by a narrow kernel around the values."""
    samples = stack.rvs(size, random_state=0)
    mean, deviation = np.empty(N), np.empty(N)
    for i in range(N):
        away = sum(np.square((samples[:, i, g] - y[i]) / width) for g, y in given.items())
        weights = np.exp(-0.5 * away)
        weights /= weights.sum()
        assert 1 / np.sum(weights**2) > 1000  # enough of them are near
        mean[i] = weights @ samples[:, i, target]
        deviation[i] = np.sqrt(weights @ np.square(samples[:, i, target] - mean[i]))
    return mean, deviation


@pytest.mark.parametrize("given", [[0], [0, 2]])
def test_normal_part_is_exact(given):
    stack = made([0, 1, 0, 0])
    y = np.random.default_rng(1).normal(size=(N, D))
    found = stack.conditional(1, {g: y[:, g] for g in given})
    for i in range(N):
        cov = np.diag(stack.scale[i]) @ CORRELATION @ np.diag(stack.scale[i])
        slopes = np.linalg.solve(cov[np.ix_(given, given)], cov[given, 1])
        mean = stack.loc[i, 1] + slopes @ (y[i, given] - stack.loc[i, given])
        deviation = np.sqrt(cov[1, 1] - slopes @ cov[given, 1])
        np.testing.assert_allclose([found.mean()[i], found.std()[i]], [mean, deviation])
        np.testing.assert_allclose(found.cdf(0.3)[i], norm(mean, deviation).cdf(0.3))
        np.testing.assert_allclose(found.logpdf(0.3)[i], norm(mean, deviation).logpdf(0.3))


def test_normal_distributions_under_a_copula_are_normal():
    """A copula of normal distributions is a normal distribution: but for points and a hundredth, the same as exact."""
    stack, exact = made([1, 0, 0, 0], copula=CORRELATION), made([0, 1, 0, 0])
    y = np.random.default_rng(1).normal(size=(N, D))
    given = {0: y[:, 0], 2: y[:, 2]}
    found, expected = stack.conditional(1, given), exact.conditional(1, given)
    np.testing.assert_allclose(found.mean(), expected.mean(), atol=1e-3)
    np.testing.assert_allclose(found.std(), expected.std(), rtol=2e-3)
    np.testing.assert_allclose(found.crps(y[:, 1]), expected.crps(y[:, 1]), rtol=2e-3)
    np.testing.assert_allclose(found.ppf([[0.05, 0.5, 0.95]]), expected.ppf([[0.05, 0.5, 0.95]]), atol=0.05)
    np.testing.assert_allclose(found.pdf(y[:, 1]), expected.pdf(y[:, 1]), atol=0.03)  # kernels are 0.3 deviations wide


@pytest.mark.parametrize(("given", "width", "error"), [([0], 0.03, 0.03), ([2, 0], 0.1, 0.06)])
def test_continuous_parts_by_samples(given, width, error):
    """Two experts that differ: shares by Bayes, and what each says beside the given values."""
    stack = made([0.6, 0.4, 0, 0])
    y = np.random.default_rng(2).uniform(-0.8, 0.8, size=(N, D))
    values = {g: y[:, g] for g in given}
    found = stack.conditional(1, values)
    mean, deviation = by_samples(stack, 1, values, width)
    np.testing.assert_allclose(found.mean(), mean, atol=error)
    np.testing.assert_allclose(found.std(), deviation, rtol=error)


def test_own_distributions_with_jumps_by_samples():
    """The wanted target may have jumps of its own: they get the probability that the copula leaves them."""
    stack = made([1, 0, 0, 0])
    jumping = made([1, 0, 0, 0], own_weights=(0.3, 0.2, 0.5))
    mixed = JointStack(
        stack.loc, stack.scale, stack.neighbors, (stack.own[0], jumping.own[1], stack.own[2]), stack.mixture
    )
    y = np.linspace(-0.8, 0.8, N)
    mean, deviation = by_samples(mixed, 1, {0: y}, 0.03)
    found = mixed.conditional(1, {0: y})
    np.testing.assert_allclose(found.mean(), mean, atol=0.03)
    np.testing.assert_allclose(found.std(), deviation, rtol=0.03)


def mean_of_points(found):
    """Return the means without the hundredth that has the tails."""
    tails = found.loc + 0.5 * found.scale * found.mixture.errors.mean()
    return (found.mean() - TAIL * tails) / (1 - TAIL)


@pytest.mark.parametrize("part", [2, 3])
def test_vectors_by_loops(part):
    stack = made(np.eye(4)[part])
    y = np.linspace(-1, 1, N)
    found = stack.conditional(2, {1: y})
    factor = kernel_factor(stack.mixture, 2, [1])
    assert factor == best_factor(stack.mixture.errors, 2, [1])
    for i in range(N):
        if part == 2:
            points = [stack.loc[i] + stack.scale[i] * e for e in stack.mixture.errors]
            masses = np.full(len(points), 1 / len(points))
        else:
            points = [stack.neighbors.targets[r] for r in stack.neighbors.rows[i]]
            masses = stack.neighbors.masses[i].astype(float)
        points = np.array(points)
        middle = masses @ points[:, 1]
        deviation = np.sqrt(masses @ np.square(points[:, 1] - middle))
        width = deviation * (4 / 3 * np.sum(masses**2)) ** 0.2
        weights = masses * norm.pdf((points[:, 1] - y[i]) / width / factor) if factor < np.inf else masses
        weights = weights / weights.sum()
        np.testing.assert_allclose(mean_of_points(found)[i], weights @ points[:, 2], 1e-4)


def test_total_probability():
    """Conditional distributions, averaged over what is given, are the marginal."""
    stack = made([0.3, 0.1, 0.3, 0.3], own_weights=(0.4, 0.3, 0.3))
    samples, places = stack.rvs(400, random_state=0), np.array([-1.0, -0.3, 0.4, 1.2])
    for i in range(N):
        rows = stack[np.full(400, i)]
        found = rows.conditional(1, {0: samples[:, i, 0]}).cdf(places[None, :]).mean(axis=0)
        np.testing.assert_allclose(found, stack.marginal(1)[i].cdf(places), atol=0.05)


def test_given_values_have_the_density_of_the_error_part():
    """So that experts are compared by what `pdf` says of each, also beyond the last error."""
    stack = made([0.1, 0, 0.9, 0])
    y = np.array([-1.0, 0.3, 4.0, 300.0])
    points = stack.loc[:, None] + stack.scale[:, None] * stack.mixture.errors
    masses = np.full(points.shape[:2], 1 / points.shape[1])
    own = stack.mixture.own[1]
    said = _Kernels.of(stack, 2, [1], y[:, None], 1.0).component(points, masses, [own.error_bandwidth], tailed=True)
    nothing = np.empty((N, 0))
    alone = Stack(stack.loc[:, 1], stack.scale[:, 1], nothing, nothing, replace(own, weights=np.array([0.0, 1.0, 0.0])))
    np.testing.assert_allclose(said.density, alone.logpdf(y), rtol=1e-10)


def test_shares_are_those_of_the_densities():
    """Of two experts of which one is far away from the given value, nothing is left of that one."""
    stack = made([0.5, 0, 0, 0.5], targets=np.random.default_rng(0).normal([50.0, 0, 7], size=(80, D)))
    near, far = stack.conditional(2, {0: 0.0}), stack.conditional(2, {0: 50.0})
    only = replace(stack.mixture, weights=np.array([1.0, 0, 0, 0]))
    alone = JointStack(stack.loc, stack.scale, stack.neighbors, stack.own, only).conditional(2, {0: 0.0})
    np.testing.assert_allclose(near.mean(), alone.mean(), atol=1e-6)
    assert np.all(np.abs(far.mean() - 7) < 1)


@pytest.mark.parametrize("part", range(4))
def test_independent_targets_keep_their_marginals(part):
    rng = np.random.default_rng(5)
    errors, targets = rng.normal(size=(127, D)), rng.normal(size=(80, D))
    stack = made(np.eye(4)[part], copula=np.eye(D), correlation=np.eye(D), errors=errors, targets=targets)
    y = rng.normal(size=(N, D))
    found, marginal = stack.conditional(0, {1: y[:, 1]}), stack.marginal(0)
    np.testing.assert_allclose(found.crps(y[:, 0]), marginal.crps(y[:, 0]), rtol=0.02)
    np.testing.assert_allclose(found.cdf(y[:, 0]), marginal.cdf(y[:, 0]), atol=0.02)
    assert best_factor(errors, 0, [1]) == np.inf


def test_perfect_dependence():
    rng = np.random.default_rng(6)
    errors = np.repeat(rng.normal(size=(127, 1)), D, axis=1)
    targets = np.repeat(rng.normal(size=(300, 1)), D, axis=1)
    ones = np.ones((D, D))
    stack = made([0.4, 0.2, 0.2, 0.2], copula=ones, correlation=ones, errors=errors, targets=targets)
    stack = JointStack(np.zeros((N, D)), np.ones((N, D)), stack.neighbors, stack.own, stack.mixture)
    plain = stack.own[0]
    own = tuple(Stack(np.zeros(N), np.ones(N), plain.atoms, plain.masses, plain.mixture) for _ in range(D))
    stack = JointStack(stack.loc, stack.scale, stack.neighbors, own, stack.mixture)
    y = np.array([-1.0, -0.2, 0.4, 1.1])
    for given in ({0: y}, {0: y, 2: y}):
        found = stack.conditional(1, given)
        np.testing.assert_allclose(found.mean(), y, atol=0.1)
        assert np.all(found.std() < 0.3 * stack.marginal(1).std())
        assert np.isfinite(found.logpdf(y)).all()


@pytest.mark.parametrize("weights", [[0.4, 0.2, 0.2, 0.2], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
@pytest.mark.parametrize("far", [1e3, 1e12, -1e300])
def test_values_far_from_everything(weights, far):
    stack = made(weights, own_weights=(0.3, 0.3, 0.4))
    found = stack.conditional(1, {0: np.full(N, far)})
    for value in (found.mean(), found.std(), found.ppf(0.9), found.crps(0.0), found.cdf(0.0)):
        assert np.isfinite(value).all()
    if weights[3] == 1:  # neighbours count by their masses: nobody is near
        np.testing.assert_allclose(found.masses.sum(axis=1), 1, rtol=1e-5)
        marginal = stack.marginal(1)
        np.testing.assert_allclose(mean_of_points(found), marginal.mean(), atol=1e-5)
    if weights[0] == 1:  # four normal scores, not more
        four = stack.own[0].from_normal_score(np.full(N, np.sign(far) * 4.0))
        np.testing.assert_allclose(found.median(), stack.conditional(1, {0: four}).median(), atol=0.2)


def test_own_distributions_that_end():
    """Without a normal part, values outside have infinite scores; shares stay what they were where nobody knows."""
    stack = made([0.5, 0, 0, 0.5], own_weights=(0.0, 0.5, 0.5))
    found = stack.conditional(1, {0: 1e200, 2: -1e200})
    assert np.isfinite(found.mean()).all()
    assert np.isfinite(found.ppf([[0.01, 0.5, 0.99]])).all()


def test_rows_and_the_contract():
    stack = made([0.3, 0.1, 0.3, 0.3], own_weights=(0.4, 0.3, 0.3))
    y = np.linspace(-1, 1, N)
    found = stack.conditional(1, {0: y, 2: 0.5})
    assert isinstance(found, Stack)
    assert len(found) == N
    one = stack[2].conditional(1, {0: y[2], 2: 0.5})
    assert one.shape == ()
    assert one.mean() == found.mean()[2] == found[2].mean()
    np.testing.assert_array_equal(one.ppf([0.1, 0.9]), found[2].ppf([0.1, 0.9]))
    np.testing.assert_array_equal(stack[1:3].conditional(1, {0: y[1:3], 2: 0.5}).cdf(0.1), found.cdf(0.1)[1:3])
    assert found.rvs(5, random_state=0).shape == (N, 5)
    np.testing.assert_array_equal(stack.conditional(-2, {-3: y, 2: 0.5}).mean(), found.mean())
    np.testing.assert_array_equal(stack.conditional(1, {}).mean(), stack.marginal(1).mean())
    samples = found.rvs(20_000, random_state=1)
    np.testing.assert_allclose(samples.mean(axis=1), found.mean(), atol=0.03)
    assert len(stack[:0].conditional(1, {0: np.empty(0)})) == 0


def test_many_rows_are_those_of_their_chunks():
    stack = made([0.3, 0.1, 0.3, 0.3])
    rows = stack[np.tile(np.arange(N), 300)]
    y = np.linspace(-1, 1, N)
    found = rows.conditional(0, {1: np.tile(y, 300)})
    np.testing.assert_array_equal(found.mean(), np.tile(stack.conditional(0, {1: y}).mean(), 300))


def test_few_errors_have_no_kernel():
    assert best_factor(np.zeros((2, D)), 0, [1]) == np.inf
    assert best_factor(np.zeros((20, D)), 0, [1]) == np.inf


def test_the_density_of_given_values_under_a_copula():
    """Shares of two own parts cannot be seen; of a copula and a normal part they are the ratio of both densities."""
    stack = made([0.5, 0.5, 0, 0])
    y = np.array([0.4, -0.6, 1.0, 0.0])
    other = np.array([-0.3, 0.2, 0.5, 1.0])
    found = stack.conditional(1, {0: y, 2: other})
    for i in range(N):
        cov = [np.diag(stack.scale[i]) @ matrix @ np.diag(stack.scale[i]) for matrix in (COPULA, CORRELATION)]
        density, mean = [], []
        for matrix in cov:
            away = np.array([y[i], other[i]]) - stack.loc[i, [0, 2]]
            inner = matrix[np.ix_([0, 2], [0, 2])]
            density.append(multivariate_normal(np.zeros(2), inner).pdf(away))
            mean.append(stack.loc[i, 1] + matrix[1, [0, 2]] @ np.linalg.solve(inner, away))
        expected = (density[0] * mean[0] + density[1] * mean[1]) / sum(density)
        np.testing.assert_allclose(mean_of_points(found)[i], expected, atol=2e-3)


def test_far_values_of_the_target_have_no_absurd_density():
    stack = made([0.3, 0.1, 0.3, 0.3])
    found = stack.conditional(1, {0: np.zeros(N)})
    assert (found.logpdf(found.loc + 1e3 * found.scale) > -35).all()  # a normal distribution says −500,000


def test_what_is_refused():
    stack = made([0.3, 0.1, 0.3, 0.3])
    y = np.zeros(N)
    for target, given, message in (
        (3, {0: y}, "from 0 to 2; got 3"),
        (1, {1: y}, r"Other targets than 1 can be given, each once; got \[1\]"),
        (1, {0: y, -3: y}, "each once"),
        (1, {4: y}, "from 0 to 2; got 4"),
        (1, {0: y[:2]}, r"an array of shape \(4,\); got the shape \(2,\)"),
        (1, {0: np.full(N, np.nan)}, "must be finite; NaN or infinite: 4"),
        (1, [0.3], r"as {0: values}; got \[0.3\]"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            stack.conditional(target, given)
