"""The bounds of the target: given, found by support="auto", or none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBRegressor

import ibug
from ibug import IBUGRegressor
from ibug.exceptions import InvalidInputError, OutsideSupportWarning
from ibug.explain import plain_neighbors
from ibug.rule import TargetRange, TargetSupport

pytestmark = pytest.mark.once

FROM_ZERO, SHARES, NONE = (0.0, np.inf), (0.0, 1.0), (-np.inf, np.inf)
N = 400


def rows(n=N):
    return np.random.default_rng(0).uniform(size=(n, 3))


def targets(kind, n=N):
    rng, X = np.random.default_rng(1), rows(n)
    if kind == "counts":
        return rng.poisson(6 * X[:, 0] ** 2).astype(float)
    if kind == "shares":
        return np.clip(1.4 * X[:, 0] - 0.2 + 0.1 * rng.normal(size=n), 0, 1)
    if kind == "costs":  # continuous: none is 0
        return rng.gamma(0.7, 20 * X[:, 0] + 1)
    return {"two-sided": 0.0, "far": 50.0}[kind] + 3 * X[:, 0] + rng.normal(size=n)


def fitted(y, model=None, n_train=200, **parameters):
    X = rows(len(y))
    model = GradientBoostingRegressor(n_estimators=20, random_state=0) if model is None else model
    u = IBUGRegressor(model.fit(X[:n_train], y[:n_train]), prefit=True, random_state=0, **parameters)
    return u.fit(X[:n_train], y[:n_train], X_val=X[n_train:], y_val=y[n_train:])


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [("counts", FROM_ZERO), ("costs", FROM_ZERO), ("shares", SHARES), ("two-sided", NONE), ("far", NONE)],
)
def test_bounds_come_from_the_targets(kind, bounds):
    y = targets(kind)
    u = fitted(y)
    assert u.support_ == bounds
    assert u.distribution_ == "stack"
    d = u.predict_dist(rows())
    ends = d.ppf([[0.001, 0.999]])
    assert ends.min() >= bounds[0]
    assert ends.max() <= bounds[1]
    assert u.rule_.support_reason


@pytest.mark.parametrize("kind", ["counts", "costs", "shares"])
@pytest.mark.parametrize("conformal", [None, "scale", "distribution"])
def test_bounds_that_were_found_make_no_prediction_worse(kind, conformal):
    y = targets(kind)
    bounded, free = (fitted(y, support=support, conformal=conformal) for support in ("auto", None))
    assert free.support_ == NONE
    assert np.any(free.predict_interval(rows()) < 0)
    assert not np.any(bounded.predict_interval(rows()) < 0)
    if conformal is None:  # what is learned is the same
        np.testing.assert_array_equal(bounded.stack_["weight"], free.stack_["weight"])
        inside = [
            (ends[:, 0] <= y) & (y <= ends[:, 1]) for ends in (u.predict_interval(rows()) for u in (bounded, free))
        ]
        np.testing.assert_array_equal(*inside)
        scores = [u.predict_dist(rows()).crps(y) for u in (bounded, free)]
        assert np.all(scores[0] <= scores[1] + 1e-9)


def test_ten_targets_near_a_bound_make_it_one():
    near = np.r_[np.linspace(0.1, 1.9, 10), np.linspace(50, 100, 90)]
    assert TargetRange.of(near).reaches_zero
    assert not TargetRange.of(near[1:]).reaches_zero  # nine
    assert not TargetRange.of(np.append(near, -1e-9)).reaches_zero
    assert not TargetRange.of(np.append(near, -1e-9)).reaches_one
    share = 1 - near / 100
    assert TargetRange.of(share).reaches_one
    assert not TargetRange.of(share[1:]).reaches_one
    assert not TargetRange.of(np.append(share, 1.001)).reaches_one
    assert not TargetRange.of(np.zeros(50)).reaches_zero  # one value has no scale
    assert not TargetRange.of(np.ones(50)).reaches_one


LOSSES = {
    "HistGradientBoosting, Poisson": (HistGradientBoostingRegressor(loss="poisson", max_iter=10), "Poisson"),
    "HistGradientBoosting, gamma": (HistGradientBoostingRegressor(loss="gamma", max_iter=10), "gamma"),
    "LightGBM, Poisson": (LGBMRegressor(objective="poisson", n_estimators=10, verbose=-1), "Poisson"),
    "LightGBM, gamma": (LGBMRegressor(objective="gamma", n_estimators=10, verbose=-1), "gamma"),
    "LightGBM, Tweedie": (LGBMRegressor(objective="tweedie", n_estimators=10, verbose=-1), "Tweedie"),
    "XGBoost, Poisson": (XGBRegressor(objective="count:poisson", n_estimators=10), "Poisson"),
    "XGBoost, gamma": (XGBRegressor(objective="reg:gamma", n_estimators=10), "gamma"),
    "XGBoost, Tweedie": (XGBRegressor(objective="reg:tweedie", n_estimators=10), "Tweedie"),
    "CatBoost, Poisson": (
        CatBoostRegressor(
            loss_function="Poisson",
            iterations=30,
            learning_rate=0.5,
            l2_leaf_reg=0,
            leaf_estimation_iterations=10,
            silent=True,
            allow_writing_files=False,
        ),
        "Poisson",
    ),
    "CatBoost, Tweedie": (
        CatBoostRegressor(
            loss_function="Tweedie:variance_power=1.5",
            iterations=30,
            learning_rate=0.3,
            silent=True,
            allow_writing_files=False,
        ),
        "Tweedie",
    ),
    "forest": (RandomForestRegressor(10, criterion="poisson"), "Poisson"),
    "pipeline": (
        make_pipeline(StandardScaler(), HistGradientBoostingRegressor(loss="poisson", max_iter=10)),
        "Poisson",
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_bounds_come_from_the_loss_of_the_model(name):
    model, loss = LOSSES[name]
    u = fitted(targets("far"), clone(model))  # whose targets do not show it
    assert u.support_ == FROM_ZERO
    assert loss in u.rule_.support_reason
    assert ibug.leaves.reader_of(u.estimator_).nonnegative_losses == [loss]


@pytest.mark.parametrize(
    "model",
    [
        LGBMRegressor(n_estimators=10, verbose=-1),
        TransformedTargetRegressor(
            HistGradientBoostingRegressor(loss="poisson", max_iter=10), func=np.sqrt, inverse_func=np.square
        ),
    ],
    ids=["squared error", "loss of a transformed target"],
)
def test_other_losses_say_nothing(model):
    u = fitted(targets("far"), model)
    assert u.support_ == NONE
    assert "near 0" in u.rule_.support_reason


def test_bounds_of_models_that_are_trained_here():
    y, X = targets("counts"), rows()
    model = GradientBoostingRegressor(n_estimators=10, random_state=0)
    for parameters in ({}, {"residuals": "none"}, {"residuals": "none", "refit": False}):
        u = IBUGRegressor(model, random_state=0, **parameters).fit(X, y)
        assert u.support_ == FROM_ZERO
        assert u.predict_interval(X).min() == 0
    u = IBUGRegressor(LOSSES["LightGBM, Poisson"][0], random_state=0).fit(X, targets("far"))
    assert u.support_ == FROM_ZERO


def test_validation_rows_outside_drop_bounds_that_were_found_and_refuse_given_ones():
    y = targets("counts")
    y[-1] = -3
    with pytest.warns(OutsideSupportWarning, match="because no training target is below 0.*validation targets.*-3"):
        u = fitted(y)
    assert u.support_ == NONE
    assert "outside" in u.rule_.support_reason
    free = fitted(y, support=None)
    np.testing.assert_array_equal(u.predict_interval(rows()), free.predict_interval(rows()))
    with pytest.raises(InvalidInputError, match="validation targets are outside the support"):
        fitted(y, support=FROM_ZERO)


def test_later_rows_outside_drop_bounds_that_were_found():
    y = targets("counts")
    X, later = rows(), np.r_[y[:50], -5.0]
    u = fitted(y)
    with pytest.warns(OutsideSupportWarning, match="new targets"):
        u.update(X[:51], later)
    assert u.support_ == NONE
    assert np.any(u.predict_interval(X) < 0)
    u.recalibrate(X[200:], y[200:])  # the training rows themselves are outside: no warning
    assert u.support_ == NONE
    v = fitted(y)
    with pytest.warns(OutsideSupportWarning, match="validation targets"):
        v.recalibrate(X[:51], later)
    assert v.support_ == NONE
    v.recalibrate(X[200:], y[200:])
    assert v.support_ == FROM_ZERO
    w = fitted(y, support=FROM_ZERO)
    with pytest.raises(InvalidInputError, match="outside the support"):
        w.update(X[:51], later)
    assert w.support_ == FROM_ZERO


def test_a_named_family_is_truncated_only_where_that_was_asked_for():
    y = targets("counts")
    u, free = (fitted(y, distribution="normal", support=support) for support in ("auto", None))
    assert u.support_ == NONE
    assert "keep their shape" in u.rule_.support_reason
    np.testing.assert_array_equal(u.predict_dist(rows()).std(), free.predict_dist(rows()).std())
    assert fitted(y, distribution="normal", support=FROM_ZERO).support_ == FROM_ZERO


def test_files_and_copies_keep_the_bounds(tmp_path):
    u = fitted(targets("counts"))
    u.save(tmp_path / "u.ibug")
    v = ibug.load(tmp_path / "u.ibug")
    assert (v.support_, v.rule_.support_reason) == (u.support_, u.rule_.support_reason)
    assert v.get_params()["support"] == clone(u).get_params()["support"] == "auto"
    np.testing.assert_array_equal(v.predict_interval(rows()), u.predict_interval(rows()))
    with pytest.warns(OutsideSupportWarning):
        v.update(rows()[:2], [-1.0, 2.0])
    plain = plain_neighbors(u)
    assert plain.support_ == NONE
    assert np.any(plain.predict_interval(rows()) < 0)


def test_each_of_several_targets_has_its_own_bounds(tmp_path):
    y = np.stack([targets("counts"), targets("two-sided"), targets("shares")], axis=1)
    u = fitted(y, MultiOutputRegressor(GradientBoostingRegressor(n_estimators=10, random_state=0)))
    np.testing.assert_array_equal(u.support_, [FROM_ZERO, NONE, SHARES])
    assert len(u.rule_.support_reason) == 3
    ends = u.predict_interval(rows())
    assert ends[:, 0].min() == 0
    assert ends[:, 1].min() < 0
    assert 0 <= ends[:, 2].min() <= ends[:, 2].max() <= 1
    u.save(tmp_path / "u.ibug")
    np.testing.assert_array_equal(ibug.load(tmp_path / "u.ibug").support_, u.support_)
    new = y[:3].copy()
    new[0, 2] = 1.5
    with pytest.warns(OutsideSupportWarning, match=r"1\.5"):
        u.update(rows()[:3], new)
    np.testing.assert_array_equal(u.support_, [FROM_ZERO, NONE, NONE])


def test_the_state_of_bounds_is_checked():
    found = TargetSupport.of("auto", TargetRange.of(targets("counts")))
    assert TargetSupport.from_state(found.state()) == found
    with pytest.raises(InvalidInputError, match="support"):
        TargetSupport.from_state(replace(found, bounds=(1.0, 0.0)).state())


def test_boxes_of_one_target_are_refused_before_anything_is_searched(monkeypatch):
    one = fitted(targets("counts"))
    y = np.stack([targets("counts"), targets("far")], axis=1)
    model = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=5, random_state=0)).fit(rows(), y)
    with pytest.warns(ibug.exceptions.NotCalibratedWarning):
        two = IBUGRegressor(model, prefit=True, k=20).fit(rows(), y)  # no validation rows
    monkeypatch.setattr(ibug.LeafIndex, "query", lambda *_, **__: pytest.fail("searched"))
    for u, message in ((one, "several targets, and this estimator has one"), (two, "Joint boxes need rows")):
        with pytest.raises(InvalidInputError, match=message):
            u.predict_interval(rows(), joint=True)
