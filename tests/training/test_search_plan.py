"""How many cells a row visits: chosen on validation rows, kept in files, the same wherever it is asked."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from ibug import IBUGRegressor, load
from ibug.exceptions import InvalidInputError
from ibug.neighbors import SearchPlan, _build
from ibug.training import _search

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 6))
    y = X[:, 0] + np.abs(X[:, 1]) * rng.normal(size=6000) + X[:, 2]
    model = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(X[:4500], y[:4500])
    return model, X, y


@pytest.fixture(autouse=True)
def cells_of_few_rows(monkeypatch):
    monkeypatch.setattr(_build, "_LEAST_CODES", 1)
    monkeypatch.setattr(_build, "_LEAST_ROWS", 4000)
    monkeypatch.setattr(_build, "_ROWS_PER_CELL", 8)
    monkeypatch.setattr(_search, "_COST", 1.0)


def fitted(data, **parameters):
    model, X, y = data
    u = IBUGRegressor(model, prefit=True, **parameters)
    return u.fit(X[:4500], y[:4500], X_val=X[4500:5500], y_val=y[4500:5500])


def test_validation_rows_choose_the_number_of_cells(data):
    u, X = fitted(data), data[1]
    plan, index = u.search_, u.source_.index
    assert plan.all_cells == index.n_cells > 400
    assert 1 <= plan.n_cells < plan.all_cells
    assert plan.recall >= 0.97
    assert plan.least_recall >= 0.7
    assert plan.loss <= 1e-3
    leaves = np.concatenate([*u.source_.leaves_of(X[4500:5500])])
    exact, found = index.query(leaves, plan.k)[0], index.query(leaves, plan.k, n_cells=plan.n_cells)[0]
    assert plan.recall == pytest.approx(np.mean(found >= exact[:, -1:]))
    assert plan.visited == pytest.approx(index.visited(leaves, plan.k, plan.n_cells).mean(), rel=0.1)
    assert f"{plan.n_cells} nearest of {plan.all_cells} cells" in str(plan)


def test_the_loss_is_that_of_the_distributions_on_the_rows(data):
    u, y = fitted(data), data[2][4500:5500]
    exact = u.source_.searched(SearchPlan())
    crps = [
        np.concatenate([u.rule_.distribution(batch).crps(y[batch.where]) for batch in source.batches(X, u.rule_.needs)])
        for X in (data[1][4500:5500],)
        for source in (u.source_, exact)
    ]
    assert u.search_.loss == pytest.approx(crps[0].mean() / crps[1].mean() - 1, abs=1e-12)


def test_neighbours_of_a_number_of_cells_are_those_that_the_index_finds(data):
    u, X = fitted(data, search=5), data[1][5500:]
    assert u.search_.n_cells == 5
    leaves = np.concatenate([*u.source_.leaves_of(X)])
    for one, other in zip(u.kneighbors(X, 20), u.source_.index.query(leaves, 20, n_cells=5), strict=True):
        assert np.array_equal(one, other)
    for one, other in zip(u.kneighbors(X, 20, exact=True), u.source_.index.query(leaves, 20), strict=True):
        assert np.array_equal(one, other)
    assert not np.array_equal(u.kneighbors(X, 20)[1], u.kneighbors(X, 20, exact=True)[1])


def test_all_cells_predict_what_an_exact_search_predicts(data):
    X = data[1][5500:]
    every, exact = fitted(data, search=10**6), fitted(data, search="exact")
    assert exact.search_ == SearchPlan()
    assert np.array_equal(every.predict_interval(X), exact.predict_interval(X))


def test_rows_alone_in_threads_and_from_files_have_the_same_intervals(data, tmp_path):
    u, X = fitted(data), data[1][5500:5600]
    ends = u.predict_interval(X)
    assert np.array_equal(ends, np.concatenate([u.predict_interval(X[i : i + 1]) for i in range(100)]))
    u.save(tmp_path / "model.ibug", compress=False)
    again = load(tmp_path / "model.ibug")
    assert again.search_ == u.search_
    assert np.array_equal(ends, again.predict_interval(X))
    assert np.array_equal(ends, again.set_params(n_jobs=2).predict_interval(X))


def test_too_few_rows_and_cells_that_do_not_pay_are_said(data, monkeypatch):
    monkeypatch.setattr(_search, "_COST", 1000.0)
    assert "too large a part" in str(fitted(data).search_)
    monkeypatch.setattr(_build, "_LEAST_ROWS", 5000)
    assert "too few for cells to pay" in str(fitted(data).search_)


def test_a_rule_that_loses_visits_more_cells(data, monkeypatch):
    monkeypatch.setattr(_search, "_RECALL", 0.0)
    monkeypatch.setattr(_search, "_LEAST_RECALL", 0.0)
    monkeypatch.setattr(_search, "_CELLS", (1, 2, 4, 8, 16, 32, 64, 128))
    monkeypatch.setattr(_search, "_LOSS_AND_ERROR", 1.0)
    u = fitted(data)
    assert u.search_.n_cells > 1
    assert u.search_.loss <= 1e-3


@pytest.mark.parametrize("parameters", [{}, {"cv": 0.3}, {"spread": "targets", "cv": 0.3}])
def test_models_that_are_trained_here_search_in_cells(data, parameters):
    _, X, y = data
    model = HistGradientBoostingRegressor(max_iter=20, random_state=0)
    u = IBUGRegressor(model, random_state=0, **parameters).fit(X[:4600], y[:4600])
    assert u.search_.all_cells == u.source_.index.n_cells > 0
    assert np.isfinite(u.predict_interval(X[5500:])).all()


def test_new_rows_go_into_cells(data):
    u, (_, X, y) = fitted(data, search=4), data
    cells = u.source_.index.n_cells
    u.update(X[5500:5600], y[5500:5600])
    assert u.source_.index.n_cells >= cells
    assert np.array_equal(u.kneighbors(X[5500:5600], 1)[0][:, 0], np.full(100, 60))  # each finds itself
    plan = u.recalibrate(X[5600:], y[5600:]).search_
    assert plan.n_cells == 4
    assert plan.n_measured == 400


@pytest.mark.parametrize("search", ["best", 0, -3, 2.5, True, None])
def test_other_searches_are_refused(data, search):
    with pytest.raises(InvalidInputError, match='search must be "auto", "exact" or a number of cells'):
        fitted(data, search=search)
