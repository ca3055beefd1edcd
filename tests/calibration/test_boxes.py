"""Joint boxes: what they are by definition, and their coverage over 200 splits."""

import numpy as np
import pytest
from scipy.stats import binom

from ibug.calibration import BoxCalibrator
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError

pytestmark = pytest.mark.once


def made(rng, n):
    """Return distributions of two targets that say too little spread, and what was observed: dependent, skewed."""
    loc = rng.normal(size=(n, 2))
    noise = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=n)
    noise[:, 1] = np.exp(noise[:, 1]) - 1.6
    return [Normal(loc[:, j], np.full(n, 0.5 + j)) for j in range(2)], loc + noise


def test_a_box_is_the_quantile_of_the_largest_score():
    rng = np.random.default_rng(0)
    marginals, y = made(rng, 99)
    scores = np.max([np.abs(y[:, j] - one.loc) / one.scale for j, one in enumerate(marginals)], axis=0)
    calibrator = BoxCalibrator.fit(marginals, y)
    assert calibrator.n_rows == 99
    lower, upper = calibrator.box(marginals, 0.9)
    end = np.sort(scores)[89]  # the ⌈100 · 0.9⌉-th smallest
    for j, one in enumerate(marginals):
        np.testing.assert_allclose(lower[:, j], one.loc - end * one.scale)
        np.testing.assert_allclose(upper[:, j], one.loc + end * one.scale)
    several = calibrator.box(marginals, [0.5, 0.9])
    assert several[0].shape == (99, 2, 2)
    np.testing.assert_array_equal(several[1][:, :, 1], upper)
    assert np.isinf(calibrator.box(marginals, 0.995)[1]).all()  # 99 rows cannot promise that
    back = BoxCalibrator.from_state(calibrator.state())
    np.testing.assert_array_equal(back.box(marginals, 0.9)[0], lower)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_coverage_over_200_splits(coverage):
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        held_out, new = made(rng, 60), made(rng, 20)
        lower, upper = BoxCalibrator.fit(*held_out).box(new[0], coverage)
        inside += ((lower <= new[1]) & (new[1] <= upper)).all(axis=1).sum()
    # Rows of one split share a quantile: of k of n ranks, whose coverage is Beta(k, n + 1 − k).
    exact = np.ceil(61 * coverage) / 61
    deviation = np.sqrt(exact * (1 - exact) * (1 / 4000 + 1 / 62 / 200))
    assert abs(inside / 4000 - exact) < 4 * deviation
    assert inside / 4000 > binom.ppf(1e-4, 4000, coverage) / 4000 - 4 * deviation


def test_weights():
    rng = np.random.default_rng(2)
    marginals, y = made(rng, 200)
    weights = np.r_[np.ones(100), np.full(100, 1e-12)]
    halves = [one[:100] for one in marginals]
    a, b = BoxCalibrator.fit(marginals, y, weights), BoxCalibrator.fit(halves, y[:100])
    np.testing.assert_allclose(a.box(marginals, 0.8)[1], b.box(marginals, 0.8)[1], rtol=1e-6)


def test_wrong_targets():
    marginals, y = made(np.random.default_rng(3), 5)
    with pytest.raises(InvalidInputError, match=r"shape \(n, 2\)"):
        BoxCalibrator.fit(marginals, y[:, :1])
