"""The table of all scores, and the scorers."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import IBUGRegressor, metrics
from ibug.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def data():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def regressor(data):
    X, y = data
    model = GradientBoostingRegressor(n_estimators=20, random_state=0)
    return IBUGRegressor(model, random_state=0).fit(X[:300], y[:300])


@pytest.fixture(scope="module")
def scores(regressor, data):
    X, y = data
    return metrics.evaluate(regressor, X[300:], y[300:], levels=[0.9, 0.995])


def test_every_score_is_its_metric(scores, regressor, data):
    X, y = data
    distribution = regressor.predict_dist(X[300:])
    for name in ("rmse", "mae"):  # of the point prediction, not of the distribution's mean
        assert scores[name] == getattr(metrics, name)(y[300:], regressor.predict(X[300:]))
    for name in ("crps", "nll", "check_score", "interval_score", "mace", "sharpness"):
        assert scores[name] == getattr(metrics, name)(y[300:], distribution)
    assert scores["crps_skill"] == metrics.crps_skill(y[300:], distribution, reference=y[:300])
    assert scores["coverage_90"] == metrics.coverage(y[300:], distribution, 0.9)
    assert scores["width_99.5"] == metrics.mean_width(y[300:], distribution, 0.995)


def test_it_prints_as_a_table(scores):
    lines = repr(scores).splitlines()
    assert lines[0] == "Scores on 142 rows"
    assert len(lines) == 1 + len(scores)
    assert len({line.index("  ") for line in lines[-2:]}) <= 2
    assert all(f"{value:.6g}" in line for line, value in zip(lines[1:], scores.values(), strict=True))


def test_it_becomes_a_frame(scores):
    pd = pytest.importorskip("pandas")
    frame = scores.to_frame()
    assert frame.loc["crps", "score"] == scores["crps"]
    assert list(frame.columns) == ["score", "meaning"]
    assert pd.Series(scores)["nll"] == scores["nll"]


def test_what_cannot_be_evaluated(data):
    X, y = data
    with pytest.raises(InvalidInputError, match="predict_dist is expected; got LinearRegression"):
        metrics.evaluate(LinearRegression().fit(X, y), X, y)


@pytest.mark.parametrize("name", ["crps", "nll", "interval"])
def test_scorers_are_negative_scores(name, regressor, data):
    X, y = data
    metric = getattr(metrics, {"interval": "interval_score"}.get(name, name))
    scorer = getattr(metrics, f"{name}_scorer")
    assert scorer(regressor, X, y) == -metric(y, regressor.predict_dist(X))
    assert pickle.loads(pickle.dumps(scorer))(regressor, X, y) == scorer(regressor, X, y)


def test_scorer_with_options(regressor, data):
    X, y = data
    scorer = metrics.DistributionScorer(metrics.interval_score, level=0.9)
    assert scorer(regressor, X, y) == -metrics.interval_score(y, regressor.predict_dist(X), 0.9)
    assert repr(scorer) == "DistributionScorer(interval_score, level=0.9)"


def test_point_errors_are_those_of_the_model(data):
    X, y = data
    u = IBUGRegressor(
        GradientBoostingRegressor(n_estimators=20, random_state=0), conformal="distribution", random_state=0
    )
    u.fit(X[:300], y[:300])
    assert metrics.evaluate(u, X[300:], y[300:])["rmse"] == metrics.rmse(y[300:], u.predict(X[300:]))
    assert all(np.isfinite(value) for value in metrics.evaluate(u, X[300:], y[300:], levels=[0.5]).values())


def test_one_row_has_every_score_but_the_skill(regressor, data):
    X, y = data
    regressor = IBUGRegressor(regressor.estimator_, prefit=True, k=9, calibrate=False).fit(X[:300], np.ones(300))
    scores = metrics.evaluate(regressor, X[:1], y[:1])
    assert np.isfinite(scores["crps"])
    assert np.isfinite(scores["crps_skill"])
    equal = metrics.evaluate(regressor, X[:2], np.ones(2))
    assert np.isnan(equal["crps_skill"])


def test_scorers_reach_the_last_step_of_a_pipeline(data):
    X, y = data
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=5, random_state=0), random_state=0)
    pipeline = make_pipeline(StandardScaler(), u)
    scores = cross_val_score(pipeline, X, y, scoring=metrics.crps_scorer, cv=2, error_score="raise")
    expected = cross_val_score(u, X, y, scoring=metrics.crps_scorer, cv=2, error_score="raise")
    np.testing.assert_allclose(scores, expected, rtol=0.05)
    with pytest.raises(InvalidInputError, match="predict_dist is expected"):
        metrics.crps_scorer(LinearRegression().fit(X, y), X, y)


def test_scorers_in_scikit_learn(data):
    X, y = data
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=5, random_state=0), calibrate=False)
    assert np.all(cross_val_score(u, X, y, scoring=metrics.nll_scorer, cv=3) < 0)
    search = GridSearchCV(u, {"k": [3, 100]}, scoring=metrics.nll_scorer, cv=3).fit(X, y)
    assert search.best_params_ == {"k": 100}  # the variance of three neighbours is a poor one


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weighted_scores_by_cross_validation(data):
    X, y = data
    weights = np.random.default_rng(0).uniform(0.1, 3, len(y))
    model = GradientBoostingRegressor(n_estimators=5, random_state=0)
    u = IBUGRegressor(model, random_state=0, cv=2).set_fit_request(sample_weight=False)
    folds = list(KFold(2).split(X))
    for scorer, name in ((metrics.crps_scorer, "sample_weight"), (metrics.crps_scorer, "w")):
        asked = scorer.set_score_request(sample_weight=True if name == "sample_weight" else name)
        found = cross_val_score(u, X, y, scoring=asked, cv=folds, params={name: weights})
        expected = [
            -metrics.crps(y[test], u.fit(X[train], y[train]).predict_dist(X[test]), sample_weight=weights[test])
            for train, test in folds
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        copied = pickle.loads(pickle.dumps(asked))
        assert copied.get_metadata_routing().score.requests == asked.get_metadata_routing().score.requests
    # scikit-learn 1.6.0 does not take None for no parameters
    plain = cross_val_score(u, X, y, scoring=metrics.crps_scorer, cv=folds, params={})
    assert not np.allclose(plain, expected)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_val_score(u, X, y, scoring=metrics.crps_scorer, cv=folds, params={"sample_weight": weights})


def test_a_scorer_asks_for_weights_only_where_metadata_are_routed():
    with pytest.raises(InvalidInputError, match="enable_metadata_routing"):
        metrics.crps_scorer.set_score_request(sample_weight=True)
