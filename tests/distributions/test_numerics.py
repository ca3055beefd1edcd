"""The batched root search on functions that mislead interpolation."""

import numpy as np
import pytest
from scipy.optimize import brentq

from ibug.distributions._numerics import solve_increasing

FUNCTIONS = {
    "line": lambda x: 3 * x - 1,
    "cube": lambda x: x**3,
    "steep": lambda x: np.arctan(1e8 * (x - 0.3)),
    "flat": lambda x: x**9 + 1e-9 * x,
    "exponential": lambda x: np.expm1(30 * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_roots_are_brents(name):
    function = FUNCTIONS[name]
    low, high = np.full(40, -2.0), np.linspace(1.0, 5.0, 40)
    target = np.linspace(0.01, 0.4, 40)
    expected = [brentq(lambda x, t=t: function(x) - t, -2.0, h, xtol=1e-15) for t, h in zip(target, high, strict=True)]
    found = solve_increasing(function, target, low, high)
    np.testing.assert_allclose(function(found), target, rtol=1e-6 if name == "steep" else 1e-11)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_few_steps_where_the_function_is_smooth():
    calls = []

    def function(x):
        calls.append(x)
        return np.arcsinh(x)

    solve_increasing(function, np.linspace(-2, 2, 1000), np.full(1000, -9.0), np.full(1000, 9.0))
    assert len(calls) <= 15


def test_a_jump_is_found():
    found = solve_increasing(
        lambda x: np.where(x < 1.25, -1.0, 1.0), np.zeros(3), np.array([-1e9, 0.0, 1.0]), np.array([1e9, 2.0, 1.5])
    )
    np.testing.assert_allclose(found, 1.25, rtol=1e-15)


def test_roots_at_the_ends_and_beyond_by_rounding():
    low, high = np.array([0.0, 0.0, 0.0, 5.0]), np.array([1.0, 1.0, 1.0, 5.0])
    found = solve_increasing(lambda x: x, np.array([0.0, 1.0, 1.0 + 1e-12, 5.0]), low, high)
    np.testing.assert_array_equal(found, [0.0, 1.0, 1.0, 5.0])


def test_infinite_values_do_not_stop_it():
    with np.errstate(divide="ignore"):
        found = solve_increasing(lambda x: np.log(x), np.array([-2.0]), np.array([0.0]), np.array([1.0]))
    np.testing.assert_allclose(found, np.exp(-2.0), rtol=1e-12)
