"""tree_fraction="tune": the smallest share of the trees that loses nothing on validation rows."""

import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor, load
from ibug.exceptions import InvalidInputError
from ibug.training import TREE_SHARES

pytestmark = pytest.mark.once

TEST = np.random.default_rng(9).normal(size=(50, 9))


def made(n, seed=0):
    """Two features tell of the target, seven do not: nor do trees that split by these."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 9))
    return X, X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=n)


TRAIN, VALID = made(400), made(200, 1)


def boosting(n_trees, max_features=1):
    return GradientBoostingRegressor(n_estimators=n_trees, max_depth=2, max_features=max_features, random_state=0)


@cache
def boosted(max_features):
    """Return a model that regressors only read."""
    return boosting(160, max_features).fit(*TRAIN)


@pytest.fixture(scope="module")
def model():
    return boosted(1)


def prefit(model, **options):
    u = IBUGRegressor(model, prefit=True, random_state=0, **options)
    return u.fit(*TRAIN, X_val=VALID[0], y_val=VALID[1])


def scores(u, scoring):
    found = u.predict_dist(VALID[0])
    return found.crps(VALID[1]) if scoring == "crps" else -found.logpdf(VALID[1])


def chosen_by_hand(model, scoring, **options):
    """Fit every share by itself, all of them, and return the smallest that scores no worse than all trees."""
    whole = scores(prefit(model, scoring=scoring, **options), scoring).mean()
    enough = [1.0]
    for order, share in TREE_SHARES:
        if share * len(model.estimators_) < 49:  # surely less than 50 trees
            continue
        u = prefit(model, scoring=scoring, tree_fraction=share, tree_order=order, **options)
        if u.index_.n_trees >= 50 and scores(u, scoring).mean() <= whole:
            enough.append(share)
    return min(enough)


@pytest.mark.parametrize(("scoring", "max_features"), [("crps", 1), ("nll", 1), ("crps", 3), ("nll", None)])
@pytest.mark.parametrize("options", [{}, {"distribution": "normal", "spread": "targets"}, {"row_fraction": 0.5}])
def test_the_choice_is_that_among_shares_that_are_fitted_by_themselves(scoring, max_features, options):
    model = boosted(max_features)
    u = prefit(model, scoring=scoring, tree_fraction="tune", **options)
    share = chosen_by_hand(model, scoring, **options)
    same = prefit(model, scoring=scoring, tree_fraction=share, tree_order="gain", **options)
    assert u.tree_fraction_ == share
    assert u.index_.n_trees == same.index_.n_trees
    np.testing.assert_array_equal(u.predict_quantiles(TEST), same.predict_quantiles(TEST))
    for one, other in zip(u.kneighbors(TEST), same.kneighbors(TEST), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_table_tells_what_was_tried_and_why(model):
    u = prefit(model, tree_fraction="tune")
    whole, table = scores(prefit(model), "crps"), u.tree_tuning_
    assert table["chosen"].sum() == 1
    assert (table["order"][0], table["fraction"][0], table["loss"][0], table["error"][0]) == ("first", 1.0, 0.0, 0.0)
    (place,) = np.flatnonzero(table["chosen"])
    assert table["fraction"][place] == table["fraction"][1:].max() == u.tree_fraction_ < 1  # none larger was tried
    difference = scores(u, "crps") - whole
    assert table["score"][place] == pytest.approx(scores(u, "crps").mean())
    assert table["loss"][place] == pytest.approx(difference.mean())
    assert table["error"][place] == pytest.approx(difference.std(ddof=1) / np.sqrt(len(difference)))
    no_choice = prefit(model, tree_fraction=0.5)
    assert no_choice.tree_fraction_ == 0.5
    assert {name: len(column) for name, column in no_choice.tree_tuning_.items()} == dict.fromkeys(table, 0)


def test_points_and_residuals_stay_those_of_all_trees(model):
    u, whole = prefit(model, tree_fraction="tune"), prefit(model)
    np.testing.assert_array_equal(u.predict(TEST), model.predict(TEST))
    np.testing.assert_array_equal(u.residuals_, whole.residuals_)
    assert u.index_.nbytes < 0.8 * whole.index_.nbytes


def test_the_order_by_gain(model):
    """The trees whose leaves tell most of the training targets, by the decomposition of variance."""
    X, y = TRAIN
    shares = []
    for leaves in model.apply(X).T:
        means = {leaf: y[leaves == leaf].mean() for leaf in np.unique(leaves)}
        shares.append(np.var([means[leaf] for leaf in leaves]))
    u = prefit(model, tree_fraction=0.25, tree_order="gain")
    assert u.source_.leaves.trees.tolist() == sorted(np.argsort(-np.array(shares), kind="stable")[:40])


@pytest.mark.parametrize("options", [{}, {"cv": 3}, {"residuals": "model"}, {"conformal": "scale"}])
def test_trained_here(options):
    """Clones, or a part that is held out, choose the share; the final model has it."""
    X, y = made(300)
    u = IBUGRegressor(boosting(110), tree_fraction="tune", random_state=0)
    u.set_params(**options).fit(X, y)
    (place,) = np.flatnonzero(u.tree_tuning_["chosen"])
    assert u.index_.n_trees == round(110 * u.tree_tuning_["fraction"][place])
    assert u.index_.n_rows == 300
    order = str(u.tree_tuning_["order"][place])
    fixed = clone(u).set_params(tree_fraction=float(u.tree_tuning_["fraction"][place]), tree_order=order).fit(X, y)
    assert u.stack_["weight"].tolist() == fixed.stack_["weight"].tolist()
    np.testing.assert_array_equal(u.predict_quantiles(TEST), fixed.predict_quantiles(TEST))


def test_validation_rows_as_residuals(model):
    options = {"spread": "residuals", "residuals": "none", "k": 20}
    u = prefit(model, tree_fraction="tune", **options)
    (place,) = np.flatnonzero(u.tree_tuning_["chosen"])
    order, share = str(u.tree_tuning_["order"][place]), float(u.tree_tuning_["fraction"][place])
    fixed = prefit(model, tree_fraction=share, tree_order=order, **options)
    np.testing.assert_array_equal(u.predict_quantiles(TEST), fixed.predict_quantiles(TEST))


def test_a_score_of_the_users_own_and_weights(model):
    def absolute(y, distribution, sample_weight=None):
        return np.average(np.abs(y - distribution.median()), weights=sample_weight)

    weights = np.random.default_rng(0).uniform(0, 2, len(VALID[1]))
    u = IBUGRegressor(model, prefit=True, tree_fraction="tune", scoring=absolute)
    u.fit(*TRAIN, X_val=VALID[0], y_val=VALID[1], sample_weight_val=weights)
    (place,) = np.flatnonzero(u.tree_tuning_["chosen"])
    found = absolute(VALID[1], u.predict_dist(VALID[0]), weights)
    assert u.tree_tuning_["score"][place] == pytest.approx(found)
    assert u.tree_tuning_["error"][1] > 0


def test_files_pickles_and_later_calls_keep_the_choice(model, tmp_path):
    u = prefit(model, tree_fraction="tune")
    u.save(tmp_path / "u.ibug")
    for other in (load(tmp_path / "u.ibug"), pickle.loads(pickle.dumps(u))):
        assert other.tree_fraction_ == u.tree_fraction_
        for name, column in u.tree_tuning_.items():
            np.testing.assert_array_equal(other.tree_tuning_[name], column)
        np.testing.assert_array_equal(other.predict_quantiles(TEST), u.predict_quantiles(TEST))
    share = u.tree_fraction_
    u.recalibrate(*made(100, 2))
    u.update(*made(30, 3))
    assert u.tree_fraction_ == share
    assert u.tree_tuning_["chosen"].sum() == 1
    assert u.index_.n_rows == 430


def test_without_rows_to_choose_on(model):
    u = IBUGRegressor(model, prefit=True, k=10, calibrate=False, distribution="normal", tree_fraction="tune")
    with pytest.raises(InvalidInputError, match='tree_fraction="tune" needs rows that the trained model has not seen'):
        u.fit(*TRAIN)


def test_too_few_trees_or_rows_to_choose():
    """A search of few trees is fast, and few rows cannot tell: all trees count."""
    for n_trees, n_valid in ((1, 200), (61, 200), (160, 99)):
        model = boosting(n_trees).fit(*TRAIN)
        u = IBUGRegressor(model, prefit=True, tree_fraction="tune")
        u.fit(*TRAIN, X_val=VALID[0][:n_valid], y_val=VALID[1][:n_valid])
        assert u.tree_fraction_ == 1
        assert u.tree_tuning_["fraction"].tolist() == [1.0]
        assert u.tree_tuning_["chosen"].tolist() == [True]
