"""The compiled fits, on every instruction set, against NumPy and scipy."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, stats

from ibug._compiled import likelihood

pytestmark = [pytest.mark.once, pytest.mark.kernel]

SETS = likelihood.instruction_sets()
FAMILIES = {
    "logistic": stats.logistic,
    "gumbel": stats.gumbel_r,
    "student_t": stats.t,
    "skewnormal": stats.skewnorm,
}
FINITE = st.floats(-1e6, 1e6, allow_nan=False)


def two(function, values, instruction_set):
    out = np.empty(len(values)), np.empty(len(values))
    function(values, *out, instruction_set)
    return out


def fit(family, values, instruction_set):
    parameters = np.empty((len(values), 3))
    center, spread = values.mean(axis=1), values.std(axis=1)
    likelihood.most_likely(family, values, center, spread, parameters, instruction_set)
    return parameters


def log_likelihood(family, row, loc, scale, shape):
    shapes = (shape,) if family in ("student_t", "skewnormal") else ()
    return FAMILIES[family].logpdf(row, *shapes, loc=loc, scale=scale).mean()


def skewed(n_rows, k, seed=0):
    rng = np.random.default_rng(seed)
    return 3 + rng.standard_t(5, (n_rows, k)) + rng.uniform(-2, 2, (n_rows, 1)) * rng.gamma(2, size=(n_rows, k))


def test_every_machine_has_the_baseline():
    assert SETS[0] == "baseline"


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 9, 63, 64, 65, 100, 701])
def test_moments_and_medians(instruction_set, k):
    values = skewed(50, k)
    center, spread = two(likelihood.moments, values, instruction_set)
    np.testing.assert_allclose(center, values.mean(axis=1), rtol=1e-13)
    np.testing.assert_allclose(spread, values.std(axis=1), rtol=1e-12, atol=1e-15)
    median, deviation = two(likelihood.median_deviation, values, instruction_set)
    np.testing.assert_allclose(median, np.median(values, axis=1), rtol=1e-15)
    np.testing.assert_allclose(
        deviation, np.abs(values - np.median(values, axis=1)[:, None]).mean(axis=1), rtol=1e-13, atol=1e-300
    )
    positive = np.exp(values)
    center, spread = two(likelihood.log_moments, positive, instruction_set)
    np.testing.assert_allclose(center, np.log(positive).mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(spread, np.log(positive).std(axis=1), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("instruction_set", SETS)
@given(row=arrays(np.float64, st.integers(1, 40), elements=st.one_of(FINITE, st.integers(-3, 3).map(float))))
def test_median_is_exact(instruction_set, row):
    median, _ = two(likelihood.median_deviation, row[None], instruction_set)
    lower, upper = np.sort(row)[[(len(row) - 1) // 2, len(row) // 2]]
    # Half of a subnormal number may be rounded, before the sum or, in a fused multiplication, after it.
    assert abs(median[0] - (upper if len(row) % 2 else lower / 2 + upper / 2)) <= np.finfo(float).smallest_subnormal


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize(
    "row",
    [
        [5.0] * 9,
        [1.0] * 50 + [2.0] * 50,  # the middle is between two ties
        [1.0] * 51 + [2.0] * 49,
        [1.0] * 49 + [2.0] * 51,
        [0.0] * 99 + [1e300],  # interpolation between the ends crawls here
        [-1e300] + [0.0, 1.0] * 30,
        list(2.0 ** np.arange(-300, 300, 3)),
    ],
)
def test_median_of_awkward_rows(instruction_set, row):
    median, _ = two(likelihood.median_deviation, np.array([row]), instruction_set)
    assert median[0] == np.median(row)


@pytest.mark.parametrize("instruction_set", SETS)
def test_log_moments_of_values_far_from_zero(instruction_set):
    values = 1e9 + np.arange(20.0)[None] * 1e-3
    _, spread = two(likelihood.log_moments, values, instruction_set)
    exact = np.log1p((values - values.min()) / values.min()).std()
    np.testing.assert_allclose(spread, exact, rtol=1e-6)


@functools.cache
def best_of_a_general_optimiser(family, n_rows, k, seed):
    """Return for each row of `skewed` the highest mean log likelihood that L-BFGS-B finds from several starts."""
    bounds = {"student_t": (np.log(1.05), np.log(1000)), "skewnormal": (-12.2, 12.2)}.get(family, (-1, 1))
    to_shape = {"student_t": np.exp, "skewnormal": np.sinh}.get(family, float)

    def search(row, t):
        def objective(p):
            # A value that is impossible under a very skewed distribution has no logarithm; differences need a number.
            return min(-log_likelihood(family, row, p[0], np.exp(p[1]), float(to_shape(p[2]))), 1e10)

        start = (row.mean(), np.log(row.std()), t)
        return -optimize.minimize(objective, start, bounds=[(None, None), (-5, 5), bounds], method="L-BFGS-B").fun

    return [max(search(row, t) for t in np.linspace(*bounds, 4)) for row in skewed(n_rows, k, seed)]


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_fit_is_as_likely_as_what_a_general_optimiser_finds(instruction_set, family):
    values = skewed(5, 40, seed=1)
    parameters = fit(family, values, instruction_set)
    ours = [log_likelihood(family, row, *p) for row, p in zip(values, parameters, strict=True)]
    assert np.all(ours >= np.array(best_of_a_general_optimiser(family, 5, 40, 1)) - 1e-6)


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("k", [2, 3, 8, 9, 257])
def test_sets_agree_and_fits_follow_location_and_scale(instruction_set, family, k):
    values = skewed(10, k, seed=2)
    reference = fit(family, values, "baseline")
    ours = fit(family, values, instruction_set)
    moved = fit(family, 100 + 7 * values, instruction_set)
    for row, a, b, c in zip(values, reference, ours, moved, strict=True):
        expected = log_likelihood(family, row, *a)
        assert log_likelihood(family, row, *b) == pytest.approx(expected, abs=1e-7)
        assert log_likelihood(family, 100 + 7 * row, *c) == pytest.approx(expected - np.log(7), abs=1e-6)


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("family", ["student_t", "skewnormal"])
def test_shape_for_given_moments_is_the_best_of_a_fine_grid(instruction_set, family):
    values = skewed(4, 50, seed=3)
    mean, std = values.mean(axis=1) + 0.3, 1.2 * values.std(axis=1)
    shape = np.empty(len(values))
    likelihood.most_likely_shape(family, values, mean, std, shape, instruction_set)
    grid = {"student_t": np.geomspace(2.1, 1000, 60), "skewnormal": np.sinh(np.linspace(-2.998, 2.998, 121))}[family]

    def at(row, m, s, candidate):
        unit = FAMILIES[family](candidate)
        scale = s / unit.std()
        return log_likelihood(family, row, m - scale * unit.mean(), scale, candidate)

    for row, m, s, ours in zip(values, mean, std, shape, strict=True):
        assert at(row, m, s, ours) >= max(at(row, m, s, c) for c in grid) - 1e-9


def test_refuses_arrays_that_do_not_fit():
    values = np.ones((3, 4))
    with pytest.raises(ValueError, match="as many rows"):
        likelihood.moments(values, np.empty(2), np.empty(3))
    with pytest.raises(ValueError, match="k of at least 1"):
        likelihood.moments(np.empty((3, 0)), np.empty(3), np.empty(3))
    with pytest.raises(ValueError, match="no compiled fit"):
        likelihood.most_likely("cauchy", values, np.ones(3), np.ones(3), np.empty((3, 3)))
    with pytest.raises(ValueError, match="no shape"):
        likelihood.most_likely_shape("gumbel", values, np.ones(3), np.ones(3), np.empty(3))
    with pytest.raises(ValueError, match="not available"):
        likelihood.moments(values, np.empty(3), np.empty(3), "neon9")
