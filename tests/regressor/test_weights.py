"""Weights of validation rows count in everything that is learned from them."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.metrics import make_scorer, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import IBUGRegressor, Sampling, VarianceCalibrator
from ibug.calibration import DistributionConformal, ScaleConformal
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import coverage, crps, evaluate

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def rows():
    """Rows of two kinds: calm ones, and ones with four times the noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 3))
    wild = rng.random(1500) < 0.5
    y = 4 * X[:, 0] + rng.normal(size=1500) * np.where(wild, 1.2, 0.3)
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X[:500], y[:500])
    return model, X, y, wild


def fitted(rows, weights, keep=slice(None), **parameters):
    model, X, y, _ = rows
    val = np.arange(500, 1000)[keep]
    u = IBUGRegressor(model, prefit=True, random_state=0, **parameters)
    weights = None if weights is None else weights[val]
    return u.fit(X[:500], y[:500], X_val=X[val], y_val=y[val], sample_weight_val=weights)


KINDS = [
    {},
    {"scoring": "nll"},
    {"distribution": "normal", "calibrate": "continuous"},
    {"distribution": "laplace", "k": 30},
    {"conformal": "scale"},
    {"conformal": "distribution", "spread": "targets"},
]


@pytest.mark.parametrize("parameters", KINDS, ids=str)
def test_rows_of_weight_zero_do_not_count(rows, parameters):
    _, X, _, wild = rows
    weights = np.where(wild, 7.0, 0.0)
    expected = fitted(rows, None, keep=wild[500:1000], **parameters)
    found = fitted(rows, weights, **parameters)
    np.testing.assert_array_equal(found.predict_quantiles(X[1000:]), expected.predict_quantiles(X[1000:]))
    np.testing.assert_array_equal(found.predict_interval(X[1000:]), expected.predict_interval(X[1000:]))


@pytest.mark.parametrize("parameters", KINDS, ids=str)
def test_weights_move_the_width_between_both_kinds(rows, parameters):
    _, X, _, wild = rows
    width = {}
    for share in (0.02, 1.0, 50.0):
        u = fitted(rows, np.where(wild, share, 1.0) * 3, **parameters)
        lower, upper = u.predict_interval(X[1000:], 0.9).T
        width[share] = np.mean(upper - lower)
    assert width[0.02] < 0.75 * width[1.0] < 0.75 * width[50.0]
    same = fitted(rows, np.full(1500, 3.0), **parameters).predict_interval(X[1000:])
    np.testing.assert_array_equal(same, fitted(rows, None, **parameters).predict_interval(X[1000:]))


def test_recalibrated_with_weights(rows):
    _, X, y, wild = rows
    u = fitted(rows, None, conformal="scale")
    u.recalibrate(X[500:1000], y[500:1000], sample_weight=np.where(wild[500:1000], 1.0, 0.0))
    later = wild[1000:]
    assert 0.85 < coverage(y[1000:][later], u.predict_interval(X[1000:][later])) < 0.96


def test_out_of_fold_rows_have_the_weights_of_training_rows(rows):
    _, X, y, wild = rows
    model = HistGradientBoostingRegressor(max_iter=20, random_state=0)
    widths = []
    for weights in (None, np.where(wild, 1.0, 1e-3)):
        u = IBUGRegressor(model, cv=3, random_state=0).fit(X[:900], y[:900], None if weights is None else weights[:900])
        widths.append(np.diff(u.predict_interval(X[1000:]), axis=1).mean())
    assert widths[1] > 1.2 * widths[0]


def test_metrics_with_weights_are_those_of_repeated_rows():
    rng = np.random.default_rng(0)
    y, mean, scale = rng.normal(size=60), rng.normal(size=60), rng.uniform(0.5, 2, 60)
    times = rng.integers(0, 4, 60)

    class Predicted:
        def __init__(self, rows):
            self.rows = rows

        def predict_dist(self, X):
            return Normal(mean[self.rows], scale[self.rows])

    repeated = np.repeat(np.arange(60), times)
    expected = evaluate(Predicted(repeated), None, y[repeated])
    found = evaluate(Predicted(np.arange(60)), None, y, sample_weight=times)
    skill = {"crps_skill"}  # whose reference is y itself
    assert {name: found[name] for name in set(found) - skill} == pytest.approx(
        {name: expected[name] for name in set(expected) - skill}
    )


def test_the_variance_with_weights_is_that_of_repeated_rows():
    rng = np.random.default_rng(0)
    mean, y = rng.normal(size=80), 3 * rng.normal(size=80)
    variance, times = rng.uniform(1, 2, 80), rng.integers(1, 4, 80)
    repeated = np.repeat(np.arange(80), times)
    for method in ("grid", "continuous"):
        expected = VarianceCalibrator(method=method).fit(mean[repeated], variance[repeated], y[repeated])
        found = VarianceCalibrator(method=method).fit(mean, variance, y, sample_weight=times)
        np.testing.assert_allclose([found.gamma_, found.delta_], [expected.gamma_, expected.delta_], rtol=0.02)


@pytest.mark.parametrize("kind", [ScaleConformal, DistributionConformal])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.99])
def test_conformal_ends_are_weighted_quantiles(kind, level):
    """The slow truth: try every held-out score, with the new row's weight on the unfavourable side."""
    rng = np.random.default_rng(0)
    y, weights, own = rng.normal(size=200), rng.uniform(0.1, 3, 200), 0.7
    base = Normal(np.zeros(200), np.ones(200))
    found = kind().fit(base, y, sample_weight=weights).transform(base[:3], sample_weight=np.full(3, own))
    total = weights.sum() + own
    if kind is ScaleConformal:
        upper = min((s for s in np.abs(y) if weights[np.abs(y) <= s].sum() >= level * total), default=np.inf)
        lower = -upper
    else:
        upper = min((s for s in y if weights[y <= s].sum() >= (1 + level) / 2 * total), default=np.inf)
        lower = max((s for s in y if weights[y < s].sum() + own <= (1 - level) / 2 * total), default=-np.inf)
    np.testing.assert_allclose(np.stack(found.interval(level))[:, 0], [lower, upper])


@pytest.mark.parametrize("kind", [ScaleConformal, DistributionConformal])
def test_known_covariate_shift(kind):
    """Weighted by the true likelihood ratio, coverage holds where covariates have moved; without, it does not."""
    rng = np.random.default_rng(0)
    plain, weighted = [], []
    for _ in range(60):
        x, new = rng.uniform(size=300), rng.beta(4, 1, size=300)  # densities 1 and 4x³
        y, y_new = (rng.normal(size=300) * (0.2 + 2 * at) for at in (x, new))
        base = Normal(np.zeros(300), np.ones(300))
        for found, ratio, own in ((plain, None, None), (weighted, 4 * x**3, 4 * new**3)):
            lower, upper = kind().fit(base, y, sample_weight=ratio).transform(base, sample_weight=own).interval(0.9)
            found.append(np.mean((lower <= y_new) & (y_new <= upper)))
    assert np.mean(plain) < 0.85
    assert 0.89 < np.mean(weighted) < 0.925


def test_routing(rows):
    _, X, y, _ = rows
    seen = np.linspace(0.5, 2, 300)
    with config_context(enable_metadata_routing=True):
        u = IBUGRegressor(HistGradientBoostingRegressor(max_iter=5), k=5, spread="targets", random_state=0)
        u.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), u)
        pipeline.fit(X[:300], y[:300], sample_weight=seen)
        scoring = make_scorer(r2_score).set_score_request(sample_weight=True)
        search = GridSearchCV(pipeline, {"ibugregressor__k": [5, 9]}, scoring=scoring, cv=2)
        search.fit(X[:300], y[:300], sample_weight=seen)
        direct = IBUGRegressor(HistGradientBoostingRegressor(max_iter=5), k=5, spread="targets", random_state=0)
        direct.fit(StandardScaler().fit_transform(X[:300]), y[:300], sample_weight=seen)
    np.testing.assert_array_equal(pipeline[-1].predict_var(pipeline[0].transform(X)),
                                  direct.predict_var(pipeline[0].transform(X)))  # fmt: skip
    assert search.best_estimator_[-1].k_ in (5, 9)


def test_wrong_weights(rows):
    _, X, y, _ = rows
    u = fitted(rows, None)
    rule = u.rule_
    wrong = [
        (np.ones(3), "one number for each of the 500 rows"),
        (-np.ones(500), "at least 0; entry 0 is -1"),
        (np.full(500, np.nan), "finite"),
        (np.zeros(500), "all zero"),
        (np.full(500, 1e308), r"between 1e-150 and 1e\+150"),
        (np.full(500, 5e-324), r"between 1e-150 and 1e\+150"),
    ]
    for weights, message in wrong:
        with pytest.raises(InvalidInputError, match=message):
            u.recalibrate(X[500:1000], y[500:1000], sample_weight=weights)
        with pytest.raises(InvalidInputError, match=message):
            evaluate(u, X[500:1000], y[500:1000], sample_weight=weights)
    assert u.rule_ is rule
    for options in ({"prefit": True}, {"prefit": True, "sampling": Sampling(weight_neighbors=True)}, {"cv": 2}):
        large, validation = np.full(500, 1e308), {"X_val": X[500:], "y_val": y[500:]}
        with pytest.raises(InvalidInputError, match=r"between 1e-150 and 1e\+150"):
            IBUGRegressor(u.estimator if "prefit" in options else clone(u.estimator), **options).fit(
                X[:500], y[:500], large, **validation
            )
    with pytest.raises(InvalidInputError, match="0 rows"):
        IBUGRegressor(k=3).fit(X[:50], y[:50], sample_weight_val=np.ones(50))
    own = fitted(rows, None).set_params(scoring=lambda y, d: crps(y, d))
    with pytest.raises(InvalidInputError, match="takes none"):
        own.recalibrate(X[500:1000], y[500:1000], sample_weight=np.linspace(1, 2, 500))
