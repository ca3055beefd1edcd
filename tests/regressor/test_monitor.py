"""Data drift: tests of new rows against the validation rows."""

import numpy as np
import pytest
from scipy.stats import betabinom, binom, ks_2samp
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor

from ibug import IBUGRegressor, load
from ibug.exceptions import InvalidInputError
from ibug.metrics import Drift, pit
from ibug.rule import Reference

pytestmark = pytest.mark.once


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


def test_numbers_are_those_of_scipy(u):
    X, y = rows(300, 2)
    result = u.monitor(X, y)
    X_val, y_val = rows(400, 1)
    for name, asked in (("similarity", u.affinity_score), ("prediction", u.predict)):
        expected = ks_2samp(asked(X), asked(X_val)).pvalue
        assert result[name].p_value == pytest.approx(expected)
        assert u.monitor(X)[name].p_value == pytest.approx(expected)
    transforms, before = pit(y, u.predict_dist(X)), pit(y_val, u.predict_dist(X_val))
    assert result["pit"].p_value == pytest.approx(ks_2samp(transforms, before).pvalue)
    lower, upper = u.predict_interval(X, 0.9).T
    inside = int(np.sum((lower <= y) & (y <= upper)))
    assert result["coverage"].observed == inside / 300
    n_before = int(np.sum(np.abs(before - 0.5) <= 0.45))
    assert result["coverage"].expected == n_before / 400
    # Two of the validation rows are inside because their targets have fitted the distributions.
    expected = betabinom.cdf(inside, 300, n_before - 2, 401 - (n_before - 2))
    assert result["coverage"].p_value == pytest.approx(expected)
    smallest = min(test.p_value for test in result)
    assert result.p_value == pytest.approx(min(1, 4 * smallest))  # Holm


def test_alarms(u):
    assert not u.monitor(*rows(300, 3)).drifted
    assert u.monitor(rows(300, 4, shift=0.7)[0]).drifted
    louder = u.monitor(*rows(300, 5, noise=3.0))
    assert louder.drifted
    assert louder["similarity"].p_value > 0.01  # the rows are as they were
    assert louder["coverage"].observed < 0.8
    assert repr(louder).startswith("Data drift: 300 rows")
    assert list(louder.to_frame().index) == ["similarity", "prediction", "pit", "coverage"]


def prefit(n_val, **parameters):
    def prepare(model, seed):
        train, (X_val, y_val) = rows(300, seed + 2), rows(n_val, seed + 3)
        u = IBUGRegressor(model.fit(*train), prefit=True, random_state=0, **parameters)
        return u.fit(*train, X_val=X_val, y_val=y_val)

    return prepare


def trained_here(**parameters):
    return lambda model, seed: IBUGRegressor(model, random_state=0, **parameters).fit(*rows(400, seed + 2))


FITS = {
    "few rows": prefit(60),
    "conformal": prefit(250, conformal="scale"),
    "updated": lambda model, seed: prefit(200)(model, seed).update(*rows(200, seed + 4)),
    "clones": trained_here(),
    "split": trained_here(spread="targets"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_false_alarms_of_independent_fits_are_rare(name):
    n, alarms = 16, 0
    for seed in range(0, 10 * n, 10):
        u = FITS[name](GradientBoostingRegressor(n_estimators=20, random_state=0), seed)
        alarms += u.monitor(*rows(2000, seed + 1), alpha=0.05).drifted
    assert alarms <= binom.ppf(0.999, n, 0.05)


def trained_here_with_1000_rows(model, seed):
    return IBUGRegressor(model, random_state=0).fit(*rows(1000, seed))


@pytest.mark.parametrize("prepare", [prefit(500), trained_here_with_1000_rows])
def test_a_shift_of_half_a_standard_deviation_is_found(prepare):
    for seed in (0, 10):
        u = prepare(GradientBoostingRegressor(n_estimators=20, random_state=0), seed)
        X, y = rows(1000, seed + 1, shift=0.5 * np.sqrt(1 / 12))
        assert u.monitor(X).drifted
        assert u.monitor(X, y).drifted


def test_after_recalibration_nothing_has_drifted(model):
    u = fitted(model).recalibrate(*rows(500, 6, noise=3.0))
    assert not u.monitor(*rows(300, 7, noise=3.0)).drifted
    assert u.monitor(*rows(300, 8)).drifted


def test_what_is_compared(model):
    every = ["similarity", "prediction", "pit", "coverage"]
    new, fresh = rows(100, 9), rows(300, 10)
    u = fitted(model)
    assert [test.name for test in u.monitor(*new)] == every
    before = u.rule_.reference
    u.update(*rows(50, 11))  # affinity scores are those of another index now
    assert [test.name for test in u.monitor(*new)] == every[1:]
    np.testing.assert_array_equal(u.rule_.reference.prediction, before.prediction)
    here = IBUGRegressor(GradientBoostingRegressor(n_estimators=20), random_state=0).fit(*rows(300, 0))
    assert [test.name for test in here.monitor(*new)] == every[1:]
    for one in (u, here):
        assert one.rule_.reference.tolerance["pit"] > 0
        one.recalibrate(*fresh)
        assert [test.name for test in one.monitor(*new)] == every
        assert not any(one.rule_.reference.tolerance.values())


def test_each_of_several_targets_is_compared():
    X, y = rows(900, 12)
    Y = np.column_stack([X[:, 2], y])
    model = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=20)).fit(X[:400], Y[:400])
    u = IBUGRegressor(model, prefit=True).fit(X[:400], Y[:400], X_val=X[400:600], y_val=Y[400:600])
    p_values = [ks_2samp(*pair).pvalue for pair in zip(u.predict(X[600:]).T, u.predict(X[400:600]).T, strict=True)]
    assert u.monitor(X[600:])["prediction"].p_value == pytest.approx(min(1, 2 * min(p_values)))
    shifted = u.monitor(X[600:] + np.array([0.4, 0.0, 0.0]))
    assert shifted.drifted
    np.testing.assert_allclose(shifted.samples["prediction"][1], np.sort(u.predict(X[400:600])[:, 1]))


def test_models_that_predict_few_values_are_compared_as_well():
    """Clones of a model of one small tree predict other values than the model does, a few each."""
    stump = GradientBoostingRegressor(n_estimators=1, max_depth=1, random_state=0)
    for seed in range(5):
        X, y = rows(900, 20 + seed)
        assert not IBUGRegressor(stump, random_state=0).fit(X[:400], y[:400]).monitor(X[400:], y[400:]).drifted


def test_what_is_kept_is_small_and_exact(model, tmp_path):
    u = fitted(model, 3000)
    kept = u.rule_.reference
    assert len(kept.similarity) == len(kept.prediction) == len(kept.pit) == 1000
    expected = u.affinity_score(rows(3000, 1)[0])
    np.testing.assert_allclose(np.median(kept.similarity), np.median(expected), atol=1e-3)
    again = Reference.from_state(kept.state())
    np.testing.assert_array_equal(again.pit, kept.pit)
    impossible = (
        {"pit": np.array([2.0])},
        {"pit": np.array([0.5, 0.1])},
        {"similarity": np.zeros(1001)},
        {"prediction": np.zeros(3)},
        {"prediction": np.array([[np.nan]])},
        {"same_model": 1},
    )
    for wrong in impossible:
        with pytest.raises(InvalidInputError, match="impossible"):
            Reference.from_state({**kept.state(), **wrong})
    u.update(*rows(10, 3)).save(tmp_path / "model.ibug")
    X, y = rows(100, 4)
    assert repr(load(tmp_path / "model.ibug").monitor(X, y)) == repr(u.monitor(X, y))


def test_wrong_input(model, u):
    X, y = rows(30, 2)
    blind = IBUGRegressor(model, prefit=True, k=9, calibrate=False).fit(*rows(500, 0))
    with pytest.raises(InvalidInputError, match="no validation rows to compare"):
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
