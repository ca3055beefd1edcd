"""CBURegressor against what CatBoost itself predicts, and the ways to fit it."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from ibug import CBURegressor, IBUGRegressor
from ibug.exceptions import InvalidInputError, ModelNotFittedError, NotCalibratedWarning, UnsupportedModelError
from ibug.metrics import coverage, crps, evaluate, nll
from tests.oracles import calibrate_by_grid

catboost = pytest.importorskip("catboost")

LOSS = "RMSEWithUncertainty"


def cat(**parameters):
    options = {"iterations": 60, "learning_rate": 0.1, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return catboost.CatBoostRegressor(**{**options, **parameters})


@pytest.fixture(scope="module")
def model(diabetes):
    return cat(loss_function=LOSS, posterior_sampling=True).fit(*diabetes["train"])


@pytest.fixture(scope="module")
def fitted(model, diabetes):
    X_val, y_val = diabetes["validation"]
    return CBURegressor(model, prefit=True).fit(*diabetes["train"], X_val=X_val, y_val=y_val)


def truncated_predictions(model, X, count):
    """Return means and variances, (count, n_rows) each, of the model's first trees: from half of them to all.

    Langevin boosting multiplies the model by 1 − γε in every step, which a truncated model has gone through less often.
    """
    n_trees, step = model.tree_count_, model.tree_count_ // (2 * count)
    parameters = model.get_all_params()
    shrinkage = 1 - parameters["model_shrink_rate"] * parameters["learning_rate"]
    means, variances = [], []
    for missing in step * np.arange(count):
        raw = model.predict(X, prediction_type="RawFormulaVal", ntree_end=int(n_trees - missing))
        mean, log_scale = (raw / shrinkage**missing).T
        means.append(mean)
        variances.append(np.exp(2 * log_scale))
    return np.stack(means), np.stack(variances)


class Recorder(catboost.CatBoostRegressor):
    """Remembers what each fit was given."""

    calls: list = []  # noqa: RUF012 - shared by copies on purpose

    def fit(self, X, y, **others):
        self.calls.append({"X": X, "y": y, "parameters": self.get_params(), **others})
        return super().fit(X, y, **others)


@pytest.fixture
def recorder():
    Recorder.calls = []
    return Recorder(iterations=10, verbose=0, allow_writing_files=False, thread_count=1)


def test_predictions_are_the_models_own(fitted, model, diabetes):
    X, _ = diabetes["test"]
    expected = model.predict(X, prediction_type=LOSS)[:, 0]
    np.testing.assert_array_equal(fitted.predict(X), expected)
    np.testing.assert_array_equal(fitted.predict_dist(X).mean(), expected)
    assert fitted.estimator_ is model


@pytest.mark.parametrize("count", [1, 3, 10, 30])
def test_variance_is_that_of_the_data_plus_that_of_the_truncations(model, diabetes, count):
    X, _ = diabetes["test"]
    u = CBURegressor(model, prefit=True, calibrate=False, virtual_ensembles_count=count).fit(*diabetes["train"])
    means, variances = truncated_predictions(model, X, count)
    assert u.virtual_ensembles_count_ == count
    np.testing.assert_allclose(u.predict_var(X), variances.mean(axis=0) + means.var(axis=0), rtol=1e-5)


def test_without_virtual_ensembles_the_variance_is_the_models(model, diabetes):
    X, _ = diabetes["test"]
    u = CBURegressor(model, prefit=True, calibrate=False, virtual_ensembles_count=None).fit(*diabetes["train"])
    assert u.virtual_ensembles_count_ == 0
    np.testing.assert_allclose(u.predict_var(X), model.predict(X, prediction_type=LOSS)[:, 1])


@pytest.mark.parametrize(("n_trees", "count"), [(1, 0), (2, 1), (19, 9), (20, 10), (21, 10)])
def test_models_with_few_trees(diabetes, n_trees, count):
    X, _ = diabetes["test"]
    u = CBURegressor(cat(iterations=n_trees), calibrate=False).fit(*diabetes["train"])
    assert u.estimator_.tree_count_ == n_trees
    assert u.virtual_ensembles_count_ == count
    assert np.all(u.predict_var(X) > 0)


@pytest.mark.parametrize("scoring", ["crps", "nll"])
def test_calibration_is_the_papers(model, diabetes, scoring):
    X_val, y_val = diabetes["validation"]
    u = CBURegressor(model, prefit=True, scoring=scoring).fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    means, variances = truncated_predictions(model, X_val, 10)
    variance = variances.mean(axis=0) + means.var(axis=0)

    def scipy_crps(y, distribution):
        z = (y - distribution.mean()) / distribution.std()
        return np.mean(distribution.std() * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)))

    oracle = {"nll": lambda y, distribution: -distribution.logpdf(y).mean(), "crps": scipy_crps}[scoring]
    best = calibrate_by_grid(u.predict(X_val), variance, y_val, oracle)
    assert {"nll": nll, "crps": crps}[scoring](y_val, u.predict_dist(X_val)) == pytest.approx(best, rel=1e-6)
    assert (u.gamma_, u.delta_) != (1.0, 0.0)
    np.testing.assert_allclose(u.predict_var(X_val), u.gamma_ * variance + u.delta_, rtol=1e-5)


def test_calibration_beyond_the_grid(model, diabetes):
    X_val, y_val = diabetes["validation"]
    scores, found = {}, {}
    for calibrate in (True, "grid", "continuous"):
        u = CBURegressor(model, prefit=True, calibrate=calibrate).fit(*diabetes["train"], X_val=X_val, y_val=y_val)
        scores[calibrate], found[calibrate] = crps(y_val, u.predict_dist(X_val)), (u.gamma_, u.delta_)
    assert found[True] == found["grid"] != found["continuous"]
    assert scores["continuous"] < scores["grid"]


def test_everything_comes_from_the_distribution(fitted, diabetes):
    X, y = diabetes["test"]
    distribution = fitted.predict_dist(X)
    interval = fitted.predict_interval(X, coverage=0.8)
    np.testing.assert_allclose(interval, np.stack(distribution.interval(0.8), axis=1))
    np.testing.assert_allclose(fitted.predict_quantiles(X, [0.1, 0.9]), interval)
    np.testing.assert_allclose(fitted.predict_var(X), distribution.var())
    assert fitted.predict_quantiles(X).shape == (62, 3)
    assert coverage(y, distribution, 0.8) == np.mean((interval[:, 0] <= y) & (y <= interval[:, 1]))
    assert not hasattr(fitted, "kneighbors")
    assert 0.6 < evaluate(fitted, X, y)["coverage_90"] <= 1


def test_intervals_hold_about_what_they_say():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(3000, 4))
    y = 4 * X[:, 0] + (0.1 + X[:, 1]) * rng.normal(size=3000)
    u = CBURegressor(cat(iterations=200), random_state=0).fit(X[:2000], y[:2000])
    distribution = u.predict_dist(X[2000:])
    for level in (0.5, 0.8, 0.9):
        assert abs(coverage(y[2000:], distribution, level) - level) < 0.06
    assert np.corrcoef(distribution.std(), 0.1 + X[2000:, 1])[0, 1] > 0.8  # wider where there is more noise


def test_split_calibrate_refit(recorder, diabetes):
    X, y = diabetes["train"]
    weight = np.arange(300.0) + 1
    u = CBURegressor(recorder, random_state=0).fit(X, y, sample_weight=weight)
    part, everything = recorder.calls
    assert len(part["y"]) == 240
    assert len(everything["y"]) == 300
    # each row keeps its own target and weight
    where = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in part["X"]]
    np.testing.assert_array_equal(part["y"], y[where])
    np.testing.assert_array_equal(part["sample_weight"], weight[where])
    np.testing.assert_array_equal(everything["sample_weight"], weight)
    # what was learned on the held-out rows stays
    X_val, y_val = np.delete(X, where, axis=0), np.delete(y, where)
    alone = CBURegressor(recorder).fit(X[where], y[where], weight[where], X_val=X_val, y_val=y_val)
    assert (u.gamma_, u.delta_) == (alone.gamma_, alone.delta_)
    assert not recorder.is_fitted()


def test_the_split_is_that_of_ibug(recorder, diabetes):
    X, y = diabetes["train"]
    CBURegressor(recorder, random_state=3).fit(X, y)
    IBUGRegressor(recorder, spread="targets", random_state=3).fit(X, y)
    np.testing.assert_array_equal(recorder.calls[0]["X"], recorder.calls[2]["X"])


@pytest.mark.parametrize(
    ("parameters", "validation", "sizes"),
    [
        ({"refit": False, "validation_fraction": 0.5}, False, [150]),
        ({}, True, [300]),
        ({"calibrate": False}, False, [300]),
        ({"calibrate": False, "conformal": "scale"}, False, [240, 300]),
    ],
)
def test_what_is_trained_on(recorder, diabetes, parameters, validation, sizes):
    X_val, y_val = diabetes["validation"] if validation else (None, None)
    CBURegressor(recorder, **parameters).fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    assert [len(call["y"]) for call in recorder.calls] == sizes


def test_the_parameters_of_uncertainty_are_set_where_they_are_missing(recorder, diabetes):
    before = recorder.get_params()
    u = CBURegressor(recorder, calibrate=False).fit(*diabetes["train"])
    assert recorder.get_params() == before
    assert recorder.calls[0]["parameters"] == {**before, "loss_function": LOSS, "posterior_sampling": True}
    assert u.estimator_.get_all_params()["langevin"] is True
    assert u.estimator_.get_all_params()["loss_function"] == LOSS
    by_alias = CBURegressor(cat(iterations=10, objective="RMSE"), calibrate=False).fit(*diabetes["train"])
    assert by_alias.estimator_.get_all_params()["loss_function"] == LOSS
    CBURegressor(recorder.set_params(posterior_sampling=False), calibrate=False).fit(*diabetes["train"])
    assert recorder.calls[1]["parameters"]["posterior_sampling"] is False


@pytest.mark.parametrize(("own", "n_jobs", "threads"), [(None, 2, 2), (1, 2, 1), (None, None, None)])
def test_threads(diabetes, own, n_jobs, threads):
    model = cat(iterations=3)
    model = catboost.CatBoostRegressor(
        **{name: value for name, value in model.get_params().items() if name != "thread_count"},
        **({} if own is None else {"thread_count": own}),
    )
    u = CBURegressor(model, n_jobs=n_jobs, calibrate=False).fit(*diabetes["train"])
    assert u.estimator_.get_params().get("thread_count") == threads


def test_the_default_estimator(diabetes, capfd):
    one, other = (CBURegressor(calibrate=False, random_state=seed, n_jobs=1).fit(*diabetes["train"]) for seed in (0, 1))
    assert one.estimator_.tree_count_ == 1000
    assert one.predict_interval(diabetes["test"][0]).shape == (62, 2)
    assert not np.array_equal(one.predict(diabetes["test"][0]), other.predict(diabetes["test"][0]))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_progress_is_shown_when_asked_for(recorder, diabetes, capsys):
    CBURegressor(recorder, verbose=1, random_state=0).fit(*diabetes["train"])
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "[ibug] training CatBoost on 240 rows",
        "[ibug] training CatBoost on 300 rows",
    ]


def test_frozen_counts_as_prefit(model, diabetes):
    X_val, y_val = diabetes["validation"]
    u = clone(CBURegressor(FrozenEstimator(model))).fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(u.predict(X_val), model.predict(X_val)[:, 0])


@pytest.mark.parametrize("conformal", ["scale", "distribution"])
def test_conformal(model, diabetes, conformal):
    X_val, y_val = diabetes["validation"]
    u = CBURegressor(model, prefit=True, conformal=conformal).fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    assert len(u.conformal_.maps_[-1].scores) == 80
    assert coverage(y_val, u.predict_interval(X_val, 0.8)) >= 0.8
    # from 200 rows on, other rows calibrate the variance
    X = np.concatenate([diabetes["validation"][0], diabetes["train"][0]])
    y = np.concatenate([diabetes["validation"][1], diabetes["train"][1]])
    u = CBURegressor(model, prefit=True, conformal=conformal, random_state=0).fit(X, y, X_val=X[:200], y_val=y[:200])
    assert len(u.conformal_.maps_[-1].scores) == 100


def frame(diabetes, pd):
    X, y = diabetes["train"]
    columns = pd.DataFrame(X[:, :3].copy(), columns=["a", "b", "c"])
    columns.loc[::7, "a"] = np.nan
    return columns.assign(grade=np.where(X[:, 3] > 0, "high", "low")), y


@pytest.mark.parametrize("way", ["estimator", "fit"])
def test_categorical_columns_and_missing_values(diabetes, way):
    pd = pytest.importorskip("pandas")
    X, y = frame(diabetes, pd)
    where = {"cat_features": ["grade"]}
    u = CBURegressor(cat(**(where if way == "estimator" else {})), random_state=0)
    u.fit(X, y, **(where if way == "fit" else {}))
    assert u.estimator_.get_cat_feature_indices() == [3]
    assert u.feature_names_in_.tolist() == ["a", "b", "c", "grade"]
    assert np.all(np.isfinite(u.predict_interval(X)))
    expected = cat(loss_function=LOSS, posterior_sampling=True, **where).fit(X, y).predict(X)[:, 0]
    np.testing.assert_array_equal(u.predict(X), expected)


def test_feature_names_are_checked(diabetes):
    pd = pytest.importorskip("pandas")
    X, y = diabetes["train"]
    rows = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    model = cat(iterations=5, loss_function=LOSS).fit(rows, y)
    u = CBURegressor(model, prefit=True, calibrate=False).fit(rows, y)
    with pytest.raises(ValueError, match="feature names should match"):
        u.predict(rows[["b", "a", "c"]])
    with pytest.raises(InvalidInputError, match=r"in another order. It expects \['a', 'b', 'c'\]"):
        CBURegressor(model, prefit=True, calibrate=False).fit(rows[["b", "a", "c"]], y)


def test_sparse_rows(diabetes):
    from scipy.sparse import csc_matrix, csr_array

    X, y = diabetes["train"]
    X = np.where(np.abs(X) < 0.03, 0.0, X)
    dense = CBURegressor(cat(), random_state=0).fit(X, y)
    for kind in (csr_array, csc_matrix):
        sparse = CBURegressor(cat(), random_state=0).fit(kind(X), y)
        np.testing.assert_allclose(sparse.predict_var(kind(X)), dense.predict_var(X), rtol=1e-6)


def test_tiny_and_huge_targets(diabetes):
    X, y = diabetes["train"]
    for unit in (1e-9, 1e9):
        distribution = CBURegressor(cat(), calibrate=False).fit(X, unit * y).predict_dist(X)
        assert 0.1 < np.median(distribution.std()) / (unit * np.std(y)) < 10


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (GradientBoostingRegressor(), "needs a CatBoostRegressor; got GradientBoostingRegressor. IBUGRegressor takes"),
        (catboost.CatBoostClassifier(), "got CatBoostClassifier"),
        (catboost.CatBoostRegressor, "got CatBoostRegressor"),
        ("catboost", "got str"),
        (cat(loss_function="MAE"), "asks for 'MAE'. Leave loss_function out"),
        (catboost.CatBoostRegressor(objective="Quantile:alpha=0.1"), "asks for 'Quantile"),
    ],
)
def test_unsupported_estimators_fail_before_training(estimator, message, diabetes):
    with pytest.raises(UnsupportedModelError, match=message):
        CBURegressor(estimator).fit(*diabetes["train"])


def test_prefit_models_that_cannot_be_used(diabetes):
    X, y = diabetes["train"]
    with pytest.raises(UnsupportedModelError, match=r"trained with the loss 'RMSE', and predicts no variance. Train"):
        CBURegressor(cat().fit(X, y), prefit=True).fit(X, y)
    with pytest.raises(ModelNotFittedError, match="CatBoostRegressor is not fitted"):
        CBURegressor(cat(loss_function=LOSS), prefit=True).fit(X, y)
    with pytest.raises(UnsupportedModelError, match="got NoneType"):
        CBURegressor(prefit=True).fit(X, y)


def test_prefit_without_validation_rows(model, diabetes):
    with pytest.warns(NotCalibratedWarning, match="not calibrated"):
        u = CBURegressor(model, prefit=True).fit(*diabetes["train"])
    assert (u.gamma_, u.delta_) == (1.0, 0.0)
    with pytest.raises(InvalidInputError, match="has not seen: pass X_val and y_val"):
        CBURegressor(model, prefit=True, conformal="scale").fit(*diabetes["train"])
    with pytest.raises(InvalidInputError, match=r"\['sample_weight'\] would have no effect"):
        CBURegressor(model, prefit=True).fit(*diabetes["train"], sample_weight=np.ones(300))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scoring": "rmse"}, r"scoring must be one of \['crps', 'nll'\]"),
        ({"virtual_ensembles_count": 0}, "virtual_ensembles_count must be an integer of at least 1"),
        ({"virtual_ensembles_count": 2.5}, "got 2.5"),
        ({"virtual_ensembles_count": True}, "got True"),
        ({"calibrate": 1}, r"calibrate must be True or False, or one of \['continuous', 'grid'\]; got 1"),
        ({"refit": "no"}, "refit must be True or False"),
        ({"prefit": None}, "prefit must be True or False"),
        ({"conformal": "split"}, "conformal must be None"),
        ({"validation_fraction": 1.0}, "validation_fraction must be between 0 and 1"),
    ],
)
def test_impossible_parameters(recorder, diabetes, parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        CBURegressor(recorder, **parameters).fit(*diabetes["train"])
    assert recorder.calls == []  # before anything is trained


def test_bad_rows(recorder, diabetes):
    X, y = diabetes["train"]
    u = CBURegressor(recorder, calibrate=False)
    for method in (u.predict, u.predict_dist, u.predict_interval):
        with pytest.raises(NotFittedError):
            method(X)
    with pytest.raises(InvalidInputError, match="y_val is missing"):
        u.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        u.fit(X, y * np.nan)
    with pytest.raises(ValueError, match="zero"):
        u.fit(X, y, sample_weight=np.zeros(300))
    with pytest.raises(ValueError, match=r"inconsistent|sample_weight.shape"):
        u.fit(X, y, sample_weight=np.ones(299))
    assert recorder.calls == []
    u.fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but CBURegressor is expecting 10"):
        u.predict_dist(X[:, :3])
    with pytest.raises(InvalidInputError, match="at least one row"):
        u.predict(X[:0])
    with pytest.raises(InvalidInputError, match="coverage must be between 0 and 1"):
        u.predict_interval(X, coverage=90)
