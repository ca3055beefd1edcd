"""Classic mistakes are told by warnings of one category, which can be filtered and turned into errors."""

import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoost, CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBRegressor

from ibug import IBUGRegressor
from ibug.exceptions import (
    LikelyMistakeWarning,
    NotCentralWarning,
    OtherUnitWarning,
    SeenRowsWarning,
    TargetOrderWarning,
    TooFewRowsWarning,
    TrainedAnewWarning,
    UnsupportedModelError,
)
from ibug.metrics import evaluate
from ibug.training._diagnostics import better_order

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 3))
Y = 3 * X[:, 0] + rng.normal(size=500)
TRAIN, VALID, TEST = slice(0, 250), slice(250, 400), slice(400, 500)


LIGHT = LGBMRegressor(n_estimators=9, verbose=-1, n_jobs=1)


def hist(**options):
    return HistGradientBoostingRegressor(max_iter=40, random_state=0, **options)


@pytest.fixture(scope="module")
def model():
    return hist().fit(X[TRAIN], Y[TRAIN])


def fit(model, n_valid=150, **options):
    u = IBUGRegressor(model, prefit=True, random_state=0, **options)
    return u.fit(X[TRAIN], Y[TRAIN], X_val=X[VALID][:n_valid], y_val=Y[VALID][:n_valid])


def test_a_right_use_is_silent(model):
    """Warnings are errors in these tests."""
    u = fit(model, conformal="scale")
    u.predict_interval(X[TEST], 0.99)
    evaluate(u, X[TEST], Y[TEST])
    IBUGRegressor(hist(), random_state=0).fit(X[TRAIN], Y[TRAIN])


def test_validation_rows_that_are_training_rows(model):
    u = IBUGRegressor(model, prefit=True)
    for rows in (slice(0, 250), slice(0, 100)):
        with pytest.warns(SeenRowsWarning, match="100% of the validation rows are training rows"):
            u.fit(X[TRAIN], Y[TRAIN], X_val=X[rows].copy(), y_val=Y[rows])
    with pytest.warns(SeenRowsWarning, match="60%"):
        u.fit(X[TRAIN], Y[TRAIN], X_val=X[100:350], y_val=Y[100:350])


def test_training_rows_are_not_for_scores(model):
    u = fit(model)
    with pytest.warns(SeenRowsWarning, match="evaluate: these are the training rows"):
        evaluate(u, X[TRAIN], Y[TRAIN])


def test_a_trained_estimator_without_prefit(model):
    for trained in (model, make_pipeline(StandardScaler(), hist()).fit(X, Y), LIGHT.fit(X, Y)):
        with pytest.warns(TrainedAnewWarning, match=r"trained already.*prefit=True"):
            IBUGRegressor(trained, k=5, calibrate=False).fit(X[TRAIN], Y[TRAIN])


@pytest.mark.parametrize(("n", "text"), [(1, "Only 1 validation row chooses"), (5, "Only 5 validation rows choose")])
def test_too_few_validation_rows(model, n, text):
    with pytest.warns(TooFewRowsWarning, match=text):
        u = fit(model, n)
    assert np.isnan(u.affinity_threshold_)


@pytest.mark.parametrize(("conformal", "least"), [("scale", 9), ("distribution", 19)])
def test_infinite_ends_are_told_by_fit_predict_and_evaluate(model, conformal, least):
    with pytest.warns(TooFewRowsWarning) as found:
        u = fit(model, 5, conformal=conformal)
    assert any(f"0.9 needs {least} rows" in str(warning.message) for warning in found)
    for ask in (
        lambda: u.predict_interval(X[TEST], 0.95),
        lambda: evaluate(u, X[TEST], Y[TEST]),
    ):
        with pytest.warns(TooFewRowsWarning, match="infinite ends") as told:
            ask()
        assert len(told) == 1  # not once per row
    with warnings.catch_warnings(record=True) as none:
        u.predict_interval(X[TEST], 0.6)
    assert not none
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewRowsWarning)
        select_trees = fit(model, least - 1, conformal=conformal)
        assert not np.isfinite(select_trees.predict_interval(X[TEST], 0.9)).all()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Only 9")
        assert np.isfinite(fit(model, least, conformal=conformal).predict_interval(X[TEST], 0.9)).all()


def test_an_affinity_threshold_of_few_rows_alarms_nobody(model):
    assert np.isnan(fit(model, 99).affinity_threshold_)
    assert np.isfinite(fit(model, 100).affinity_threshold_)


QUANTILES = {
    "lightgbm": (LGBMRegressor(objective="quantile", alpha=0.8, n_estimators=9, verbose=-1, n_jobs=1), 0.8),
    "lightgbm's default": (LGBMRegressor(objective="quantile", n_estimators=9, verbose=-1, n_jobs=1), 0.9),
    "xgboost": (XGBRegressor(objective="reg:quantileerror", quantile_alpha=0.8, n_estimators=9), 0.8),
    "catboost": (CatBoostRegressor(loss_function="Quantile:alpha=0.8", iterations=9, verbose=0), 0.8),
    "expectile": (CatBoostRegressor(loss_function="Expectile:alpha=0.8", iterations=9, verbose=0), 0.8),
    "histogram": (hist(loss="quantile", quantile=0.8), 0.8),
    "gradient": (GradientBoostingRegressor(loss="quantile", alpha=0.8, n_estimators=9), 0.8),
    "wrapped": (make_pipeline(TransformedTargetRegressor(hist(loss="quantile", quantile=0.8))), 0.8),
}


@pytest.mark.parametrize("name", list(QUANTILES))
def test_a_model_of_a_quantile_is_no_centre(name):
    model, level = QUANTILES[name]
    if name in ("catboost", "expectile"):
        model.set_params(allow_writing_files=False)
    kind = "expectile" if name == "expectile" else "quantile"
    with pytest.warns(NotCentralWarning, match=f"trained for the {level:g} {kind}"):
        fit(model.fit(X[TRAIN], Y[TRAIN]), k=10, distribution="normal", spread="targets")


@pytest.mark.parametrize(
    "model",
    [
        LGBMRegressor(objective="quantile", alpha=0.5, n_estimators=9, verbose=-1, n_jobs=1),
        LGBMRegressor(objective="l1", n_estimators=9, verbose=-1, n_jobs=1),
        XGBRegressor(objective="reg:quantileerror", quantile_alpha=0.5, n_estimators=9),
        CatBoostRegressor(loss_function="Quantile", iterations=9, verbose=0, allow_writing_files=False),
        hist(loss="quantile", quantile=0.5),
    ],
    ids=["lightgbm", "l1", "xgboost", "catboost", "histogram"],
)
def test_a_median_is_a_centre(model):
    fit(model.fit(X[TRAIN], Y[TRAIN]), k=10, distribution="normal", spread="targets")


def test_a_model_that_is_trained_too_little():
    y = np.sign(X[:, 0]) * 5 + 0.1 * X[:, 1]
    model = hist(learning_rate=0.001).fit(X[TRAIN], y[TRAIN])
    u = IBUGRegressor(model, prefit=True)
    with pytest.warns(NotCentralWarning, match=r"outside of the 90% interval for \d+% of the validation rows"):
        u.fit(X[TRAIN], y[TRAIN], X_val=X[VALID], y_val=y[VALID])
    with pytest.warns(NotCentralWarning, match="outside"):  # on out-of-fold predictions, too
        IBUGRegressor(hist(learning_rate=0.001), random_state=0).fit(X[TRAIN], y[TRAIN])


def test_mistakes_can_be_errors_or_silent(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error", LikelyMistakeWarning)
        with pytest.raises(TooFewRowsWarning, match="Only 1"):
            fit(model, 1)
        warnings.simplefilter("ignore", LikelyMistakeWarning)
        fit(model, 1)


def test_warnings_point_to_the_users_line(model):
    with pytest.warns(LikelyMistakeWarning) as found:
        fit(model, 1)
    assert {warning.filename for warning in found} == {__file__}


def test_plain_catboost_predicts_logarithms_and_we_say_so():
    y = np.exp(Y / 3)
    plain = CatBoost({"loss_function": "Poisson", "iterations": 9, "verbose": 0, "allow_writing_files": False})
    plain.fit(X[TRAIN], y[TRAIN])
    u = IBUGRegressor(plain, prefit=True, k=10, distribution="normal", spread="targets")
    with pytest.warns(OtherUnitWarning, match="predicts logarithms"):
        u.fit(X[TRAIN], y[TRAIN], X_val=X[VALID], y_val=y[VALID])
    np.testing.assert_allclose(u.predict(X[TEST]), np.exp(plain.predict(X[TEST])))


@pytest.mark.parametrize("cls", [CatBoost, CatBoostRegressor])
def test_cox_models_are_refused(cls):
    options = {"loss_function": "Cox", "iterations": 3, "verbose": 0, "allow_writing_files": False}
    model = cls(options) if cls is CatBoost else cls(**options)
    with pytest.raises(UnsupportedModelError, match="Cox"):
        fit(model.fit(X[TRAIN], np.abs(Y[TRAIN])))
    with pytest.raises(UnsupportedModelError, match="cox"):
        fit(XGBRegressor(objective="survival:cox", n_estimators=3).fit(X[TRAIN], np.abs(Y[TRAIN])))


def several(swapped, y, names=("a", "b", "c"), seed=0, **options):
    """Fit on targets in another order than the model's; validation rows only where they are asked for."""
    forest = RandomForestRegressor(20, min_samples_leaf=3, random_state=seed).fit(X[TRAIN], y[TRAIN])
    frame = pd.DataFrame(y[:, swapped], columns=[names[j] for j in swapped])
    u = IBUGRegressor(forest, prefit=True, random_state=0, **options)
    if options:
        return u.fit(X[TRAIN], frame[TRAIN])
    return u.fit(X[TRAIN], frame[TRAIN], X_val=X[VALID], y_val=frame[VALID])


NOISE = np.random.default_rng(1).normal(size=(500, 3))
THREE = {
    "alike": 2 * X + NOISE,
    "other units": (2 * X + NOISE) * [1, 100, 1] + [0, 1000, 5],
}


@pytest.mark.parametrize("name", list(THREE))
@pytest.mark.parametrize("options", [{}, {"k": 10, "calibrate": False, "spread": "targets"}])
def test_targets_in_another_order_than_the_models(name, options):
    with pytest.warns(TargetOrderWarning, match=r"of the targets b, a fit better in the order a, b: .*'a', 'b', 'c'\]"):
        several([1, 0, 2], THREE[name], **options)
    with pytest.warns(TargetOrderWarning, match="of the targets c, a, b fit better in the order a, b, c"):
        several([2, 0, 1], THREE[name], **options)
    several([0, 1, 2], THREE[name], **options)


@pytest.mark.parametrize("seed", range(5))
def test_targets_that_no_model_predicts_are_no_other_order(seed):
    """Overfitted predictions of noise have errors above the variance of the target."""
    draw = np.random.default_rng(seed)
    noise, few = draw.normal(size=(60, 6)), draw.normal(size=(60, 6))
    assert better_order(2 * few, noise) == [0, 1, 2, 3, 4, 5]
    signal = np.column_stack([noise[:, 0], 2 * few[:, 1:]])  # the first is predicted
    assert better_order(signal + 0.1 * few, noise) == [0, 1, 2, 3, 4, 5]
    common = noise[:, :1] + 0.2 * few  # targets that are nearly the same
    assert better_order(common + 0.2 * noise, common) == [0, 1, 2, 3, 4, 5]
    assert better_order(np.tile(common[:, :1], 6), common) == [0, 1, 2, 3, 4, 5]


def test_which_order_is_better():
    y = np.random.default_rng(0).normal(size=(100, 5)) * [1, 10, 1, 1, 0] + [0, 3, 0, 0, 7]
    near = y + 0.3 * np.random.default_rng(1).normal(size=(100, 5))
    assert better_order(near, y) == [0, 1, 2, 3, 4]
    assert better_order(near[:, [2, 1, 0, 3, 4]], y) == [2, 1, 0, 3, 4]
    assert better_order(near[:, [1, 0, 3, 2, 4]], y) == [1, 0, 3, 2, 4]
    useless = near[:, [1, 0, 2, 3, 4]]
    useless[:, 2:4] = y[:, [3, 2]][::-1]  # the two that cannot be predicted stay, the other two are found
    assert better_order(useless, y) == [1, 0, 2, 3, 4]
    assert better_order(near[:9, [2, 1, 0, 3, 4]], y[:9]) == [0, 1, 2, 3, 4]  # too few rows to tell
    assert better_order(np.full((100, 5), np.nan), y) == [0, 1, 2, 3, 4]
    for order in permutations(range(4)):
        found = better_order(near[:, [*order, 4]], y)
        assert found == [*order, 4]
