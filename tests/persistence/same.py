"""Two regressors that must not differ in a single bit."""

import numpy as np


def assert_same(first, second, X):
    for method in ("predict", "predict_interval", "predict_quantiles", "predict_var"):
        one, other = getattr(first, method)(X), getattr(second, method)(X)
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes(), method
    distribution, same = first.predict_dist(X), second.predict_dist(X)
    assert type(distribution) is type(same)
    middle = distribution.ppf(0.4)
    assert distribution.logpdf(middle).tobytes() == same.logpdf(middle).tobytes()
    if hasattr(first, "kneighbors"):
        assert all(np.array_equal(a, b) for a, b in zip(first.kneighbors(X), second.kneighbors(X), strict=True))
