"""Scores by group, what may come as y, and how scores are shown."""

import datetime

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from ibug import metrics
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics._evaluate import grouped

pd = pytest.importorskip("pandas")


class Known:
    """Predicts a normal distribution around the first column."""

    def predict_dist(self, X):
        return Normal(np.asarray(X)[:, 0], 20.0)


@pytest.fixture(scope="module")
def rows():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.assign(sex=np.where(X["sex"] > 0, "f", "m"))
    return X.assign(age=150.0), y


@pytest.fixture(scope="module")
def scores(rows):
    X, y = rows
    return metrics.evaluate(Known(), X[["age"]], y, levels=[0.5, 0.9], groups=X["sex"])


def test_coverage_and_width_of_each_group_by_hand(scores, rows):
    X, y = rows
    assert scores.groups["group"].tolist() == ["f", "m"]
    for i, sex in enumerate("fm"):
        member = X["sex"] == sex
        assert scores.groups["rows"][i] == member.sum()
        for level in (0.5, 0.9):
            d = Normal(np.full(member.sum(), 150.0), 20.0)
            assert scores.groups[f"coverage_{100 * level:g}"][i] == metrics.coverage(y[member], d, level)
            assert scores.groups[f"width_{100 * level:g}"][i] == pytest.approx(metrics.mean_width(y[member], d, level))
    assert pd.DataFrame(scores.groups).shape == (2, 6)
    assert metrics.evaluate(Known(), X[["age"]], y).groups is None


def test_groups_by_column_by_function_and_by_array_are_the_same(rows):
    X, y = rows
    codes = X.assign(sex=np.where(X["sex"] == "f", 1, 0))[["age", "sex"]]
    found = [
        metrics.evaluate(Known(), codes, y, groups=groups).groups
        for groups in ("sex", lambda X: X["sex"], codes["sex"].to_numpy(), codes[["sex"]], codes["sex"].tolist())
    ]
    assert found[0]["group"].tolist() == ["0", "1"]
    for other in found[1:]:
        for name, column in other.items():
            np.testing.assert_array_equal(column, found[0][name])


def members(groups, n, X=None):
    """Return the rows of each group, by name, in the order of the groups."""
    names, codes = grouped(groups, X, n)
    return {name: np.flatnonzero(codes == i).tolist() for i, name in enumerate(names)}


def test_categories_keep_their_order_and_missing_ones_come_last():
    sizes = pd.Categorical(["large", None, "small", "small"], ["small", "medium", "large"])
    assert members(pd.Series(sizes), 4) == {"small": [2, 3], "large": [0], "missing": [1]}
    assert members(sizes, 4) == members(pd.Series(sizes), 4)
    assert members(np.array([2.0, np.nan, 0.5, 2.0]), 4) == {"0.5": [2], "2": [0, 3], "missing": [1]}
    assert members(pd.Series([3, None, 1], dtype="Int64"), 3) == {"1": [2], "3": [0], "missing": [1]}
    assert members([True, False, True], 3) == {"False": [1], "True": [0, 2]}


def test_many_numbers_or_dates_become_ranges():
    values = np.random.default_rng(0).permutation(1000) / 4
    found = members(values, 1000)
    assert list(found) == ["below 50", "50 to 100", "100 to 150", "150 to 200", "200 and more"]
    assert all(len(part) == 200 for part in found.values())
    assert all(50 <= values[row] < 100 for row in found["50 to 100"])
    days = np.array([datetime.date(2024, 1, 1) + datetime.timedelta(int(i)) for i in range(100)], "datetime64[D]")
    assert list(members(days, 100))[1] == "2024-01-21 to 2024-02-10"
    mostly = np.r_[np.zeros(900), np.arange(100.0)]
    assert sum(map(len, members(mostly, 1000).values())) == 1000


def test_quantile_bins_of_pandas_are_groups():
    bins = pd.qcut(pd.Series(np.arange(90.0)), 3)
    assert [len(part) for part in members(bins, 90).values()] == [30, 30, 30]


def test_polars_rows_have_groups():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame({"a": [1.0, 2.0, 3.0], "kind": ["x", "y", None]})
    assert members("kind", 3, X) == {"x": [0], "y": [1], "missing": [2]}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("colour", r"no column 'colour' to group by; the columns are \['age', 'sex'\]"),
        (np.ones(3), r"one entry for each of the 442 rows.*got shape \(3,\)"),
        ([f"row {i}" for i in range(442)], "442 groups .* 100 at most"),
    ],
)
def test_wrong_groups_say_what_is_right(rows, groups, message):
    X, y = rows
    with pytest.raises(InvalidInputError, match=message):
        metrics.evaluate(Known(), X[["age", "sex"]].assign(sex=1), y, groups=groups)
    with pytest.raises(InvalidInputError, match="X has no names of columns"):
        metrics.evaluate(Known(), X[["age"]].to_numpy(), y, groups="sex")


def test_evaluate_takes_whatever_fit_took(rows):
    X, y = rows
    expected = dict(metrics.evaluate(Known(), X[["age"]], y))
    forms = [y.to_numpy(), y.tolist(), y.to_frame(), y.to_numpy()[:, None], y.astype(int).astype("Int64"), tuple(y)]
    polars = pytest.importorskip("polars")
    forms += [polars.Series(y.to_numpy()), polars.DataFrame({"y": y.to_numpy()}), y.astype(object)]
    for form in forms:
        assert dict(metrics.evaluate(Known(), X[["age"]], form)) == expected


def test_groups_are_printed_below_the_scores(scores):
    lines = repr(scores).splitlines()
    at = lines.index("Coverage and mean width by group")
    assert lines[at + 1].split() == ["group", "rows", "coverage_50", "width_50", "coverage_90", "width_90"]
    assert lines[at + 2].split()[:2] == ["f", str(scores.groups["rows"][0])]
    assert len({len(line) for line in lines[at + 1 :]}) == 1


def test_notebooks_show_tables(rows):
    X, y = rows
    found = metrics.evaluate(Known(), X[["age"]], y, groups=np.where(y > 150, "<b>high", "low"))._repr_html_()
    assert found.count("<table>") == found.count("</table>") == 2
    assert "Scores on 442 rows" in found
    assert "continuous ranked probability score" in found
    assert "&lt;b&gt;high" in found
    assert "<b>" not in found
