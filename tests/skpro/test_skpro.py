"""ibug as a regressor of skpro."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skpro", reason="the extra skpro is not installed")

from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor
from skpro.metrics import CRPS
from skpro.utils import check_estimator

import ibug
from ibug import distributions
from ibug.calibration import ScaleConformal
from ibug.skpro import BatchedDistribution, IBUGRegressor, JointDistribution, to_skpro

N = 5
LOC, SCALE = np.array([-2.0, 0.0, 3.0, 100.0, 1e4]), np.array([0.5, 1.0, 2.0, 30.0, 7.0])
VALUES = LOC[:, None] + SCALE[:, None] * np.random.default_rng(0).normal(size=(N, 12))

NORMAL = distributions.Normal(LOC, SCALE)
EQUAL = {
    "Normal": NORMAL,
    "Laplace": distributions.Laplace(LOC, SCALE),
    "Logistic": distributions.Logistic(LOC, SCALE),
    "TDistribution": distributions.StudentT(LOC, SCALE, [3.0, 4.0, 5.5, 10.0, 50.0]),
    "GumbelR": distributions.Gumbel(LOC, SCALE),
    "SkewNormal": distributions.SkewNormal(LOC, SCALE, [-4.0, -1.0, 0.0, 2.0, 8.0]),
    "LogNormal": distributions.Lognormal(0.0, [-1.0, 0.0, 1.0, 2.0, 3.0], [0.1, 0.5, 1.0, 1.5, 0.3]),
    "Weibull": distributions.Weibull(0.0, SCALE, [0.7, 1.0, 1.5, 3.0, 20.0]),
}
WRAPPED = {
    "kde": distributions.KDE.fit(VALUES),
    "empirical": distributions.Empirical.fit(VALUES),
    "above another shift": distributions.Lognormal(-5.0, np.ones(N), np.full(N, 0.5)),
    "truncated": distributions.Truncated(NORMAL, -2.0, np.inf),
    "mixture": distributions.Mixture([NORMAL, distributions.Laplace(LOC, SCALE)], [0.3, 0.7]),
    "stack": distributions.Stack(
        LOC, SCALE, VALUES, np.ones(VALUES.shape), distributions.MixtureParams([0.4, 0.2, 0.4], [-1.0, 0.5])
    ),
    "conformal": ScaleConformal().fit(NORMAL, LOC + SCALE).transform(NORMAL),
}


@pytest.fixture(scope="module")
def data():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X[:200], y[:200].to_frame("progression"), X[200:230], y[200:230].to_frame("progression")


def small(**parameters):
    model = GradientBoostingRegressor(n_estimators=10, random_state=0)
    return IBUGRegressor(model, k=10, spread="targets", random_state=0, **parameters)


# skpro's own tests warn of its approximations, and fit on a few rows.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("subject", [IBUGRegressor, BatchedDistribution, JointDistribution])
def test_skpros_own_checks(subject):
    results = check_estimator(subject, verbose=False)
    assert len(results) > 20
    assert {name: result for name, result in results.items() if result != "PASSED"} == {}


def check_same(found, distribution):
    # Within the support: beyond it, some of skpro's formulas take logarithms of negative numbers.
    levels = np.array([1e-4, 0.05, 0.5, 0.9, 0.9999])
    y = distribution.ppf(levels[None, :])
    for i, level in enumerate(levels):
        np.testing.assert_allclose(found.ppf(level).to_numpy()[:, 0], y[:, i], rtol=1e-9, atol=1e-9)
        at = y[:, [i]]
        np.testing.assert_allclose(found.cdf(at).to_numpy(), distribution.cdf(at), rtol=1e-9)
        np.testing.assert_allclose(found.log_pdf(at).to_numpy(), distribution.logpdf(at), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.mean().to_numpy()[:, 0], distribution.mean(), rtol=1e-9, atol=1e-9)
    # skpro's t distribution has single floats.
    np.testing.assert_allclose(found.var().to_numpy()[:, 0], distribution.var(), rtol=1e-6)


@pytest.mark.parametrize("name", EQUAL)
def test_skpros_class_is_the_same_distribution(name):
    found = to_skpro(EQUAL[name], index=list("abcde"), columns=["y"])
    assert type(found).__name__ == name
    assert type(found).__module__.startswith("skpro.")
    assert list(found.index) == list("abcde")
    check_same(found, EQUAL[name])


@pytest.mark.parametrize("name", WRAPPED)
def test_other_distributions_are_wrapped_as_they_are(name):
    distribution = WRAPPED[name]
    found = to_skpro(distribution)
    assert type(found) is BatchedDistribution
    check_same(found, distribution)
    np.testing.assert_allclose(found.var().to_numpy()[:, 0], distribution.var(), rtol=1e-12)
    y = distribution.ppf(0.7)[:, None]
    score = found.energy(y).to_numpy() - found.energy().to_numpy() / 2
    np.testing.assert_allclose(score[:, 0], distribution.crps(y[:, 0]), rtol=1e-9)
    np.testing.assert_allclose(found.iloc[[3, 1]].ppf(0.7).to_numpy()[:, 0], y[[3, 1], 0])
    assert found.iat[2, 0].cdf(y[2, 0]) == pytest.approx(0.7)


def test_the_energy_of_a_wrapped_distribution_is_the_closed_one():
    wrapped = BatchedDistribution(NORMAL)
    np.testing.assert_allclose(wrapped.energy().to_numpy()[:, 0], 2 * SCALE / np.sqrt(np.pi), rtol=1e-6)


def test_predictions_are_those_of_ibug(data):
    X, y, X_new, _ = data
    u = small(conformal="scale").fit(X, y)
    own = ibug.IBUGRegressor(**clone(u.regressor_).get_params(deep=False)).fit(X, y["progression"].to_numpy())
    np.testing.assert_array_equal(u.predict(X_new)["progression"], own.predict(X_new))
    intervals = u.predict_interval(X_new, coverage=[0.5, 0.9])
    np.testing.assert_array_equal(intervals["progression"][0.9].to_numpy(), own.predict_interval(X_new, 0.9))
    quantiles = u.predict_quantiles(X_new, alpha=[0.1, 0.5])
    np.testing.assert_array_equal(quantiles.to_numpy(), own.predict_quantiles(X_new, [0.1, 0.5]))
    np.testing.assert_array_equal(u.predict_var(X_new)["progression"], own.predict_var(X_new))
    assert (u.predict_proba(X_new).index == X_new.index).all()


def test_skpros_crps_is_ibugs(data):
    X, y, X_new, y_new = data
    u = small().fit(X, y)
    own = u.regressor_.predict_dist(X_new).crps(y_new["progression"].to_numpy()).mean()
    assert CRPS()(y_new, u.predict_proba(X_new)) == pytest.approx(own)


@pytest.fixture(scope="module")
def several(data):
    X, y, X_new, y_new = data
    rng = np.random.default_rng(0)
    noise, new = rng.normal(0, 30, size=len(X)), rng.normal(0, 30, size=len(X_new))
    Y, Y_new = (one.assign(other=2 * one["progression"] + each) for one, each in ((y, noise), (y_new, new)))
    model = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=10, random_state=0))
    u = IBUGRegressor(model, k=10, cv=2, random_state=0, conformal="scale").fit(X, Y)
    return u, X_new, Y_new


def test_several_targets(several):
    u, X_new, Y_new = several
    own = u.regressor_
    found = u.predict_proba(X_new)
    assert found.shape == (30, 2)
    assert list(found.columns) == ["progression", "other"]
    assert u.predict(X_new)["other"].to_numpy() == pytest.approx(own.predict(X_new)[:, 1])
    intervals = u.predict_interval(X_new, coverage=[0.5, 0.9])
    ends = own.predict_interval(X_new, [0.5, 0.9])
    for j, name in enumerate(Y_new):
        for i, coverage in enumerate([0.5, 0.9]):
            np.testing.assert_array_equal(intervals[name][coverage].to_numpy(), ends[:, j, :, i])
    quantiles = u.predict_quantiles(X_new, alpha=[0.1, 0.5])
    np.testing.assert_array_equal(quantiles["other"].to_numpy(), own.predict_quantiles(X_new, [0.1, 0.5])[:, 1])
    np.testing.assert_array_equal(u.predict_var(X_new).to_numpy(), own.predict_var(X_new))


def test_joint_distributions(several):
    u, X_new, Y_new = several
    found, joint = u.predict_proba(X_new), u.regressor_.predict_dist(X_new)
    for j, name in enumerate(Y_new):
        one = joint.marginal(j)
        np.testing.assert_array_equal(found.cdf(Y_new)[name], one.cdf(Y_new[name].to_numpy()))
        np.testing.assert_array_equal(found.log_pdf(Y_new)[name], one.logpdf(Y_new[name].to_numpy()))
        np.testing.assert_array_equal(found.ppf(0.3)[name], one.ppf(0.3))
        np.testing.assert_array_equal(found.mean()[name], one.mean())
    score = found.energy(Y_new).to_numpy() - found.energy().to_numpy() / 2
    np.testing.assert_allclose(score[:, 0], joint.crps(Y_new.to_numpy()).sum(axis=1), rtol=1e-9)
    assert CRPS()(Y_new, found) == pytest.approx(score.mean() / 2)  # the mean of both targets
    samples = found.iloc[[3]].sample(4000)
    assert samples.shape == (4000, 2)
    expected = joint[3].correlation()[0, 1]
    assert np.corrcoef(samples.to_numpy().T)[0, 1] == pytest.approx(expected, abs=0.08)
    turned = found.iloc[5:7, [1]]
    np.testing.assert_array_equal(turned.mean().to_numpy(), joint.mean()[5:7, [1]])
    assert found.iat[4, 1].cdf(100.0) == pytest.approx(float(joint[4].marginal(1).cdf(100.0)))
    assert found.sample().shape == (30, 2)


def test_the_documents_example_runs(data):
    pytest.importorskip("lightgbm")
    text = (Path(__file__).parents[2] / "docs" / "ecosystem.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0].replace("LGBMRegressor()", "LGBMRegressor(verbose=-1)")
    names = dict(zip(("X", "y", "X_test", "y_test"), data, strict=True))
    exec(code, names)
    assert type(names["d"]).__name__ == "BatchedDistribution"


def test_predict_proba_is_only_here():
    assert not hasattr(ibug.IBUGRegressor, "predict_proba")
