"""VarianceCalibrator against plain loops, and what it promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from ibug import VarianceCalibrator
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import crps, nll
from tests.oracles import calibrate_by_grid

pytestmark = pytest.mark.once


def data(seed=0, n=300, factor=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    variance = rng.uniform(0.5, 2.0, n)
    mean = rng.normal(size=n)
    return mean, variance, mean + rng.normal(size=n) * np.sqrt(factor * variance + shift)


def scipy_nll(y, distribution):
    return -distribution.logpdf(y).mean()


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.0), (9.0, 0.0), (0.04, 0.0), (1.0, 5.0)])
def test_best_of_the_grid_is_found(factor, shift):
    mean, variance, y = data(factor=factor, shift=shift)
    calibrator = VarianceCalibrator(scoring="nll").fit(mean, variance, y)
    found = nll(y, Normal(mean, np.sqrt(calibrator.transform(variance))))
    assert found == pytest.approx(calibrate_by_grid(mean, variance, y, scipy_nll), rel=1e-12)
    assert found == pytest.approx(calibrator.scores_["score"].min(), rel=1e-12)


def test_a_factor_is_recognised():
    calibrator = VarianceCalibrator().fit(*data(n=5000, factor=25.0))
    assert (calibrator.gamma_, calibrator.delta_) == (25.0, 0.0)


def test_a_summand_is_recognised():
    calibrator = VarianceCalibrator(scoring="nll").fit(*data(n=5000, shift=5.0))
    assert (calibrator.gamma_, calibrator.delta_) == (1.0, 5.0)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 50), log_unit=st.floats(-12, 12))
@pytest.mark.parametrize("scoring", ["crps", "nll"])
def test_never_worse_than_none(scoring, seed, n, log_unit):
    rng = np.random.default_rng(seed)
    unit = 10.0**log_unit
    mean, y = unit * rng.normal(size=n), unit * rng.standard_cauchy(size=n)
    variance = unit**2 * rng.exponential(size=n) + 1e-300
    score = {"crps": crps, "nll": nll}[scoring]
    calibrated = VarianceCalibrator(scoring=scoring).fit(mean, variance, y).transform(variance)
    assert score(y, Normal(mean, np.sqrt(calibrated))) <= score(y, Normal(mean, np.sqrt(variance)))


def test_the_identity_wins_a_tie():
    calibrator = VarianceCalibrator(scoring=lambda y, distribution: 1.0).fit(*data())
    assert (calibrator.gamma_, calibrator.delta_) == (1.0, 0.0)


def test_own_score():
    mean, variance, y = data()
    calibrator = VarianceCalibrator(scoring=lambda y, distribution: distribution.std().mean()).fit(mean, variance, y)
    assert calibrator.gamma_ == 1e-8  # the narrowest


def test_a_score_of_nan_is_never_chosen():
    def score(y, distribution):
        return np.nan if distribution.std().mean() < 0.9 else crps(y, distribution)

    mean, variance, y = data()
    assert VarianceCalibrator(scoring=score).fit(mean, variance, y).transform(variance).mean() > 0.5


def test_scores_are_columns():
    scores = VarianceCalibrator().fit(*data()).scores_
    assert set(scores) == {"gamma", "delta", "score"}
    assert len({len(column) for column in scores.values()}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(4)}, r"same shape .*'y': \(4,\)"),
        ({"y": np.full(3, np.nan)}, "y contains NaN"),
        ({"mean": np.full(3, np.inf)}, "mean contains NaN or infinity"),
        ({"variance": np.zeros(3)}, "must be above zero; the smallest is 0"),
        ({"mean": [], "variance": [], "y": []}, "at least 1"),
    ],
)
def test_bad_input(change, message):
    arguments = {"mean": np.zeros(3), "variance": np.ones(3), "y": np.ones(3), **change}
    with pytest.raises(InvalidInputError, match=message):
        VarianceCalibrator().fit(**arguments)


@pytest.mark.parametrize("scoring", ["CRPS", "mse", None, 3])
def test_unknown_score(scoring):
    with pytest.raises(InvalidInputError, match=r"scoring must be one of \['crps', 'nll'\] or a function"):
        VarianceCalibrator(scoring=scoring).fit(*data())


def test_a_score_that_is_no_number():
    with pytest.raises(InvalidInputError, match=r"returned an array of shape \(300,\)"):
        VarianceCalibrator(scoring=lambda y, distribution: distribution.crps(y)).fit(*data())


def test_not_fitted():
    with pytest.raises(NotFittedError):
        VarianceCalibrator().transform([1.0])
