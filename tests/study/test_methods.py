"""Each method on a tiny dataset predicts a proper distribution."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from benchmarks.common.quiet import quiet
from benchmarks.study import protocol
from benchmarks.study.methods import METHODS, SCORINGS, bart, boosters, importable, ngboost, quantile_forest
from ibug.distributions import Normal
from ibug.metrics import crps

pytestmark = pytest.mark.newest


@pytest.fixture(autouse=True)
def other_libraries_warn():
    """Warnings of other packages are theirs; the study silences them as well."""
    with quiet():
        yield


def require(name):
    package = METHODS[name].package
    if not importable(package):
        pytest.skip(f"{package} is not installed here; `make test-study` has it")


@pytest.fixture(scope="module")
def fitted(split):
    """Return a method that is fitted to the split, once for the tests that only ask it."""
    return cache(lambda name: METHODS[name]().fit(split))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_predicts_a_proper_distribution(name, rows, split, fitted):
    require(name)
    X, y = rows
    fitted = fitted(name)
    result = protocol.score(fitted, split, X[260:], y[260:])
    assert [(row["scoring"], row["calibrated"]) for row in result] == [
        (scoring, calibrated) for scoring in SCORINGS for calibrated in (True, False)
    ]
    for scoring in SCORINGS:
        moments = fitted.predict(X[260:], scoring)
        assert moments.mean.shape == moments.variance.shape == (60,)
        assert np.all(np.isfinite(moments.mean))
        assert np.all(moments.variance > 0)
        assert fitted.held_out[scoring].mean.shape == (60,)
        normal = Normal(moments.mean, np.sqrt(moments.variance))
        assert np.all(np.diff(normal.ppf(np.array([[0.05, 0.5, 0.95]])), axis=1) > 0)
    # It has learned something: better than the distribution of all targets.
    known = crps(y[260:], Normal(np.full(60, y[:260].mean()), np.full(60, y[:260].std())))
    assert result[0]["crps"] < 0.8 * known
    assert 0.5 < result[0]["coverage"] <= 1


@pytest.mark.parametrize("name", METHODS)
def test_a_method_gives_the_same_result_again(name, rows, split, fitted):
    """A run that was stopped and goes on must end as one that was not; global random numbers have moved on by then."""
    require(name)
    first = fitted(name)
    np.random.seed(1)  # noqa: NPY002 - what other packages may use
    again = METHODS[name]().fit(split)
    for scoring in SCORINGS:
        np.testing.assert_array_equal(*(each.predict(rows[0][260:], scoring) for each in (first, again)))


@pytest.mark.parametrize("name", METHODS)
def test_the_validation_rows_are_predicted_by_a_model_that_has_not_seen_them(name, split):
    """With targets of validation rows replaced by noise, a model that saw them would be nearer to them."""
    require(name)
    rng = np.random.default_rng(1)
    y_val = rng.normal(scale=50, size=len(split.y_val))
    noisy = type(split)(
        split.X_part, split.y_part, split.X_val, y_val, split.X_train, np.concatenate([split.y_part, y_val])
    )
    held_out = METHODS[name]().fit(noisy).held_out["crps"]
    assert np.std(held_out.mean) < 10


@pytest.mark.parametrize("name", METHODS)
def test_the_paper_grid_is_searched(name, rows, split, monkeypatch):
    require(name)
    monkeypatch.setattr(boosters, "TREES", (2, 10, 20))
    monkeypatch.setattr(boosters, "RATES", (0.1,))
    monkeypatch.setattr(boosters, "LEAVES", (4, 15))
    monkeypatch.setattr(boosters, "LEAST_ROWS", (5,))
    monkeypatch.setattr(boosters, "DEPTHS", (2, None))
    monkeypatch.setitem(bart.SETTINGS, "paper", ((5, 10), 2, 10))
    monkeypatch.setitem(ngboost.SETTINGS, "paper", (20, 0.1, 5, 1.0))
    monkeypatch.setitem(quantile_forest.SETTINGS, "paper", (10, (2, 10), (1.0,)))
    searched = type(split)(**{**split.__dict__, "grid": "paper"})
    fitted = METHODS[name]().fit(searched)
    assert np.all(fitted.predict(rows[0][260:], "nll").variance > 0)


@pytest.mark.parametrize(
    "booster", [boosters.CatBoost, boosters.LightGBM, boosters.XGBoost, boosters.HistGradientBoosting]
)
def test_the_search_finds_the_best_configuration(booster, split, monkeypatch):
    if not importable(booster.package):
        pytest.skip(f"{booster.package} is not installed here")
    monkeypatch.setattr(boosters, "TREES", (1, 30))
    monkeypatch.setattr(boosters, "RATES", (0.001, 0.2))
    monkeypatch.setattr(boosters, "LEAVES", (15,))
    monkeypatch.setattr(boosters, "LEAST_ROWS", (5,))
    monkeypatch.setattr(boosters, "DEPTHS", (3,))
    parameters, part = booster().tune_part(type(split)(**{**split.__dict__, "grid": "paper"}))
    assert parameters["trees"] == 30
    assert parameters["rate"] == 0.2
    np.testing.assert_allclose(
        booster().predict_first(part, split.X_val, 30), np.asarray(part.predict(split.X_val)), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("booster", "expected"),
    [
        (boosters.CatBoost, {"rate": 0.1, "depth": 2, "min_data_in_leaf": 1}),
        (boosters.UncertainCatBoost, {"rate": 0.1, "depth": 2, "min_data_in_leaf": 1}),
        (boosters.LightGBM, {"rate": 0.01, "num_leaves": 61, "min_child_samples": 1}),
        (boosters.XGBoost, {"rate": 0.1, "max_depth": 2, "min_child_weight": 1}),
        (boosters.HistGradientBoosting, {"rate": 0.01, "max_leaf_nodes": 61, "min_samples_leaf": 1}),
    ],
)
def test_the_full_grid_is_what_the_paper_selected(booster, expected, split):
    bike = replace(split, grid="full", dataset="Bike")
    assert booster().configuration(bike) == expected
    assert booster().configuration(replace(bike, dataset="Ames"))["rate"] == 0.1
    assert booster().configuration(replace(bike, dataset="a user's own")) == {"rate": boosters.QUICK_RATE}
    assert booster().configuration(replace(bike, grid="quick")) == {"rate": boosters.QUICK_RATE}


@pytest.mark.parametrize("name", METHODS)
def test_the_full_grid_runs(name, rows, split, monkeypatch):
    require(name)
    monkeypatch.setitem(boosters.LIMITS, "full", (20, 5))
    monkeypatch.setitem(bart.SETTINGS, "full", ((5,), 1, 10))
    monkeypatch.setitem(ngboost.SETTINGS, "full", (20, 0.1, 5, 1.0))
    monkeypatch.setitem(quantile_forest.SETTINGS, "full", (10, (2, 10), (1.0,)))
    fitted = METHODS[name]().fit(replace(split, grid="full", dataset="Ames"))
    assert np.all(fitted.predict(rows[0][260:], "nll").variance > 0)


def test_the_default_is_scored_by_its_own_distributions(rows, split):
    require("default-lightgbm")
    fitted = METHODS["default-lightgbm"]().fit(split)
    X, y = rows[0][260:], rows[1][260:]
    calibrated, plain = (row for row in protocol.score(fitted, split, X, y) if row["scoring"] == "crps")
    own = fitted.distribution(X, "crps", calibrated=True)
    assert calibrated["crps"] == float(np.mean(own.crps(y)))
    assert calibrated["rmse"] == pytest.approx(np.sqrt(np.mean((y - own.mean()) ** 2)))
    assert plain["crps"] != calibrated["crps"]
    assert calibrated["parameters"]["distribution"] in ("stack", "normal")


@pytest.mark.parametrize("name", METHODS)
def test_quantiles_rise_and_hold_the_interval(name, rows, fitted):
    require(name)
    fitted = fitted(name)
    quantiles = fitted.quantiles(rows[0][260:], np.array([0.01, 0.05, 0.5, 0.95, 0.99]))
    if quantiles is None:
        assert name not in ("cqr", "quantile-forest")
        return
    assert quantiles.shape == (60, 5)
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    ends, interval = quantiles[:, [1, 3]], fitted.interval(rows[0][260:], 0.9)
    assert np.all((ends - interval) * [1, -1] <= 1e-9)  # wider where a quantile model crosses the median's
    assert np.mean(np.isclose(ends, interval)) > 0.95


def test_scores_agree_with_the_papers_toolbox(rows, split):
    toolbox = pytest.importorskip("uncertainty_toolbox", reason="`make test-study` has it")
    y = rows[1][260:]
    rng = np.random.default_rng(2)
    mean, deviation = y + rng.normal(size=60), rng.uniform(0.5, 2, 60)
    ours = protocol.metrics(protocol.Moments(mean, np.square(deviation)), y)
    assert ours["crps"] == pytest.approx(toolbox.crps_gaussian(mean, deviation, y))
    assert ours["nll"] == pytest.approx(toolbox.nll_gaussian(mean, deviation, y))
    assert ours["check"] == pytest.approx(toolbox.check_score(mean, deviation, y))
    assert ours["interval"] == pytest.approx(toolbox.interval_score(mean, deviation, y))
    assert ours["mace"] == pytest.approx(toolbox.mean_absolute_calibration_error(mean, deviation, y), abs=1e-3)
    assert ours["sharpness"] == pytest.approx(toolbox.sharpness(deviation))
