"""Data drift that is looked for every night: ranks, wealth, what holds over all nights, and the log."""

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, kstest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import MultiOutputRegressor

from ibug import IBUGRegressor, load
from ibug.exceptions import InvalidInputError
from ibug.online import BettingTest, DriftMonitor, _drift_monitor
from tests.oracles import betting_wealth, conformal_p_value

pytestmark = pytest.mark.once

GRID = np.linspace(-4, 4, 400)
COARSE = np.array([-1.0, 0.0, 1.0])


class Known:
    """A generator whose uniform numbers are known, and which leaves rows in their order."""

    def __init__(self, seed):
        self.drawn = list(np.random.default_rng(seed).uniform(size=5000))

    def permutation(self, values):
        return values

    def uniform(self, size):
        found, self.drawn = self.drawn[:size], self.drawn[size:]
        return np.array(found)


def rows(n, seed, *, shift=0.0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    X[:, 0] += shift
    return X, 4 * np.minimum(X[:, 0], 1) + noise * (0.2 + X[:, 1]) * rng.normal(size=n)


def prefit(n_val=300, **parameters):
    train, (X_val, y_val) = rows(400, 0), rows(n_val, 1)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(*train)
    return IBUGRegressor(model, prefit=True, random_state=0, **parameters).fit(*train, X_val=X_val, y_val=y_val)


@pytest.fixture(scope="module")
def u():
    return prefit()


@pytest.mark.parametrize("edges", [GRID, COARSE])
@pytest.mark.parametrize("n_reference", [0, 1, 70])
def test_ranks_and_wealth_are_those_of_the_formulas(edges, n_reference, monkeypatch):
    monkeypatch.setattr(_drift_monitor, "_CHUNK", 16)
    rng, draws = np.random.default_rng(0), Known(1).drawn
    reference = rng.normal(size=n_reference)
    test, source = BettingTest.against(edges, reference), Known(1)
    earlier, nights, highest = list(np.searchsorted(edges, reference, "right")), [], 0.0
    for values in (rng.normal(size=50), rng.normal(size=1), rng.normal(size=0), rng.normal(0.8, size=120)):
        p_values = []
        for cell in np.searchsorted(edges, values, "right"):
            p_values.append(conformal_p_value(cell, earlier, draws.pop(0)))
            earlier.append(cell)
        if len(values):
            nights.append(p_values)
        test = test.after(values, source)
        wealth = betting_wealth(nights, _drift_monitor.STAKES)
        highest = max(0.0, np.log(max(wealth)))
        np.testing.assert_allclose(test.log_wealth, np.log(wealth[-1]))
        np.testing.assert_allclose(test.log_highest, highest, atol=1e-12)
    assert (test.n_rows, test.n_nights) == (171, 3)


def test_bets_are_fair():
    for bet in (lambda p: 2 * p - 1, lambda p: (3 * (2 * p - 1) ** 2 - 1) / 2):
        assert abs(quad(bet, 0, 1)[0]) < 1e-12
        assert min(1 + stake * bet(p) for stake in _drift_monitor.STAKES for p in (0, 0.5, 1)) > 0


@pytest.mark.parametrize("edges", [GRID, COARSE])
def test_p_values_are_independent_and_uniform_over_all_nights(edges):
    """Ranks among the reference alone would agree with each other: with few rows its error is everybody's error."""
    means, found = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        test = BettingTest.against(edges, rng.normal(size=10))
        p_values = [test.p_values(values := rng.normal(size=40), rng)]
        for _ in range(4):
            test = test.after(values, rng)
            p_values.append(test.p_values(values := rng.normal(size=40), rng))
        found.append(p_values[-1][0])
        means.append(np.mean(p_values))
    assert kstest(found, "uniform").pvalue > 0.001
    np.testing.assert_allclose(np.std(means), np.sqrt(1 / 12 / 200), rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("n_reference", [0, 40, 400])
def test_alpha_holds_for_a_hundred_nights_together(n_reference):
    n, alarms = 150, 0
    for seed in range(n):
        rng = np.random.default_rng(seed)
        test = BettingTest.against(GRID, rng.normal(size=n_reference))
        for _ in range(100):
            test = test.after(rng.normal(size=20), rng)
        alarms += test.log_highest >= np.log(20)
    assert alarms <= binom.ppf(0.999, n, 0.05)


@pytest.mark.parametrize(("shift", "scale"), [(0.4, 1.0), (-0.4, 1.0), (0.0, 1.3), (0.0, 0.65)])
@pytest.mark.parametrize(("n_reference", "calm"), [(400, 0), (400, 60), (0, 60)])
def test_drift_of_any_night_is_found(shift, scale, n_reference, calm):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        test = BettingTest.against(GRID, rng.normal(size=n_reference))
        for _ in range(calm):
            test = test.after(rng.normal(size=100), rng)
        assert test.log_highest < np.log(100)
        for _ in range(5):
            test = test.after(rng.normal(shift, scale, size=400), rng)
        assert test.log_highest > np.log(300)


def test_validation_rows_begin_the_ranks_where_new_rows_are_like_them(u):
    def known(u):
        return {name for name, test in DriftMonitor(u).tests_.items() if test.counts.sum()}

    every = {"similarity", "prediction", "pit"}
    assert known(u) == every
    assert {test.counts.sum() for test in DriftMonitor(u).tests_.values()} == {300}
    here = IBUGRegressor(GradientBoostingRegressor(n_estimators=10), random_state=0).fit(*rows(300, 0))
    assert known(here) == set()
    assert known(here.recalibrate(*rows(100, 5))) == every
    assert known(prefit().update(*rows(50, 6))) == {"prediction"}


@pytest.mark.parametrize("prepare", [prefit, lambda: IBUGRegressor(GradientBoostingRegressor()).fit(*rows(300, 0))])
def test_nights_of_a_model(prepare):
    nights = DriftMonitor(prepare())
    for night in range(10):
        assert nights.observe(*rows(100, 10 + night)) is nights
    assert not nights.drifted()
    assert len(nights.history_) == 10
    X, y = rows(300, 30, noise=3.0)
    nights.observe(X)
    assert not nights.drifted()  # only observed values show it
    nights.observe(X, y)
    assert nights.drifted()
    assert nights.p_value == nights.p_values["pit"] == nights.history_[-1]
    nights.observe(*rows(1000, 31))
    assert nights.drifted()  # an alarm stays
    assert nights.history_ == sorted(nights.history_, reverse=True)
    assert repr(nights).startswith("13 nights, p = ")


def test_similarity_and_predictions_show_rows_of_another_kind(u):
    for X in (rows(1000, 40, shift=0.15)[0], rows(1000, 41)[0] * [1, 1, 3]):
        assert DriftMonitor(u).observe(X).drifted()


def test_several_targets():
    X, y = rows(700, 12)
    Y = np.column_stack([X[:, 2], y])
    model = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=10)).fit(X[:400], Y[:400])
    u = IBUGRegressor(model, prefit=True).fit(X[:400], Y[:400], X_val=X[400:], y_val=Y[400:])
    nights = DriftMonitor(u).observe(rows(300, 13)[0])
    assert list(nights.p_values) == ["similarity", "prediction 0", "prediction 1"]
    assert not nights.drifted()
    assert nights.observe(rows(800, 14, shift=0.3)[0]).p_values["prediction 1"] < 0.01
    with pytest.raises(InvalidInputError, match="one target"):
        nights.observe(X, Y)


def test_a_log_goes_on_where_it_ended(u, tmp_path):
    path = tmp_path / "drift.json"
    u.save(tmp_path / "model.ibug")
    whole, parts = DriftMonitor(u, random_state=7), DriftMonitor(u, random_state=7)
    parts.save(path)
    for night in range(3):
        whole.observe(*rows(50, night))
        parts = DriftMonitor.load(path, load(tmp_path / "model.ibug")).observe(*rows(50, night))
        parts.save(path)
    assert parts.p_values == whole.p_values
    assert parts.history_ == whole.history_
    for name, test in parts.tests_.items():
        np.testing.assert_array_equal(test.counts, whole.tests_[name].counts)
        assert test.log_wealth == whole.tests_[name].log_wealth


def test_logs_of_other_models_and_damaged_ones_are_refused(u, tmp_path):
    path = tmp_path / "drift.json"
    DriftMonitor(u).observe(rows(50, 2)[0]).save(path)
    for other in (prefit(200), prefit().update(*rows(20, 3)), prefit().recalibrate(*rows(300, 4))):
        with pytest.raises(InvalidInputError, match="another model, or of this one before recalibrate"):
            DriftMonitor.load(path, other)
    right = json.loads(path.read_text())
    pit = right["tests"]["pit"]
    wrong = [
        [],
        {},
        {**right, "ibug_drift_log": 2},
        {**right, "random_state": -1},
        {**right, "history": [2.0]},
        *({**right, "tests": {**right["tests"], "pit": {**pit, name: value}}} for name, value in (
            ("edges", [0.5, 0.1]),
            ("counts", [[0], [-1]]),
            ("counts", [[0, 1], [1]]),
            ("counts", [[5000], [1]]),
            ("cash", 0.0),
            ("cash", "much"),
            ("log_highest", -1.0),
            ("log_highest", float("nan")),
            ("nights", True),
            ("rows", -1),
        )),
        {**right, "tests": {**right["tests"], "prediction": {**right["tests"]["prediction"], "log_capital": [0.0]}}},
    ]  # fmt: skip
    for text in ["", "no json", *map(json.dumps, wrong)]:
        path.write_text(text)
        with pytest.raises(InvalidInputError, match="is not a log of ibug"):
            DriftMonitor.load(path, u)
    with pytest.raises(FileNotFoundError):
        DriftMonitor.load(tmp_path / "absent.json", u)


def test_wrong_input(u):
    with pytest.raises(InvalidInputError, match="An IBUGRegressor is expected; got LinearRegression"):
        DriftMonitor(LinearRegression())
    with pytest.raises(ValueError, match="not fitted"):
        DriftMonitor(IBUGRegressor())
    with pytest.raises(InvalidInputError, match="whole number"):
        DriftMonitor(u, random_state=-1)
    nights = DriftMonitor(u)
    with pytest.raises(ValueError, match="inconsistent"):
        nights.observe(*rows(30, 2)[:1], [1.0])
    with pytest.raises(InvalidInputError, match="alpha"):
        nights.drifted(1)
    assert nights.history_ == []
