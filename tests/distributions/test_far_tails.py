"""Every family, with every calibration, at targets however far away: numbers, and quantiles in order."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr, stdtr

from ibug.calibration import DistributionConformal, ScaleConformal
from ibug.distributions import (
    KDE,
    Empirical,
    Gumbel,
    Laplace,
    Logistic,
    Mixture,
    MixtureParams,
    Normal,
    SkewNormal,
    Stack,
    StudentT,
    Truncated,
    Weibull,
    families,
)
from ibug.distributions import resolve_family as resolved

pytestmark = pytest.mark.once

N, K = 20, 12
DISTANCES = (0.0, 1.0, 50.0, 1e3, 1e6, 1e100, 1e300)
LEVELS = np.concatenate([10.0 ** -np.arange(300, 0, -23.0), [1e-18, 1e-17, 1e-16], np.linspace(0.01, 0.99, 9)])
LEVELS = np.sort(np.concatenate([LEVELS, 1 - 10.0 ** -np.arange(2.0, 16.0), [1 - 1e-16]]))
#: No density below the shift: these are the only log densities of −∞.
BOUNDED = {"lognormal", "weibull"}
CALIBRATIONS = ("none", "variance", "scale", "distribution")


def made(family, calibration, far):
    """Return distributions fitted to neighbours, calibrated on targets of which some are far away, and targets."""
    rng = np.random.default_rng(3)
    values = np.exp(0.5 * rng.normal(size=(N, K))) + rng.normal(10, 2, (N, 1))
    y = values[:, 0] + rng.normal(size=N)
    _, cls = resolved(family)
    scale = values.std(axis=1) if calibration != "variance" else np.sqrt(3.0 * values.var(axis=1) + 0.5)
    d = cls.fit(values, loc=values.mean(axis=1), scale=scale, **cls.prepare(values.ravel()))
    held_out = y + far * np.repeat([1.0, -1.0, 0.0, 0.0], N // 4)
    if calibration in ("scale", "distribution"):
        calibrator = ScaleConformal() if calibration == "scale" else DistributionConformal()
        d = calibrator.fit(d, held_out).transform(d)
    return d, y


CASES = [
    (f, c, far) for f in families() for c in CALIBRATIONS for far in (0.0, 50.0) if far == 0 or c in CALIBRATIONS[2:]
]


@pytest.mark.parametrize(("family", "calibration", "far"), CASES)
def test_far_targets(family, calibration, far):
    d, y = made(family, calibration, far)
    for distance in DISTANCES:
        for sign in (1, -1):
            target = y + sign * distance
            density = d.logpdf(target)
            assert not np.isnan(density).any()
            assert not np.isposinf(density).any()
            impossible = np.isneginf(density)
            if family not in BOUNDED or sign > 0:
                assert not impossible.any()
            else:
                assert np.array_equal(impossible, target <= getattr(d, "base", d).shift)
            probability = d.cdf(target)
            assert np.all((probability >= 0) & (probability <= 1))


@pytest.mark.parametrize(("family", "calibration", "far"), CASES)
def test_quantiles_are_in_order(family, calibration, far):
    d, _ = made(family, calibration, far)
    quantiles = d.ppf(LEVELS[None, :])
    assert np.isfinite(quantiles).all()
    # Rounding, of the quantiles' own size at most, is all that may go back.
    assert np.all(np.diff(quantiles, axis=1) >= -1e-12 * np.abs(quantiles[:, 1:]))
    assert np.isfinite(d.rvs(200, random_state=0)).all()
    assert np.isfinite(d.from_normal_score(np.array([[-1e5, -500.0, -38.0, 38.0, 500.0, 1e5]]))).all()


@pytest.mark.parametrize(
    "d",
    [
        Laplace([1.0], [2.0]),
        Logistic([1.0], [2.0]),
        Gumbel([1.0], [2.0]),
        StudentT([1.0], [2.0], [3.0]),
        StudentT([1.0], [2.0], [200.0]),
        SkewNormal([1.0], [2.0], [0.0]),
        SkewNormal([1.0], [2.0], [4.0]),
        SkewNormal([1.0], [2.0], [-4.0]),
    ],
    ids=repr,
)
def test_scores_and_values_are_inverse_in_the_far_tails(d):
    scores = np.concatenate([-np.geomspace(4, 1e4, 40), np.geomspace(4, 1e4, 40)])[None, :]
    values = d.from_normal_score(scores)
    inside = np.abs(values) < 1e140
    assert inside.sum() > 20
    assert np.allclose(d.normal_score(values)[inside], scores[inside], rtol=1e-9)
    assert np.all(np.diff(d.from_normal_score(np.sort(scores))) >= 0)


def test_the_far_tail_of_students_t():
    for df in (1.05, 2.1, 5.0, 30.0, 1000.0):
        z = -np.array([9.0, 12.0, 20.0, 25.0])
        z = z[stdtr(df, z) > 1e-290]
        assert np.allclose(StudentT._log_cdf(z, np.full(z.shape, df)), np.log(stdtr(df, z)), rtol=1e-12)
        p = 10.0 ** -np.arange(45.0, 300.0, 5.0)
        quantiles = StudentT(0.0, 1.0, df).ppf(p)
        assert np.all(np.diff(quantiles) <= 0)
        inside = (quantiles > -1e149) & (p < 1e-50)
        tail = StudentT._log_cdf(quantiles[inside], np.full(inside.sum(), df))
        assert np.allclose(tail, np.log(p[inside]), rtol=1e-12)


def test_the_quantile_that_was_infinite():
    assert StudentT(0.0, 1.0, 3.0).ppf(1e-238) == pytest.approx(-2.2257698e79, rel=1e-6)  # as C t^-3 is 1e-238


@pytest.mark.parametrize("alpha", [-8.0, -0.5, 0.0, 0.3, 1.0, 4.0, 50.0, 1e8])
def test_the_far_tail_of_the_skew_normal_distribution(alpha):
    for z in (-5.0, -8.0, -20.0):

        def log_density(t):
            return np.log(2) - t * t / 2 - 0.5 * np.log(2 * np.pi) + log_ndtr(alpha * t)

        width = 1 / (abs(z) + max(alpha, 0) * (abs(alpha * z) + 0.8))
        integral, _ = quad(
            lambda s, z=z, w=width: np.exp(log_density(z - s * w) - log_density(z)), 0, 60, epsabs=0, limit=400
        )
        expected = log_density(z) + np.log(width * integral)
        assert SkewNormal._log_cdf(np.array([z]), np.array([alpha]))[0] == pytest.approx(expected, rel=1e-12)
        assert SkewNormal(0.0, 1.0, -alpha).sf(-z) == pytest.approx(np.exp(expected), rel=1e-9, abs=0)
    if alpha == 0:
        assert SkewNormal(0.0, 1.0, 0.0).cdf(-30.0) == pytest.approx(ndtr(-30.0), rel=1e-12, abs=0)


@pytest.mark.parametrize("alpha", [1.0, 10.0, 1e3, 1e5, 1e8])
def test_scores_of_skew_normal_distributions_have_values_in_order_however_far(alpha):
    # Conformal calibration stretches scores to 1e8 and more where the fitted spread is far too small.
    scores = np.geomspace(1, 1e12, 400)
    for d, sign in ((SkewNormal(0.0, 1.0, alpha), -1), (SkewNormal(0.0, 1.0, -alpha), 1)):
        values = sign * d.from_normal_score(sign * scores)
        assert np.all(np.diff(values) > 0)
        np.testing.assert_allclose(sign * d.normal_score(sign * values), scores, rtol=1e-6)


def test_truncated_and_mixed_distributions_have_no_gaps():
    base, y = made("skewnormal", "none", 0.0)
    d = Truncated(base, 0.0, np.inf)
    assert np.isfinite(d.logpdf(y + 1e6)).all()
    assert np.all(np.diff(d.ppf(LEVELS[None, :]), axis=1) >= -1e-9)
    m = Mixture([base, made("student_t", "none", 0.0)[0]], [0.5, 0.5])
    assert np.isfinite(m.logpdf(y + 1e6)).all()


@pytest.mark.parametrize("family", families())
def test_rows_do_not_depend_on_the_batch(family):
    """Bit for bit: a cluster fits other batches than one machine does."""
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(0, 0.5, (300, 9))) + 5
    mean, std = values.mean(axis=1), values.std(axis=1) * rng.uniform(0.1, 3, 300)
    _, cls = resolved(family)
    options = cls.prepare(values.ravel())
    for moments in ({}, {"loc": mean, "scale": std}):
        whole = cls.fit(values, **moments, **options)
        for rows in (slice(0, 1), slice(17, 20), slice(100, 300)):
            part = cls.fit(values[rows], **{name: each[rows] for name, each in moments.items()}, **options)
            for level in (1e-200, 1e-9, 0.3, 0.95):
                assert np.array_equal(part.ppf(level), whole.ppf(level)[rows])
            assert np.array_equal(part.logpdf(values[rows]), whole.logpdf(values)[rows])


FAR_OUT = {
    "normal": Normal([0.0], [1.0]),
    "kde": KDE([[0.0, 0.5, 1.0]], [0.3]),
    "weibull": Weibull([1.0], [0.5], [2.0]),
    "empirical": Empirical([[0.0, 0.5, 1.0]]),
    "stack": Stack([0.0], [1.0], [[0.0, 0.5]], [[1.0, 1.0]], MixtureParams([0.5, 0.0, 0.5])),
}


@pytest.mark.parametrize("score", [30.0, 300.0, 3000.0, 9000.0])
@pytest.mark.parametrize("name", FAR_OUT)
def test_probabilities_have_digits_however_far_out_a_bound_is(name, score):
    """An error of the score counts as many times in a probability: of a bound 3,000 scores out, 3,000 times."""
    base = FAR_OUT[name]
    d = Truncated(base, float(base.from_normal_score(score)[0]), np.inf)
    p = np.array([[1e-3, 0.05, 0.5, 0.95, 0.999]])
    assert d.cdf(d.ppf(p)) == pytest.approx(p, abs=2e-7)
