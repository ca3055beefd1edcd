"""At home in scikit-learn: estimator checks, cloning, search, pipelines, pickles, feature names."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from ibug import CBURegressor, IBUGRegressor, ProbabilisticEnsemble
from ibug.metrics import crps_scorer

catboost = pytest.importorskip("catboost")


class CatBoost(catboost.CatBoostRegressor):
    """Tests are named by the estimator's repr, and older versions of CatBoost show an address there."""

    def __repr__(self):
        return "CatBoost()"


def cat(**parameters):
    options = {"iterations": 30, "learning_rate": 0.2, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return CatBoost(**{**options, **parameters})


def ensemble(**parameters):
    boosting = GradientBoostingRegressor(n_estimators=10, random_state=0)
    ibug = IBUGRegressor(boosting, distribution="normal")
    return ProbabilisticEnsemble([("ibug", ibug), ("cbu", CBURegressor(cat()))], **parameters)


_SPLIT = (
    "the rows held out to calibrate are drawn by row, and CatBoost draws rows and noise by row, too, so a row of "
    "weight two is not the same as two rows"
)
_OBJECTS = "CatBoost raises its own error, not a TypeError, for a value that is no number"


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": _SPLIT,
        "check_sample_weight_equivalence_on_sparse_data": _SPLIT,
        **({"check_dtype_object": _OBJECTS} if isinstance(estimator, CBURegressor) else {}),
    }


# The checks fit on a few rows and on wrong input on purpose; what is warned of there is not ours.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks([CBURegressor(cat()), ensemble(random_state=0)], expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)


BOTH = pytest.mark.parametrize(
    "u", [CBURegressor(cat(), random_state=0), ensemble(random_state=0)], ids=["cbu", "ensemble"]
)


def test_parameters_of_members():
    u = ensemble().set_params(ibug__k=7, cbu__estimator__depth=2, weights=[1, 2])
    copy = clone(u)
    assert copy.get_params()["ibug__k"] == 7
    assert copy.get_params()["cbu__estimator__depth"] == 2
    assert copy.weights == [1, 2]
    assert copy.named_estimators.ibug is not u.named_estimators.ibug
    assert copy.get_params(deep=False).keys() == ensemble().get_params(deep=False).keys()
    replaced = u.set_params(cbu=CBURegressor(calibrate=False))
    assert replaced.named_estimators.cbu.calibrate is False


def test_grid_search_over_members(diabetes):
    search = GridSearchCV(
        ensemble(random_state=0), {"ibug__k": [5, 50], "combine": ["average", "mixture"]}, cv=2, scoring=crps_scorer
    )
    search.fit(*diabetes["train"])
    assert search.best_params_.keys() == {"ibug__k", "combine"}
    assert search.best_estimator_.predict_interval(diabetes["test"][0]).shape == (62, 2)


@BOTH
def test_cross_validation(u, diabetes):
    X, y = diabetes["train"]
    assert np.all(cross_val_score(u, X, y, cv=2) > 0)
    assert np.all(cross_val_score(u, X, y, cv=2, scoring=crps_scorer) > -60)


@BOTH
def test_at_the_end_of_a_pipeline(u, diabetes):
    X, y = diabetes["train"]
    pipeline = make_pipeline(StandardScaler(), clone(u)).fit(X, y)
    alone = clone(u).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(StandardScaler().fit_transform(X)))


@BOTH
@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_stored_and_loaded_predictions_are_identical(u, diabetes, way, tmp_path):
    X, _ = diabetes["test"]
    u = clone(u).fit(*diabetes["train"])
    if way == "pickle":
        again = pickle.loads(pickle.dumps(u))
    else:
        joblib.dump(u, tmp_path / "u.joblib")
        again = joblib.load(tmp_path / "u.joblib")
    np.testing.assert_array_equal(again.predict_var(X), u.predict_var(X))
    np.testing.assert_array_equal(again.predict(X), u.predict(X))


@BOTH
def test_the_same_seed_gives_the_same_result(u, diabetes):
    X, _ = diabetes["test"]
    one, other = (clone(u).fit(*diabetes["train"]).predict_var(X) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@BOTH
def test_feature_names_are_checked(u, diabetes):
    pd = pytest.importorskip("pandas")
    X, y = diabetes["train"]
    names = [f"f{i}" for i in range(10)]
    u = clone(u).fit(pd.DataFrame(X, columns=names), y)
    np.testing.assert_array_equal(u.feature_names_in_, names)
    with pytest.raises(ValueError, match="feature names should match"):
        u.predict_dist(pd.DataFrame(X, columns=names[::-1]))


def test_categorical_columns_in_members(diabetes):
    # scikit-learn cannot clone a CatBoost with a list of columns
    pd = pytest.importorskip("pandas")
    X, y = diabetes["train"]
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(c=np.where(X[:, 2] > 0, "u", "v"))
    model = cat(cat_features=["c"])
    ibug = IBUGRegressor(model, distribution="normal")
    u = ProbabilisticEnsemble([("ibug", ibug), ("cbu", CBURegressor(model))], random_state=0)
    u.fit(frame, y)
    assert [member.estimator_.get_cat_feature_indices() for member in u.estimators_] == [[2], [2]]
    assert np.all(np.isfinite(u.predict_interval(frame)))


def test_missing_values():
    assert get_tags(CBURegressor()).input_tags.allow_nan
    hist = IBUGRegressor(HistGradientBoostingRegressor(max_iter=5), distribution="normal")
    u = ProbabilisticEnsemble([("ibug", hist), ("cbu", CBURegressor(cat()))], random_state=0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    X[::3, 1] = np.nan
    assert np.all(np.isfinite(u.fit(X, y).predict_interval(X)))
