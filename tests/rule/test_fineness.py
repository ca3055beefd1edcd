"""How fine a target is, and residuals that are moved to the values it takes."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.distributions import DiscreteSupport
from ibug.exceptions import InvalidInputError
from ibug.rule._experts import Evidence, Experts, Nearest, Pooled, resolution, values_taken

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([5, 5, 6, 6, 7, 9], 1.0),
        ([1.0, 1.0, 1.0], 0.0),
        ([0, 0, 0, 1, 2, 50, 1000], 1.0),
        ([0.1, 0.3, 0.5], 0.2),
        ([], 0.0),
    ],
)
def test_resolution(targets, expected):
    assert resolution(targets) == pytest.approx(expected)


def test_resolution_of_a_continuous_target_is_small():
    assert resolution(np.random.default_rng(0).normal(size=2000)) < 0.005


def _targets(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "grades": lambda: rng.integers(3, 9, n).astype(float),
        "counts": lambda: rng.poisson(30, n).astype(float),
        "counts with a long tail": lambda: np.floor(np.exp(rng.normal(1, 1.5, n))),
        "readings": lambda: np.round(rng.normal(size=n), 1),
        "continuous": lambda: rng.normal(size=n),
        "many zeros": lambda: np.where(rng.random(n) < 0.7, 0.0, rng.gamma(2.0, size=n)),
        "all equal": lambda: np.ones(n),
        "fine readings": lambda: np.round(rng.normal(size=n), 4),
    }[kind]()


@pytest.mark.parametrize("kind", ["grades", "counts", "counts with a long tail", "readings"])
def test_values_of_a_target_that_takes_few(kind):
    y, others = _targets(kind, 500), _targets(kind, 3000, seed=1)
    assert values_taken(y, others).tolist() == sorted({*y, *others})


@pytest.mark.parametrize("kind", ["continuous", "many zeros", "all equal", "fine readings"])
def test_a_continuous_target_takes_any_value(kind):
    others = np.tile(_targets(kind, 100, seed=1), 30)  # the same neighbours of many rows
    assert len(values_taken(_targets(kind, 500), others)) == 0


def test_more_values_than_are_kept_count_as_continuous():
    y = np.repeat(np.arange(3000.0), 2)
    assert len(values_taken(y, y)) == 3000
    assert len(values_taken(y, np.arange(5000.0))) == 0
    assert len(values_taken(y[:0], y[:0])) == 0


def test_nearest_value():
    rng = np.random.default_rng(0)
    values, places = np.unique(np.round(rng.normal(size=40), 2)), rng.normal(0, 2, size=(50, 7))
    expected = values[np.abs(places[:, :, None] - values).argmin(axis=2)]
    np.testing.assert_array_equal(DiscreteSupport(values, 1e9).nearest(places), expected)
    assert DiscreteSupport(np.array([0.0, 1.0]), 1.0).nearest(np.array([0.5, -7.3, 8.4])).tolist() == [0.0, 0.0, 1.0]
    far = np.array([-1e308, 1e308])
    np.testing.assert_array_equal(DiscreteSupport(far, 1e308).nearest(np.array([-0.9e308, 0.9e308])), far)
    np.testing.assert_array_equal(DiscreteSupport().nearest(places), places)


def test_a_regular_grid_goes_on_between_rare_values_and_not_beyond_them():
    places = np.array([151.4, 151.6, 299.6, -2.2, 480.3])
    regular = DiscreteSupport(np.array([0.0, 1.0, 2.0, 3.0, 300.0]), 1.0)
    assert regular.nearest(places).tolist() == [151.0, 152.0, 300.0, 0.0, 300.0]
    irregular = DiscreteSupport(np.array([0.0, 1.0, 2.5, 3.0, 300.0]), 1.0)
    assert irregular.nearest(places).tolist() == [3.0, 300.0, 300.0, 0.0, 300.0]


@pytest.mark.parametrize("values", [[0.0, 1.0, 2.0], [0.0, 1.0, 2.5]])
def test_what_is_no_number_stays_so_and_is_refused(values):
    grid = DiscreteSupport(np.array(values), 1.0)
    assert np.isnan(grid.nearest(np.array([np.nan, 0.2]))).tolist() == [True, False]
    residuals = np.array([[np.nan, 0.0]])
    evidence = Evidence(np.zeros(1), np.ones(1), np.zeros((1, 2)), np.ones((1, 2)), residuals)
    with pytest.raises(InvalidInputError, match="finite"):
        evidence.arrays(Experts((Nearest(2),), (Nearest(2),)), grid)


def test_only_residuals_are_moved():
    evidence = Evidence(
        mean=np.array([0.4, 2.6]),
        scale=np.ones(2),
        targets=np.array([[0.3, 9.7], [1.0, 2.0]]),
        shares=np.array([[0.9, 0.5], [0.9, 0.5]]),
        residuals=np.array([[0.2, -0.2], [0.5, 70.0]]),
    )
    experts = Experts((Nearest(2),), (Nearest(2),), errors=False)
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    _, targets, moved, _, _ = evidence.arrays(experts, DiscreteSupport(values, 1.0))
    np.testing.assert_array_equal(targets, evidence.targets)
    np.testing.assert_array_equal(moved, [[1.0, 0.0], [3.0, 4.0]])


@pytest.mark.parametrize("decimals", [0, 3])
def test_residuals_of_a_model_become_values_that_occur(decimals):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(900, 3))
    y = np.round((5 * X[:, 0] + rng.normal(size=900)) / 10**decimals, decimals)
    model = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X[:500], y[:500])
    u = IBUGRegressor(model, prefit=True, random_state=0)
    u.fit(X[:500], y[:500], X_val=X[500:800], y_val=y[500:800])
    on_residuals = u.stack_["weight"][["residuals" in name for name in u.stack_["expert"]]]
    assert on_residuals.sum() > 0.1, "otherwise this tests nothing"
    distribution = u.predict_dist(X[800:])
    atoms = distribution.atoms[distribution.masses > 0]
    assert np.isin(atoms, y[:500]).all()


def test_values_are_part_of_the_state():
    pooled = Pooled(np.array([-1.0, 1.0]), values=np.array([1.0, 2.0]))
    assert Pooled.from_state(pooled.state()).values.tolist() == [1.0, 2.0]
    for wrong in ([2.0, 1.0], [1.0, 1.0], [np.nan], [[1.0]]):
        with pytest.raises(InvalidInputError, match="ascend"):
            Pooled.from_state(pooled.state() | {"values": wrong})
