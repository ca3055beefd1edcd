"""Have the data moved? Tests against the validation rows."""

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.exceptions import InvalidInputError
from ibug.metrics import Drift, pit
from ibug.rule import Reference


def rows(n, seed, *, shift=0.0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    X[:, 0] += shift
    return X, 4 * np.minimum(X[:, 0], 1) + noise * (0.2 + X[:, 1]) * rng.normal(size=n)


@pytest.fixture(scope="module")
def model():
    return GradientBoostingRegressor(n_estimators=40, random_state=0).fit(*rows(500, 0))


def fitted(model, n_val=400, **parameters):
    X_val, y_val = rows(n_val, 1)
    return IBUGRegressor(model, prefit=True, random_state=0, **parameters).fit(*rows(500, 0), X_val=X_val, y_val=y_val)


@pytest.fixture(scope="module")
def u(model):
    return fitted(model)


def test_numbers_are_those_of_scipy(model, u):
    X, y = rows(300, 2)
    result = u.monitor(X, y)
    X_val, y_val = rows(400, 1)
    expected = ks_2samp(u.affinity_score(X), u.affinity_score(X_val)).pvalue
    assert result["familiarity"].p_value == pytest.approx(expected)
    assert u.monitor(X)["familiarity"].p_value == pytest.approx(expected)
    d = u.predict_dist(X)
    transforms = ks_2samp(pit(y, d), pit(y_val, u.predict_dist(X_val)))
    assert result["pit"].p_value == pytest.approx(transforms.pvalue)
    lower, upper = d.interval(0.9)
    inside = int(np.sum((lower <= y) & (y <= upper)))
    assert result["coverage"].p_value == pytest.approx(binomtest(inside, 300, 0.9, alternative="less").pvalue)
    assert result["coverage"].observed == inside / 300
    smallest = min(test.p_value for test in result)
    assert result.p_value == pytest.approx(min(1, 3 * smallest))  # Holm


def test_alarms(u):
    assert not u.monitor(*rows(300, 3)).moved
    assert u.monitor(rows(300, 4, shift=0.7)[0]).moved
    louder = u.monitor(*rows(300, 5, noise=3.0))
    assert louder.moved
    assert louder["familiarity"].p_value > 0.01  # the rows are as they were
    assert louder["coverage"].observed < 0.8
    assert "The data have moved" in repr(louder)
    assert list(louder.to_frame().index) == ["familiarity", "pit", "coverage"]


@pytest.mark.parametrize("parameters", [{}, {"conformal": "distribution"}, {"distribution": "laplace"}])
def test_false_alarms_are_as_rare_as_they_ought_to_be(model, parameters):
    u = fitted(model, 1500, **parameters)
    alarms = [u.monitor(*rows(200, seed), alpha=0.1).moved for seed in range(10, 50)]
    assert sum(alarms) <= 9  # 4 are expected at most; with probability 0.99 no more


def test_after_recalibration_nothing_has_moved(model):
    u = fitted(model).recalibrate(*rows(500, 6, noise=3.0))
    assert not u.monitor(*rows(300, 7, noise=3.0)).moved
    assert u.monitor(*rows(300, 8)).moved


def test_what_is_kept_is_small_and_exact(model):
    u = fitted(model, 3000)
    kept = u.rule_.reference
    assert len(kept.familiarity) == len(kept.pit) == 1000
    expected = u.affinity_score(rows(3000, 1)[0])
    np.testing.assert_allclose(np.median(kept.familiarity), np.median(expected), atol=1e-3)
    again = Reference.from_state(kept.state())
    np.testing.assert_array_equal(again.pit, kept.pit)
    for wrong in ({"pit": np.array([2.0])}, {"pit": np.array([0.5, 0.1])}, {"familiarity": np.zeros(1001)}):
        with pytest.raises(InvalidInputError, match="impossible"):
            Reference.from_state({**kept.state(), **wrong})


def test_wrong_input(model, u):
    X, y = rows(30, 2)
    blind = IBUGRegressor(model, prefit=True, k=9, calibrate=False).fit(*rows(500, 0))
    with pytest.raises(InvalidInputError, match="does not know what its validation rows"):
        blind.monitor(X)
    with pytest.raises(InvalidInputError, match="alpha"):
        u.monitor(X, alpha=1)
    with pytest.raises(InvalidInputError, match="coverage"):
        u.monitor(X, y, coverage=90)
    with pytest.raises(ValueError, match="inconsistent"):
        u.monitor(X, y[:3])
    with pytest.raises(KeyError, match="no test 'pit'"):
        u.monitor(X)["pit"]
    assert isinstance(u.monitor(X), Drift)
