"""Families of distributions inside IBUGRegressor."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.distributions import Distribution, families, resolve_family
from ibug.exceptions import InvalidInputError
from ibug.metrics import nll, resolve_scoring

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def skewed():
    """Rows whose noise is skewed and positive."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 3))
    y = np.exp(X[:, 0] + 0.8 * rng.normal(size=900))
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X[:500], y[:500])
    return model, (X[:500], y[:500]), (X[500:700], y[500:700]), (X[700:], y[700:])


def fit(skewed, **parameters):
    model, train, validation, _ = skewed
    u = IBUGRegressor(model, prefit=True, random_state=0, **parameters)
    return u.fit(*train, X_val=validation[0], y_val=validation[1])


@pytest.mark.parametrize("scoring", ["crps", "nll"])
@pytest.mark.parametrize("residuals", ["none", "auto"])
def test_tuning_knows_the_stack(skewed, scoring, residuals):
    """The stack is a candidate beside the families: the lower score on the validation rows counts."""
    given = {"scoring": scoring, "residuals": residuals, "support": None}
    u, stack = (fit(skewed, distribution=name, **given) for name in ("tune", "auto"))
    assert stack.distribution_ == "stack"
    best = fit(skewed, distribution=list(families()), **given)
    X, y = skewed[2]
    scores = {one: resolve_scoring(scoring)(y, one.predict_dist(X)) for one in (u, stack, best)}
    assert scores[u] == pytest.approx(min(scores.values()), rel=1e-9)
    chosen = stack if scores[stack] < scores[best] else best
    assert u.distribution_ == chosen.distribution_
    np.testing.assert_array_equal(u.predict_dist(X).ppf(0.9), chosen.predict_dist(X).ppf(0.9))
    row = u.tuning_["distribution"] == "stack"
    assert row.sum() == 1
    assert u.tuning_["score"][row] == pytest.approx(scores[stack], rel=1e-6)
    assert (u.tuning_["reason"][row][0] == "") == (chosen is stack)


def test_tuning_without_the_stack_says_why(skewed):
    u = fit(skewed, distribution="tune", location="neighbors", k=30)
    row = u.tuning_["distribution"] == "stack"
    assert u.distribution_ in families()
    assert "neighbors" in u.tuning_["reason"][row][0]


@pytest.mark.parametrize("name", families())
def test_a_family_changes_the_shape_only(skewed, name):
    X, _ = skewed[3]
    options = {"k": 60, "spread": "targets", "calibrate": False}
    u, normal = (fit(skewed, distribution=family, **options) for family in (name, "normal"))
    distribution = u.predict_dist(X)
    np.testing.assert_allclose(distribution.mean(), normal.predict_dist(X).mean(), rtol=1e-6)
    np.testing.assert_allclose(distribution.std(), normal.predict_dist(X).std(), rtol=1e-5)
    np.testing.assert_allclose(u.predict_var(X), normal.predict_var(X))
    np.testing.assert_array_equal(u.predict(X), normal.predict(X))
    assert u.distribution_ == name
    assert u.predict_interval(X[:3], 0.8).shape == (3, 2)
    assert np.all(np.isfinite(distribution.logpdf(distribution.mean())))


@pytest.mark.parametrize("spread", ["targets", "auto"])
@pytest.mark.parametrize("name", ["laplace", "lognormal", "kde"])
def test_the_variance_is_calibrated_for_the_family_itself(skewed, name, spread):
    (X_val, y_val), (X, _) = skewed[2:]
    u = fit(skewed, distribution=name, k=60, spread=spread, scoring="nll")
    distribution = u.predict_dist(X)
    np.testing.assert_allclose(distribution.mean(), u.predict(X), rtol=1e-6)
    np.testing.assert_allclose(distribution.var(), u.predict_var(X), rtol=1e-5)
    score = nll(y_val, u.predict_dist(X_val))
    assert score == pytest.approx(np.nanmin(u.tuning_["calibrated"]), rel=1e-9)
    for factor in (0.7, 0.95, 1.05, 1.4):  # no other factor is better
        other = copy(u)
        part = replace(u.rule_.parts[0], gamma=factor * u.rule_.gamma, delta=factor * u.rule_.delta)
        other.rule_ = replace(u.rule_, parts=(part,))
        assert score <= nll(y_val, other.predict_dist(X_val)) + 1e-4


@pytest.mark.parametrize("name", ["normal", "student_t", "lognormal", "kde"])
def test_plain_fit_to_the_neighbours(skewed, name):
    (_, y_train), (X, _) = skewed[1], skewed[3]
    u = fit(skewed, distribution=name, location="neighbors", k=60)
    _, family = resolve_family(name)
    values = y_train[u.kneighbors(X)[1]]
    expected = family.fit(values, **family.prepare(y_train))
    np.testing.assert_allclose(u.predict_dist(X).ppf(0.9), expected.ppf(0.9))
    np.testing.assert_allclose(u.predict_var(X), expected.var())


def test_chunks_do_not_change_the_distributions(skewed, monkeypatch):
    X, _ = skewed[3]
    for name in ("skewnormal", "kde", "empirical"):
        whole = fit(skewed, distribution=name, k=20).predict_dist(X).ppf(0.8)
        monkeypatch.setattr("ibug.neighbors._leaf_numbers._NUMBERS_PER_CHUNK", 7 * 110)
        np.testing.assert_allclose(fit(skewed, distribution=name, k=20).predict_dist(X).ppf(0.8), whole)
        monkeypatch.undo()


def test_tuning_chooses_family_and_k_together(skewed):
    u = fit(skewed, distribution=families(), scoring="nll", residuals="none")
    X_val, y_val = skewed[2]
    table = u.tuning_
    assert set(table["distribution"]) == set(families())
    best = np.nanargmin(table["score"])
    assert (u.distribution_, u.k_) == (table["distribution"][best], table["k"][best])
    assert u.distribution_ in {
        "lognormal",
        "weibull",
        "skewnormal",
        "gumbel",
        "kde",
        "empirical",
    }  # the noise is skewed
    # a candidate's score is that of the regressor with just that family and k
    one = fit(skewed, distribution="gumbel", k=31, scoring="nll", calibrate=False, residuals="none")
    row = (table["distribution"] == "gumbel") & (table["k"] == 31)
    distribution = one.predict_dist(X_val)
    assert table["score"][row][0] == pytest.approx(nll(y_val, distribution), rel=1e-6)
    normal = fit(skewed, distribution="normal", scoring="nll")
    X, y = skewed[3]
    assert nll(y, u.predict_dist(X)) < nll(y, normal.predict_dist(X)) - 0.05


def test_a_family_that_cannot_take_the_targets_is_skipped_with_the_reason():
    class Never(Distribution):
        logpdf = cdf = ppf = mean = var = None

        @classmethod
        def prepare(cls, targets):
            raise InvalidInputError("Only for other targets.")

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    estimator = GradientBoostingRegressor(n_estimators=5, random_state=0)
    u = IBUGRegressor(estimator, distribution=["normal", Never, "laplace"], random_state=0).fit(X, y)
    skipped = u.tuning_["distribution"] == "Never"
    assert u.tuning_["reason"][skipped].tolist() == ["Only for other targets."]
    assert np.isnan(u.tuning_["score"][skipped]).all()
    assert u.distribution_ in {"normal", "laplace"}
    with pytest.raises(InvalidInputError, match="Only for other targets"):
        IBUGRegressor(estimator, distribution=Never).fit(X, y)
    with pytest.raises(InvalidInputError, match="No family can take these targets"):
        IBUGRegressor(estimator, distribution=[Never]).fit(X, y)


def test_the_choice_can_be_made_again(skewed):
    u = fit(skewed)
    index, model = u.source_.index, u.estimator_
    assert u.distribution_ == "stack"
    u.recalibrate(*skewed[2], distribution=["normal", "lognormal"])
    assert (u.source_.index, u.estimator_) == (index, model)
    assert u.distribution_ == "lognormal"
    assert set(u.tuning_["distribution"]) == {"normal", "lognormal"}
    again = fit(skewed, distribution=["normal", "lognormal"])
    assert (u.k_, u.rule_.gamma, u.rule_.delta) == (again.k_, again.rule_.gamma, again.rule_.delta)
    X, _ = skewed[3]
    np.testing.assert_array_equal(u.predict_quantiles(X), again.predict_quantiles(X))


@pytest.mark.parametrize("name", ["normal", "student_t", "kde", "empirical", "lognormal"])
def test_support_holds_everything_inside(skewed, name):
    model, train, validation, (X, y) = skewed
    few = tuple(part[:60] for part in validation)  # each candidate of a calibration needs integrals for all of them
    u = fit((model, train, few, (X, y)), distribution=name, support=(0, np.inf), k=15)
    distribution = u.predict_dist(X)
    assert np.all(u.predict_interval(X, 0.99) >= 0)
    assert np.all(u.predict_quantiles(X, [0.001, 0.5]) >= 0)
    assert np.all(distribution.rvs(50, random_state=0) >= 0)
    assert np.all(distribution.cdf(-1e-9) == 0)
    assert np.all(np.isfinite(distribution.logpdf(y)))
    np.testing.assert_array_equal(u.predict(X), skewed[0].predict(X))


def test_a_distribution_of_ones_own(skewed):
    class Uniform(Distribution):
        """Uniform distributions, by centre and half width."""

        parameters = ("center", "half")

        def __init__(self, center, half):
            super().__init__(center=center, half=half)

        @classmethod
        def fit(cls, values, *, loc=None, scale=None):
            return cls(
                values.mean(axis=1) if loc is None else loc,
                np.sqrt(3) * (values.std(axis=1) if scale is None else scale),
            )

        def logpdf(self, y):
            x, center, half = self._match(y)
            with np.errstate(divide="ignore"):
                return np.log((np.abs(x - center) <= half) / (2 * half))

        def cdf(self, y):
            x, center, half = self._match(y)
            return np.clip((x - center) / (2 * half) + 0.5, 0, 1)

        def ppf(self, q):
            p, center, half = self._match_probability(q)
            return center + half * (2 * p - 1)

        def mean(self):
            return self.center

        def var(self):
            return self.half**2 / 3

    X, _ = skewed[3]
    u = fit(skewed, distribution=Uniform, k=30)
    distribution = u.predict_dist(X)
    assert u.distribution_ == "Uniform"
    np.testing.assert_allclose(distribution.var(), u.predict_var(X))
    # by the base class's integral: 2 ∫ ((x + h) / 2h)² dx over the lower half is h/6
    np.testing.assert_allclose(distribution.crps(distribution.mean()), distribution.half / 6, rtol=1e-3)
    assert clone(u).distribution is Uniform
    conformal = fit(skewed, distribution=Uniform, k=30, conformal="scale")
    assert np.all(np.isfinite(conformal.predict_interval(X, 0.8)))


def test_conformal_calibration_of_another_family(skewed):
    X, y = skewed[3]
    u = fit(skewed, distribution="lognormal", conformal="distribution")
    distribution = u.predict_dist(X)
    inside = (u.predict_interval(X, 0.8)[:, 0] <= y) & (y <= u.predict_interval(X, 0.8)[:, 1])
    assert 0.7 < inside.mean() < 0.9
    np.testing.assert_allclose(distribution.cdf(distribution.ppf(0.3)), 0.3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"distribution": "cauchy"}, "distribution must be one of"),
        ({"location": "median"}, r"location must be one of \('model', 'neighbors'\)"),
        ({"support": (1, 0)}, "support must be a pair"),
        ({"support": 0}, "support must be a pair"),
        ({"support": (5, 10)}, "training targets are outside the support"),
    ],
)
def test_what_is_refused(skewed, parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        fit(skewed, **parameters)


def test_choosing_needs_validation_rows(skewed):
    with pytest.raises(InvalidInputError, match="distribution='tune' needs rows"):
        IBUGRegressor(skewed[0], prefit=True, k=5, distribution="tune", calibrate=False).fit(*skewed[1])
    with pytest.raises(InvalidInputError, match="recalibrate needs rows and their targets, X and y"):
        fit(skewed).recalibrate(None, None, distribution="tune")
