"""Which training rows are behind an interval."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor, Sampling
from ibug.exceptions import InvalidInputError
from ibug.explain import influence

pytestmark = pytest.mark.once

X, Y = load_diabetes(return_X_y=True)
TRAIN, VALIDATION, ASKED = slice(0, 200), slice(200, 300), slice(300, 303)


@pytest.fixture(scope="module")
def model():
    return GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X[TRAIN], Y[TRAIN])


def fitted(model, **options):
    u = IBUGRegressor(model, prefit=True, random_state=0, **options)
    return u.fit(X[TRAIN], Y[TRAIN], X_val=X[VALIDATION], y_val=Y[VALIDATION])


def without(u, row, coverage):
    """Index all training rows but one, and predict by the same rule."""
    source = u.source_
    kept = np.arange(len(source.targets)) if source.rows is None else source.rows
    kept = kept[kept != row]
    smaller = replace(source, index=source.leaves.index_of(X[TRAIN], kept), rows=kept)
    rule = u.rule_.at_most(dict.fromkeys(u.rule_.needs, len(kept)))
    batches = smaller.batches(X[ASKED], rule.needs)
    return np.concatenate([np.stack(rule.distribution(batch).interval(coverage), axis=1) for batch in batches])


@pytest.mark.parametrize(
    "options",
    [{}, {"distribution": "normal", "spread": "targets", "k": 9}, {"distribution": "kde", "k": 15},
     {"conformal": "distribution"}, {"sampling": Sampling(row_fraction=0.8)},
     {"cv": 2, "distribution": "kde", "spread": "residuals", "k": 15}, {"distribution": "kde", "k": 200}],
    ids=["stack", "paper", "kde", "conformal", "some rows", "residuals", "all rows"],
)  # fmt: skip
def test_it_is_what_an_index_without_the_row_gives(model, options):
    u = fitted(model, **options)
    found = influence(u, X[ASKED], coverage=0.8, n_most=200)
    np.testing.assert_allclose(found.interval, u.predict_interval(X[ASKED], 0.8))
    for i in range(len(found.rows)):
        changes = np.abs(found.without[i] - found.interval[i]).sum(axis=1)
        assert np.all(np.diff(changes) <= 1e-9)
        for j in {0, 1, len(found.rows[i]) // 2, len(found.rows[i]) - 1}:
            np.testing.assert_allclose(found.without[i, j], without(u, found.rows[i, j], 0.8)[i])
    stranger = np.setdiff1d(u.kneighbors(X[ASKED], u.source_.index.n_rows)[1][0], found.rows[0])
    if len(stranger):
        np.testing.assert_allclose(without(u, stranger[0], 0.8)[0], found.interval[0])


def test_the_change_of_the_width(model):
    found = influence(fitted(model), X[ASKED], n_most=3)
    assert found.rows.shape == found.affinities.shape == found.width_change.shape == (3, 3)
    expected = np.diff(found.without[0, 1])[0] - np.diff(found.interval[0])[0]
    assert found.width_change[0, 1] == pytest.approx(expected)


def test_blocks_make_no_difference(model, monkeypatch):
    u = fitted(model)
    every = influence(u, X[ASKED])
    monkeypatch.setattr("ibug.explain._influence._NUMBERS_PER_BLOCK", 1)
    alone = influence(u, X[ASKED])
    np.testing.assert_array_equal(alone.rows, every.rows)
    np.testing.assert_allclose(alone.without, every.without)


def test_where_no_training_row_matters(model):
    residuals = fitted(model, distribution="normal", spread="residuals", k=5)
    errors = Y[VALIDATION] - residuals.predict(X[VALIDATION])
    residuals.source_ = residuals.source_.with_residuals_of(X[VALIDATION], errors)
    with pytest.raises(InvalidInputError, match="made of validation rows"):
        influence(residuals, X[ASKED])
    with pytest.raises(InvalidInputError, match="n_most"):
        influence(fitted(model, k=5), X[ASKED], n_most=0)
