"""Residuals and combinations inside IBUGRegressor: what is predicted, and whether it is better."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import IBUGRegressor, Sampling
from ibug.distributions import families, resolve_family
from ibug.metrics import crps, nll
from tests.oracles import nearest_rows

pytestmark = pytest.mark.once


def drifting(n, seed=0):
    """Rows whose mean moves fast at one end, while their noise depends on another feature."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 4))
    return X, np.exp(4 * X[:, 0]) + (0.2 + 2 * X[:, 1]) * rng.normal(size=n)


def boosting(n_trees=30):
    return GradientBoostingRegressor(n_estimators=n_trees, random_state=0)


def test_variance_of_residuals_is_the_calibrated_mean_square_of_the_neighbours(diabetes):
    X, _ = diabetes["test"]
    u = IBUGRegressor(boosting(), distribution="normal", spread="residuals", random_state=0)
    u.fit(*diabetes["train"])
    square = (u.residuals_[u.kneighbors(X)[1]] ** 2).mean(axis=1)
    np.testing.assert_allclose(
        u.predict_var(X), u.rule_.gamma * np.maximum(square, u.rule_.min_variance) + u.rule_.delta
    )


def test_variance_of_a_combination_is_its_formula(diabetes):
    X, _ = diabetes["test"]
    u = IBUGRegressor(boosting(), distribution="normal", random_state=0)
    u.fit(*diabetes["train"])
    assert (u.spread_, u.k_, u.rule_.delta) == ("combination", 31, 0.0)
    assert 0.8 < u.rule_.gamma <= 1  # errors of a model of all rows are smaller than those of the clones
    y = diabetes["train"][1]
    widest = u.rule_.needs["residuals"]
    assert widest in (63, 101, 240)  # each clone was trained on 240 rows
    rows = u.kneighbors(X, widest)[1]
    variances = [np.mean(u.residuals_[rows[:, :k]] ** 2, axis=1) for k in (31, 9, widest)]
    raw = u.rule_.parts[0].spread.combine(np.stack([*variances, y[rows[:, :31]].var(axis=1)], axis=1))
    np.testing.assert_allclose(u.predict_var(X), u.rule_.gamma * np.maximum(raw, u.rule_.min_variance))


def test_residuals_of_validation_rows_leave_the_row_itself_out(sampled_model, diabetes):
    model = sampled_model
    X, y = diabetes["train"]
    X_val, y_val = diabetes["validation"]
    u = IBUGRegressor(model, prefit=True, distribution="normal", spread="residuals", calibrate=False)
    u.fit(X, y, X_val=X_val, y_val=y_val)
    residuals = y_val - model.predict(X_val)
    np.testing.assert_array_equal(u.residuals_, residuals)
    leaves = model.apply(X_val)
    _, rows = nearest_rows(leaves, leaves, 80)
    others = np.array([row[row != i] for i, row in enumerate(rows)])
    expected = [
        crps(y_val, (model.predict(X_val), np.sqrt((residuals[others[:, :k]] ** 2).mean(axis=1))))
        for k in u.tuning_["k"]
    ]
    assert u.tuning_["k"].max() == 61
    np.testing.assert_allclose(u.tuning_["score"], expected)
    _, rows = nearest_rows(leaves, model.apply(diabetes["test"][0]), u.k_)
    square = np.maximum((residuals[rows] ** 2).mean(axis=1), u.rule_.min_variance)
    np.testing.assert_allclose(u.predict_var(diabetes["test"][0]), square)


def test_validation_rows_that_are_twins(rng):
    X = np.repeat(rng.uniform(size=(20, 2)), 5, axis=0)
    y = rng.normal(size=100)
    model = GradientBoostingRegressor(n_estimators=5).fit(X[:50], y[:50])
    u = IBUGRegressor(model, prefit=True, spread="residuals").fit(X[:50], y[:50], X_val=X[50:], y_val=y[50:])
    assert np.all(u.predict_var(X) > 0)


@pytest.mark.filterwarnings("ignore::ibug.exceptions.TooFewRowsWarning")
@pytest.mark.parametrize("scoring", ["crps", "nll"])
@pytest.mark.parametrize("distribution", ["normal", "auto"])
def test_auto_is_never_worse_than_the_papers_rule_on_the_validation_rows(model, diabetes, scoring, distribution):
    X_val, y_val = diabetes["validation"]
    score = {"crps": crps, "nll": nll}[scoring]
    for rows in (slice(None), slice(0, 60), slice(0, 5), slice(0, 1)):
        auto, paper = (
            IBUGRegressor(model, prefit=True, **parameters, scoring=scoring).fit(
                *diabetes["train"], X_val=X_val[rows], y_val=y_val[rows]
            )
            for parameters in ({"distribution": distribution}, {"distribution": "normal", "spread": "targets"})
        )
        assert score(y_val[rows], auto.predict_dist(X_val[rows])) <= score(y_val[rows], paper.predict_dist(X_val[rows]))
        assert np.nanmin(auto.tuning_["calibrated"]) <= np.nanmin(paper.tuning_["calibrated"])


def normal(estimator, spread):
    return IBUGRegressor(estimator, distribution="normal", spread=spread, random_state=0)


@pytest.mark.slow
def test_residuals_are_better_where_the_mean_moves():
    X, y = drifting(1500)
    test = drifting(1000, seed=1)
    scores = {
        spread: [
            crps(test[1], normal(estimator, spread).fit(X, y).predict_dist(test[0]))
            for estimator in (GradientBoostingRegressor(random_state=0), HistGradientBoostingRegressor(random_state=0))
        ]
        for spread in ("targets", "residuals", "auto")
    }
    for spread in ("residuals", "auto"):
        assert np.all(np.array(scores[spread]) < np.array(scores["targets"]))
        assert np.mean(scores[spread]) < 0.99 * np.mean(scores["targets"])


@pytest.mark.slow
def test_sixty_validation_rows_are_enough():
    X, y = drifting(700)
    X_test, y_test = drifting(1000, seed=1)
    model = GradientBoostingRegressor(random_state=0).fit(X[:600], y[:600])
    scores = {spread: [] for spread in ("targets", "auto")}
    for seed in range(5):
        rows = np.random.default_rng(seed).choice(np.arange(600, 700), 60, replace=False)
        for spread, found in scores.items():
            u = IBUGRegressor(model, prefit=True, spread=spread, scoring="nll", cv=None if spread == "targets" else 5)
            u.fit(X[:600], y[:600], X_val=X[rows], y_val=y[rows])
            found.append(nll(y_test, u.predict_dist(X_test)))
    assert np.mean(scores["auto"]) < np.mean(scores["targets"])
    assert np.max(scores["auto"]) < np.max(scores["targets"]) + 0.05


@pytest.mark.parametrize("spread", ["residuals", "auto"])
def test_chunks_and_threads_change_nothing(model, diabetes, spread, monkeypatch):
    X = diabetes["test"][0][:30]
    X_train, y_train = (part[:130] for part in diabetes["train"])  # each is a chunk
    X_val, y_val = diabetes["validation"]

    def predict(**options):
        u = IBUGRegressor(model, prefit=True, spread=spread, random_state=0, **options)
        return u.fit(X_train, y_train, X_val=X_val, y_val=y_val).predict_dist(X).ppf(0.9)

    for options in ({}, {"cv": 3}, {"distribution": "empirical"}):
        whole = predict(**options)
        for numbers_per_chunk in (1, 60 * 7):
            monkeypatch.setattr("ibug.neighbors._leaf_numbers._NUMBERS_PER_CHUNK", numbers_per_chunk)
            np.testing.assert_allclose(predict(**options), whole, rtol=1e-9)
            monkeypatch.undo()
        np.testing.assert_array_equal(predict(**options, n_jobs=2), whole)


@pytest.mark.parametrize("spread", ["targets", "residuals", "auto"])
def test_the_same_seed_gives_the_same_bits(diabetes, spread):
    X, _ = diabetes["test"]
    one, other, different = (
        IBUGRegressor(
            GradientBoostingRegressor(n_estimators=30, random_state=0), spread=spread, random_state=seed, n_jobs=n_jobs
        )
        .fit(*diabetes["train"])
        .predict_var(X)
        for seed, n_jobs in ((3, None), (3, 2), (4, None))
    )
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, different)


def test_auto_does_not_depend_on_the_unit(diabetes):
    X, y = diabetes["train"]

    def relative(unit):
        same_trees = TransformedTargetRegressor(
            GradientBoostingRegressor(n_estimators=50, random_state=0),
            func=lambda t: t / unit,
            inverse_func=lambda t: t * unit,
        )
        u = IBUGRegressor(same_trees, random_state=0).fit(X, unit * y)
        assert u.spread_ == "combination"
        return u.predict_dist(diabetes["test"][0]).std() / unit

    plain = relative(1.0)
    np.testing.assert_allclose(relative(2.0**-20), plain, rtol=1e-3)
    np.testing.assert_allclose(relative(2.0**20), plain, rtol=1e-3)


def test_rows_without_variance(rng):
    X = rng.uniform(size=(200, 2))
    y = np.where(X[:, 0] > 0.5, 1.0, 0.0)  # learned exactly: no residual, no variance
    for spread in ("residuals", "auto"):
        for scoring in ("crps", "nll"):
            u = IBUGRegressor(
                GradientBoostingRegressor(n_estimators=100, learning_rate=0.5), spread=spread, scoring=scoring
            ).fit(X, y)
            assert np.all(u.predict_var(X) > 0)
            assert np.all(np.isfinite(u.predict_dist(X).logpdf(y)))
    constant = IBUGRegressor(GradientBoostingRegressor(n_estimators=3)).fit(X, np.ones(200))
    assert np.all(constant.predict_var(X) > 0)


@pytest.mark.parametrize("n", [3, 4, 10])
@pytest.mark.parametrize("spread", ["residuals", "auto"])
def test_tiny_data(n, spread, rng):
    X, y = rng.uniform(size=(n, 2)), rng.normal(size=n)
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=3), spread=spread).fit(X, y)
    assert np.all(u.predict_var(X) > 0)
    u = IBUGRegressor(
        GradientBoostingRegressor(n_estimators=3), spread=spread, k=2, sampling=Sampling(row_fraction=0.7)
    ).fit(X, y)
    assert u.k_ == 2
    assert np.all(u.predict_var(X) > 0)


@pytest.mark.parametrize("k", [2, 5, 20, 290])
def test_a_fixed_k_bounds_what_a_combination_looks_at(diabetes, k):
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=10), k=k, random_state=0).fit(*diabetes["train"])
    assert u.k_ == k
    assert max(u.rule_.needs.values()) <= k
    assert u.predict_var(diabetes["test"][0]).shape == (62,)


# Families.


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("spread", ["residuals", "auto"])
def test_every_family_with_residuals(name, spread, rng):
    X = rng.uniform(size=(300, 3))
    y = np.exp(X[:, 0] + 0.5 * rng.normal(size=300))
    model = GradientBoostingRegressor(n_estimators=20, random_state=0)
    for location in ("model", "neighbors"):
        u = IBUGRegressor(model, spread=spread, distribution=name, location=location, k=30, random_state=0)
        u.fit(X[:250], y[:250])
        distribution = u.predict_dist(X[250:])
        assert np.all(np.isfinite(distribution.crps(y[250:])))
        if location == "model":
            np.testing.assert_allclose(distribution.std() ** 2, u.predict_var(X[250:]), rtol=1e-4)
        elif u.spread_ == "residuals":
            values = u.predict(X[250:])[:, None] + u.residuals_[u.kneighbors(X[250:])[1]]
            _, family = resolve_family(name)
            if name in ("lognormal", "weibull"):  # above their support, as all targets are
                values = np.maximum(values, y[:250].min())
            expected = family.fit(values, **family.prepare(y[:250]))
            np.testing.assert_allclose(distribution.ppf(0.9), expected.ppf(0.9))


def test_the_values_of_a_distribution_are_prediction_plus_residual(diabetes):
    X, _ = diabetes["test"]
    u = IBUGRegressor(boosting(), spread="residuals", distribution="empirical", random_state=0).fit(*diabetes["train"])
    values = u.predict(X)[:, None] + u.residuals_[u.kneighbors(X)[1]]
    shape = np.sort(u.predict_dist(X).values, axis=1)
    expected = np.sort(values, axis=1)
    scaled = [(table - table[:, :1]) / np.ptp(table, axis=1)[:, None] for table in (shape, expected)]
    np.testing.assert_allclose(*scaled, atol=1e-5)  # the same but for mean and variance


def test_family_and_spread_are_chosen_together(diabetes):
    u = IBUGRegressor(
        GradientBoostingRegressor(n_estimators=20, random_state=0), distribution=["normal", "laplace"], random_state=0
    ).fit(*diabetes["train"])
    pairs = set(zip(u.tuning_["spread"], u.tuning_["distribution"], strict=True))
    assert len(pairs) == 6
    assert u.distribution_ in ("normal", "laplace")
    again = clone(u).fit(*diabetes["train"])
    X_val, y_val = diabetes["validation"]
    again.recalibrate(X_val, y_val, distribution=["laplace"])
    assert again.distribution_ == "laplace"
    assert again.spread_ in ("targets", "residuals", "combination")


def test_selecting_again_on_other_validation_rows_takes_their_residuals(sampled_model, diabetes):
    model = sampled_model
    X_val, y_val = diabetes["validation"]
    u = IBUGRegressor(model, prefit=True, spread="residuals")
    u.fit(*diabetes["train"], X_val=X_val[:40], y_val=y_val[:40])
    u.recalibrate(X_val[40:], y_val[40:], distribution="normal")
    np.testing.assert_array_equal(u.residuals_, y_val[40:] - model.predict(X_val[40:]))


# What is tuned on.


def test_many_rows_are_tuned_on_a_sample(monkeypatch, diabetes):
    seen = []

    def score(y, distribution):
        seen.append(len(y))
        return float(distribution.crps(y).mean())

    monkeypatch.setattr("ibug.training._folds.MOST_TUNING_ROWS", 100)
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=5), scoring=score, random_state=0)
    u.fit(*diabetes["train"])
    assert set(seen) == {100}
    assert u.residuals_.shape == (300,)


def test_pipelines_and_progress(diabetes, capsys):
    pipeline = make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=10, random_state=0))
    u = IBUGRegressor(pipeline, random_state=0, verbose=1).fit(*diabetes["train"], sample_weight=np.ones(300))
    assert "cross-fitting 6 clones: done" in capsys.readouterr().err
    assert u.predict_interval(diabetes["test"][0]).shape == (62, 2)
