"""Intervals on a stream: the formulas, the guarantee, and what is kept in a file."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import NotFittedError

import ibug
from ibug import AdaptiveIntervals, IBUGRegressor
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.online import Tracker, _intervals
from tests.oracles import adaptive_level

pytestmark = pytest.mark.once

N = 3000


class Standard:
    """Predicts a standard normal distribution for every row."""

    def predict_dist(self, X):
        return Normal(np.zeros(len(X)), np.ones(len(X)))


def shifted(kind, seed=0):
    """Return truths that move away from a standard normal distribution."""
    t, noise = np.arange(N), np.random.default_rng(seed).normal(size=N)
    return {
        "none": noise,
        "sudden": noise + 4.0 * (t >= N // 3),
        "wider": noise * np.where(t < N // 3, 1.0, 3.0),
        "slow": noise * (1 + 3 * t / N),
    }[kind]


def inside(stream, truths, batch):
    """Return whether each truth was inside of the interval that was issued for it."""
    found = []
    for start in range(0, len(truths), batch):
        y = truths[start : start + batch]
        X = np.zeros((len(y), 1))
        lower, upper = stream.predict_interval(X).T
        found.append((lower <= y) & (y <= upper))
        stream.observe(X, y)
    return np.concatenate(found)


@pytest.mark.parametrize("batch", [1, 50])
@pytest.mark.parametrize("kind", ["none", "sudden", "wider", "slow"])
def test_coverage_in_the_long_run(kind, batch):
    truths, stream = shifted(kind), AdaptiveIntervals(Standard(), 0.9)
    found = inside(stream, truths, batch)
    assert 0.885 < found.mean() < 0.915
    assert (stream.n_observed_, stream.n_inside_) == (N, found.sum())
    if kind != "none":
        assert np.mean(np.abs(truths) < 1.645) < 0.75  # fixed intervals


def test_the_tracker_is_what_the_formulas_say():
    scores = np.random.default_rng(0).standard_t(3, size=200) + np.linspace(0, 3, 200)
    levels, _ = adaptive_level(scores, 0.95, _intervals.STEP_SIZES, _intervals.HORIZON, _intervals.CORRECTION)
    tracker, found = Tracker.at(0.95, 1.6448536269514722), []
    for score in scores:
        found.append(tracker.level)
        tracker = tracker.after(np.array([score]), int(score > tracker.level))
    np.testing.assert_allclose(found, levels, rtol=1e-9)


@pytest.mark.parametrize("batch", [1, 20])
def test_the_guarantee_holds_for_an_adversary(batch):
    """The truth is always far above the level, or far below it, whichever hurts more."""
    tracker, errors, far, n = Tracker.at(0.95, 1.6), 0, 0.0, 2000
    rng = np.random.default_rng(0)
    for _ in range(n // batch):
        mean = tracker.level - tracker.correction
        scores = mean + rng.choice([-1.0, 1.0], size=batch) * 3 * (1 if tracker.correction < 2 else -1)
        far = max(far, np.abs(scores - mean).max())
        above = int(np.sum(scores > tracker.level))
        errors += above
        tracker = tracker.after(scores, above)
    step = _intervals.CORRECTION
    assert abs(errors / n - 0.05) <= (far + step * batch) / (step * n)


def test_the_ends_follow_each_by_itself():
    stream = AdaptiveIntervals(Standard(), 0.9)
    inside(stream, shifted("sudden"), 1)
    lower, upper = stream.predict_interval(np.zeros((1, 1)))[0]
    assert 1.5 < lower < 3.1  # 4 - 1.645
    assert 4.9 < upper < 6.5


def test_impossible_truths_stay_numbers():
    stream = AdaptiveIntervals(Standard(), 0.9)
    for truth in (1e150, -1e150, 0.0):
        stream.observe([[0.0]], [truth])
    assert np.isfinite(stream.predict_interval([[0.0]])).all()


def test_whole_numbers_are_covered_as_often_as_asked_for():
    """Distributions with jumps: a truth is outside only where it is beyond an end."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 2))
    y = rng.poisson(1 + 3 * X[:, 0]).astype(float)
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X[:300], y[:300])
    u = IBUGRegressor(model, prefit=True).fit(X[:300], y[:300], X_val=X[300:500], y_val=y[300:500])
    stream, found = AdaptiveIntervals(u, 0.8), []
    for start in range(500, 1500, 10):
        rows, truths = X[start : start + 10], y[start : start + 10]
        lower, upper = stream.predict_interval(rows).T
        found.append((lower <= truths) & (truths <= upper))
        stream.observe(rows, truths)
    assert 0.78 < np.mean(found) < 0.9
    assert stream.n_inside_ == np.sum(found)


def test_saved_with_the_model(tmp_path):
    pytest.importorskip("skops")
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(300, 2)), rng.normal(size=300)
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=5), prefit=False, k=5, calibrate=False, spread="targets")
    stream = AdaptiveIntervals(u.fit(X, y), 0.8).observe(X[:50], 3 * y[:50])
    stream.save(tmp_path / "stream.ibug", metadata={"since": "Monday"})
    loaded = ibug.load(tmp_path / "stream.ibug")
    for other in (loaded, pickle.loads(pickle.dumps(stream))):
        np.testing.assert_array_equal(other.predict_interval(X), stream.predict_interval(X))
        assert (other.coverage, other.n_observed_, other.n_inside_) == (0.8, 50, stream.n_inside_)
    for each in (stream, loaded):
        each.observe(X, y)
    np.testing.assert_array_equal(loaded.predict_interval(X), stream.predict_interval(X))


@pytest.mark.parametrize("change", [{"weights": np.zeros(8)}, {"estimates": np.ones(7)}, {"loss": np.nan}])
def test_an_impossible_state_is_refused(change):
    state = Tracker.at(0.9, 1.0).state()
    with pytest.raises(InvalidInputError, match="impossible"):
        Tracker.from_state({**state, **change})


def test_wrong_input():
    with pytest.raises(InvalidInputError, match="predict_dist"):
        AdaptiveIntervals(GradientBoostingRegressor())
    with pytest.raises(NotFittedError):
        AdaptiveIntervals(IBUGRegressor())
    for coverage in (0, 1.0, 90):
        with pytest.raises(InvalidInputError, match="between 0 and 1"):
            AdaptiveIntervals(Standard(), coverage)
    with pytest.raises(InvalidInputError, match="one number"):
        AdaptiveIntervals(Standard(), [0.5, 0.9])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        AdaptiveIntervals(Standard()).observe(np.zeros((3, 1)), [1.0, 2.0])
