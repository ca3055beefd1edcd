"""IBUGRegressor against the paper's formulas written out."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor, Sampling
from ibug.exceptions import InvalidInputError
from ibug.metrics import coverage, crps, nll
from ibug.neighbors import _search
from tests.oracles import calibrate_by_grid, nearest_rows

pytestmark = pytest.mark.once


@pytest.fixture
def fitted(model, diabetes):
    return IBUGRegressor(model, prefit=True, distribution="normal", spread="targets").fit(
        *diabetes["train"], X_val=diabetes["validation"][0], y_val=diabetes["validation"][1]
    )


def oracle_variance(model, diabetes, X, k):
    _, rows = nearest_rows(model.apply(diabetes["train"][0]), model.apply(X), k)
    return diabetes["train"][1][rows].var(axis=1)


def test_predictions_are_the_models_own(fitted, model, diabetes):
    X, _ = diabetes["test"]
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    np.testing.assert_array_equal(fitted.predict_dist(X).mean(), model.predict(X))
    assert fitted.estimator_ is model


def test_variance_is_algorithm_2(fitted, model, diabetes):
    X, _ = diabetes["test"]
    variance = np.maximum(oracle_variance(model, diabetes, X, fitted.k_), fitted.rule_.min_variance)
    np.testing.assert_allclose(fitted.predict_var(X), fitted.rule_.gamma * variance + fitted.rule_.delta, rtol=1e-12)
    np.testing.assert_allclose(fitted.predict_dist(X).var(), fitted.predict_var(X), rtol=1e-12)


def scipy_nll(y, distribution):
    return -distribution.logpdf(y).mean()


def scipy_crps(y, distribution):
    z = (y - distribution.mean()) / distribution.std()
    return np.mean(distribution.std() * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)))


@pytest.mark.parametrize("scoring", ["crps", "nll"])
def test_k_floor_and_calibration_are_the_papers(model, diabetes, scoring):
    X_val, y_val = diabetes["validation"]
    u = IBUGRegressor(model, prefit=True, distribution="normal", spread="targets", scoring=scoring)
    u.fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    mean = model.predict(X_val)
    expected = []
    for k in (3, 5, 7, 9, 11, 15, 31, 61, 91, 121, 151, 201):
        scale = np.sqrt(np.maximum(oracle_variance(model, diabetes, X_val, k), 1e-15))
        expected.append({"nll": scipy_nll, "crps": scipy_crps}[scoring](y_val, norm(mean, scale)))
    np.testing.assert_allclose(u.tuning_["score"], expected, rtol=1e-9)
    assert u.k_ == u.tuning_["k"][np.argmin(expected)]
    variance = oracle_variance(model, diabetes, X_val, u.k_)
    assert u.rule_.min_variance == pytest.approx(variance[variance > 0].min(), rel=1e-12)
    score, oracle = {"nll": (nll, scipy_nll), "crps": (crps, scipy_crps)}[scoring]
    best = calibrate_by_grid(mean, variance, y_val, oracle)
    assert score(y_val, u.predict_dist(X_val)) == pytest.approx(best, rel=1e-9)


def test_calibration_is_never_worse_on_the_validation_rows(model, diabetes):
    X_val, y_val = diabetes["validation"]
    for scoring, score in (("crps", crps), ("nll", nll)):
        with_, without = (
            IBUGRegressor(model, prefit=True, scoring=scoring, calibrate=calibrate).fit(
                *diabetes["train"], X_val=X_val, y_val=y_val
            )
            for calibrate in (True, False)
        )
        assert (without.rule_.gamma, without.rule_.delta) == (1.0, 0.0)
        assert score(y_val, with_.predict_dist(X_val)) <= score(y_val, without.predict_dist(X_val))


def test_neighbours_are_the_nearest_rows(fitted, model, diabetes):
    X, _ = diabetes["test"]
    for n_neighbors in (None, 1, 300):
        k = n_neighbors or fitted.k_
        expected = nearest_rows(model.apply(diabetes["train"][0]), model.apply(X), k)
        for found, right in zip(fitted.kneighbors(X, n_neighbors), expected, strict=True):
            np.testing.assert_array_equal(found, right)


def test_a_training_row_is_its_own_nearest(fitted, diabetes):
    affinities, rows = fitted.kneighbors(diabetes["train"][0], 1)
    assert np.all(affinities == fitted.source_.index.n_trees)
    assert np.mean(rows[:, 0] == np.arange(300)) > 0.9  # all but rows that share every leaf with an earlier one


def test_intervals_and_quantiles_come_from_the_distribution(fitted, diabetes):
    X, y = diabetes["test"]
    distribution = fitted.predict_dist(X)
    interval = fitted.predict_interval(X, coverage=0.8)
    quantiles = fitted.predict_quantiles(X, alpha=[0.1, 0.5, 0.9])
    assert interval.shape == (len(X), 2)
    assert quantiles.shape == (len(X), 3)
    np.testing.assert_allclose(interval, np.stack(distribution.interval(0.8), axis=1))
    np.testing.assert_allclose(quantiles[:, [0, 2]], interval)
    np.testing.assert_allclose(quantiles[:, 1], distribution.mean())
    assert fitted.predict_quantiles(X, alpha=0.5).shape == (len(X), 1)
    assert coverage(y, distribution, 0.8) == np.mean((interval[:, 0] <= y) & (y <= interval[:, 1]))


def test_intervals_hold_about_what_they_say():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(2500, 4))
    y = 4 * X[:, 0] + (0.1 + X[:, 1]) * rng.normal(size=2500)
    u = IBUGRegressor(GradientBoostingRegressor(random_state=0), random_state=0).fit(X[:1500], y[:1500])
    distribution = u.predict_dist(X[1500:])
    for level in (0.5, 0.8, 0.9):
        assert abs(coverage(y[1500:], distribution, level) - level) < 0.06
    # and they are wider where there is more noise
    assert np.corrcoef(distribution.std(), 0.1 + X[1500:, 1])[0, 1] > 0.5


@pytest.mark.parametrize("numbers_per_chunk", [1, 61, 60 * 7, 60 * 62])
def test_chunks_do_not_change_the_result(fitted, model, diabetes, numbers_per_chunk, monkeypatch):
    X, _ = diabetes["test"]
    whole = fitted.predict_var(X), *fitted.kneighbors(X, 20)
    monkeypatch.setattr("ibug.neighbors._leaf_numbers._NUMBERS_PER_CHUNK", numbers_per_chunk)
    again = IBUGRegressor(model, prefit=True, distribution="normal", spread="targets").fit(
        *diabetes["train"], X_val=diabetes["validation"][0], y_val=diabetes["validation"][1]
    )
    assert again.k_ == fitted.k_
    for one, other in zip((again.predict_var(X), *again.kneighbors(X, 20)), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_and_row_order_do_not_change_the_result(fitted, diabetes, rng, monkeypatch):
    X, _ = diabetes["test"]
    shuffled = rng.permutation(len(X))
    expected = fitted.predict_var(X)
    np.testing.assert_array_equal(fitted.predict_var(X[shuffled]), expected[shuffled])
    np.testing.assert_array_equal(fitted.predict_var(X[:1]), expected[:1])
    monkeypatch.setattr(_search, "COMPARISONS_PER_TASK", 1000)  # so that these few rows are worth threads
    fitted.set_params(n_jobs=3)
    np.testing.assert_array_equal(fitted.predict_var(X), expected)


@pytest.mark.parametrize(
    ("order", "trees"), [("first", slice(0, 15)), ("last", slice(45, 60)), ("random", None)]
)  # 15 of 60
def test_tree_sampling(model, diabetes, order, trees):
    X, _ = diabetes["test"]
    u = IBUGRegressor(
        model,
        prefit=True,
        k=10,
        calibrate=False,
        sampling=Sampling(tree_fraction=0.25, tree_order=order),
        random_state=0,
    ).fit(*diabetes["train"])
    assert u.source_.index.n_trees == 15
    chosen = np.arange(60)[trees] if trees is not None else u.source_.leaves.trees
    assert len(set(chosen)) == 15
    expected = nearest_rows(model.apply(diabetes["train"][0])[:, chosen], model.apply(X)[:, chosen], 10)
    np.testing.assert_array_equal(u.kneighbors(X)[1], expected[1])
    np.testing.assert_array_equal(u.predict(X), model.predict(X))


def test_trees_by_gain(model, diabetes):
    """The trees whose leaves explain most of the training targets, by the decomposition of variance."""
    X, y = diabetes["train"]
    shares = []
    for leaves in model.apply(X).T:
        means = {leaf: y[leaves == leaf].mean() for leaf in np.unique(leaves)}
        shares.append(np.var([means[leaf] for leaf in leaves]))
    u = IBUGRegressor(
        model, prefit=True, k=10, calibrate=False, sampling=Sampling(tree_fraction=0.25, tree_order="gain")
    ).fit(X, y)
    assert u.source_.leaves.trees.tolist() == sorted(np.argsort(-np.array(shares), kind="stable")[:15])


def test_row_sampling_keeps_the_callers_row_numbers(model, diabetes):
    X_train, y_train = diabetes["train"]
    X, _ = diabetes["test"]
    u = IBUGRegressor(model, prefit=True, k=10, calibrate=False, sampling=Sampling(row_fraction=0.5), random_state=0)
    u.fit(X_train, y_train)
    rows = u.source_.rows
    assert len(u.source_.index) == len(set(rows)) == 150
    assert np.ptp(rows) > 250  # drawn from everywhere
    expected = nearest_rows(model.apply(X_train[rows]), model.apply(X), 10)
    np.testing.assert_array_equal(u.kneighbors(X)[1], rows[expected[1]])
    np.testing.assert_allclose(
        u.predict_var(X), np.maximum(y_train[rows[expected[1]]].var(axis=1), u.rule_.min_variance)
    )


def test_equal_targets_get_the_floor():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] > 0, 5.0, rng.normal(size=200))  # half of the targets do not vary at all
    u = IBUGRegressor(GradientBoostingRegressor(random_state=0), k=5, random_state=0).fit(X, y)
    distribution = u.predict_dist(X)
    assert np.all(distribution.std() > 0)
    assert np.all(np.isfinite(distribution.logpdf(y)))


@pytest.mark.parametrize("level", [0, 1, 1.2, -0.5, 90, np.nan])
def test_impossible_coverage(fitted, diabetes, level):
    with pytest.raises(InvalidInputError, match="coverage must be between 0 and 1"):
        fitted.predict_interval(diabetes["test"][0], coverage=level)


@pytest.mark.parametrize("alpha", [[0.1, 1.0], [], -1])
def test_impossible_quantiles(fitted, diabetes, alpha):
    with pytest.raises(InvalidInputError, match="alpha must be between 0 and 1"):
        fitted.predict_quantiles(diabetes["test"][0], alpha=alpha)


@pytest.mark.parametrize("n_neighbors", [0, 301, 2.5])
def test_impossible_number_of_neighbours(fitted, diabetes, n_neighbors):
    with pytest.raises(InvalidInputError, match="n_neighbors must be an integer from 1 to the 300 training rows"):
        fitted.kneighbors(diabetes["test"][0], n_neighbors)


def test_names_of_other_libraries_are_answered_with_the_right_ones(fitted, diabetes, monkeypatch):
    X = diabetes["test"][0]
    with pytest.raises(TypeError, match=r"IBUGRegressor.predict_interval has no parameter 'alpha'.*coverage=0\.9"):
        fitted.predict_interval(X, alpha=0.1)
    with pytest.raises(TypeError, match=r"IBUGRegressor.predict_quantiles has no parameter 'quantiles'.*alpha="):
        fitted.predict_quantiles(X, quantiles=[0.5])
    monkeypatch.setattr(type(fitted), "batches", lambda *arguments: pytest.fail("nothing is searched for"))
    with pytest.raises(InvalidInputError, match="leave joint out"):
        fitted.predict_interval(X, joint=True)


@pytest.mark.parametrize("name", ["ibug:CBURegressor", "ibug:ProbabilisticEnsemble", "ibug.dask:ReplicatedRegressor"])
def test_all_estimators_answer_with_the_right_name(name):
    module, _, cls = name.partition(":")
    cls = getattr(pytest.importorskip(module), cls)
    with pytest.raises(TypeError, match="coverage="):
        cls.predict_interval(object.__new__(cls), None, alpha=0.1)
    with pytest.raises(TypeError, match="alpha="):
        cls.predict_quantiles(object.__new__(cls), None, quantiles=0.1)
