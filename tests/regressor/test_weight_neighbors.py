"""Training rows that count for their weights among the neighbours.

A row of weight w counts as w rows: k still counts rows, so that the k nearest with their weights are the Σw nearest
where each row is there w times. With all rows as neighbours that is one number, and the two are equal.
"""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

import ibug
from ibug import IBUGRegressor, Sampling
from ibug.exceptions import InvalidInputError
from ibug.explain import influence
from ibug.rule._experts import Evidence, Experts, ExpertStatistics, Nearest, pool
from ibug.rule._spread import Combination, Spread
from ibug.rule._stack import StackRule

pytestmark = pytest.mark.once


def repeated(values, weights):
    """Return each row's values, as often as its weights say; rows need the same sum."""
    return np.stack([np.repeat(row, times) for row, times in zip(values, weights, strict=True)])


@pytest.fixture
def neighbors():
    rng = np.random.default_rng(0)
    weights = rng.permuted(np.tile([1, 1, 2, 3, 5, 1, 4], (30, 1)), axis=1)
    return {"targets": rng.normal(size=(30, 7)), "residuals": rng.normal(size=(30, 7))}, weights


@pytest.mark.parametrize("quantity", ["targets", "residuals"])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_spread_is_that_of_repeated_rows(neighbors, quantity, k):
    values, weights = neighbors
    found = Spread.of(quantity, k).variance(values, {quantity: weights.astype(float)})
    for row, variance in enumerate(found):
        every = np.repeat(values[quantity][row, :k], weights[row, :k])
        expected = every.var() if quantity == "targets" else np.mean(every**2)
        assert variance == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_a_combination_is_that_of_repeated_rows(neighbors):
    values, weights = neighbors
    own = {name: weights.astype(float) for name in values}
    every = {name: repeated(part, weights) for name, part in values.items()}
    some, all_ = (("targets", 7), ("residuals", 7)), (("targets", 17), ("residuals", 17))
    floors = centers = np.zeros(2)
    fitted = Combination(floors, centers, np.full(2, -9.0), np.full(2, 9.0), np.array([0.3, -0.1]), 0.2)
    np.testing.assert_allclose(
        Spread(some, fitted).variance(values, own), Spread(all_, fitted).variance(every), rtol=1e-12
    )


def test_a_stack_is_that_of_repeated_rows(neighbors):
    values, weights = neighbors
    rng = np.random.default_rng(1)
    mean, y = rng.normal(size=(2, 30))
    scale, shares = rng.uniform(1, 2, 30), -np.sort(-rng.uniform(size=(30, 7)), axis=1)
    few = Evidence(mean, scale, values["targets"], shares, values["residuals"], weights.astype(float))
    many = Evidence(
        mean, scale, *(repeated(part, weights) for part in (values["targets"], shares, values["residuals"]))
    )
    pooled = pool(mean, scale, y, None, resolution=0.0, support=(-np.inf, np.inf))
    kinds = {k: Experts((Nearest(k), Nearest(k, 8.0)), (Nearest(k, 3.0),)) for k in (7, 17)}
    of_few, of_many = (ExpertStatistics.of(kinds[k], pooled, evidence, y) for k, evidence in ((7, few), (17, many)))
    for name in ("to_target", "to_each_other", "log_density"):
        np.testing.assert_allclose(getattr(of_few, name), getattr(of_many, name), rtol=1e-9, atol=1e-12)
    own = np.array([0.2, 0.1, 0.3, 0.15, 0.25])
    made = [
        StackRule(kinds[k], own, np.full(5, np.nan), 0.0, "crps", pooled, 0.2).distribution(evidence)
        for k, evidence in ((7, few), (17, many))
    ]
    np.testing.assert_allclose(made[0].cdf(y), made[1].cdf(y), atol=1e-6)  # masses have single precision
    np.testing.assert_allclose(made[0].var(), made[1].var(), rtol=1e-5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 3))
    y = 2 * X[:, 0] + rng.normal(size=500) * (0.2 + X[:, 1])
    weights = rng.integers(1, 4, size=200)
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X[:200], y[:200], weights)
    return model, X, y, weights


def fitted(data, weights=None, rows=None, **parameters):
    model, X, y, _ = data
    rows = np.arange(200) if rows is None else rows
    u = IBUGRegressor(model, prefit=True, **{"residuals": "none", "random_state": 0, **parameters})
    return u.fit(X[rows], y[rows], weights, X_val=X[200:400], y_val=y[200:400])


def test_integer_weights_equal_repeated_rows_where_all_are_neighbours(data):
    _, X, _, weights = data
    every = np.repeat(np.arange(200), weights)
    parameters = {"distribution": "normal", "spread": "targets"}
    weighted = fitted(data, weights, sampling=Sampling(weight_neighbors=True), k=200, **parameters)
    plain = fitted(data, rows=every, k=len(every), **parameters)
    np.testing.assert_allclose(weighted.predict_var(X[400:]), plain.predict_var(X[400:]), rtol=1e-9)


@pytest.mark.parametrize("parameters", [{}, {"residuals": "auto"}, {"distribution": "normal"}])
def test_equal_weights_change_nothing(data, parameters):
    _, X, _, _ = data
    threes = np.full(200, 3.0)
    weighted = fitted(data, threes, sampling=Sampling(weight_neighbors=True), **parameters)
    plain = fitted(data, threes if "residuals" in parameters else None, **parameters)
    assert weighted.k_ == plain.k_
    np.testing.assert_allclose(
        weighted.predict_quantiles(X[400:]), plain.predict_quantiles(X[400:]), rtol=1e-4, atol=1e-4
    )


def test_heavier_rows_draw_the_distribution_to_them(data):
    model, X, y, _ = data
    high = np.where(y[:200] > np.median(y[:200]), 20.0, 1.0)
    heavy, plain = (
        IBUGRegressor(
            model, prefit=True, distribution="auto", sampling=Sampling(weight_neighbors=flag), residuals="none"
        ).fit(X[:200], y[:200], high if flag else None, X_val=X[200:400], y_val=y[200:400])
        for flag in (True, False)
    )
    assert not np.allclose(heavy.predict_var(X[400:]), plain.predict_var(X[400:]))
    np.testing.assert_array_equal(heavy.predict(X[400:]), plain.predict(X[400:]))


@pytest.mark.parametrize("parameters", [{}, {"cv": 3}, {"spread": "targets", "k": 9}])
def test_every_way_to_train(data, parameters):
    _, X, y, weights = data
    u = IBUGRegressor(
        GradientBoostingRegressor(n_estimators=10),
        sampling=Sampling(weight_neighbors=True),
        random_state=0,
        **parameters,
    )
    u.fit(X[:200], y[:200], sample_weight=weights)
    np.testing.assert_array_equal(u.source_.weights, weights)
    assert np.isfinite(u.predict_interval(X[400:])).all()


def test_files_pickles_and_updates_keep_the_weights(data, tmp_path):
    _, X, y, weights = data
    u = fitted(data, weights, sampling=Sampling(weight_neighbors=True))
    expected = u.predict_quantiles(X[450:])
    u.save(tmp_path / "u.ibug")
    for other in (ibug.load(tmp_path / "u.ibug"), pickle.loads(pickle.dumps(u))):
        np.testing.assert_array_equal(other.predict_quantiles(X[450:]), expected)
    rest = np.arange(1, 51)
    u.update(X[400:450], y[400:450], rest)
    np.testing.assert_array_equal(u.source_.weights, np.concatenate([weights, rest]))
    u.update(X[400:450], y[400:450], keep=230)
    np.testing.assert_array_equal(u.source_.weights, np.concatenate([weights, rest, np.ones(50)])[-230:])


def test_influence_removes_the_weight_with_its_row(data):
    model, X, y, weights = data
    u = fitted(
        data,
        weights.astype(float),
        sampling=Sampling(weight_neighbors=True),
        distribution="normal",
        spread="targets",
        k=9,
    )
    found = influence(u, X[400:401], n_most=1)
    left = np.delete(np.arange(200), found.rows[0, 0])
    v = IBUGRegressor(
        model,
        prefit=True,
        k=9,
        calibrate=False,
        distribution="normal",
        spread="targets",
        sampling=Sampling(weight_neighbors=True),
    ).fit(X[left], y[left], weights[left])
    v.rule_ = u.rule_
    np.testing.assert_allclose(v.predict_interval(X[400:401]), found.without[0], rtol=1e-12)


def test_what_cannot_be(data):
    _, X, y, weights = data
    for wrong in (None, np.where(weights == 1, 0, weights), -weights):
        with pytest.raises(InvalidInputError, match="one above zero for each training row"):
            fitted(data, wrong, sampling=Sampling(weight_neighbors=True), spread="targets")
    with pytest.raises(InvalidInputError, match="fitted to neighbours that count equally"):
        fitted(data, weights, sampling=Sampling(weight_neighbors=True), distribution="kde")
    with pytest.raises(InvalidInputError, match="True or False"):
        fitted(data, weights, sampling=Sampling(weight_neighbors="yes"))
    u = fitted(data)
    with pytest.raises(InvalidInputError, match="where training rows have weights"):
        u.update(X[400:], y[400:], np.ones(100))
    u = fitted(data, weights, sampling=Sampling(weight_neighbors=True))
    with pytest.raises(InvalidInputError, match="one above zero"):
        u.update(X[400:], y[400:], np.zeros(100) + (np.arange(100) > 5))
    with pytest.raises(InvalidInputError, match="one number for each of the 100 rows"):
        u.update(X[400:], y[400:], np.ones(99))
    state = u.source_.state()
    for broken in (np.ones(3), np.zeros(200), np.full(200, np.nan)):
        with pytest.raises(InvalidInputError, match="weights do not match"):
            type(u.source_).from_state(u.estimator_, {**state, "weights": broken})
