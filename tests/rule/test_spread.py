"""The variance of neighbours against exact arithmetic, and combinations of spreads against their formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ibug._compiled import spread as kernel
from ibug.exceptions import InvalidInputError
from ibug.rule._spread import Combination, Spread, around, fit_log_scale, prefix_variances, variance
from tests.oracles import combined_variance, penalised_score, variance_of_first

pytestmark = [pytest.mark.once, pytest.mark.kernel]

QUANTITIES = ("targets", "residuals")


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
    np.testing.assert_allclose(prefix_variances("targets", values, ks), expected, rtol=1e-9)
    np.testing.assert_allclose(variance("targets", values), expected[:, -1], rtol=1e-9)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e12 + 0.1, -7e-13])
def test_equal_values_have_exactly_no_variance(value):
    values = np.full((2, 7), value)
    values[1, 6] += 1.0
    assert variance("targets", values)[0] == 0.0
    np.testing.assert_array_equal(prefix_variances("targets", values, [1, 3, 6]), np.zeros((2, 3)))
    assert prefix_variances("targets", values, [7])[1, 0] > 0


def test_an_outlier_in_front_costs_little_precision():
    values = np.concatenate([[[1e9]], np.random.default_rng(0).normal(size=(1, 700))], axis=1)
    np.testing.assert_allclose(
        prefix_variances("targets", values, [701])[0, 0], variance_of_first(values, 701)[0], rtol=1e-11
    )


def test_targets_and_residuals():
    rng = np.random.default_rng(0)
    values, mean = rng.normal(3.0, 1.0, (5, 40)), rng.normal(size=5)
    np.testing.assert_allclose(variance("targets", values), values.var(axis=1))
    np.testing.assert_allclose(variance("residuals", values), (values**2).mean(axis=1))  # around zero: a bias counts
    np.testing.assert_array_equal(around("targets", values, mean), values)
    np.testing.assert_array_equal(around("residuals", values, mean), values + mean[:, None])
    for quantity in QUANTITIES:
        expected = np.stack([variance(quantity, values[:, :k]) for k in (1, 7, 40)], axis=1)
        np.testing.assert_allclose(prefix_variances(quantity, values, [1, 7, 40]), expected, atol=1e-14)


@pytest.fixture
def rows():
    """Validation rows whose error grows with the spread of few neighbours, and less with that of many."""
    rng = np.random.default_rng(1)
    near, far = np.exp(rng.normal(0, 0.7, 400)), np.exp(rng.normal(1, 0.3, 400))
    error = near**0.6 * far**0.3 * rng.normal(size=400)
    return np.stack([near**2, far**2], axis=1), error


FEATURES = (("residuals", 9), ("targets", 31))


def fit_spread(*known, **options):
    return Spread(FEATURES, Combination.fit(*known, **options))


@pytest.mark.parametrize("loss", ["crps", "nll"])
@pytest.mark.parametrize("n", [400, 60])
def test_the_fit_is_the_minimum_of_the_penalised_score(rows, loss, n):
    variances, error = rows[0][:n], rows[1][:n]
    logs = 0.5 * np.log(variances)
    start, features = logs[:, 0], logs - logs.mean(axis=0)
    intercept, exponents = fit_log_scale(start, features, error, loss)
    found = penalised_score(np.append(intercept, exponents), start, features, error, loss)
    tries = [
        minimize(penalised_score, x, (start, features, error, loss), method="Nelder-Mead", options={"maxiter": 4000})
        for x in (np.zeros(3), np.array([0.5, -0.5, 0.5]))
    ]
    assert found <= min(one.fun for one in tries) + 1e-6


def test_exponents_are_recovered_from_many_rows():
    rng = np.random.default_rng(0)
    near, far = np.exp(rng.normal(0, 0.7, 50_000)), np.exp(rng.normal(1, 0.3, 50_000))
    error = near**0.6 * far**0.3 * rng.normal(size=50_000)
    spread = fit_spread(np.stack([near**2, far**2], axis=1), error, loss="nll", tiny=1e-15)
    assert 1 + spread.combination.exponents[0] == pytest.approx(
        0.6, abs=0.02
    )  # the first spread is the start, of exponent 1
    assert spread.combination.exponents[1] == pytest.approx(0.3, abs=0.04)


def test_few_rows_stay_near_the_start():
    rng = np.random.default_rng(2)
    largest = []
    for _ in range(50):  # 60 rows whose errors have nothing to do with the second spread
        variances = np.exp(rng.normal(0, 1, (60, 2)))
        error = np.sqrt(variances[:, 0]) * rng.standard_t(3, size=60)
        spread = fit_spread(variances, error, loss="nll", tiny=1e-15)
        largest.append(np.abs(spread.combination.exponents).max())
    assert np.median(largest) < 0.2


def test_a_combination_is_its_formula(rows):
    variances, error = rows
    spread = fit_spread(variances, error, loss="crps", tiny=1e-15)
    new = np.concatenate([variances[:5], [[1e9, 1e-9], [0.0, 0.0]]])  # far out on both sides, and no variance
    np.testing.assert_allclose(spread.combine(new), combined_variance(spread.combination, variances, new), rtol=1e-10)
    rng = np.random.default_rng(0)
    neighbors = {"residuals": rng.normal(size=(6, 20)), "targets": rng.normal(size=(6, 31))}
    expected = np.stack([(neighbors["residuals"][:, :9] ** 2).mean(axis=1), neighbors["targets"].var(axis=1)], axis=1)
    np.testing.assert_allclose(spread.variance(neighbors), spread.combine(expected))
    assert spread.needs == {"residuals": 9, "targets": 31}
    assert (spread.quantity, spread.k) == ("residuals", 9)


@pytest.mark.parametrize("loss", ["crps", "nll"])
def test_a_combination_does_not_depend_on_the_unit(rows, loss):
    variances, error = rows
    one, other = (
        fit_spread(unit**2 * variances, unit * error, loss=loss, tiny=0.0).combine(unit**2 * variances) / unit**2
        for unit in (1.0, 2.0**30)
    )
    np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.parametrize("loss", ["crps", "nll"])
@pytest.mark.parametrize("variances", [np.zeros((20, 2)), np.ones((20, 2))])
@pytest.mark.parametrize("size", [0.0, 1.0])
def test_no_variance_and_no_error(loss, variances, size):
    error = size * np.random.default_rng(0).normal(size=20)
    result = fit_spread(variances, error, loss=loss, tiny=1e-15).combine(variances)
    assert np.all((result > 0) & np.isfinite(result))
    if size:
        assert result == pytest.approx(np.full(20, np.mean(error**2)), rel=0.2)


def test_a_spread_from_its_state(rows):
    variances, error = rows
    combined = fit_spread(variances, error, loss="crps", tiny=1e-15)
    again = Spread.from_state(combined.state())
    np.testing.assert_array_equal(again.combine(variances), combined.combine(variances))
    assert again.features == FEATURES
    assert Spread.from_state(Spread.of("residuals", 7).state()) == Spread.of("residuals", 7)
    for features in ([], [["leaves", 7]], [["targets", 0]], [["targets", 7], ["targets", 9]]):
        with pytest.raises(InvalidInputError, match="A spread is one of"):
            Spread.from_state({"features": features, "combination": None})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"floors": [1.0]}, "needs as many floors"),
        ({"exponents": [[0.1, 0.2]]}, "needs as many floors"),
        ({"centers": [np.nan, 0.0]}, "must be finite"),
        ({"intercept": np.inf}, "must be finite"),
        ({"floors": [1.0, -1.0]}, "must not be negative"),
    ],
)
def test_a_forged_combination_is_refused(change, message):
    features = (("residuals", 3), ("residuals", 9))
    state = Spread(features, Combination(*np.ones((5, 2)), intercept=0.0)).state()
    assert Spread.from_state(state).features == features
    with pytest.raises(InvalidInputError, match=message):
        Spread.from_state(state | {"combination": state["combination"] | change})


@pytest.mark.parametrize("name", QUANTITIES)
def test_a_row_alone_and_a_slice_have_what_a_batch_has(name):
    rng = np.random.default_rng(2)
    wide, ks = rng.normal(size=(6, 90)), [1, 9, 31, 31, 63]
    whole = prefix_variances(name, np.ascontiguousarray(wide[:, :63]), ks)
    np.testing.assert_array_equal(prefix_variances(name, wide[:, :63], ks), whole)
    np.testing.assert_array_equal(prefix_variances(name, wide[::-1][:, :63].copy(), ks), whole[::-1])
    for i in range(6):
        np.testing.assert_array_equal(prefix_variances(name, wide[i : i + 1, :63], ks)[0], whole[i])
    assert prefix_variances(name, wide[:0, :63], ks).shape == (0, 5)


def test_missing_values_stay_missing():
    values = np.array([[1.0, 2.0, np.nan, 4.0], [np.inf, 1.0, 2.0, 3.0]])
    found = prefix_variances("targets", values, [2, 4])
    assert found[0, 0] == 0.25
    assert np.isnan(found[0, 1])
    assert np.all(np.isnan(found[1]))
    assert np.isnan(combination().combine(np.array([[1.0, np.nan, 1.0]]))[0])


def combination(**changed):
    arrays = {
        "floors": np.array([0.1, 0.0, 1e-9]),
        "centers": np.array([0.3, -0.2, 1.0]),
        "lowest": np.array([-2.0, -1.0, -30.0]),
        "highest": np.array([2.0, 1.5, 40.0]),
        "exponents": np.array([0.5, 0.0, -0.25]),
        **changed,
    }
    return Combination(intercept=0.7, **arrays)


def test_logarithms_are_cut_and_each_row_is_by_itself():
    rng = np.random.default_rng(3)
    spread, variances = combination(), np.exp(rng.normal(0, 4, (40, 3)))  # many are beyond the range
    logs = np.clip(np.log(variances + spread.floors) / 2, spread.lowest, spread.highest)
    expected = np.exp(2 * (logs[:, 0] + 0.7 + (logs - spread.centers) @ spread.exponents))
    np.testing.assert_allclose(spread.combine(variances), expected, rtol=1e-13)
    np.testing.assert_array_equal(spread.combine(variances[7:8]), spread.combine(variances)[7:8])
    assert spread.combine(variances[:0]).shape == (0,)
    assert spread.combine(np.zeros((1, 3)))[0] > 0  # the logarithm of zero is cut, too


def test_compiled_functions_refuse_what_does_not_fit():
    values, out = np.ones((2, 5)), np.empty((2, 1))
    for ks in ([0], [6], [-1]):
        with pytest.raises(ValueError, match="ascending, from 1"):
            kernel.prefix_variances(values, np.array(ks), True, out)
    with pytest.raises(ValueError, match="ascending"):
        kernel.prefix_variances(values, np.array([3, 2]), True, np.empty((2, 2)))
    with pytest.raises(ValueError, match="side by side"):
        kernel.prefix_variances(np.ones((5, 2)).T, np.array([1]), True, out)
    with pytest.raises(ValueError, match="one after the other"):
        kernel.prefix_variances(values[::-1], np.array([1]), True, out)
    with pytest.raises(ValueError, match="the result must be"):
        kernel.prefix_variances(values, np.array([1, 2]), True, out)
    with pytest.raises(ValueError, match="each spread needs"):
        combination(exponents=np.ones(2)).combine(np.ones((4, 3)))


@pytest.mark.parametrize("name", QUANTITIES)
def test_values_of_other_types_and_layouts(name):
    values = np.random.default_rng(4).integers(0, 9, (5, 12)).astype(float)
    expected = prefix_variances(name, values, [2, 12])
    for other in (values.astype(np.float32), values.astype(int), np.asfortranarray(values), values.astype(">f8")):
        np.testing.assert_array_equal(prefix_variances(name, other, [2, 12]), expected)
    np.testing.assert_array_equal(prefix_variances(name, values[::-1], [2, 12]), expected[::-1])
    assert prefix_variances(name, values[:, :0], []).shape == (5, 0)
