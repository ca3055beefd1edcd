"""Who makes honest residuals, which `residuals` says: clones, the model itself, or nobody."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import IBUGRegressor, Sampling, load
from ibug.exceptions import InvalidInputError
from ibug.leaves import reader_of
from ibug.metrics import crps, nll
from ibug.neighbors import LeafIndex
from ibug.training import own_residuals

pytestmark = pytest.mark.once


def noisy(n, seed=0):
    """Rows whose mean moves fast and whose noise depends on another feature."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 4))
    return X, 20 * X[:, 0] * np.sin(5 * X[:, 2]) + np.where(X[:, 1] > 0.6, 3.0, 0.1) * rng.normal(size=n)


@pytest.fixture(scope="module")
def trained():
    X, y = noisy(700)
    return GradientBoostingRegressor(n_estimators=60, random_state=0).fit(X[:500], y[:500])


def prefit(model, **parameters):
    X, y = noisy(700)
    sample_weight = parameters.pop("sample_weight", None)
    u = IBUGRegressor(model, prefit=True, random_state=0, **parameters)
    return u.fit(X[:500], y[:500], sample_weight, X_val=X[500:], y_val=y[500:])


def test_a_trained_model_tells_its_own_residuals_at_the_level_of_its_validation_errors(trained):
    X, y = noisy(700)
    u = prefit(trained)
    reader = reader_of(trained)
    own = own_residuals(reader, LeafIndex.build(reader.library_leaves(X[:500])), y[:500], None).values
    errors = y[500:] - trained.predict(X[500:])
    factor = np.sqrt((errors**2).mean() / (own**2).mean())
    assert factor > 1
    np.testing.assert_allclose(u.residuals_, factor * own)
    assert (u.source_.out_of_sample.kind, u.source_.out_of_sample.reason) == ("leave-one-out", "")
    assert (u.spread_, u.distribution_) == ("combination", "stack")
    assert {"targets", "residuals"} == {quantity for quantity, _ in u.rule_.parts[0].spread.features}
    assert u.rule_.parts[0].spread.features[0] == ("targets", 31)
    assert any(name.startswith("residuals") for name in u.stack_["expert"])


def test_they_are_better_than_targets_alone_where_the_mean_moves(trained):
    X, y = noisy(2000, seed=1)
    alone = prefit(trained, residuals="none")
    assert (alone.residuals_, alone.source_.out_of_sample.kind, alone.source_.out_of_sample.reason) == (
        None,
        "none",
        "",
    )
    assert crps(y, prefit(trained).predict_dist(X)) < 0.99 * crps(y, alone.predict_dist(X))


@pytest.mark.parametrize("scoring", ["crps", "nll"])
def test_never_worse_than_targets_alone_on_the_validation_rows(model, diabetes, scoring):
    X_val, y_val = diabetes["validation"]
    score = {"crps": crps, "nll": nll}[scoring]
    unused = []
    for rows in (slice(None), slice(0, 40), slice(40, 80), slice(0, 12)):
        u, plain = (
            IBUGRegressor(model, prefit=True, scoring=scoring, residuals=who).fit(
                *diabetes["train"], X_val=X_val[rows], y_val=y_val[rows]
            )
            for who in ("auto", "none")
        )
        found, least = (score(y_val[rows], each.predict_dist(X_val[rows])) for each in (u, plain))
        assert found <= least + 1e-12
        told = u.tuning_["reason"][u.tuning_["spread"] == "own residuals"]
        if len(told):  # they gain less than one row, and nothing is different
            unused.append(rows)
            assert "gain less than one row is worth" in told[0]
            assert found == pytest.approx(least, rel=1e-12)
            assert u.rule_.needs == plain.rule_.needs
        else:
            assert found < least
    assert unused


def test_residuals_alone_take_those_of_the_model(trained):
    u = prefit(trained, distribution="normal", spread="residuals")
    assert (u.spread_, u.source_.out_of_sample.kind, len(u.residuals_)) == ("residuals", "leave-one-out", 500)
    X, _ = noisy(20, seed=1)
    square = (u.residuals_[u.kneighbors(X)[1]] ** 2).mean(axis=1)
    np.testing.assert_allclose(
        u.predict_var(X), u.rule_.gamma * np.maximum(square, u.rule_.min_variance) + u.rule_.delta
    )
    # Nobody makes those of training rows: they are the validation rows'.
    u = prefit(trained, distribution="normal", spread="residuals", residuals="none")
    assert (u.source_.out_of_sample.kind, len(u.residuals_)) == ("validation", 200)


def test_a_model_that_cannot_tell_says_why(diabetes, sampled_model):
    X_val, y_val = diabetes["validation"]
    u = IBUGRegressor(sampled_model, prefit=True).fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    assert (u.residuals_, u.source_.out_of_sample.kind) == (None, "none")
    assert "its trees have seen samples of the rows (subsample=0.7)" in u.source_.out_of_sample.reason
    plain = IBUGRegressor(sampled_model, prefit=True, residuals="none")
    plain.fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(u.predict_var(X_val), plain.predict_var(X_val))
    u = IBUGRegressor(sampled_model, prefit=True, spread="residuals")
    u.fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    assert u.source_.out_of_sample.kind == "validation"
    assert "subsample" in u.source_.out_of_sample.reason


def test_weights_that_the_model_was_trained_with(diabetes):
    X, y = diabetes["train"]
    X_val, y_val = diabetes["validation"]
    weights = np.linspace(0.1, 3, len(y))
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y, weights)
    u = IBUGRegressor(model, prefit=True).fit(X, y, weights, X_val=X_val, y_val=y_val)
    assert u.source_.out_of_sample.kind == "leave-one-out"
    without = IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val, y_val=y_val)
    assert (without.source_.out_of_sample.kind, "weights" in without.source_.out_of_sample.reason) == ("none", True)
    pipeline = make_pipeline(StandardScaler(), clone(model))
    pipeline.fit(X, y, gradientboostingregressor__sample_weight=weights)
    piped = IBUGRegressor(pipeline, prefit=True).fit(X, y, weights, X_val=X_val, y_val=y_val)
    assert piped.source_.out_of_sample.kind == "leave-one-out"
    with pytest.raises(InvalidInputError, match=r"\['sample_weight'\] would have no effect"):
        IBUGRegressor(model, prefit=True, residuals="none").fit(X, y, weights, X_val=X_val, y_val=y_val)
    with pytest.raises(ValueError, match="sample_weight"):
        IBUGRegressor(model, prefit=True).fit(X, y, weights[:-1], X_val=X_val, y_val=y_val)


class Counting(GradientBoostingRegressor):
    """Counts its trainings."""

    sizes: list = []  # noqa: RUF012 - shared by clones on purpose

    def fit(self, X, y, sample_weight=None):
        self.sizes.append(len(y))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("spread", ["auto", "residuals"])
def test_without_clones_a_part_is_held_out_and_the_model_trained_twice(spread):
    X, y = noisy(500)
    Counting.sizes = []
    u = IBUGRegressor(Counting(n_estimators=30), spread=spread, residuals="model", random_state=0).fit(X, y)
    assert Counting.sizes == [400, 500]
    assert (u.source_.out_of_sample.kind, u.residuals_.shape) == ("leave-one-out", (500,))
    kept = IBUGRegressor(Counting(n_estimators=30), spread=spread, residuals="model", refit=False, random_state=0)
    kept.fit(X, y)
    assert kept.residuals_.shape == (400,)
    # At the same level: that of the errors on the rows that were held out.
    assert np.mean(u.residuals_**2) == pytest.approx(np.mean(kept.residuals_**2))
    assert np.isfinite(u.predict_interval(X)).all()
    Counting.sizes = []
    IBUGRegressor(Counting(n_estimators=5), residuals="model").fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    assert Counting.sizes == [400]


class SamplingWhenLarge(GradientBoostingRegressor):
    """A model that samples its rows where there are many: that of a part can tell residuals, the final one cannot."""

    def fit(self, X, y, sample_weight=None):
        self.subsample = 0.5 if len(y) > 450 else 1.0
        return super().fit(X, y, sample_weight)


def test_a_final_model_that_cannot_tell_goes_without():
    X, y = noisy(500)
    u = IBUGRegressor(SamplingWhenLarge(n_estimators=30), residuals="model", random_state=0).fit(X, y)
    assert (u.residuals_, u.source_.out_of_sample.kind) == (None, "none")
    assert "residuals" not in u.rule_.needs
    assert np.isfinite(u.predict_interval(X)).all()
    with pytest.raises(InvalidInputError, match=r"subsample=0.5.*let residuals=\"auto\" train clones"):
        IBUGRegressor(SamplingWhenLarge(), spread="residuals", residuals="model", random_state=0).fit(X, y)


def test_samples_of_trees_and_rows_are_for_affinities_only(trained):
    whole, some = prefit(trained), prefit(trained, sampling=Sampling(tree_fraction=0.3, row_fraction=0.5))
    assert some.source_.index.n_rows < 500
    np.testing.assert_allclose(some.residuals_, whole.residuals_, rtol=1e-9)


def test_forests_have_rows_out_of_bag():
    X, y = noisy(700)
    model = RandomForestRegressor(n_estimators=60, random_state=0, oob_score=True).fit(X[:500], y[:500])
    u = prefit(model)
    assert u.source_.out_of_sample.kind == "out-of-bag"
    own = y[:500] - model.oob_prediction_
    errors = y[500:] - model.predict(X[500:])
    np.testing.assert_allclose(u.residuals_, own * np.sqrt(np.mean(errors**2) / np.mean(own**2)))


def test_other_validation_rows_tell_the_level_again(trained):
    X, y = noisy(700)
    u = prefit(trained)
    u.recalibrate(X[600:], y[600:], distribution="auto")
    errors = y[600:] - trained.predict(X[600:])
    assert np.mean(u.residuals_**2) == pytest.approx(np.mean(errors**2))


def test_files_and_pickles_keep_them(trained, tmp_path):
    X, _ = noisy(30, seed=1)
    u = prefit(trained)
    u.save(tmp_path / "model.ibug")
    for other in (load(tmp_path / "model.ibug"), pickle.loads(pickle.dumps(u))):
        assert other.residuals == "auto"
        assert (other.source_.out_of_sample.kind, other.source_.out_of_sample.reason) == ("leave-one-out", "")
        np.testing.assert_array_equal(other.residuals_, u.residuals_)
        np.testing.assert_array_equal(other.predict_quantiles(X), u.predict_quantiles(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"residuals": "clones"}, r"residuals must be one of \('auto', 'model', 'none'\); got 'clones'"),
        ({"residuals": None}, "got None"),
        ({"residuals": "model", "cv": 5}, "cv=5 trains clones.*Drop one of them"),
        ({"residuals": "none", "spread": "residuals"}, "needs rows that the model has not seen"),
        (
            {"residuals": "model", "spread": "residuals", "k": 9, "calibrate": False},
            "needs rows that the model has not seen",
        ),
        ({"residuals": "none", "spread": "residuals", "cv": 3}, "needs rows that the model has not seen"),
        (
            {"residuals": "none", "spread": "residuals", "cv": 3, "k": 9, "calibrate": False, "refit": False},
            "needs rows that the model has not seen",
        ),
    ],
)
def test_impossible_combinations(diabetes, parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        IBUGRegressor(GradientBoostingRegressor(), **parameters).fit(*diabetes["train"])


@pytest.mark.parametrize("parameters", [{}, {"k": 9, "calibrate": False}])
def test_a_trained_model_whose_residuals_nobody_may_make(diabetes, parameters):
    X, y = diabetes["train"]
    parameters = {"residuals": "none", "spread": "residuals", "cv": 3, **parameters}
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=9).fit(X, y), prefit=True, **parameters)
    with pytest.raises(InvalidInputError, match='set residuals="auto", which trains clones'):
        u.fit(X, y)


def test_nobody_makes_residuals_though_clones_are_tuned_on(diabetes):
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=9), cv=3, residuals="none", random_state=0)
    u.fit(*diabetes["train"])
    assert (u.residuals_, u.source_.out_of_sample.kind) == (None, "none")
    assert "residuals" not in u.rule_.needs
