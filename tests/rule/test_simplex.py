"""Weights on the simplex against scipy's solver, EM and brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ibug.rule._stack import likeliest, quadratic_minimum

pytestmark = pytest.mark.once


def by_slsqp(gradient, curvature):
    n = len(gradient)
    found = minimize(
        lambda w: gradient @ w + 0.5 * w @ curvature @ w,
        np.full(n, 1 / n),
        jac=lambda w: gradient + curvature @ w,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(n)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return found.x


def by_em(log_density, prior, steps=20_000):
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    w = np.full(density.shape[1], 1 / density.shape[1])
    for _ in range(steps):
        share = (density * w / (density @ w)[:, None]).sum(axis=0)
        share[0] += prior
        w = share / share.sum()
    return w


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 100_000), n=st.integers(1, 9), rank=st.integers(0, 9))
def test_quadratic_minimum_is_that_of_slsqp(seed, n, rank):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, rank))
    curvature, gradient = root @ root.T, rng.normal(size=n)
    w = quadratic_minimum(gradient, curvature)

    def value(weights):
        return gradient @ weights + 0.5 * weights @ curvature @ weights

    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1.0)
    assert value(w) <= value(by_slsqp(gradient, curvature)) + 1e-8
    slope = gradient + curvature @ w
    assert slope.min() >= slope @ w - 1e-8  # no corner is further downhill


def test_distances_are_a_curvature():
    # Energy distances: −B is positive only between weights of the same sum.
    points = np.array([0.0, 1.0, 3.0, 3.0])
    distance = np.abs(points[:, None] - points)
    to_target = np.abs(points - 2.0)
    w = quadratic_minimum(to_target, -distance)
    best = min(
        (np.array([a, b, c, 1 - a - b - c]) for a in np.linspace(0, 1, 41) for b in np.linspace(0, 1 - a, 41)
         for c in np.linspace(0, 1 - a - b, 9)),
        key=lambda v: to_target @ v - 0.5 * v @ distance @ v,
    )  # fmt: skip
    assert to_target @ w - 0.5 * w @ distance @ w <= to_target @ best - 0.5 * best @ distance @ best + 1e-12


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_equal_experts_and_units(scale):
    gradient, curvature = (
        scale * np.array([1.0, 0.5, 0.5]),
        scale * np.array([[1.0, 0, 0], [0, 0.1, 0.1], [0, 0.1, 0.1]]),
    )
    w = quadratic_minimum(gradient, curvature)
    assert w[1] + w[2] == pytest.approx(quadratic_minimum(gradient[:2], curvature[:2, :2])[1])
    assert quadratic_minimum(np.array([2.0]), np.array([[1.0]])).tolist() == [1.0]
    assert quadratic_minimum(np.zeros(3), np.zeros((3, 3))).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(8))
def test_the_likeliest_weights_are_those_of_em(seed):
    rng = np.random.default_rng(seed)
    log_density = rng.normal(0, 2, (60, 2 + seed % 5)) - 5
    log_density[rng.random(log_density.shape) < 0.1] = -np.inf
    log_density[:, 0] = rng.normal(0, 1, 60) - 5
    expected, prior = by_em(log_density, 1.0), 1.0

    def loss(w):
        return -np.log(np.exp(log_density) @ w).sum() - prior * np.log(w[0])

    w = likeliest(log_density, prior)
    assert loss(w) <= loss(expected) + 1e-7
    np.testing.assert_allclose(w, expected, atol=2e-3)
    assert -np.log(np.exp(log_density) @ w).sum() <= -log_density[:, 0].sum() + 1e-9


def test_densities_too_small_for_numbers():
    w = likeliest(np.array([[-2000.0, -1e5], [-3000.0, -2.0], [-1.0, -np.inf]]))
    assert w[0] == pytest.approx(0.75)  # two rows and the prior against one row
