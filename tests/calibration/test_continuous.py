"""The continuous calibration against a fine grid, and what it promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibug import VarianceCalibrator
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import crps, nll

pytestmark = pytest.mark.once

SCORES = {"crps": crps, "nll": nll}


def data(n=400, gamma=0.4, delta=0.7, unit=1.0):
    rng = np.random.default_rng(0)
    variance = rng.exponential(size=n) ** 2
    mean = rng.normal(size=n)
    return unit * mean, unit**2 * variance, unit * (mean + rng.normal(size=n) * np.sqrt(gamma * variance + delta))


@pytest.mark.parametrize("scoring", ["crps", "nll"])
@pytest.mark.parametrize(("gamma", "delta"), [(0.4, 0.7), (1.0, 0.0), (25.0, 0.0), (0.0, 2.0), (1e-3, 1e-3)])
def test_no_pair_of_a_fine_grid_is_better(scoring, gamma, delta):
    mean, variance, y = data(gamma=gamma, delta=delta)
    variance = variance + 1e-6
    calibrator = VarianceCalibrator(scoring=scoring, method="continuous").fit(mean, variance, y)
    score = SCORES[scoring]
    found = score(y, Normal(mean, np.sqrt(calibrator.transform(variance))))
    size = np.mean((y - mean) ** 2)
    for a in np.geomspace(1e-4, 1e2, 40) * size / variance.mean():
        for b in np.append(0.0, np.geomspace(1e-6, 3, 40)) * size:
            assert found <= score(y, Normal(mean, np.sqrt(a * variance + b))) + 2e-3 * abs(found)


def test_both_are_recovered_from_many_rows():
    calibrator = VarianceCalibrator(scoring="nll", method="continuous").fit(*data(n=100_000))
    assert calibrator.gamma_ == pytest.approx(0.4, rel=0.03)
    assert calibrator.delta_ == pytest.approx(0.7, rel=0.03)


@pytest.mark.parametrize("scoring", ["crps", "nll"])
@pytest.mark.parametrize("unit", [2.0**-40, 1e6])
def test_it_does_not_depend_on_the_unit(scoring, unit):
    one, other = (VarianceCalibrator(scoring=scoring, method="continuous").fit(*data(unit=u)) for u in (1.0, unit))
    assert other.gamma_ == pytest.approx(one.gamma_, rel=1e-3)
    assert other.delta_ == pytest.approx(unit**2 * one.delta_, rel=1e-3)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), log_unit=st.floats(-12, 12))
@pytest.mark.parametrize("scoring", ["crps", "nll"])
def test_never_worse_than_none(scoring, seed, n, log_unit):
    rng = np.random.default_rng(seed)
    unit = 10.0**log_unit
    mean, y = unit * rng.normal(size=n), unit * rng.standard_cauchy(size=n)
    variance = unit**2 * rng.exponential(size=n) + 1e-300
    calibrator = VarianceCalibrator(scoring=scoring, method="continuous").fit(mean, variance, y)
    calibrated = calibrator.transform(variance)
    score = SCORES[scoring]
    assert score(y, Normal(mean, np.sqrt(calibrated))) <= score(y, Normal(mean, np.sqrt(variance)))
    assert calibrator.gamma_ >= 0
    assert calibrator.delta_ >= 0


def test_own_score_and_perfect_predictions():
    mean, variance, _ = data()
    calibrator = VarianceCalibrator(
        scoring=lambda y, distribution: abs(distribution.std().mean() - 3.0), method="continuous"
    )
    calibrator.fit(mean, variance, mean)  # no error at all
    assert np.sqrt(calibrator.transform(variance)).mean() == pytest.approx(3.0, rel=1e-3)


def test_unknown_method():
    with pytest.raises(InvalidInputError, match=r"method must be one of \['continuous', 'grid'\]; got 'newton'"):
        VarianceCalibrator(method="newton").fit(*data())
