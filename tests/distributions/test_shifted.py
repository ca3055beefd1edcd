"""What distributions above a shift share: fits that keep moments, the learned shift, and values hard to fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibug.distributions import Lognormal, Weibull
from ibug.exceptions import InvalidInputError

pytestmark = pytest.mark.once

BOTH = pytest.mark.parametrize("family", [Lognormal, Weibull])


@BOTH
@given(
    mean=st.floats(0.01, 100),
    std=st.floats(1e-3, 1),
    unit=st.sampled_from([1e-12, 1.0, 1e12]),
    shift=st.floats(-10, 10),
)
@settings(deadline=None)
def test_moments_are_kept(family, mean, std, unit, shift):
    values = unit * (shift + np.array([[1.0, 2.0, 5.0]]))
    loc, scale = np.array([unit * (shift + mean)]), np.array([unit * std])
    distribution = family.fit(values, loc=loc, scale=scale, shift=unit * shift)
    np.testing.assert_allclose(distribution.mean(), loc, rtol=1e-11, atol=1e-11 * unit)
    np.testing.assert_allclose(distribution.std(), scale, rtol=1e-11, atol=1e-13 * unit)


@BOTH
def test_one_moment_is_kept(family):
    values = np.array([[1.0, 2.0, 6.0], [1.0, 1.0, 4.0]])
    distribution = family.fit(values, loc=np.array([4.0, 2.0]))
    np.testing.assert_allclose(distribution.mean(), [4.0, 2.0])
    distribution = family.fit(values, scale=np.array([0.5, 0.1]))
    np.testing.assert_allclose(distribution.std(), [0.5, 0.1])
    assert np.all(distribution.mean() > 0)


@BOTH
def test_means_below_the_support_are_put_just_above_it(family):
    distribution = family.fit(np.ones((3, 4)), loc=np.array([-5.0, -1.0, 2.0]), scale=np.full(3, 2.0), shift=-1.0)
    np.testing.assert_allclose(distribution.mean(), [-1 + 2e-3, -1 + 2e-3, 2.0])
    np.testing.assert_allclose(distribution.std(), 2.0)


HARD = {
    "identical": [3.0, 3.0, 3.0],
    "outlier": [1.0, 1.1, 0.9, 1e6],
    "low outlier": [1.0, 1.1, 0.9, 1e-9],
    "three": [1.0, 2.0, 4.0],
    "far from zero": [1e6, 1e6 + 1e-3, 1e6 - 2e-3],
    "one": [2.0],
}


@BOTH
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("values", HARD.values(), ids=HARD.keys())
@pytest.mark.parametrize("moments", ["", "loc", "scale", "both", "below", "none left"])
def test_hard_values(family, values, unit, moments):
    row = unit * np.array([values])
    kept = {
        "": {},
        "loc": {"loc": row[:, 0]},
        "scale": {"scale": row[:, 0] / 3},
        "both": {"loc": row[:, 0], "scale": row[:, 0] / 3},
        "below": {"loc": -row[:, 0], "scale": row[:, 0]},
        "none left": {"loc": -row[:, 0], "scale": np.full(1, 1e-300)},
    }[moments]
    distribution = family.fit(row, **kept)
    inside = np.concatenate([row[0], unit * np.array([1e-9, 0.5, 1.0, 1e9]), [1e-300, 1e-9, 1.0, 1e9, 1e200]])[None]
    assert np.all(np.isfinite(distribution.logpdf(inside)))
    assert np.all(np.isfinite(distribution.crps(inside)))
    assert np.all(np.isfinite(distribution.crps(-inside)))
    assert np.all(np.isfinite([distribution.mean(), distribution.std(), distribution.var()]))
    q = np.array([[1e-6, 0.1, 0.5, 0.9, 1 - 1e-6]])
    np.testing.assert_allclose(distribution.cdf(distribution.ppf(q)), q, atol=1e-6)
    assert np.all(distribution.ppf(q) >= 0)


@BOTH
def test_extreme_ratios_stay_numbers(family):
    distribution = family.fit(np.array([[1e-300, 1.0, 1e300]]))
    y = np.array([[1e-300, 1e-10, 1.0, 1e300]])
    for result in (
        distribution.logpdf(y),
        distribution.cdf(y),
        distribution.crps(y),
        distribution.mean(),
        distribution.std(),
        distribution.var(),
        distribution.ppf([[0.01, 0.99]]),
    ):
        assert np.all(np.isfinite(result))


@BOTH
def test_shift_is_zero_for_targets_above_zero(family):
    assert family.prepare(np.array([1e-9, 3.0, 5.0])) == {"shift": 0.0}


@BOTH
def test_shift_is_as_far_below_as_the_lower_tail_is_wide(family):
    rng = np.random.default_rng(0)
    gradual = rng.normal(size=5000)
    shift = family.prepare(gradual)["shift"]
    np.testing.assert_allclose(shift, 2 * gradual.min() - np.quantile(gradual, 0.05))
    piled = rng.poisson(0.7, 5000).astype(float)
    np.testing.assert_allclose(family.prepare(piled)["shift"], -0.05 * piled.std())
    for targets in (gradual, piled, 1e-12 * gradual, 1e12 * gradual):
        shift = family.prepare(targets)["shift"]
        assert shift < targets.min()
        assert np.all(np.isfinite(family.fit(targets.reshape(-1, 10), shift=shift).logpdf(targets.reshape(-1, 10))))


@BOTH
@pytest.mark.parametrize("targets", [[], [1.0, np.nan], [1.0, np.inf]])
def test_targets_that_are_not_finite(family, targets):
    with pytest.raises(InvalidInputError, match=f"{family.__name__} needs finite training targets: remove the rows"):
        family.prepare(np.array(targets))


@BOTH
def test_constant_targets(family):
    with pytest.raises(InvalidInputError, match='are all -2: check the targets, or choose distribution="normal"'):
        family.prepare(np.full(5, -2.0))


@BOTH
@pytest.mark.parametrize("value", [1.0, 0.5, np.nan, np.inf])
def test_values_outside_the_support(family, value):
    with pytest.raises(
        InvalidInputError, match=rf"{family.__name__} with shift 1 needs finite values above it.*prepare"
    ):
        family.fit(np.array([[2.0, value]]), shift=1.0)


@BOTH
def test_values_of_wrong_shape(family):
    with pytest.raises(InvalidInputError, match=r"shape \(n, k\); got \(3,\)"):
        family.fit(np.ones(3))


@BOTH
def test_no_rows(family):
    assert len(family.fit(np.empty((0, 5)))) == 0
    assert family.fit(np.empty((0, 5)), loc=np.empty(0), scale=np.empty(0)).mean().shape == (0,)


@BOTH
def test_blocks_of_rows_make_no_difference(family):
    values = np.random.default_rng(0).lognormal(size=(1000, 40))
    np.testing.assert_array_equal(family.fit(values)[[0, 999]].mean(), family.fit(values[[0, 999]]).mean())
