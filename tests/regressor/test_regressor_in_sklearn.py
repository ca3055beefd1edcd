"""At home in scikit-learn: estimator checks, cloning, search, pipelines, pickles, feature names."""

import io
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data, parametrize_with_checks

from ibug import IBUGRegressor, VarianceCalibrator

_COUNTS_ROWS = (
    "HistGradientBoostingRegressor makes bins and counts rows of leaves without weights: on the rows that the check "
    "takes for an estimator with cv, it fails by itself, too; see test_the_model_alone_fails_the_check_of_weights"
)


def expected_failures(estimator):
    if estimator.estimator is None:
        return {"check_sample_weight_equivalence_on_dense_data": _COUNTS_ROWS}
    return {}


# The checks fit on a few rows and on wrong input on purpose; what is warned of there is not ours.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(
    [
        IBUGRegressor(),
        IBUGRegressor(GradientBoostingRegressor(n_estimators=10, random_state=0)),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    check(estimator)


class OnRowsForCV(HistGradientBoostingRegressor):
    """The model alone, with a parameter `cv` without effect, by which the check takes its rows."""

    def __init__(self, cv=None, random_state=None):
        super().__init__(random_state=random_state)
        self.cv = cv


def test_the_model_alone_fails_the_check_of_weights():
    check_sample_weight_equivalence_on_dense_data("alone", HistGradientBoostingRegressor())  # 15 rows, and no split
    with pytest.raises(AssertionError, match="not equivalent"):
        check_sample_weight_equivalence_on_dense_data("alone", OnRowsForCV())  # 45 rows


@pytest.fixture
def small():
    return IBUGRegressor(GradientBoostingRegressor(n_estimators=10, random_state=0), random_state=0)


def test_clone_and_parameters(small):
    copy = clone(small.set_params(estimator__max_depth=2, k=7))
    assert copy.get_params()["estimator__max_depth"] == 2
    assert copy.k == 7
    assert copy.estimator is not small.estimator


def test_grid_search_over_both_models(small, diabetes):
    search = GridSearchCV(small, {"estimator__max_depth": [1, 3], "k": [5, 50]}, cv=2).fit(*diabetes["train"])
    assert search.best_params_.keys() == {"estimator__max_depth", "k"}
    assert search.best_estimator_.predict_interval(diabetes["test"][0]).shape == (62, 2)


def test_cross_validation_scores_the_point_prediction(small, diabetes):
    scores = cross_val_score(small, *diabetes["train"], cv=3, scoring="r2")
    expected = cross_val_score(small.estimator, *diabetes["train"], cv=3, scoring="r2")
    np.testing.assert_allclose(scores, expected)


def test_at_the_end_of_a_pipeline(small, diabetes):
    X, y = diabetes["train"]
    pipeline = make_pipeline(StandardScaler(), small).fit(X, y)
    alone = clone(small).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(StandardScaler().fit_transform(X)))


@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_stored_and_loaded_predictions_are_identical(small, diabetes, way, tmp_path):
    X, _ = diabetes["test"]
    u = small.fit(*diabetes["train"])
    if way == "pickle":
        again = pickle.loads(pickle.dumps(u))
    else:
        joblib.dump(u, tmp_path / "u.joblib")
        again = joblib.load(tmp_path / "u.joblib", mmap_mode="r")  # read-only arrays must do
    np.testing.assert_array_equal(again.predict_var(X), u.predict_var(X))
    np.testing.assert_array_equal(again.predict(X), u.predict(X))


@pytest.mark.parametrize(
    "estimator", [GradientBoostingRegressor(n_estimators=50), HistGradientBoostingRegressor(max_iter=200)]
)
def test_a_pickle_holds_the_model_once(estimator, diabetes):
    u = IBUGRegressor(estimator).fit(*diabetes["train"])
    u.predict_var(diabetes["test"][0])
    whole, model = io.BytesIO(), io.BytesIO()
    pickle.dump(u, whole)
    pickle.dump(u.estimator_, model)
    rest = u.source_.index.nbytes + u.training_targets_.nbytes
    assert len(whole.getvalue()) < len(model.getvalue()) + rest + 40_000


def test_feature_names_are_checked(small, diabetes):
    pd = pytest.importorskip("pandas")
    X, y = diabetes["train"]
    names = [f"f{i}" for i in range(10)]
    u = small.fit(pd.DataFrame(X, columns=names), y)
    np.testing.assert_array_equal(u.feature_names_in_, names)
    assert u.n_features_in_ == 10
    with pytest.raises(ValueError, match="feature names should match"):
        u.predict_dist(pd.DataFrame(X, columns=names[::-1]))
    with pytest.raises(ValueError, match="feature names should match"):
        u.predict_dist(pd.DataFrame(X, columns=[*names[1:], "other"]))


def test_polars_and_pandas_frames_give_the_same(small, diabetes):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = diabetes["train"]
    names = [f"f{i}" for i in range(10)]
    from_pandas = clone(small).fit(pd.DataFrame(X, columns=names), y)
    from_polars = clone(small).fit(pl.DataFrame(X, schema=names), y)
    np.testing.assert_array_equal(
        from_polars.predict_var(pl.DataFrame(X, schema=names)), from_pandas.predict_var(pd.DataFrame(X, columns=names))
    )


def test_missing_values_are_the_models_matter():
    for estimator, allowed in (
        (None, True),
        (HistGradientBoostingRegressor(), True),
        (RandomForestRegressor(), True),
        (GradientBoostingRegressor(), False),
        (object(), False),  # a native Booster has no tags
    ):
        assert get_tags(IBUGRegressor(estimator)).input_tags.allow_nan is allowed


def test_the_calibrator_is_an_estimator():
    assert clone(VarianceCalibrator(scoring="nll")).scoring == "nll"
    assert repr(VarianceCalibrator(scoring="nll")) == "VarianceCalibrator(scoring='nll')"
