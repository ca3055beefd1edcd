"""Predictions with the neighbours of the same search."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import ibug.neighbors._leaf_numbers as module
from ibug import IBUGRegressor, LeafIndex
from ibug.describe import predict_rows
from ibug.explain import plain_neighbors
from ibug.metrics import evaluate

pytestmark = pytest.mark.once


@pytest.fixture(scope="module", params=["array", "frame"])
def rows(request):
    X, y = load_diabetes(return_X_y=True)
    return (X if request.param == "array" else pd.DataFrame(X).add_prefix("x")), y


@pytest.fixture(
    scope="module",
    params=[
        {},
        {"distribution": "kde", "k": 20, "spread": "targets"},
        {"support": (0, np.inf), "distribution": "laplace", "k": 20},
        {"conformal": "distribution"},
    ],
    ids=["normal", "kde", "bounded", "conformal"],
)
def u(request, rows):
    X, y = rows
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X[:250], y[:250])
    return IBUGRegressor(model, prefit=True, random_state=0, **request.param).fit(
        X[:250], y[:250], X_val=X[250:350], y_val=y[250:350]
    )


def same(found, expected):
    for name in ("mean", "var", "ppf", "interval"):
        options = (0.3,) if name in ("ppf", "interval") else ()
        np.testing.assert_array_equal(getattr(found, name)(*options), getattr(expected, name)(*options))


@pytest.mark.parametrize("at_a_time", [2**22, 700], ids=["at once", "in chunks"])
def test_they_are_the_estimators_own(u, rows, at_a_time, monkeypatch):
    monkeypatch.setattr(module, "_NUMBERS_PER_CHUNK", at_a_time)
    X, kept = rows[0][350:], np.array([0, 3, 4, 40, 91])
    found = predict_rows(u, X, 5, kept)
    near = found.nearest
    same(found.distribution, u.predict_dist(X))
    np.testing.assert_array_equal(found.points, u.predict(X))
    np.testing.assert_array_equal(found.training_targets_, rows[1][:250])
    np.testing.assert_array_equal(near.similarity, u.affinity_score(X))
    affinities, indices = u.kneighbors(X, max(5, u.k_))
    np.testing.assert_array_equal(near.affinities, affinities[kept])
    np.testing.assert_array_equal(near.indices, indices[kept])


def test_all_neighbours_are_kept_by_default(u, rows):
    X = rows[0][350:]
    most = u.k_ + 3
    near = predict_rows(u, X, most).nearest
    np.testing.assert_array_equal(near.indices, u.kneighbors(X, most)[1])


class Without:
    """An estimator without neighbours, and without an uncalibrated form."""

    def __init__(self, u):
        self.predict, self.predict_dist = u.predict, u.predict_dist


def test_both_with_and_without_calibration_by_one_search(u, rows, monkeypatch):
    X, searched = rows[0][350:], []
    expected, plain, points = u.predict_dist(X), plain_neighbors(u).predict_dist(X), u.predict(X)
    before = LeafIndex.query
    monkeypatch.setattr(LeafIndex, "query", lambda *a, **o: searched.append(len(a[1])) or before(*a, **o))
    found = predict_rows(u, X, uncalibrated=True)
    assert sum(searched) == len(X)
    same(found.distribution, expected)
    same(found.plain_neighbors().distribution, plain)
    np.testing.assert_array_equal(found.plain_neighbors().points, points)
    assert predict_rows(u, X).plain_neighbors() is None  # it was not asked for
    assert predict_rows(Without(u), X, uncalibrated=True).plain_neighbors() is None


def test_the_library_predicts_once(u, rows, monkeypatch):
    X, asked = rows[0][350:], []
    expected, model = u.predict(X), type(u.estimator_)
    before = model.predict
    monkeypatch.setattr(model, "predict", lambda self, X: asked.append(len(X)) or before(self, X))
    np.testing.assert_array_equal(predict_rows(u, X).points, expected)
    assert asked == [len(X)]


def test_scores_need_no_second_search(u, rows, monkeypatch):
    X, y = rows[0][350:], rows[1][350:]
    expected = evaluate(u, X, y)
    found = predict_rows(u, X)
    monkeypatch.setattr(LeafIndex, "query", None)
    assert dict(evaluate(found, X, y)) == dict(expected)
