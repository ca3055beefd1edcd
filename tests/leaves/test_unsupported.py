"""Models that ibug cannot use: each gets an error that says why, before anything else goes wrong."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import IBUGRegressor
from ibug.exceptions import ModelNotFittedError, UnsupportedModelError
from ibug.leaves import LeafReader, reader_of, reader_type

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + RNG.normal(size=60)
LABELS = (Y > 0).astype(int)
THREE_LABELS = RNG.integers(0, 3, 60)
TWO_TARGETS = np.column_stack([Y, -Y])

QUIET_LIGHTGBM = {"verbose": -1, "num_threads": 1}
QUIET_CATBOOST = {"iterations": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}


def lightgbm():
    return pytest.importorskip("lightgbm")


def xgboost():
    return pytest.importorskip("xgboost")


def catboost():
    return pytest.importorskip("catboost")


def lightgbm_booster(labels, **options):
    return lightgbm().train(QUIET_LIGHTGBM | options, lightgbm().Dataset(X, labels), 3)


def loaded_lightgbm_booster(labels, **options):
    return lightgbm().Booster(model_str=lightgbm_booster(labels, **options).model_to_string())


def xgboost_booster(labels, n_rounds=3, own_objective=None, **options):
    data = xgboost().DMatrix(X, labels)
    return xgboost().train({"nthread": 1} | options, data, n_rounds, obj=own_objective)


def xgboost_regressor(labels, **options):
    return xgboost().XGBRegressor(n_estimators=3, n_jobs=1, **options).fit(X, labels)


def catboost_model(labels, **options):
    return catboost().CatBoost(QUIET_CATBOOST | options).fit(X, labels)


def three_outputs(prediction, data):
    return prediction.reshape(60, 3), np.ones((60, 3))


class SumOfSquares:
    """A user's own loss for several targets."""

    def calc_ders_multi(self, approximations, targets, weight):
        # As numba can compile it, which CatBoost does where it is installed.
        n = len(targets)
        gradient = [targets[i] - approximations[i] for i in range(n)]
        hessian = [[-1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
        return gradient, hessian


def catboost_with_own_loss_for_two_targets():
    class Loss(SumOfSquares, catboost().MultiTargetCustomObjective):
        pass

    options = {"loss_function": Loss(), "eval_metric": "MultiRMSE", "leaf_estimation_iterations": 1}
    return catboost_model(TWO_TARGETS, **options)


class OwnRegressor(RegressorMixin, BaseEstimator):
    pass


# By model: how it is made, and the reason that the error has to give.
NO_REGRESSION = {
    "LGBMClassifier": (lambda: lightgbm().LGBMClassifier(), "it is not a regressor"),
    "LGBMRanker": (lambda: lightgbm().LGBMRanker(), "it is not a regressor"),
    "lightgbm.CVBooster": (lambda: lightgbm().CVBooster(), "it is not a regressor"),
    "LGBMRegressor with a classifier's objective": (
        lambda: lightgbm().LGBMRegressor(objective="binary", n_estimators=3, **QUIET_LIGHTGBM).fit(X, LABELS),
        "its objective is 'binary'",
    ),
    "lightgbm.Booster, binary": (lambda: lightgbm_booster(LABELS, objective="binary"), "its objective is 'binary'"),
    "lightgbm.Booster, multiclass": (
        lambda: lightgbm_booster(THREE_LABELS, objective="multiclass", num_class=3),
        "its objective is 'multiclass'",
    ),
    "lightgbm.Booster, loaded": (
        lambda: loaded_lightgbm_booster(LABELS, objective="binary"),
        "its objective is 'binary'",
    ),
    "XGBClassifier": (lambda: xgboost().XGBClassifier(), "it is not a regressor"),
    "XGBRFClassifier": (lambda: xgboost().XGBRFClassifier(), "it is not a regressor"),
    "XGBRanker": (lambda: xgboost().XGBRanker(), "it is not a regressor"),
    "XGBRegressor with a classifier's objective": (
        lambda: xgboost_regressor(LABELS, objective="binary:logistic"),
        "its objective is 'binary:logistic'",
    ),
    "xgboost.Booster, binary": (
        lambda: xgboost_booster(LABELS, objective="binary:logistic"),
        "its objective is 'binary:logistic'",
    ),
    "xgboost.Booster, multiclass": (
        lambda: xgboost_booster(THREE_LABELS, objective="multi:softprob", num_class=3),
        "its objective is 'multi:softprob'",
    ),
    "xgboost.Booster, ranking": (
        lambda: xgboost_booster(LABELS, objective="rank:pairwise"),
        "its objective is 'rank:pairwise'",
    ),
    "CatBoostClassifier": (lambda: catboost().CatBoostClassifier(), "it is not a regressor"),
    "CatBoostRanker": (lambda: catboost().CatBoostRanker(), "it is not a regressor"),
    "CatBoost, binary": (lambda: catboost_model(LABELS, loss_function="Logloss"), "its loss is 'Logloss'"),
    "CatBoost, multiclass": (
        lambda: catboost_model(THREE_LABELS, loss_function="MultiClass"),
        "its loss is 'MultiClass'",
    ),
    "CatBoost, sum of classifiers": (
        lambda: catboost().sum_models([catboost_model(LABELS, loss_function="Logloss")] * 2),
        "its loss is 'Logloss'",
    ),
    "GradientBoostingClassifier": (GradientBoostingClassifier, "GradientBoostingClassifier"),
    "HistGradientBoostingClassifier": (HistGradientBoostingClassifier, "HistGradientBoostingClassifier"),
    "RandomForestClassifier": (RandomForestClassifier, "RandomForestClassifier"),
}

SEVERAL_OUTPUTS = {
    "lightgbm.Booster with classes for an own objective": (
        lambda: lightgbm_booster(
            THREE_LABELS, num_class=3, objective=lambda prediction, data: (prediction, np.ones_like(prediction))
        ),
        "it has several outputs",
    ),
    "XGBRegressor of several quantiles": (
        lambda: xgboost_regressor(Y, objective="reg:quantileerror", quantile_alpha=[0.1, 0.9]),
        "it has several outputs",
    ),
    "xgboost.Booster with classes for an own objective": (
        lambda: xgboost_booster(Y, own_objective=three_outputs, objective="reg:squarederror", num_class=3),
        "it has several outputs",
    ),
    "CatBoost of several quantiles": (
        lambda: catboost_model(Y, loss_function="MultiQuantile:alpha=0.1,0.9"),
        "its loss is 'MultiQuantile",
    ),
    "CatBoost with a variance": (
        lambda: catboost_model(Y, loss_function="RMSEWithUncertainty"),
        "RMSEWithUncertainty already predicts a variance",
    ),
    "MultiOutputRegressor of one target": (
        lambda: MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=3)).fit(X, TWO_TARGETS[:, :1]),
        "it has one target",
    ),
    "MultiOutputRegressor around a linear model": (
        lambda: MultiOutputRegressor(LinearRegression()).fit(X, TWO_TARGETS),
        "LinearRegression",
    ),
}

NO_TREES = {
    "XGBRegressor, gblinear": (lambda: xgboost_regressor(Y, booster="gblinear"), "its booster is 'gblinear'"),
    "xgboost.Booster, gblinear": (lambda: xgboost_booster(Y, booster="gblinear"), "its booster is 'gblinear'"),
    "LinearRegression": (LinearRegression, "LinearRegression"),
    "Pipeline with a linear model": (lambda: make_pipeline(StandardScaler(), LinearRegression()), "LinearRegression"),
    "Pipeline with a classifier": (lambda: make_pipeline(RandomForestClassifier()), "RandomForestClassifier"),
    "Pipeline without a model": (
        lambda: Pipeline([("scale", StandardScaler()), ("model", "passthrough")]),
        "its last step is no model",
    ),
    "Pipeline without a step": (lambda: Pipeline([]), "its last step is no model"),
    "FrozenEstimator with a classifier": (
        lambda: FrozenEstimator(RandomForestClassifier(n_estimators=3).fit(X, LABELS)),
        "RandomForestClassifier",
    ),
    "TransformedTargetRegressor": (TransformedTargetRegressor, "its regressor is None, which means a linear model"),
    "a search that is fitted": (
        lambda: GridSearchCV(RandomForestRegressor(n_estimators=2), {"max_depth": [1]}, cv=2).fit(X, Y),
        "pass its best_estimator_ with prefit=True",
    ),
    "a search": (lambda: GridSearchCV(RandomForestRegressor(), {}), "GridSearchCV"),
    "own class": (OwnRegressor, "OwnRegressor"),
    "an array": (lambda: X, "numpy.ndarray"),
    "a class": (lambda: RandomForestRegressor, "it is a class; write RandomForestRegressor()"),
    "a DMatrix": (lambda: xgboost().DMatrix(X), "DMatrix"),
    "a Pool": (lambda: catboost().Pool(X), "Pool"),
    "a Dataset": (lambda: lightgbm().Dataset(X), "Dataset"),
}

UNSUPPORTED = [
    pytest.param(*case, id=f"{what}: {name}")
    for what, cases in (("no regression", NO_REGRESSION), ("several outputs", SEVERAL_OUTPUTS), ("no trees", NO_TREES))
    for name, case in cases.items()
]


def assert_refuses(action, reason):
    with pytest.raises(UnsupportedModelError) as caught:
        action()
    message = str(caught.value)
    assert reason in message
    assert "Supported are LightGBM LGBMRegressor" in message
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(("make", "reason"), UNSUPPORTED)
def test_reason_is_given(make, reason):
    model = make()
    assert_refuses(lambda: reader_of(model), reason)


@pytest.mark.parametrize(("make", "reason"), UNSUPPORTED)
def test_prefit_regressor_refuses(make, reason):
    regressor = IBUGRegressor(make(), prefit=True, k=3, calibrate=False)
    assert_refuses(lambda: regressor.fit(X, Y), reason)


# CatBoost recommends numba, which is not needed, to those who write their own loss.
@pytest.mark.filterwarnings("ignore:Failed to import numba:UserWarning")
def test_own_loss_for_two_targets():
    model = catboost_with_own_loss_for_two_targets()
    assert model.predict(X).shape == (60, 2)
    assert_refuses(lambda: reader_of(model), "it has several outputs")


def test_a_model_without_trees():
    model = xgboost().XGBRegressor(n_estimators=0).fit(X, Y)
    assert_refuses(lambda: reader_of(model).library_leaves(X), "it has no trees")


def test_a_classifier_is_refused_before_it_is_trained():
    class Classifier(RandomForestClassifier):
        def fit(self, X, y):
            raise AssertionError("trained in vain")

    assert_refuses(lambda: IBUGRegressor(make_pipeline(StandardScaler(), Classifier())).fit(X, LABELS), "Classifier")


UNFITTED = {
    "LGBMRegressor": lambda: lightgbm().LGBMRegressor(),
    "lightgbm.Booster": lambda: lightgbm().Booster(QUIET_LIGHTGBM, lightgbm().Dataset(X, Y)),
    "XGBRegressor": lambda: xgboost().XGBRegressor(),
    "XGBRFRegressor": lambda: xgboost().XGBRFRegressor(),
    "xgboost.Booster, empty": lambda: xgboost().Booster(),
    "xgboost.Booster, no rounds": lambda: xgboost_booster(Y, n_rounds=0),
    "CatBoostRegressor": lambda: catboost().CatBoostRegressor(),
    "CatBoost": lambda: catboost().CatBoost(),
    "GradientBoostingRegressor": GradientBoostingRegressor,
    "HistGradientBoostingRegressor": HistGradientBoostingRegressor,
    "RandomForestRegressor": RandomForestRegressor,
    "ExtraTreesRegressor": ExtraTreesRegressor,
    "Pipeline": lambda: make_pipeline(StandardScaler(), RandomForestRegressor()),
    "FrozenEstimator": lambda: FrozenEstimator(RandomForestRegressor()),
    "TransformedTargetRegressor": lambda: TransformedTargetRegressor(RandomForestRegressor()),
    "TransformedTargetRegressor around a fitted one": lambda: TransformedTargetRegressor(
        RandomForestRegressor(n_estimators=3).fit(X, Y)
    ),
}


@pytest.mark.parametrize("make", UNFITTED.values(), ids=UNFITTED)
def test_unfitted_model(make):
    model = make()
    assert issubclass(reader_type(model), LeafReader)  # its class is all right, so that it can be trained
    for action in (
        lambda: reader_of(model),
        lambda: IBUGRegressor(model, prefit=True, k=3, calibrate=False).fit(X, Y),
    ):
        with pytest.raises(ModelNotFittedError, match=f"This {type(model).__name__} is not fitted") as caught:
            action()
        assert isinstance(caught.value, NotFittedError)
