"""Cross-fitting: every prediction is out of fold, whatever the folds, threads and parameters."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, ShuffleSplit, TimeSeriesSplit

from ibug import IBUGRegressor
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Sampling
from ibug.training._folds import cross_fit, improvement_of, make_folds, tuning_rows
from tests.oracles import nearest_rows

pytestmark = pytest.mark.once

SAMPLING = Sampling()


class Memorising(RandomForestRegressor):
    """Predicts the target of a row that it was trained on exactly, and −1000 for any other."""

    def fit(self, X, y, sample_weight=None):
        self.memory_ = {tuple(row): target for row, target in zip(X, y, strict=True)}
        self.weight_ = None if sample_weight is None else np.asarray(sample_weight)
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        return np.array([self.memory_.get(tuple(row), -1000.0) for row in np.asarray(X)])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(90, 3))
    return X, 5 * X[:, 0] + rng.normal(size=90)


def fit(model, X, y, folds, *, k=0, rows=None, n_jobs=None, fit_params=None, sampling=SAMPLING):
    return cross_fit(
        model,
        X,
        y,
        folds,
        fit_params or {},
        rows=np.arange(len(y)) if rows is None else rows,
        k=k,
        sampling=sampling,
        n_jobs=n_jobs,
        rng=np.random.RandomState(0),
        verbose=False,
    )


def folds_of(cv, y, seed=0):
    return make_folds(cv, len(y), y, np.random.RandomState(seed))


@pytest.mark.parametrize(
    "cv",
    [2, 5, 90, KFold(3), PredefinedSplit(np.arange(90) % 7), [(range(40, 90), range(40)), (range(40), range(40, 90))]],
)
def test_no_row_is_predicted_by_a_model_that_has_seen_it(data, cv):
    X, y = data
    assert np.all(fit(Memorising(n_estimators=2), X, y, folds_of(cv, y)).mean == -1000.0)


def test_predictions_and_neighbours_are_those_of_the_folds_own_model(data):
    X, y = data
    model = GradientBoostingRegressor(n_estimators=15, random_state=0)
    folds = folds_of(4, y)
    result = fit(model, X, y, folds, k=12)
    for train, test in folds:
        clone = GradientBoostingRegressor(n_estimators=15, random_state=0).fit(X[train], y[train])
        np.testing.assert_array_equal(result.mean[test], clone.predict(X[test]))
        affinities, nearest = nearest_rows(clone.apply(X[train]), clone.apply(X[test]), 12)
        np.testing.assert_allclose(result.affinities[test], affinities / 15, rtol=1e-6)
        np.testing.assert_array_equal(result.neighbors[test], train[nearest])
        assert not np.isin(result.neighbors[test], test).any()


def test_threads_and_a_sample_of_rows_change_nothing(data):
    X, y = data
    model = GradientBoostingRegressor(n_estimators=15, random_state=0)
    sampling = Sampling(tree_fraction=0.5, tree_order="random", row_fraction=0.5)
    one = fit(model, X, y, folds_of(4, y), k=12, sampling=sampling)
    other = fit(model, X, y, folds_of(4, y), k=12, sampling=sampling, n_jobs=3)
    some = fit(model, X, y, folds_of(4, y), k=12, sampling=sampling, rows=np.array([3, 50, 51, 89]))
    for name in ("mean", "affinities", "neighbors"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(some.mean, one.mean)
    np.testing.assert_array_equal(some.neighbors, one.neighbors[[3, 50, 51, 89]])


def test_all_rows_get_as_many_neighbours_as_the_smallest_fold_has(data):
    X, y = data
    folds = [
        (np.arange(80), np.arange(80, 90)),
        (np.arange(10, 90)[-20:], np.arange(70)),
        (np.arange(70), np.arange(70, 80)),
    ]
    result = fit(GradientBoostingRegressor(n_estimators=3), X, y, folds, k=701)
    assert result.neighbors.shape == (90, 20)


def test_arrays_with_an_entry_per_row_are_divided(data):
    X, y = data
    weights = []

    class Weighted(Memorising):
        def fit(self, X, y, sample_weight=None):
            weights.append(sample_weight)
            assert np.array_equal(sample_weight, y**2)
            return super().fit(X, y, sample_weight)

    fit(Weighted(n_estimators=2), X, y, folds_of(3, y), fit_params={"sample_weight": y**2})
    assert [len(weight) for weight in weights] == [60, 60, 60]


def test_many_rows_are_tuned_on_a_sample(monkeypatch):
    monkeypatch.setattr("ibug.training._folds.MOST_TUNING_ROWS", 50)
    rows = tuning_rows(120, np.random.RandomState(0))
    assert len(rows) == 50
    assert np.all(np.diff(rows) > 0)
    np.testing.assert_array_equal(tuning_rows(50, np.random.RandomState(0)), np.arange(50))


def test_folds_are_random_and_reproducible(data):
    _, y = data
    one, same, other = (folds_of(5, y, seed)[0][1].tolist() for seed in (0, 0, 1))
    assert one == same != other
    assert len(folds_of(5, y[:4])) == 4  # not more folds than rows


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "at least 2 folds"),
        (True, "cv must be a number of folds"),
        ("five", "cv must be a number of folds"),
        (2.5, "cv must be a number of folds"),
        (ShuffleSplit(3, test_size=0.5, random_state=0), "may be in the test parts of several folds"),
        ([(range(90), range(90))], "trains on rows of its own test part"),
    ],
)
def test_folds_that_are_refused(data, cv, message):
    with pytest.raises(InvalidInputError, match=message):
        folds_of(cv, data[1])


def test_rows_that_come_first_in_time_are_not_predicted(data):
    X, y = data
    found = fit(GradientBoostingRegressor(n_estimators=3), X, y, folds_of(TimeSeriesSplit(3, gap=4), y), k=5)
    first = int(np.flatnonzero(~np.isnan(found.mean))[0])
    assert np.isnan(found.mean[:first]).all()
    assert not np.isnan(found.mean[first:]).any()
    np.testing.assert_array_equal(found.rows, np.arange(first, len(y)))
    assert np.all(found.neighbors.max(axis=1) < found.rows - 4)  # the gap is respected


def test_two_rows_are_too_few():
    with pytest.raises(InvalidInputError, match="Got n_samples=2"):
        folds_of(5, np.zeros(2))


def test_groups_by_their_splits(data):
    X, y = data
    groups = np.arange(90) // 9
    splits = list(GroupKFold(5).split(X, y, groups))
    for train, test in make_folds(splits, 90, y, np.random.RandomState(0)):
        assert not set(groups[train]) & set(groups[test])


@pytest.mark.parametrize("given", [{}, {"groups": np.arange(60) % 6}])
def test_groups_are_explained(given):
    X, y, groups = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0), np.arange(60) % 6
    model = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5)
    u = IBUGRegressor(model, cv=GroupKFold(3), k=5, distribution="normal")
    with pytest.raises(InvalidInputError, match=r"cv=list\(GroupKFold\(\.\.\.\)\.split\(X, y, groups\)\)"):
        u.fit(X, y, **given)
    u.set_params(cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)


def test_the_share_is_that_of_the_clones_rows(data):
    X, y = data
    folds = [(np.arange(30), np.arange(30, 50)), (np.arange(60), np.arange(60, 90))]  # as TimeSeriesSplit makes them
    found = fit(GradientBoostingRegressor(n_estimators=2), X, y, folds)
    assert found.share == pytest.approx((30 * 20 + 60 * 30) / (50 * 90))


@pytest.mark.parametrize("power", [0.0, 0.1, 0.3])
def test_the_improvement_follows_the_learning_curve(power):
    noise = np.random.default_rng(0).normal(size=(2, 50_000, 2))
    sizes = 600, 800, 1000
    fewer, errors = (noise[0] + 0.2 * noise[1]) * 600**-power, (noise[0] - 0.2 * noise[1]) * 800**-power
    np.testing.assert_allclose(improvement_of(fewer, errors, sizes), 0.8**power, atol=0.004)
    alone = improvement_of(fewer[:, 0], errors[:, 0], sizes)
    assert alone == pytest.approx(improvement_of(fewer, errors, sizes)[0])
    for unit in (1e200, 1e-200):
        np.testing.assert_allclose(improvement_of(unit * fewer, unit * errors, sizes)[0], alone)


def test_chance_is_no_improvement_and_exact_predictions_have_none():
    rng = np.random.default_rng(0)
    found = [improvement_of(rng.normal(size=8), 0.7 * rng.normal(size=8), (60, 80, 100)) for _ in range(200)]
    assert np.mean(found) > 0.95  # 0.7 ** 0.78 = 0.76 for many rows
    assert improvement_of(np.zeros(5), np.zeros(5), (60, 80, 100)) == 1


@pytest.mark.parametrize(
    ("cv", "improves"),
    [(5, True), (2, False), (TimeSeriesSplit(4), False), (PredefinedSplit(np.arange(600) % 3), True)],
)
def test_errors_of_clones_are_larger_than_the_final_models(cv, improves):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 0.1 * rng.normal(size=600)
    folds = make_folds(cv, 600, y, np.random.RandomState(0))
    found = fit(GradientBoostingRegressor(n_estimators=50), X, y, folds, k=5, rows=np.arange(600))
    assert (0.8 < found.improvement < 0.99) if improves else found.improvement == 1
    assert np.isfinite(found.mean).sum() == len(np.concatenate([test for _, test in folds]))


def test_out_of_fold_rows_look_at_the_same_share_of_fewer_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 3))
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=5), spread="targets", distribution="normal", cv=2, k=40)
    u.fit(X, X[:, 0] + rng.normal(size=500))
    assert u.k_ == 40
    # γ makes the variance of 20 neighbours among 250 rows right, as that of 40 among 500 rows is.
    assert u.tuning_["k"].tolist() == [40]
    assert max(u.rule_.needs.values()) == 40


@pytest.mark.slow
def test_new_rows_are_covered_where_noise_is_skewed():
    """All quantiles of mixtures were low, and 93 % of the rows inside 90 % intervals."""
    below, inside = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3200, 4))
        scale = 0.3 + 0.3 * (X[:, 2] > 0)
        y = X[:, 0] + np.abs(X[:, 1]) + scale * (rng.gamma(2, size=3200) - 2)
        u = IBUGRegressor(GradientBoostingRegressor(n_estimators=60), random_state=0).fit(X[:1200], y[:1200])
        quantiles = u.predict_quantiles(X[1200:], alpha=[0.05, 0.95])
        shares = (y[1200:, None] <= quantiles).mean(axis=0)
        below.append(shares)
        inside.append(shares[1] - shares[0])
    assert np.mean(inside) == pytest.approx(0.9, abs=0.015)
    np.testing.assert_allclose(np.mean(below, axis=0), [0.05, 0.95], atol=0.012)
