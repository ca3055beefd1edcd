"""The variance of neighbours against exact arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import variance_of_first

from ibug.spread import prefix_variances, variance


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    offset=st.sampled_from([0.0, 1.0, 1e6, -1e9]),
    unit=st.sampled_from([1e-12, 1.0, 1e12]),
    k_max=st.integers(1, 120),
)
def test_prefixes_equal_the_exact_variance(seed, offset, unit, k_max):
    rng = np.random.default_rng(seed)
    values = unit * (offset + rng.standard_cauchy(size=(4, k_max)))  # with outliers, also in the first place
    ks = sorted({1, (k_max + 1) // 2, k_max})
    expected = np.stack([variance_of_first(values, k) for k in ks], axis=1)
    np.testing.assert_allclose(prefix_variances(values, ks), expected, rtol=1e-9)
    np.testing.assert_allclose(variance(values), expected[:, -1], rtol=1e-9)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e12 + 0.1, -7e-13])
def test_equal_values_have_exactly_no_variance(value):
    values = np.full((2, 7), value)
    values[1, 6] += 1.0
    assert variance(values)[0] == 0.0
    np.testing.assert_array_equal(prefix_variances(values, [1, 3, 6]), np.zeros((2, 3)))
    assert prefix_variances(values, [7])[1, 0] > 0


def test_an_outlier_in_front_costs_little_precision():
    values = np.concatenate([[[1e9]], np.random.default_rng(0).normal(size=(1, 700))], axis=1)
    np.testing.assert_allclose(prefix_variances(values, [701])[0, 0], variance_of_first(values, 701)[0], rtol=1e-11)
