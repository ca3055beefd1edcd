"""ProbabilisticEnsemble: how members are fitted, combined and calibrated."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import IBUGRegressor, ProbabilisticEnsemble, VarianceCalibrator
from ibug.distributions import Laplace, Mixture, Normal
from ibug.exceptions import InvalidInputError, ModelNotFittedError, NotCalibratedWarning
from ibug.metrics import coverage, crps

pytestmark = pytest.mark.once


def boosting(depth=3, **parameters):
    return GradientBoostingRegressor(n_estimators=20, max_depth=depth, random_state=0, **parameters)


def normal(model, **parameters):
    return IBUGRegressor(model, distribution="normal", **parameters)


def members():
    return [("shallow", normal(boosting(1))), ("deep", normal(boosting(5)))]


@pytest.fixture
def fitted(diabetes):
    X_val, y_val = diabetes["validation"]
    return ProbabilisticEnsemble(members()).fit(*diabetes["train"], X_val=X_val, y_val=y_val)


class Constant(RegressorMixin, BaseEstimator):
    """Predicts one distribution for all rows, and remembers what it was fitted on."""

    calls: list = []  # noqa: RUF012 - shared by copies on purpose

    def __init__(self, loc=0.0, scale=1.0, family=Normal, random_state=None):
        self.loc = loc
        self.scale = scale
        self.family = family
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None, *, X_val=None, y_val=None):
        self.calls.append({"X": X, "sample_weight": sample_weight, "X_val": X_val, "seed": self.random_state})
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.full(len(X), self.loc)

    def predict_dist(self, X):
        return self.family(np.full(len(X), self.loc), np.full(len(X), self.scale))


class OwnWay(Constant):
    """Its fit takes no validation rows."""

    def fit(self, X, y):
        self.fitted_ = True
        return self


@pytest.fixture
def constants():
    Constant.calls = []
    return [("a", Constant(1.0, 2.0)), ("b", Constant(5.0, 4.0))]


def test_average_is_the_mean_of_means_and_of_standard_deviations(fitted, diabetes):
    X, _ = diabetes["test"]
    distributions = [member.predict_dist(X) for member in fitted.estimators_]
    distribution = fitted.predict_dist(X)
    assert isinstance(distribution, Normal)
    np.testing.assert_allclose(distribution.mean(), (distributions[0].mean() + distributions[1].mean()) / 2, rtol=1e-12)
    np.testing.assert_allclose(distribution.std(), (distributions[0].std() + distributions[1].std()) / 2, rtol=1e-12)
    np.testing.assert_allclose(fitted.predict(X), distribution.mean(), rtol=1e-12)
    assert (fitted.gamma_, fitted.delta_) == (1.0, 0.0)
    assert fitted.conformal_ is None


def test_average_is_that_of_the_quantiles(constants, diabetes):
    X, y = diabetes["train"]
    for family in (Normal, Laplace):
        parts = [(name, member.set_params(family=family)) for name, member in constants]
        distribution = ProbabilisticEnsemble(parts, weights=[1, 3]).fit(X, y).predict_dist(X[:1])
        assert type(distribution) is family
        q = np.array([[0.03, 0.5, 0.8]])
        expected = sum(w * m.predict_dist(X[:1]).ppf(q) for w, (_, m) in zip((0.25, 0.75), parts, strict=True))
        np.testing.assert_allclose(distribution.ppf(q), expected, rtol=1e-12)


def test_mixture(constants, diabetes):
    X, y = diabetes["train"]
    u = ProbabilisticEnsemble(constants, combine="mixture", weights=[1, 3]).fit(X, y)
    distribution = u.predict_dist(X[:2])
    assert isinstance(distribution, Mixture)
    expected = 0.25 * stats.norm(1, 2).cdf(3.0) + 0.75 * stats.norm(5, 4).cdf(3.0)
    np.testing.assert_allclose(distribution.cdf(3.0), expected)
    np.testing.assert_allclose(u.predict(X[:2]), 4.0)
    np.testing.assert_allclose(u.predict_var(X[:2]), 0.25 * (4 + 9) + 0.75 * (16 + 1))
    np.testing.assert_allclose(u.weights_, [0.25, 0.75])
    np.testing.assert_allclose(distribution.cdf(u.predict_interval(X[:2], 0.8)), [[0.1, 0.9]] * 2)


def test_a_mixture_takes_any_distributions(constants, diabetes):
    X, y = diabetes["train"]
    parts = [("kde", IBUGRegressor(boosting(), distribution="kde")), ("sure", IBUGRegressor(conformal="scale"))]
    u = ProbabilisticEnsemble(parts, combine="mixture", random_state=0).fit(X, y)
    assert np.all(np.diff(u.predict_quantiles(X, [0.1, 0.5, 0.9]), axis=1) > 0)
    with pytest.raises(InvalidInputError, match=r'theirs are KDE, Recalibrated. Use combine="mixture"'):
        u.set_params(combine="average").fit(X, y)
    mixed = [("a", Constant(family=Laplace)), ("b", Constant())]
    with pytest.raises(InvalidInputError, match="theirs are Laplace, Normal"):
        ProbabilisticEnsemble(mixed).fit(X, y)


def test_stacks_are_for_mixtures(diabetes):
    X, y = diabetes["train"]
    stacks = [("shallow", IBUGRegressor(boosting(1))), ("deep", IBUGRegressor(boosting(5)))]
    u = ProbabilisticEnsemble(stacks, combine="mixture", random_state=0).fit(X, y)
    assert [member.distribution_ for member in u.estimators_] == ["stack", "stack"]
    each = [member.predict_dist(X).cdf(100.0) for member in u.estimators_]
    np.testing.assert_allclose(u.predict_dist(X).cdf(100.0), np.mean(each, axis=0))
    with pytest.raises(InvalidInputError, match=r'theirs are Stack, Stack\..*fit each.*distribution="normal"'):
        u.set_params(combine="average").fit(X, y)


def test_the_ensemble_is_better_than_its_members_on_average(diabetes):
    # what averaging two distributions gains is a theorem for the CRPS of mixtures: it is convex in the distribution
    X, y = diabetes["test"]
    u = ProbabilisticEnsemble(members(), combine="mixture", random_state=0).fit(*diabetes["train"])
    each = [crps(y, member.predict_dist(X)) for member in u.estimators_]
    assert crps(y, u.predict_dist(X)) < np.mean(each)


def test_members_are_fitted_on_the_same_rows(constants, diabetes):
    X, y = diabetes["train"]
    X_val, y_val = diabetes["validation"]
    weight = np.arange(300.0)
    u = ProbabilisticEnsemble([*constants, ("own", OwnWay(3.0))])
    u.fit(X, y, X_val=X_val, y_val=y_val)
    assert len(Constant.calls) == 2
    for call in Constant.calls:
        assert call["X"] is X
        np.testing.assert_array_equal(call["X_val"], X_val)
    Constant.calls = []
    ProbabilisticEnsemble(constants).fit(X, y, weight)
    for call in Constant.calls:
        assert call["X_val"] is None
        np.testing.assert_array_equal(call["sample_weight"], weight)
    # the given ones stay as they were
    assert not hasattr(constants[0][1], "fitted_")


@pytest.mark.parametrize("refit", [True, False])
def test_one_part_is_held_out_to_calibrate_the_ensemble(constants, diabetes, refit):
    X, y = diabetes["train"]
    weight = np.arange(300.0)
    u = ProbabilisticEnsemble(constants, calibrate=True, refit=refit, random_state=0).fit(X, y, weight)
    first, second, *again = Constant.calls
    np.testing.assert_array_equal(first["X"], second["X"])
    np.testing.assert_array_equal(first["X_val"], second["X_val"])
    assert first["X"].shape == (240, 10)
    where = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in first["X"]]
    np.testing.assert_array_equal(first["sample_weight"], weight[where])
    held_out = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in first["X_val"]]
    assert sorted([*where, *held_out]) == list(range(300))
    # with refit each member is fitted on all rows, and holds out what it needs by itself
    assert [(len(call["X"]), call["X_val"]) for call in again] == ([(300, None)] * 2 if refit else [])
    expected = VarianceCalibrator().fit(np.full(60, 3.0), np.full(60, 9.0), y[held_out])
    assert (u.gamma_, u.delta_) == (expected.gamma_, expected.delta_)
    np.testing.assert_allclose(u.predict_var(X), expected.gamma_ * 9.0 + expected.delta_)
    np.testing.assert_allclose(u.predict_dist(X).mean(), 3.0)


@pytest.mark.parametrize("how", [True, "grid", "continuous"])
def test_calibration_on_given_rows(diabetes, how):
    X_val, y_val = diabetes["validation"]
    plain, calibrated = (
        ProbabilisticEnsemble(members(), calibrate=calibrate, random_state=0).fit(
            *diabetes["train"], X_val=X_val, y_val=y_val
        )
        for calibrate in (False, how)
    )
    assert crps(y_val, calibrated.predict_dist(X_val)) <= crps(y_val, plain.predict_dist(X_val))
    np.testing.assert_allclose(
        calibrated.predict_var(X_val), calibrated.gamma_ * plain.predict_var(X_val) + calibrated.delta_
    )


@pytest.mark.parametrize("combine", ["average", "mixture"])
def test_conformal(diabetes, combine):
    X_val, y_val = diabetes["validation"]
    u = ProbabilisticEnsemble(members(), combine=combine, conformal="distribution")
    u.fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    assert coverage(y_val, u.predict_interval(X_val, 0.8)) >= 0.8
    assert len(u.conformal_.maps_[-1].scores) == 80
    points = np.mean([member.predict(X_val) for member in u.estimators_], axis=0)
    np.testing.assert_allclose(u.predict(X_val), points)


def test_prefit(fitted, diabetes):
    X, y = diabetes["train"]
    X_test, _ = diabetes["test"]
    pairs = list(fitted.named_estimators_.items())
    u = ProbabilisticEnsemble(pairs, prefit=True).fit(X, y)
    assert u.estimators_[0] is fitted.estimators_[0]
    np.testing.assert_array_equal(u.predict_var(X_test), fitted.predict_var(X_test))
    with pytest.warns(NotCalibratedWarning, match="not calibrated"):
        ProbabilisticEnsemble(pairs, prefit=True, calibrate=True).fit(X, y)
    with pytest.raises(InvalidInputError, match="has not seen: pass X_val and y_val"):
        ProbabilisticEnsemble(pairs, prefit=True, conformal="scale").fit(X, y)
    with pytest.raises(InvalidInputError, match="sample_weight would have no effect"):
        ProbabilisticEnsemble(pairs, prefit=True).fit(X, y, np.ones(300))
    with pytest.raises(NotFittedError, match="IBUGRegressor instance is not fitted"):
        ProbabilisticEnsemble(members(), prefit=True).fit(X, y)


def test_frozen_members_stay_as_they_are(fitted, diabetes):
    frozen = FrozenEstimator(fitted.estimators_[0])
    u = ProbabilisticEnsemble([("frozen", frozen), ("new", normal(boosting(2)))]).fit(*diabetes["train"])
    assert u.estimators_[0].estimator is fitted.estimators_[0]
    expected = (
        frozen.predict_dist(diabetes["test"][0]).std() + u.estimators_[1].predict_dist(diabetes["test"][0]).std()
    ) / 2
    np.testing.assert_allclose(u.predict_dist(diabetes["test"][0]).std(), expected)


def test_the_ensemble_is_not_calibrated_on_rows_that_a_trained_member_may_have_seen(fitted, diabetes):
    X, y = diabetes["train"]
    X_val, y_val = diabetes["validation"]
    inside = IBUGRegressor(FrozenEstimator(boosting().fit(X, y)), k=5, calibrate=False)
    for member in (FrozenEstimator(fitted.estimators_[0]), inside):
        u = ProbabilisticEnsemble([("new", normal(boosting())), ("trained", member)], calibrate=True)
        with pytest.raises(InvalidInputError, match=r"The members \['trained'\] are trained already"):
            u.fit(X, y)
        assert u.fit(X, y, X_val=X_val, y_val=y_val).predict_var(X).shape == (300,)


def test_a_trained_model_inside_a_member_is_told_of(diabetes):
    X, y = diabetes["train"]
    inside = IBUGRegressor(boosting().fit(X, y), prefit=True, k=5, calibrate=False)
    with pytest.raises(ModelNotFittedError, match="wrap it in a FrozenEstimator"):
        ProbabilisticEnsemble([("a", inside)]).fit(X, y)
    kept = IBUGRegressor(FrozenEstimator(boosting().fit(X, y)), k=5, calibrate=False)
    assert ProbabilisticEnsemble([("a", kept)]).fit(X, y).predict_var(X).shape == (300,)


def test_a_pipeline_can_be_a_member(diabetes):
    X, y = diabetes["train"]
    alone = make_pipeline(StandardScaler(), normal(boosting(), random_state=0)).fit(X, y)
    u = ProbabilisticEnsemble([("pipeline", clone(alone))]).fit(X, y)
    distribution = alone[-1].predict_dist(alone[:-1].transform(X))
    np.testing.assert_allclose(u.predict_dist(X).std(), distribution.std())


def test_one_seed_for_all_that_have_none(constants, diabetes):
    ProbabilisticEnsemble([*constants, ("c", Constant(random_state=7))], random_state=0).fit(*diabetes["train"])
    seeds = [call["seed"] for call in Constant.calls]
    assert seeds[0] == seeds[1] is not None
    assert seeds[2] == 7
    Constant.calls = []
    ProbabilisticEnsemble(constants).fit(*diabetes["train"])
    assert [call["seed"] for call in Constant.calls] == [None, None]


def test_members_hold_out_the_same_rows(diabetes):
    seen = []

    class Watched(GradientBoostingRegressor):
        def fit(self, X, y, sample_weight=None):
            seen.append(X)
            return super().fit(X, y)

    both = [(f"{n}", normal(Watched(n_estimators=n), spread="targets")) for n in (3, 5)]
    ProbabilisticEnsemble(both, random_state=0).fit(*diabetes["train"])
    np.testing.assert_array_equal(seen[0], seen[2])
    assert [len(X) for X in seen] == [240, 300, 240, 300]


def test_dropped_members(constants, diabetes):
    u = ProbabilisticEnsemble([*constants, ("c", Constant(9.0))], weights=[1, 2, 1]).set_params(b="drop")
    u.fit(*diabetes["train"])
    assert list(u.named_estimators_) == ["a", "c"]
    np.testing.assert_allclose(u.weights_, [0.5, 0.5])
    assert u.predict(diabetes["test"][0])[0] == 5.0
    with pytest.raises(InvalidInputError, match="All members are dropped"):
        u.set_params(a="drop", c="drop").fit(*diabetes["train"])


def test_progress_is_shown_when_asked_for(constants, diabetes, capsys):
    ProbabilisticEnsemble(constants, verbose=1).fit(*diabetes["train"])
    assert [line.partition(": ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "[ibug] fitting a",
        "[ibug] fitting b",
    ]


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([], r"list of \(name, regressor\), one at least; got \[\]"),
        (IBUGRegressor(), r"list of \(name, regressor\)"),
        ([IBUGRegressor()], r"list of \(name, regressor\)"),
        ([("a", IBUGRegressor(), 1)], r"list of \(name, regressor\)"),
        ([("a", LinearRegression())], r"The member 'a' has no predict_dist"),
        ([("a", IBUGRegressor)], "The member 'a' has no predict_dist"),
        ([("a", make_pipeline(StandardScaler(), LinearRegression()))], "The member 'a' has no predict_dist"),
    ],
)
def test_impossible_members(estimators, message, diabetes):
    with pytest.raises(InvalidInputError, match=message):
        ProbabilisticEnsemble(estimators).fit(*diabetes["train"])


@pytest.mark.parametrize(
    ("name", "message"), [("a", "not unique"), ("weights", "conflict"), ("a__b", "must not contain")]
)
def test_impossible_names(constants, diabetes, name, message):
    with pytest.raises(ValueError, match=message):
        ProbabilisticEnsemble([constants[0], (name, Constant())]).fit(*diabetes["train"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"combine": "median"}, r"combine must be one of \('average', 'mixture'\); got 'median'"),
        ({"combine": ["average"]}, "combine must be one of"),
        ({"weights": [1.0]}, "weights must be 2 finite numbers above zero"),
        ({"weights": [1.0, -1.0]}, "weights"),
        ({"calibrate": True, "combine": "mixture"}, 'calibrate=True is for combine="average"'),
        ({"calibrate": 1}, "calibrate must be True or False"),
        ({"conformal": "split"}, "conformal must be None"),
        ({"scoring": "rmse"}, "scoring must be one of"),
        ({"calibrate": True, "validation_fraction": 2.0}, "validation_fraction must be between 0 and 1"),
    ],
)
def test_impossible_parameters(constants, diabetes, parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        ProbabilisticEnsemble(constants, **parameters).fit(*diabetes["train"])
    assert Constant.calls == []  # before anything is trained


def test_a_member_that_returns_something_else(diabetes):
    class Pair(Constant):
        def predict_dist(self, X):
            return np.zeros(len(X)), np.ones(len(X))

    with pytest.raises(InvalidInputError, match=r"member 'pair' \(Pair\) returned tuple"):
        ProbabilisticEnsemble([("pair", Pair())]).fit(*diabetes["train"])


def test_bad_rows(fitted, diabetes):
    X, y = diabetes["train"]
    with pytest.raises(NotFittedError):
        ProbabilisticEnsemble(members()).predict_dist(X)
    with pytest.raises(ValueError, match="X has 3 features, but ProbabilisticEnsemble is expecting 10"):
        fitted.predict_interval(X[:, :3])
    with pytest.raises(InvalidInputError, match="y_val is missing"):
        fitted.fit(X, y, X_val=X)


def test_missing_values_are_the_members_matter():
    from sklearn.utils import get_tags

    hist, plain = IBUGRegressor(HistGradientBoostingRegressor()), IBUGRegressor(boosting())
    assert get_tags(ProbabilisticEnsemble([("a", hist), ("b", hist)])).input_tags.allow_nan
    assert not get_tags(ProbabilisticEnsemble([("a", hist), ("b", plain)])).input_tags.allow_nan
    assert get_tags(ProbabilisticEnsemble([("a", hist), ("b", "drop")])).input_tags.allow_nan
