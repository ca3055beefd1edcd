"""Conformal calibration by groups of rows, and by likelihood ratios, through the estimator."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

import ibug
from ibug import IBUGRegressor
from ibug.calibration import DistributionConformal, ScaleConformal
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError, NotStorableError

pytestmark = pytest.mark.once


def rows(n, seed):
    """Rows of three regions, each with its own noise, which no feature but the region tells."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.uniform(size=n), "region": rng.integers(0, 3, n).astype(float)})
    return X, 4 * X["a"].to_numpy() + rng.normal(size=n) * np.array([0.2, 1.0, 3.0])[X["region"].astype(int)]


@pytest.fixture(scope="module")
def data():
    X, y = rows(300, 0)
    flat = X.assign(region=0.0)  # a model that does not know regions
    return GradientBoostingRegressor(n_estimators=20, random_state=0).fit(flat, y), rows(1200, 1), rows(900, 2)


def fitted(data, conformal, n_val=1200):
    model, (X_val, y_val), _ = data
    X, y = rows(300, 0)
    u = IBUGRegressor(model, prefit=True, conformal=conformal, random_state=0, k=30, distribution="normal")
    return u.fit(X, y, X_val=X_val[:n_val], y_val=y_val[:n_val])


def covered(u, X, y):
    lower, upper = u.predict_interval(X, 0.9).T
    return (lower <= y) & (y <= upper)


@pytest.mark.parametrize(
    "groups", ["region", 1, lambda X: X["region"].astype(int).astype(str)], ids=["name", "number", "function"]
)
@pytest.mark.parametrize("kind", [ScaleConformal, DistributionConformal])
def test_coverage_holds_in_each_group(data, kind, groups):
    _, _, (X, y) = data
    found = covered(fitted(data, kind(groups=groups)), X, y)
    plain = covered(fitted(data, kind()), X, y)
    for region in range(3):
        where = (X["region"] == region).to_numpy()
        assert found[where].mean() > 0.85
    assert plain[(X["region"] == 2).to_numpy()].mean() < 0.8


def test_it_is_what_the_calibrator_alone_does(data):
    _, (X_val, y_val), (X, _) = data
    u = fitted(data, ScaleConformal(groups="region"), n_val=150)  # so few serve tuning and calibration alike
    plain = fitted(data, None, n_val=150)
    alone = ScaleConformal().fit(plain.predict_dist(X_val[:150]), y_val[:150], X_val["region"][:150])
    expected = alone.transform(plain.predict_dist(X), X["region"]).interval(0.9)
    np.testing.assert_allclose(u.predict_interval(X, 0.9), np.stack(expected, axis=1))


def overlapping(X):
    a, region = X["a"].to_numpy(), X["region"].to_numpy()
    return np.column_stack([region == 2, a > 0.5, region <= 1])


@pytest.mark.parametrize("kind", [ScaleConformal, DistributionConformal])
def test_groups_that_overlap(data, kind):
    _, (X_val, y_val), (X, y) = data
    u = fitted(data, kind(groups=overlapping))
    found = covered(u, X, y)
    for member in overlapping(X).T:
        assert found[member].mean() > 0.86
    # The slow truth: calibrate each group by itself, and take the widest interval of those that a row is in.
    base = Normal(np.zeros(len(y_val)), np.ones(len(y_val)))
    new, members, known = Normal(np.zeros(len(y)), np.ones(len(y))), overlapping(X), overlapping(X_val)
    lower, upper = kind().fit(base, y_val, known).transform(new, members).interval(0.9)
    ends = [kind().fit(base[group], y_val[group]).transform(new[:1]).interval(0.9) for group in known.T]
    for row in range(0, len(y), 50):
        mine = [ends[group] for group in np.flatnonzero(members[row])]
        assert lower[row] == pytest.approx(min(end[0][0] for end in mine))
        assert upper[row] == pytest.approx(max(end[1][0] for end in mine))


def test_groups_that_were_not_seen_are_counted(data):
    _, _, (X, _y) = data
    u = fitted(data, ScaleConformal(groups="region"))
    other = X.assign(region=np.where(np.arange(len(X)) % 3 == 0, 7.0, X["region"]))
    assert u.predict_dist(X).n_unseen == 0
    assert u.predict_dist(other).n_unseen == 300
    assert u.predict_dist(other[:1]).n_unseen == 1
    found = u.predict_dist(other)
    assert [found[:7].n_unseen, found[1:3].n_unseen, found[np.array([0, 1, 3])].n_unseen] == [3, 0, 2]
    assert type(found).concatenate([found[:6], found[6:10]]).n_unseen == 4
    pooled = fitted(data, ScaleConformal()).conformal_.maps_[-1].interval(0.9)
    assert u.conformal_.maps_[-1].interval(0.9) == pooled


def test_a_known_likelihood_ratio():
    """Validation rows are uniform, new ones have the density 4x³: coverage holds for these with the ratio."""
    rng = np.random.default_rng(0)
    X, X_val, X_new = rng.uniform(size=(400, 1)), rng.uniform(size=(800, 1)), rng.beta(4, 1, size=(4000, 1))
    y, y_val, y_new = (rng.normal(size=len(at)) * (0.2 + 2 * at[:, 0] ** 3) for at in (X, X_val, X_new))
    model = GradientBoostingRegressor(n_estimators=5, max_depth=1, learning_rate=0.01).fit(X, y)
    inside = {}
    for name, ratio in (("plain", None), ("weighted", lambda rows: 4 * rows[:, 0] ** 3)):
        u = IBUGRegressor(model, prefit=True, conformal=ScaleConformal(ratio=ratio), random_state=0)
        u.set_params(distribution="normal", spread="targets", k=400, calibrate=False)
        inside[name] = covered(u.fit(X, y, X_val=X_val, y_val=y_val), X_new, y_new).mean()
    assert inside["plain"] < 0.85
    assert 0.87 < inside["weighted"] < 0.94


@pytest.mark.parametrize("factor", [1e160, 1e-163, 1e300, 1e-300])
def test_a_likelihood_ratio_is_known_up_to_a_factor(data, factor):
    _, _, (X, _) = data
    one, other = (
        fitted(data, ScaleConformal(ratio=lambda rows, f=f: f * np.exp(rows["a"].to_numpy()))) for f in (1.0, factor)
    )
    np.testing.assert_allclose(other.predict_interval(X), one.predict_interval(X))
    np.testing.assert_allclose(other.predict_quantiles(X), one.predict_quantiles(X), rtol=1e-6)


def test_out_of_fold(data):
    X, y = rows(600, 3)
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=10, random_state=0), cv=3, random_state=0)
    u.set_params(conformal=ScaleConformal(groups="region")).fit(X, y)
    assert len(u.conformal_.maps_) == 4


def test_saved(data, tmp_path):
    pytest.importorskip("skops")
    _, _, (X, _) = data
    u = fitted(data, ScaleConformal(groups="region"))
    u.save(tmp_path / "u.ibug")
    for other in (ibug.load(tmp_path / "u.ibug"), pickle.loads(pickle.dumps(u))):
        np.testing.assert_array_equal(other.predict_interval(X), u.predict_interval(X))
        assert clone(other).conformal.groups == "region"
    with pytest.raises(NotStorableError, match="a function"):
        fitted(data, ScaleConformal(groups=overlapping)).save(tmp_path / "v.ibug")


def test_wrong_input(data):
    _, (X_val, y_val), _ = data
    with pytest.raises(InvalidInputError, match="is not there: X has the columns"):
        fitted(data, ScaleConformal(groups="country"))
    for number in (2, 9, -1):
        with pytest.raises(InvalidInputError, match=rf"column number {number}, .* X has 2 columns, 0 to 1"):
            fitted(data, ScaleConformal(groups=number))
    with pytest.raises(InvalidInputError, match="one label for each of the"):
        fitted(data, ScaleConformal(groups=lambda X: [1, 2]))
    with pytest.raises(InvalidInputError, match="groups must be the name"):
        fitted(data, ScaleConformal(groups=[1, 2, 3]))
    with pytest.raises(InvalidInputError, match="ratio must be a function"):
        fitted(data, ScaleConformal(ratio="x"))
    with pytest.raises(InvalidInputError, match="ratio must return"):
        fitted(data, ScaleConformal(ratio=lambda X: -np.ones(len(X))))
    base = Normal(np.zeros(len(y_val)), np.ones(len(y_val)))
    with pytest.raises(InvalidInputError, match="which only IBUGRegressor gives it"):
        ScaleConformal(groups="region").fit(base, y_val)
    calibrator = ScaleConformal().fit(base, y_val, overlapping(X_val))
    with pytest.raises(InvalidInputError, match="3 groups that overlap"):
        calibrator.transform(base, overlapping(X_val)[:, :2])


def test_groups_of_a_stack_that_is_guarded():
    """With enough validation rows `fit` looks at the stack's own intervals, which have groups as well."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2))
    y = X[:, 0] + rng.normal(size=3000) * (0.1 + X[:, 1])
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X[:1500], y[:1500])
    conformal = ScaleConformal(groups=lambda X: X[:, 1] > 0.5)
    u = IBUGRegressor(model, prefit=True, conformal=conformal, random_state=0)
    u.fit(X[:1500], y[:1500], X_val=X[1500:], y_val=y[1500:])
    assert u.distribution_ == "stack"
    assert len(u.conformal_.groups_) == 2
