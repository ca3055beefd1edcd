"""Totals of what an estimator predicts: labels, weights, blocks, joint samples, several targets."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor

from ibug import IBUGRegressor
from ibug.exceptions import IndependentRowsWarning, InvalidInputError
from ibug.totals import ConformalTotals, group_sums

pytestmark = pytest.mark.once


def days(n_days, size=15, seed=0):
    """Return rows as a frame, their values, and the day of each."""
    rng = np.random.default_rng(seed)
    n = n_days * size
    day = np.arange(n) // size
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    y = X["a"].to_numpy() + 0.6 * rng.normal(size=n_days)[day] + rng.normal(size=n)
    return X, y, day


@pytest.fixture(scope="module")
def data():
    X, y, day = days(160)
    parts = slice(0, 900), slice(900, 1800), slice(1800, 2400)
    return [(X[part].reset_index(drop=True), y[part], day[part]) for part in parts]


@pytest.fixture(scope="module")
def model(data):
    X, y, _ = data[0]
    return GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def fitted(model, data):
    (X, y, _), (X_val, y_val, day), _ = data
    return IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val, y_val=y_val, blocks_val=day)


@pytest.fixture(scope="module")
def without(model, data):
    (X, y, _), (X_val, y_val, _), _ = data
    return IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val, y_val=y_val)


def test_what_days_have_in_common(fitted):
    found = fitted.dependence_
    assert abs(found.estimate[0] - 0.36 / 1.36) < 2.5 * found.standard_error[0]
    assert found.n_blocks == (60,)


def test_intervals_of_days_hold_what_they_promise(fitted, without, data):
    X, y, day = data[2]
    observed = group_sums(y, day)

    def held(ends):
        return np.mean((ends[:, 0] <= observed) & (observed <= ends[:, 1]))

    assert held(fitted.predict_total(X, by=day, blocks=day)) >= 0.8
    assert held(without.predict_total(X, by=day, blocks=False)) <= 0.75
    assert (
        fitted.total_dist(X, day, blocks=day).crps(observed).mean()
        < without.total_dist(X, day, blocks=False).crps(observed).mean()
    )


def test_frames_have_a_line_for_each_group(fitted, data):
    X, _, day = data[2]
    table = fitted.predict_total(X, by=day, blocks=day, output="pandas")
    assert list(table.columns) == ["group", "n_rows", "mean", "median", "lower", "upper"]
    assert list(table["group"]) == sorted(set(day))
    assert set(table["n_rows"]) == {15}
    np.testing.assert_array_equal(table[["lower", "upper"]], fitted.predict_total(X, by=day, blocks=day))
    wide = fitted.predict_total(X, by=day, blocks=day, coverage=[0.5, 0.9])
    assert wide.shape == (40, 2, 2)
    np.testing.assert_array_equal(wide[:, :, 1], fitted.predict_total(X, by=day, blocks=day))


def test_labels_are_columns_arrays_and_functions(model, data):
    (X, y, _), (X_val, y_val, day), (X_new, _, new_day) = data
    half = X_new.assign(site=np.where(np.arange(len(X_new)) % 2, "north", "south"), day=new_day)
    u = IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val, y_val=y_val, blocks_val=day)
    by_array = u.total_dist(X_new, new_day, blocks=new_day)
    by_function = u.total_dist(X_new, lambda rows: new_day[: len(rows)], blocks=lambda rows: pd.Series(new_day))
    np.testing.assert_array_equal(by_function.loc, by_array.loc)
    sites = u.total_dist(X_new, half[["site", "day"]], blocks=new_day)
    assert sites.groups[0] == ("north", new_day[0])
    assert len(sites) == 80
    texts = u.total_dist(X_new, list(half["site"]), blocks=new_day)
    assert list(texts.groups) == ["north", "south"]
    whole = u.total_dist(X_new, blocks=new_day)
    assert list(whole.groups) == ["all"]
    np.testing.assert_allclose(whole.mean(), by_array.mean().sum(), rtol=1e-6)


def test_blocks_that_are_columns_are_known_again(data):
    (X, y, day), (X_val, y_val, day_val), (X_new, _, new_day) = data
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X.assign(day=day % 7), y)
    u = IBUGRegressor(model, prefit=True).fit(
        X.assign(day=day % 7), y, X_val=X_val.assign(day=day_val), y_val=y_val, blocks_val="day"
    )
    assert u.dependence_.columns == ("day",)
    named = u.total_dist(X_new.assign(day=new_day), by="day")
    given = u.total_dist(X_new.assign(day=new_day), by="day", blocks=new_day)
    np.testing.assert_array_equal(named.loc, given.loc)
    with pytest.raises(InvalidInputError, match=r"by: X has no column 'week'; its columns are a, b, c, day"):
        u.total_dist(X_new.assign(day=new_day), by="week")


def test_totals_do_not_depend_on_threads_or_chunks(fitted, data):
    X, _, day = data[2]
    first = fitted.total_dist(X, day % 50, blocks=day)
    import copy

    for parameters in ({"n_jobs": 2}, {"n_jobs": 1}):
        other = copy.deepcopy(fitted).set_params(**parameters)
        np.testing.assert_allclose(other.total_dist(X, day % 50, blocks=day).loc, first.loc, rtol=1e-9)


def test_weights_make_linear_functions(fitted, data):
    X, _, day = data[2]
    plain = fitted.total_dist(X, day, blocks=day)
    mean = fitted.total_dist(X, day, weights=np.full(len(X), 1 / 15), blocks=day)
    np.testing.assert_allclose(mean.interval(0.9), np.array(plain.interval(0.9)) / 15, rtol=1e-6)
    first = day == day[0]
    second = day == day[0] + 1
    both = X[first | second]
    signs = np.where(first[first | second], 1.0, -1.0)
    difference = fitted.total_dist(both, weights=signs, blocks=day[first | second])
    np.testing.assert_allclose(difference.mean(), plain.mean()[0] - plain.mean()[1], atol=1e-6)
    np.testing.assert_allclose(difference.var(), plain.var()[0] + plain.var()[1], rtol=0.05)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_must_be_finite(fitted, data, weight):
    X, _, day = data[2]
    weights = np.ones(len(X))
    weights[3] = weight
    with pytest.raises(InvalidInputError, match=r"weights must have a finite number .* 1 that are not finite"):
        fitted.total_dist(X, day, weights=weights, blocks=day)
    with pytest.raises(InvalidInputError, match=r"weights must have .* 600 rows.*got shape \(3,\)"):
        fitted.total_dist(X, day, weights=[1, 2, 3], blocks=day)


def with_missing(day):
    labels = day.astype(object)
    labels[4] = None
    return labels


BAD_LABELS = [
    (lambda day: day[:5], r"blocks must have one label for each of the 600 rows; got shape \(5,\)"),
    (with_missing, r"blocks has no label for 1 of the 600 rows: fill them in"),
    (lambda day: np.where(day == day[0], np.nan, day), r"blocks has no label for 15 of the 600 rows"),
    (lambda day: pd.Series(pd.to_datetime(day, unit="D")).where(day > day[0]), r"blocks has no label for 15"),
    (lambda day: "day", r"blocks: X has no column 'day'; its columns are a, b, c"),
    (lambda day: ["day", "a"], r"blocks: X has no column 'day'"),
    (lambda day: np.stack([day, day], axis=1), r"blocks must be of the 1 kinds that were learned \('blocks'\); got 2"),
    (lambda day: np.zeros((600, 1, 1)), r"blocks must have one label for each of the 600 rows"),
]


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS)
def test_labels_that_cannot_be(fitted, data, labels, message):
    X, _, day = data[2]
    with pytest.raises(InvalidInputError, match=message):
        fitted.total_dist(X, day, blocks=labels(day))


def test_names_of_columns_need_a_frame(fitted, data):
    X, _, day = data[2]
    with pytest.warns(UserWarning, match="feature names"), pytest.raises(InvalidInputError, match="no names: pass an"):
        fitted.total_dist(X.to_numpy(), "day", blocks=day)


def test_blocks_must_be_said(fitted, data):
    X, _, day = data[2]
    with pytest.raises(InvalidInputError, match=r"learned what rows of 'blocks' have in common: say to which blocks"):
        fitted.total_dist(X, day)


def test_without_blocks_rows_are_independent_and_a_warning_says_so(without, fitted, data):
    X, _, day = data[2]
    with pytest.warns(
        IndependentRowsWarning, match=r"too narrow\. Errors of neighbouring validation rows .* of 0\.\d\d"
    ):
        warned = without.total_dist(X, day)
    silent = without.total_dist(X, day, blocks=False)
    np.testing.assert_array_equal(warned.loc, silent.loc)
    np.testing.assert_array_equal(fitted.total_dist(X, day, blocks=False).loc, silent.loc)
    without.total_dist(X[:1])  # a single row is its own total
    with pytest.raises(InvalidInputError, match="has not learned what rows of a block have in common"):
        without.total_dist(X, day, blocks=day)


def test_rows_in_a_random_order_are_not_suspicious(model, data):
    (X, y, _), (X_val, y_val, _), (X_new, _, _) = data
    order = np.random.default_rng(0).permutation(len(y_val))
    u = IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val.iloc[order], y_val=y_val[order])
    with pytest.warns(IndependentRowsWarning, match="too narrow if rows share what the model does not know"):
        u.total_dist(X_new)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda day: np.zeros(len(day)), "in one block"),
        (lambda day: np.arange(len(day)), "a block of its own"),
        (lambda day: day[:7], "one label for each"),
    ],
)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(model, data, labels, message):
    (X, y, _), (X_val, y_val, day), (X_new, _, new_day) = data
    u = IBUGRegressor(model, prefit=True)
    with pytest.raises(InvalidInputError, match=message):
        u.fit(X, y, X_val=X_val, y_val=y_val, blocks_val=labels(day))
    assert not hasattr(u, "rule_")
    u.fit(X, y, X_val=X_val, y_val=y_val, blocks_val=day)
    before, expected = dict(vars(u)), u.total_dist(X_new, new_day, blocks=new_day)
    changes = (
        lambda: u.fit(X[:400], y[:400], X_val=X_val, y_val=y_val, blocks_val=labels(day)),
        lambda: u.recalibrate(X_val[:500], y_val[:500], blocks=labels(day[:500])),
    )
    for change in changes:
        with pytest.raises(InvalidInputError, match=message):
            change()
        assert vars(u).keys() == before.keys()
        assert all(vars(u)[name] is before[name] for name in before)
    np.testing.assert_array_equal(u.total_dist(X_new, new_day, blocks=new_day).loc, expected.loc)


def test_blocks_need_validation_rows(model, data):
    X, y, day = data[0]
    with pytest.raises(InvalidInputError, match="blocks_val are blocks of validation rows"):
        IBUGRegressor(model, prefit=True).fit(X, y, blocks_val=day)


def test_recalibration_keeps_or_replaces_blocks(model, data):
    (X, y, _), (X_val, y_val, day), _ = data
    u = IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val, y_val=y_val)
    assert u.dependence_ is None
    u.recalibrate(X_val, y_val, blocks=day)
    learned = u.dependence_
    assert learned.n_blocks == (60,)
    u.recalibrate(X_val[:600], y_val[:600])
    assert u.dependence_ is learned
    u.recalibrate(X_val[:600], y_val[:600], blocks=day[:600])
    assert u.dependence_.n_blocks == (40,)
    u.fit(X, y, X_val=X_val, y_val=y_val)
    assert u.dependence_ is None
    assert clone(u).dependence_ is None


def test_paths_add_up_to_totals_of_all_levels(fitted, data):
    X, _, day = (one[:300] for one in data[2])
    paths = fitted.sample_paths(X, 4000, blocks=day, random_state=0)
    assert paths.shape == (4000, 300)
    np.testing.assert_array_equal(paths[:5], fitted.sample_paths(X, 4000, blocks=day, random_state=0)[:5])
    week = (day - day[0]) // 5
    for groups in (day - day[0], week, np.zeros(300, int)):
        totals = fitted.total_dist(X, groups, blocks=day)
        sums = np.stack([paths[:, groups == g].sum(axis=1) for g in range(groups.max() + 1)], axis=1)
        spread = totals.std()
        assert np.all(np.abs(sums.mean(axis=0) - totals.mean()) < 0.1 * spread)
        np.testing.assert_allclose(sums.std(axis=0), spread, rtol=0.08)
        for p in (0.05, 0.95):
            assert np.all(np.abs(np.quantile(sums, p, axis=0) - totals.ppf(p)) < 0.2 * spread)
    with pytest.raises(InvalidInputError, match="size"):
        fitted.sample_paths(X, 0, blocks=day)


def test_rows_of_a_path_are_those_of_their_distributions(fitted, data):
    X, _, day = (one[:50] for one in data[2])
    for blocks in (day, False):
        paths = fitted.sample_paths(X, 4000, blocks=blocks, random_state=1)
        distribution = fitted.predict_dist(X)
        assert np.all(np.abs(paths.mean(axis=0) - distribution.mean()) < 0.1 * distribution.std())
        together = np.corrcoef(paths.T)[0, 1:14].mean()
        assert (together > 0.1) == (blocks is not False)


def test_several_targets(data):
    (X, y, _), (X_val, y_val, day_val), (X_new, _, new_day) = data
    rng = np.random.default_rng(5)

    def both(y):
        return np.stack([y, 2 * rng.normal(size=len(y)) + 5], axis=1)

    model = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=20, random_state=0)).fit(X, both(y))
    u = IBUGRegressor(model, prefit=True).fit(X, both(y), X_val=X_val, y_val=both(y_val), blocks_val=day_val)
    assert u.dependence_.correlation.shape == (1, 2)
    assert u.dependence_.correlation[0, 0] > 0.1
    assert u.dependence_.correlation[0, 1] < 0.05
    totals = u.total_dist(X_new, new_day, blocks=new_day)
    assert len(totals) == 2
    ends = u.predict_total(X_new, new_day, blocks=new_day)
    assert ends.shape == (40, 2, 2)
    np.testing.assert_array_equal(ends[:, 1], np.stack(totals[1].interval(0.9), axis=1))
    table = u.predict_total(X_new, new_day, blocks=new_day, output="pandas")
    assert len(table.columns) == 10
    paths = u.sample_paths(X_new, 2000, blocks=new_day, random_state=0)
    assert paths.shape == (2000, 600, 2)
    for j, one in enumerate(totals):
        sums = paths[:, new_day == new_day[0], j].sum(axis=1)
        assert abs(sums.mean() - one.mean()[0]) < 0.1 * one.std()[0]
        assert abs(sums.std() / one.std()[0] - 1) < 0.1
    with pytest.raises(InvalidInputError, match="models of one target"):
        ConformalTotals(u).fit(X_new, y[:600], new_day, blocks=new_day)


def test_sums_of_groups():
    np.testing.assert_array_equal(group_sums([1.0, 2.0, 4.0], ["b", "a", "b"]), [2, 5])
    np.testing.assert_array_equal(group_sums([1.0, 2.0, 4.0]), [7])
    np.testing.assert_array_equal(group_sums([1.0, 2.0, 4.0], ["b", "a", "b"], weights=[1, 0, -1]), [0, -3])
    X = pd.DataFrame({"store": [1, 2, 1], "day": ["mo", "mo", "tu"]})
    np.testing.assert_array_equal(group_sums([1.0, 2.0, 4.0], "store", X), [5, 2])
    np.testing.assert_array_equal(group_sums([1.0, 2.0, 4.0], ["day", "store"], X), [1, 2, 4])
    with pytest.raises(InvalidInputError, match=r"by must have one label .* 2 rows; got shape \(3,\)"):
        group_sums([1.0, 2.0], np.array(["a", "b", "c"]))
    with pytest.raises(InvalidInputError, match="by: X has no column 'a', 'b', 'c'; it has no names: pass an array"):
        group_sums([1.0, 2.0], ["a", "b", "c"])
    with pytest.raises(InvalidInputError, match="by: X has no column 'shop'"):
        group_sums([1.0, 2.0, 3.0], "shop", X)


class Known:
    """A regressor whose totals are known; the labels of rows are theirs."""

    def __init__(self, distribution):
        self.distribution = distribution

    def total_dist(self, X, by, *, weights=None, blocks=None):
        return self.distribution(by)


def test_conformal_totals_hold_what_they_promise_over_200_splits():
    """Of wrong distributions, too narrow and skewed, as long as groups are exchangeable."""
    from ibug.totals import TotalDistribution

    rng = np.random.default_rng(0)

    def narrow(by):
        n = len(np.unique(by))
        return TotalDistribution(np.zeros((n, 2)), 0.1 + np.zeros((n, 2)), np.full(n, -np.inf), np.full(n, np.inf))

    held = {0.5: [], 0.8: [], 0.9: []}
    for _ in range(200):
        y = rng.exponential(size=(40, 5)) + rng.exponential(size=(40, 1))
        by = np.repeat(np.arange(40), 5)
        known, new = by < 30, by >= 30
        totals = ConformalTotals(Known(narrow)).fit(np.zeros((150, 1)), y.ravel()[known], by[known])
        observed = y[30:].sum(axis=1)
        for level, found in held.items():
            ends = totals.predict_interval(np.zeros((50, 1)), by[new], coverage=level)
            found.append(np.mean((ends[:, 0] <= observed) & (observed <= ends[:, 1])))
    for level, found in held.items():
        # The share within one split varies by 1/√(n + 2) of the calibration and by the 10 new groups.
        error = np.sqrt(level * (1 - level) * (1 / 32 + 1 / 10) / 200)
        assert level - 3 * error <= np.mean(found) <= level + 1 / 31 + 3 * error


def test_conformal_totals_of_few_groups(fitted, data):
    X, y, day = data[2]
    with pytest.raises(InvalidInputError, match=r"10 groups at least; these rows are in 4"):
        ConformalTotals(fitted).fit(X[:60], y[:60], day[:60], blocks=day[:60])
    totals = ConformalTotals(fitted).fit(X[:150], y[:150], day[:150], blocks=day[:150])
    new = X[150:], day[150:]
    assert np.all(np.isfinite(totals.predict_interval(*new, blocks=new[1], coverage=0.9)))
    assert np.all(np.isinf(totals.predict_interval(*new, blocks=new[1], coverage=0.95)))
