"""Results as data frames, and several coverages at once, for every estimator of ours."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from ibug import CBURegressor, IBUGRegressor, ProbabilisticEnsemble
from ibug.distributions import Empirical, Normal
from ibug.exceptions import InvalidInputError, MissingDependencyError

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def rows():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X.index = [f"p{i}" for i in range(len(X))]
    return X, y


def _ibug(X, y, **options):
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X[:300], y[:300])
    return IBUGRegressor(model, prefit=True, **options).fit(X[:300], y[:300], X_val=X[300:400], y_val=y[300:400])


def _cbu(X, y):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(iterations=20, loss_function="RMSEWithUncertainty", verbose=False)
    return CBURegressor(model, random_state=0).fit(X[:300], y[:300], X_val=X[300:400], y_val=y[300:400])


def _ensemble(X, y):
    member = _ibug(X, y, distribution="normal", k=20)
    return ProbabilisticEnsemble([("one", member), ("two", member)], prefit=True, calibrate=False).fit(X[:300], y[:300])


MAKERS = {"ibug": _ibug, "cbu": _cbu, "ensemble": _ensemble}


@pytest.fixture(scope="module", params=list(MAKERS))
def u(request, rows):
    return MAKERS[request.param](*rows)


@pytest.fixture(scope="module")
def ibug_(rows):
    return _ibug(*rows)


def test_several_coverages_in_one_call(u, rows):
    X = rows[0][400:]
    found = u.predict_interval(X, [0.5, 0.9])
    assert found.shape == (len(X), 2, 2)
    for i, coverage in enumerate([0.5, 0.9]):
        np.testing.assert_array_equal(found[:, :, i], u.predict_interval(X, coverage))
    np.testing.assert_array_equal(found, np.stack(u.predict_dist(X).interval([0.5, 0.9]), axis=1))
    assert u.predict_interval(X, [0.9]).shape == (len(X), 2, 1)


def test_frames_of_pandas_have_the_index_of_the_rows(u, rows):
    X = rows[0][400:]
    one = u.predict_interval(X, 0.9, output="pandas")
    assert list(one.columns) == ["lower", "upper"]
    np.testing.assert_array_equal(one, u.predict_interval(X, 0.9))
    several = u.predict_interval(X, [0.5, 0.995], output="pandas")
    assert list(several.columns) == ["lower_50", "upper_50", "lower_99.5", "upper_99.5"]
    np.testing.assert_array_equal(several[["lower_99.5", "upper_99.5"]], u.predict_interval(X, 0.995))
    quantiles = u.predict_quantiles(X, [0.05, 0.5], output="pandas")
    assert list(quantiles.columns) == ["q0.05", "q0.5"]
    np.testing.assert_array_equal(quantiles, u.predict_quantiles(X, [0.05, 0.5]))
    variance = u.predict_var(X, output="pandas")
    np.testing.assert_array_equal(variance["variance"], u.predict_var(X))
    for found in (one, several, quantiles, variance):
        assert list(found.index) == list(X.index)


def test_neighbours_as_frames(ibug_, rows):
    X = rows[0][400:]
    affinities, indices = ibug_.kneighbors(X, 3)
    near, found = ibug_.kneighbors(X, 3, output="pandas")
    assert list(near.columns) == ["affinity_1", "affinity_2", "affinity_3"]
    assert list(found.columns) == ["neighbor_1", "neighbor_2", "neighbor_3"]
    assert list(near.index) == list(found.index) == list(X.index)
    np.testing.assert_array_equal(near, affinities)
    np.testing.assert_array_equal(found, indices)
    distribution, near, found = ibug_.predict_with_neighbors(X, 2, output="pandas")
    np.testing.assert_array_equal(distribution.mean(), ibug_.predict_dist(X).mean())
    np.testing.assert_array_equal(found, indices[:, :2])
    assert near.shape == (len(X), 2)


def test_frames_of_polars(u, rows):
    polars = pytest.importorskip("polars")
    X = rows[0][400:]
    found = u.predict_interval(X, [0.5, 0.9], output="polars")
    assert isinstance(found, polars.DataFrame)
    assert found.columns == ["lower_50", "upper_50", "lower_90", "upper_90"]
    np.testing.assert_array_equal(found["lower_90"].to_numpy(), u.predict_interval(X, 0.9)[:, 0])
    if hasattr(u, "kneighbors"):
        assert u.kneighbors(X, 2, output="polars")[1].columns == ["neighbor_1", "neighbor_2"]


def test_rows_without_an_index_are_numbered(rows):
    X, y = rows
    own = _ibug(X.to_numpy(), y.to_numpy(), distribution="normal", k=5)
    for given in (X[400:].to_numpy(), X[400:].to_numpy().tolist()):
        found = own.predict_interval(given, output="pandas")
        assert list(found.index) == list(range(42))


def test_wrong_requests_say_what_is_right(u, rows, monkeypatch):
    X = rows[0][400:]
    with pytest.raises(InvalidInputError, match=r'output must be "pandas", "polars" or None .* got \'numpy\''):
        u.predict_var(X, output="numpy")
    with pytest.raises(InvalidInputError, match="one number, or several in a list"):
        u.predict_interval(X, [[0.5], [0.9]])
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        u.predict_interval(X, [0.5, 1.0])
    with pytest.raises(InvalidInputError, match="coverage has a number twice"):
        u.predict_interval(X, [0.9, 0.9], output="pandas")
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(MissingDependencyError, match="pip install polars"):
        u.predict_var(X, output="polars")


def test_distributions_as_frames(ibug_, rows):
    X = rows[0][400:]
    d = ibug_.predict_dist(X)
    found = d.to_frame(coverage=[0.5, 0.9], quantiles=[0.05], index=X)
    names = ["mean", "std", "median", "lower_50", "upper_50", "lower_90", "upper_90", "q0.05"]
    assert list(found.columns) == names
    assert list(found.index) == list(X.index)
    np.testing.assert_array_equal(found["median"], d.median())
    np.testing.assert_array_equal(found["q0.05"], d.ppf(0.05))
    np.testing.assert_array_equal(found[["lower_90", "upper_90"]], ibug_.predict_interval(X, 0.9))
    assert list(d.to_frame(coverage=None).columns) == names[:3]
    assert list(d.to_frame().columns) == [*names[:3], "lower", "upper"]
    one = d[7].to_frame(coverage=[0.5, 0.9], quantiles=0.05, index=["p407"])
    np.testing.assert_array_equal(one, found[7:8])
    assert list(one.index) == ["p407"]


@pytest.mark.parametrize("d", [Normal([0.0, 1.0, 2.0], 1.0), Empirical([[1, 2, 3], [1, 1, 1], [0, 5, 9]])])
def test_a_line_of_probabilities_is_for_every_row(d):
    np.testing.assert_array_equal(d.ppf([[0.1, 0.9]]), np.stack([d.ppf(0.1), d.ppf(0.9)], axis=1))
    with pytest.raises(InvalidInputError, match=r"shape \(2,\) does not fit 3 rows.*\(1, m\); \[\[0\.1, 0\.9\]\], say"):
        d.ppf([0.1, 0.9])
    lower, upper = d.interval([0.5, 0.8, 0.9])
    assert lower.shape == upper.shape == (3, 3)
    for i, coverage in enumerate([0.5, 0.8, 0.9]):
        np.testing.assert_array_equal((lower[:, i], upper[:, i]), d.interval(coverage))
    assert d[0].interval([0.5, 0.9])[0].shape == (2,)
    with pytest.raises(InvalidInputError, match="several in a list"):
        d.interval([[0.5]])
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        d.interval([0.5, 1.0])
