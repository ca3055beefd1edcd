"""The stack, which distribution="auto" asks for, inside IBUGRegressor."""

import pickle
import tracemalloc
from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.distributions import Normal, Stack
from ibug.exceptions import NotCalibratedWarning
from ibug.explain import plain_neighbors
from ibug.metrics import coverage, crps, nll

pytestmark = pytest.mark.once

KINDS = {"spread": "U", "distribution": "U", "k": "i", "score": "f", "calibrated": "f", "reason": "U"}


def two_heaps(n, seed=0, *, whole=False):
    """Rows whose targets are in two heaps, so that no bell is right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    y = 10 * X[:, 0] + np.where(rng.uniform(size=n) < 0.3 + 0.4 * X[:, 1], 6.0, 0.0) + rng.normal(0, 0.5, n)
    return X, np.round(y) if whole else y


@cache
def boosted(n):
    """Return a model of the first rows of the usual data: regressors only read it."""
    X, y = two_heaps(750)
    return GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X[:n], y[:n])


def prefit(data=None, n_val=150, model=None, **parameters):
    X, y = two_heaps(750) if data is None else data
    n = len(y) - n_val if n_val else len(y)
    if data is None and model is None:
        model = boosted(n)
    else:
        model = GradientBoostingRegressor(n_estimators=30, random_state=0) if model is None else model
        model.fit(X[:n], y[:n])
    validation = {"X_val": X[n:], "y_val": y[n:]} if n_val else {}
    return IBUGRegressor(model, prefit=True, **{"random_state": 0, **parameters}).fit(X[:n], y[:n], **validation)


def the_reason(u):
    """Return the reason in the one row of the stack."""
    (row,) = np.flatnonzero(u.tuning_["distribution"] == "stack")
    return str(u.tuning_["reason"][row])


# Where there is a stack.


def test_it_is_the_default():
    u = prefit()
    assert IBUGRegressor().distribution == "auto"
    assert u.distribution_ == "stack"
    assert isinstance(u.predict_dist(two_heaps(5)[0]), Stack)
    assert the_reason(u) == ""
    weights = u.stack_["weight"]
    assert weights.sum() == pytest.approx(1)
    assert np.all(weights >= 0)
    assert weights[0] >= 1 / 151  # so that every value has a density
    assert {name: len(column) for name, column in u.stack_.items()} == dict.fromkeys(
        ("expert", "k", "weight", "score"), len(weights)
    )
    assert u.stack_["expert"][:2].tolist() == ["normal", "errors"]
    other = prefit(residuals="none")
    assert not any("residuals" in name for name in other.stack_["expert"])


def test_its_score_is_told():
    u = prefit()
    X, y = (part[600:] for part in two_heaps(750))
    assert u.tuning_["calibrated"][-1] == pytest.approx(crps(y, u.predict_dist(X)), rel=1e-9)
    normal = u.predict_dist(X)
    assert u.stack_["score"][0] == pytest.approx(crps(y, Normal(normal.loc, normal.scale)), rel=1e-6)


@pytest.mark.parametrize("scoring", ["crps", "nll"])
def test_trained_here_experts_look_at_residuals(scoring):
    X, y = two_heaps(400)
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=20), scoring=scoring, random_state=0).fit(X, y)
    assert u.distribution_ == "stack"
    assert any(name.startswith("residuals") for name in u.stack_["expert"])
    assert np.isfinite(u.predict_dist(X).logpdf(y)).all()


@pytest.mark.parametrize("refit", [True, False])
def test_a_part_is_held_out(refit):
    X, y = two_heaps(400)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0)
    u = IBUGRegressor(model, spread="targets", refit=refit, random_state=0).fit(X, y)
    assert u.distribution_ == "stack"
    assert u.source_.index.n_rows == (400 if refit else 320)
    assert u.predict_interval(X).shape == (400, 2)


@pytest.mark.parametrize("k", [2, 5, 20, 63, 300])
@pytest.mark.parametrize("trained", [True, False])
def test_a_given_k_bounds_the_experts(k, trained):
    X, y = two_heaps(400)
    u = prefit(k=k) if trained else IBUGRegressor(GradientBoostingRegressor(n_estimators=9), k=k).fit(X, y)
    assert u.k_ == k or (trained and u.k_ == 31)  # of a combination it is the middle one
    assert u.stack_["k"].max() == min(k, 63)
    assert max(u.rule_.needs.values()) <= k
    assert len(set(u.stack_["expert"])) == len(u.stack_["expert"])
    assert u.predict_var(X).shape == (400,)


def test_residuals_of_validation_rows_are_no_experts():
    model = GradientBoostingRegressor(n_estimators=30, subsample=0.7, random_state=0)  # it has no residuals of its own
    u = prefit(model=model, spread="residuals")
    assert u.distribution_ == "stack"
    assert not any("residuals" in name for name in u.stack_["expert"])
    assert np.isfinite(u.predict_interval(two_heaps(20)[0])).all()


# Where there is none, and why.


@pytest.mark.filterwarnings("ignore::ibug.exceptions.TooFewRowsWarning")
@pytest.mark.parametrize(
    ("n_val", "parameters", "reason"),
    [
        (0, {"k": 20}, "no validation rows"),
        (1, {}, "1 validation row,"),
        (9, {}, "9 validation rows"),
        (0, {"k": 20, "calibrate": False}, "calibrate=False"),
        (150, {"calibrate": False}, "calibrate=False"),
        (150, {"location": "neighbors"}, 'location="neighbors"'),
    ],
)
def test_the_reason_is_told(n_val, parameters, reason):
    if n_val == 0 and parameters.get("calibrate", True):
        with pytest.warns(NotCalibratedWarning):
            u = prefit(n_val=n_val, **parameters)
    else:
        u = prefit(n_val=n_val, **parameters)
    assert u.distribution_ == "normal"
    assert reason in the_reason(u)
    assert {name: column.dtype.kind for name, column in u.tuning_.items()} == KINDS
    assert {name: len(column) for name, column in u.stack_.items()} == dict.fromkeys(u.stack_, 0)
    if n_val or "calibrate" in parameters:
        plain, (X, _) = prefit(n_val=n_val, distribution="normal", **parameters), two_heaps(30, seed=9)
        np.testing.assert_array_equal(u.predict_quantiles(X), plain.predict_quantiles(X))
        assert "stack" not in plain.tuning_["distribution"]


def test_a_family_that_was_asked_for_says_nothing_of_stacks():
    assert "stack" not in prefit(distribution="normal").tuning_["distribution"]
    assert "stack" not in prefit(distribution=["normal", "laplace"]).tuning_["distribution"]


# Never worse than the normal distribution.


def own(y, distribution):
    lower, upper = distribution.interval(0.8)
    return float(np.mean(upper - lower + 10 * np.maximum(lower - y, 0) + 10 * np.maximum(y - upper, 0)))


@pytest.mark.parametrize("scoring", ["crps", "nll", own])
@pytest.mark.parametrize("n_val", [10, 40, 150])
@pytest.mark.parametrize("whole", [True, False])
def test_never_worse_than_the_normal_distribution_on_the_validation_rows(scoring, n_val, whole):
    data = two_heaps(600 + n_val, seed=n_val, whole=whole)
    stack, normal = (
        prefit(data, n_val, scoring=scoring, distribution=distribution) for distribution in ("auto", "normal")
    )
    score = {"crps": crps, "nll": nll}.get(scoring, scoring)
    X, y = (part[600:] for part in data)
    assert score(y, stack.predict_dist(X)) <= score(y, normal.predict_dist(X)) * (1 + 1e-9)


def test_a_users_own_score_chooses_among_both_stacks_and_the_normal_one():
    chosen = set()
    for wanted in (crps, nll, lambda y, d: float(isinstance(d, Stack))):
        u = prefit(scoring=lambda y, d, wanted=wanted: wanted(y, d))
        chosen.add((u.distribution_, None if (stack := u.rule_.parts[0].stack) is None else stack.scoring))
    assert chosen == {("stack", "crps"), ("stack", "nll"), ("normal", None)}
    u = prefit(scoring=lambda y, d: float(isinstance(d, Stack)))
    assert "normal distribution scored" in the_reason(u)


def test_it_is_better_on_new_rows_where_there_are_two_heaps():
    X, y = two_heaps(2000, seed=5)
    stack, normal = prefit(), prefit(distribution="normal")
    assert crps(y, stack.predict_dist(X)) < 0.95 * crps(y, normal.predict_dist(X))
    assert 0.85 < coverage(y, stack.predict_interval(X, 0.9)) < 0.95


# Hard targets.


@pytest.mark.parametrize("scoring", ["crps", "nll"])
@pytest.mark.parametrize(
    "targets",
    {
        "constant": lambda y: np.full_like(y, 3.0),
        "constant in training": lambda y: np.where(np.arange(len(y)) < 300, 3.0, y),
        "constant in validation": lambda y: np.where(np.arange(len(y)) < 300, y, 3.0),
        "two": lambda y: (y > 5).astype(float),
        "huge": lambda y: 1e150 * y,
        "tiny": lambda y: 1e-150 * y,
        "far": lambda y: y + 1e9,
    }.values(),
    ids=["constant", "constant in training", "constant in validation", "two", "huge", "tiny", "far"],
)
def test_hard_targets(targets, scoring):
    X, y = two_heaps(400)
    y = targets(y)
    d = prefit((X, y), 100, scoring=scoring).predict_dist(X)
    for values in (d.mean(), d.var(), d.ppf([[0.001, 0.5, 0.999]]), d.rvs(3, 0), d.crps(y), d.logpdf(y), *d.interval()):
        assert np.isfinite(values).all()
    assert np.all(np.diff(d.ppf([[0.1, 0.5, 0.9]]), axis=1) >= 0)


@pytest.mark.parametrize("n", [2, 3, 4, 10, 64, 65])
def test_few_training_rows(n):
    X, y = two_heaps(n + 60)
    u = prefit((X, y), 60)
    assert u.stack_["k"].max() <= n
    assert np.isfinite(u.predict_interval(X)).all()


def test_one_tree_and_missing_values():
    X, y = two_heaps(400)
    assert np.isfinite(prefit((X, y), model=GradientBoostingRegressor(n_estimators=1)).predict_interval(X)).all()
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.3] = np.nan
    u = prefit((X, y), model=HistGradientBoostingRegressor(max_iter=10))
    assert u.distribution_ == "stack"
    assert np.isfinite(u.predict_interval(X)).all()


def test_on_whole_numbers_the_neighbours_part_says_whole_numbers():
    X, y = two_heaps(750, whole=True)
    u = prefit((X, y))
    assert u.stack_["weight"][2:].sum() > 0.4
    d = u.predict_dist(X)
    occurs = np.isin(d.rvs(200, random_state=0), y)
    share = u.stack_["weight"][2:].sum()
    assert np.mean(occurs) == pytest.approx(share, abs=0.02)
    quantiles = u.predict_quantiles(X, np.linspace(0.01, 0.99, 99))
    assert np.mean(np.isin(quantiles, y)) > share - 0.1
    assert u.rule_.parts[0].stack.pooled.resolution == 1.0


@pytest.mark.filterwarnings("ignore::ibug.exceptions.TooFewRowsWarning")
@pytest.mark.parametrize("conformal", [None, "scale", "distribution"])
def test_nothing_is_outside_the_support(conformal):
    X, y = two_heaps(850)
    y = np.maximum(y - 5, 0)
    u = prefit((X, y), 250, support=(0, np.inf), conformal=conformal)
    assert u.distribution_ == "stack"
    d = u.predict_dist(X)
    for values in (u.predict_interval(X, 0.99), u.predict_quantiles(X, [1e-9, 0.001, 0.5]), d.rvs(20, 0), d.mean()):
        assert np.all(values >= 0)
    assert np.all(d.cdf(-1e-9) == 0)
    assert np.all(d.logpdf(-1e-9) == -np.inf)
    assert np.all(np.isfinite(d.logpdf(y)))


# What it leaves alone, and what is built on it.


def test_predict_is_the_models_own():
    X, _ = two_heaps(100, seed=3)
    u = prefit()
    np.testing.assert_array_equal(u.predict(X), u.estimator_.predict(X))
    assert not np.allclose(u.predict_dist(X).mean(), u.predict(X))  # another point prediction
    np.testing.assert_array_equal(u.predict_var(X), u.predict_dist(X).var())


def test_answers_in_batches_are_those_of_the_distribution(monkeypatch):
    X, _ = two_heaps(100, seed=3)
    u = prefit()
    whole = u.predict_dist(X)
    monkeypatch.setattr("ibug.neighbors._leaf_numbers._NUMBERS_PER_CHUNK", 60 * 7)
    np.testing.assert_array_equal(u.predict_interval(X, 0.8), np.stack(whole.interval(0.8), axis=1))
    np.testing.assert_array_equal(u.predict_quantiles(X, [0.2, 0.5]), whole.ppf([[0.2, 0.5]]))
    np.testing.assert_array_equal(u.predict_dist(X).ppf(0.3), whole.ppf(0.3))


def test_neighbours_of_the_same_search():
    X, _ = two_heaps(100, seed=3)
    u = prefit()
    for k in (None, 3, 200):
        distribution, affinities, indices = u.predict_with_neighbors(X, k)
        np.testing.assert_array_equal(distribution.ppf(0.3), u.predict_dist(X).ppf(0.3))
        for found, right in zip((affinities, indices), u.kneighbors(X, k), strict=True):
            np.testing.assert_array_equal(found, right)


def test_uncalibrated_is_the_papers_rule():
    X, _ = two_heaps(100, seed=3)
    plain = plain_neighbors(prefit(conformal="scale"))
    assert plain.distribution_ == "normal"
    assert len(plain.stack_["expert"]) == 0
    _, rows = plain.kneighbors(X)
    variance = np.maximum(plain.training_targets_[rows].var(axis=1), plain.rule_.min_variance)
    np.testing.assert_allclose(plain.predict_var(X), variance)
    np.testing.assert_allclose(plain.predict_dist(X).mean(), plain.predict(X))


def test_another_distribution():
    X, y = (part[600:] for part in two_heaps(750))
    u, same = prefit(), prefit()
    u.recalibrate(X, y, distribution=["normal", "laplace"])
    assert u.distribution_ in ("normal", "laplace")
    assert len(u.stack_["expert"]) == 0
    u.recalibrate(X, y, distribution="auto")
    np.testing.assert_array_equal(u.predict_quantiles(X), same.predict_quantiles(X))
    for name, column in same.stack_.items():
        np.testing.assert_array_equal(u.stack_[name], column)


def test_pickles_predict_the_same_bits():
    X, _ = two_heaps(100, seed=3)
    for u in (prefit(), prefit(conformal="distribution", n_val=250)):
        v = pickle.loads(pickle.dumps(u))
        assert v.predict_quantiles(X).tobytes() == u.predict_quantiles(X).tobytes()
        assert v.predict_dist(X).rvs(3, 0).tobytes() == u.predict_dist(X).rvs(3, 0).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("conformal", ["scale", "distribution"])
def test_conformal_calibration_keeps_its_guarantee(conformal, whole):
    X, y = two_heaps(500, whole=whole)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    shares = []
    for seed in range(30):
        X_new, y_new = two_heaps(500, seed=100 + seed, whole=whole)
        u = IBUGRegressor(model, prefit=True, conformal=conformal, random_state=seed)
        u.fit(X, y, X_val=X_new[:240], y_val=y_new[:240])
        assert u.distribution_ == "stack"
        shares.append(coverage(y_new[240:], u.predict_interval(X_new[240:], 0.8)))
    error = np.std(shares) / np.sqrt(30)
    assert np.mean(shares) > 0.8 - 4 * error
    if not whole:  # on whole numbers no interval holds exactly 80 %
        assert np.mean(shares) < 0.8 + 2 / 121 + 4 * error


# Memory.


def peak(function):
    tracemalloc.start()
    try:
        return function(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_distributions_of_many_rows_are_never_there_twice(monkeypatch):
    monkeypatch.setattr("ibug.neighbors._leaf_numbers._NUMBERS_PER_CHUNK", 2**18)  # small batches beside the whole
    u = prefit(two_heaps(900), 250, n_jobs=1)
    X, _ = two_heaps(75_000, seed=1)
    u.predict_dist(X[:10])
    d, used = peak(lambda: u.predict_dist(X))
    own = sum(getattr(d, name).nbytes for name in Stack.parameters)
    assert used < 1.6 * own, (used, own)  # with one batch of rows and its neighbours


@pytest.mark.parametrize("conformal", [None, "distribution"])
def test_memory_is_bounded(conformal):
    u = prefit(two_heaps(900), 250, conformal=conformal, n_jobs=1)
    X, _ = two_heaps(75_000, seed=1)
    u.predict_interval(X[:10])
    for ask in (u.predict_interval, u.predict_quantiles):
        answer, used = peak(lambda ask=ask: ask(X))
        assert used - answer.nbytes < 75e6  # 1 KB for each row would be as much again
    distribution = u.predict_dist(X[:1000])
    stack = distribution if conformal is None else distribution.base
    assert sum(getattr(stack, name).nbytes for name in stack.parameters) <= 1024 * 1000
