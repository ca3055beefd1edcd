"""What a regressor would say without its calibration."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.explain import plain_neighbors

pytestmark = pytest.mark.once


def test_it_is_the_papers_rule():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 4))
    y = np.exp(4 * X[:, 0]) + (0.2 + 2 * X[:, 1]) * rng.normal(size=900)  # the mean moves where the noise does not
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=40, random_state=0), random_state=0).fit(X[:600], y[:600])
    assert u.spread_ == "combination"
    plain = plain_neighbors(u)
    assert (plain.spread_, plain.rule_.gamma, plain.rule_.delta, plain.conformal_) == ("targets", 1.0, 0.0, None)
    _, indices = u.kneighbors(X[600:], plain.k_)
    variance = np.maximum(y[:600][indices].var(axis=1), u.rule_.min_variance)
    np.testing.assert_allclose(plain.predict_var(X[600:]), variance, rtol=1e-9)
    assert u.spread_ == "combination"  # it is a copy
