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


def cat(**parameters):
    options = {"iterations": 30, "learning_rate": 0.2, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return catboost.CatBoostRegressor(**{**options, **parameters})


def ensemble(**parameters):
    boosting = GradientBoostingRegressor(n_estimators=10, random_state=0)
    return ProbabilisticEnsemble([("ibug", IBUGRegressor(boosting)), ("cbu", CBURegressor(cat()))], **parameters)


_SPLIT = "the rows held out to calibrate are drawn by row, so a row of weight two is not the same as two rows"
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
