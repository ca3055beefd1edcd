"""Which features make a distribution wide."""

import warnings

import numpy as np
import pytest

from ibug.exceptions import IBUGError, InvalidInputError
from ibug.explain import Attributor, drivers, explain_width
from tests.explain.conftest import NOISY
from tests.oracles import shapley_values

shap = pytest.importorskip("shap", exc_type=ImportError)

FEW = {"n_background": 12}


@pytest.fixture(scope="module")
def found(u, rows, train):
    return explain_width(u, rows, train[0], **FEW)


def log_std(u):
    return lambda X: 0.5 * np.log(u.predict_var(X))


def test_it_finds_the_feature_that_the_noise_depends_on(found):
    assert np.mean(np.argmax(np.abs(found.values), axis=1) == NOISY) >= 0.95


def test_its_sign_says_whether_the_feature_widens(found, rows):
    assert np.all((found.values[:, NOISY] > 0) == (rows[:, NOISY] == 1))


def test_parts_add_up(found, u, rows):
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), log_std(u)(rows), rtol=1e-9)


def test_it_is_the_definition(u, rows, train):
    background = train[0][:7]
    found = explain_width(u, rows[:2], background)
    for i in range(2):
        expected = shapley_values(log_std(u), rows[i], background)
        np.testing.assert_allclose(found.values[i], expected, atol=1e-10)
        assert found.base_values[i] == pytest.approx(np.mean(log_std(u)(background)))


def test_many_orders_come_near_the_definition(u, rows, train):
    background = train[0][:5]
    exact = explain_width(u, rows[:3], background, n_evaluations=32)
    near = explain_width(u, rows[:3], background, n_evaluations=31)  # two orders, each in both directions
    np.testing.assert_allclose(near.values, exact.values, atol=0.1 * np.abs(exact.values).max())
    assert np.any(near.values != exact.values)
    np.testing.assert_allclose(near.values.sum(axis=1), exact.values.sum(axis=1), atol=1e-10)


def test_a_row_does_not_depend_on_the_others_and_seeds_decide(u, rows, train):
    options = {**FEW, "n_evaluations": 11}  # one order
    every = explain_width(u, rows[:4], train[0], **options)
    np.testing.assert_array_equal(explain_width(u, rows[2:3], train[0], **options).values[0], every.values[2])
    other = explain_width(u, rows[:4], train[0], **options, random_state=1)
    assert np.any(other.values != every.values)


def test_the_global_generator_is_left_alone(u, rows, train):
    np.random.seed(3)  # noqa: NPY002 - whose state is compared
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    explain_width(u, rows[:1], train[0], n_evaluations=11, **FEW)
    assert np.random.random() == expected  # noqa: NPY002


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"of": "width", "coverage": 0.8}, lambda u, X: np.diff(u.predict_interval(X, 0.8))[:, 0]),
        ({"of": 0.95}, lambda u, X: u.predict_quantiles(X, 0.95)[:, 0]),
        ({"of": "prediction"}, lambda u, X: u.predict(X)),
        ({"of": lambda distribution: distribution.sf(1.0)}, lambda u, X: u.predict_dist(X).sf(1.0)),
    ],
    ids=["width", "quantile", "prediction", "function"],
)
def test_other_numbers_of_a_distribution(u, rows, train, options, value):
    found = explain_width(u, rows[:2], train[0], **FEW, **options)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), value(u, rows[:2]), rtol=1e-6)


def test_the_nearest_training_rows_as_background(u, rows, train):
    found = explain_width(u, rows[:3], train[0], choose="nearest", n_background=6)
    for i in range(3):
        background = train[0][u.kneighbors(rows[i : i + 1], 6)[1][0]]
        np.testing.assert_allclose(found.values[i], shapley_values(log_std(u), rows[i], background), atol=1e-10)


def test_rows_can_be_their_own_background(u, rows):
    found = explain_width(u, rows[:20], n_background=20)
    assert found.base_values[0] == pytest.approx(log_std(u)(rows[:20]).mean())


def test_small_values_of_a_feature_are_told_apart():
    """To shap itself 1e-10 and 2e-10 are the same value."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    from ibug import IBUGRegressor

    rng = np.random.default_rng(0)
    X = 1e-10 * rng.integers(1, 3, size=(200, 2))
    y = X[:, 0] * 1e10 * rng.normal(size=200)
    u = IBUGRegressor(HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=5), k=5, distribution="normal", cv=2)
    found = explain_width(u.set_params(spread="targets", cv=0.3).fit(X, y), X[:1], X, **FEW)
    assert np.any(found.values != 0)


def test_shaps_plots_take_it(found):
    plt = pytest.importorskip("matplotlib.pyplot")
    assert found.feature_names == [f"column {j}" for j in range(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of matplotlib, about shap
        plt.close("all")  # shap would draw into a figure that another test has left
        shap.plots.waterfall(found[0], show=False)
        plt.close("all")
        shap.plots.beeswarm(found, show=False)
        plt.close("all")
        shap.plots.force(found[0], matplotlib=True, show=False)
        plt.close("all")


def test_frames_keep_their_types(train):
    pd = pytest.importorskip("pandas")
    lightgbm = pytest.importorskip("lightgbm")
    from ibug import IBUGRegressor

    X, y = train
    kinds = pd.Categorical(np.where(X[:, NOISY] == 1, "loud", "quiet"))
    frame = pd.DataFrame({"a": X[:, 0], "kind": kinds, "count": (10 * X[:, 1]).astype(int), "b": X[:, 3]})
    frame.loc[::7, "b"] = np.nan
    model = lightgbm.LGBMRegressor(n_estimators=30, num_leaves=8, verbose=-1).fit(frame[:600], y[:600])
    u = IBUGRegressor(model, prefit=True).fit(frame[:600], y[:600], X_val=frame[600:750], y_val=y[600:750])
    found = explain_width(u, frame[780:], frame[:600], **FEW)
    assert np.mean(np.argmax(np.abs(found.values), axis=1) == 1) >= 0.95
    assert list(found.feature_names) == ["a", "kind", "count", "b"]
    assert set(found.display_data[:, 1]) == {"loud", "quiet"}
    other = frame[:600].assign(kind=frame["kind"][:600].cat.add_categories("new"))
    with pytest.raises(InvalidInputError, match=r"'kind' has other categories in the background"):
        explain_width(u, frame[780:], other)
    with pytest.raises(InvalidInputError, match="same kind; got DataFrame and ndarray"):
        explain_width(u, frame[780:], X[:, :4])


def test_polars(train):
    pl = pytest.importorskip("polars")
    from ibug.explain._shapley import cell_table

    frame = pl.DataFrame({"a": [1.5, None, 3.0], "b": ["x", "y", "x"], "c": [1, 2, 2]})
    cells = cell_table(frame[:1], frame[1:])
    assert cells.codes[:, 1].tolist() == [0, 1, 0]
    made = cells.take(np.array([[0, 1, 2], [1, 0, 0]]))
    assert made.rows() == [(1.5, "y", 2), (None, "x", 1)]
    assert made.schema == frame.schema


def test_which_features_drive_spread_and_prediction(u, rows, train):
    found = drivers(u, rows[:25], train[0], **FEW)
    assert np.argmax(found.spread) == NOISY
    assert np.argmax(found.prediction_share) == 0
    assert found.spread_share.sum() == pytest.approx(1.0)
    spread = explain_width(u, rows[:25], train[0], **FEW)
    np.testing.assert_allclose(found.spread, np.abs(spread.values).mean(axis=0))


def test_the_estimators_own_progress_is_shown(u, rows, train, capsys):
    from copy import copy

    loud = copy(u)
    loud.verbose = 1
    explain_width(loud, rows[:2], train[0], **FEW)
    assert capsys.readouterr().err.count("[ibug]") == 1


def test_values_that_do_not_add_up_are_refused(u, rows, train):
    drawn = np.random.default_rng(0)
    parts = Attributor(u, rows[:1], train[0], of=lambda distribution: drawn.normal(size=len(distribution)), **FEW)
    with pytest.raises(IBUGError, match="A prediction must be the same each time"):
        parts.row(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"of": "sigma"}, 'of must be "log_std"'),
        ({"of": 1.5}, "between 0 and 1"),
        ({"of": "width", "coverage": 1.0}, "coverage must be between"),
        ({"choose": "far"}, 'choose must be "random"'),
        ({"n_background": 0}, "n_background must be an integer of at least 1"),
        ({"n_evaluations": 10}, "at least 11, for one order of 5 features; got 10"),
        ({"background": None}, r"3 rows are too few: pass background=X_train"),
        ({"background": None, "choose": "nearest"}, "pass background=X_train"),
        ({"background": np.zeros((9, 5)), "choose": "nearest"}, "the 800 training rows, in the order of fit; it has 9"),
        ({"background": np.zeros((9, 4))}, "must have the 5 columns of X; it has 4"),
        ({"of": lambda distribution: np.full(len(distribution), np.inf)}, "is not finite for 3 of 3 rows"),
    ],
)
def test_bad_options(u, rows, train, options, message):
    with pytest.raises(InvalidInputError, match=message):
        explain_width(u, rows[:3], **{"background": train[0], **options})
