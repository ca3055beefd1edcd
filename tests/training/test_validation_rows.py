"""The validation rows of a trained model are predicted once and searched once, also for the diagnostics."""

from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from ibug import IBUGRegressor
from ibug._options import Options
from ibug.neighbors import LeafIndex
from ibug.rule import summarize
from ibug.training import learn_from

pytestmark = pytest.mark.once

N_TRAIN, N_VAL = 500, 400
X, Y = make_friedman1(N_TRAIN + N_VAL, n_features=6, noise=1.0, random_state=0)
MODELS = {  # whose predictions come with the leaves, and whose do not
    "walk": (HistGradientBoostingRegressor, {"max_iter": 20}),
    "library": (RandomForestRegressor, {"n_estimators": 20, "random_state": 0}),
}


@pytest.fixture
def counts(monkeypatch):
    """How often validation rows are predicted by the library, and how many rows are searched."""
    counts, ours = Counter(), {row.tobytes() for row in X[N_TRAIN:]}
    query = LeafIndex.query

    def counted_query(self, leaves, *args, **options):
        counts["searched"] += len(leaves)
        return query(self, leaves, *args, **options)

    monkeypatch.setattr(LeafIndex, "query", counted_query)
    for model, _ in MODELS.values():

        def counted(self, rows, predict=model.predict):
            counts["predicted"] += sum(row.tobytes() in ours for row in np.ascontiguousarray(rows, np.float64))
            return predict(self, rows)

        monkeypatch.setattr(model, "predict", counted)
    return counts


@pytest.mark.parametrize("parameters", [{}, {"conformal": "scale"}, {"spread": "residuals"}, {"residuals": "none"}])
@pytest.mark.parametrize("name", MODELS)
def test_each_row_is_read_once(counts, name, parameters):
    make, given = MODELS[name]
    model = make(**given).fit(X[:N_TRAIN], Y[:N_TRAIN])
    counts.clear()
    u = IBUGRegressor(model, prefit=True, random_state=0, **parameters)
    u.fit(X[:N_TRAIN], Y[:N_TRAIN], X_val=X[N_TRAIN:], y_val=Y[N_TRAIN:])
    assert counts["searched"] == N_VAL
    assert counts["predicted"] <= N_VAL


@pytest.mark.parametrize("parameters", [{}, {"conformal": "scale"}])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_few_rows_that_also_calibrate_are_searched_once(counts, monkeypatch, n_targets, parameters):
    y = np.column_stack([Y, Y + X[:, 0]])[:, :n_targets].squeeze()
    model, few = RandomForestRegressor(20, random_state=0).fit(X[:N_TRAIN], y[:N_TRAIN]), slice(N_TRAIN, N_TRAIN + 150)

    def quantiles(u):
        counts.clear()
        u.fit(X[:N_TRAIN], y[:N_TRAIN], X_val=X[few], y_val=y[few])
        return counts["searched"], u.predict_quantiles(X[-50:])

    n_searched, found = quantiles(IBUGRegressor(model, prefit=True, random_state=0, **parameters))
    assert n_searched == 150
    monkeypatch.setattr("ibug.training._diagnostics._MOST_KEPT", 0)
    n_searched, again = quantiles(IBUGRegressor(model, prefit=True, random_state=0, **parameters))
    assert n_searched == (150 if n_targets == 1 and not parameters else 300)
    np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("parameters", [{}, {"conformal": "distribution"}, {"distribution": "normal"}])
def test_the_diagnostics_see_the_distributions_that_are_predicted(parameters, weighted):
    model = HistGradientBoostingRegressor(max_iter=20).fit(X[:N_TRAIN], Y[:N_TRAIN])
    u = IBUGRegressor(model, prefit=True, random_state=0, **parameters)
    u.fit(X[:N_TRAIN], Y[:N_TRAIN], X_val=X[N_TRAIN:], y_val=Y[N_TRAIN:])
    options, weights = Options.of(u.get_params(deep=False)), np.r_[np.zeros(50), np.linspace(1, 2, N_VAL - 50)]
    known = summarize(Y[:N_TRAIN], options), np.random.RandomState(0), weights if weighted else None
    source, rule, read = learn_from(u.source_, (X[N_TRAIN:], Y[N_TRAIN:]), options, *known)
    n_sampled = 0
    for rows in read:
        np.testing.assert_allclose(rows.predictions, u.predict(rows.X), rtol=1e-9)
        for batch in rows.sampled_batches(rule, source.leaves_of):
            (again,) = source.batches(rows.X[rows.sampled[batch.where]], rule.needs)
            assert batch.row_context == {}
            np.testing.assert_allclose(
                rule.distribution(batch).interval(0.9), rule.distribution(again).interval(0.9), rtol=1e-12
            )
            n_sampled += batch.n_rows
    assert n_sampled == 200
