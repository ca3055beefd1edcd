"""A family of one's own: laws for counts and costs that are often exactly zero.

Run it with ``python examples/own_law.py``. A family is a subclass of ``Distribution`` with `fit`, `logpdf`, `cdf`,
`ppf`, `mean` and `var`; all other methods (`pdf`, `interval`, `rvs`, `crps`, …) follow from these.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.distributions import Distribution, Lognormal, register
from ibug.exceptions import InvalidInputError
from ibug.metrics import crps


class ZeroInflated(Distribution):
    """Zero with probability `zero`, else lognormal.

    Parameters
    ----------
    zero, mu, sigma : array-like of shape (n,)
        The probability of zero, and mean and standard deviation of the logarithm of what is not zero.
    """

    parameters = ("zero", "mu", "sigma")

    def __init__(self, zero, mu, sigma):
        super().__init__(zero=zero, mu=mu, sigma=sigma)
        self.positive = Lognormal(np.zeros_like(self.mu), self.mu, self.sigma)

    @classmethod
    def prepare(cls, targets):
        """Refuse targets that are negative or never zero."""
        if targets.min() < 0 or not np.any(targets == 0):
            raise InvalidInputError("A zero-inflated law is for targets that are never negative and sometimes zero.")
        return {}

    @classmethod
    def fit(cls, values, *, loc=None, scale=None):
        """Fit one law per row of values, with the given means and standard deviations if there are any."""
        mean = values.mean(axis=1) if loc is None else np.maximum(loc, 1e-9)
        variance = np.square(values.std(axis=1) if scale is None else scale)
        zero = np.clip(np.mean(values == 0, axis=1), 0.0, 0.99)
        # What is not zero must have such a mean and variance that the whole law keeps its own. Where so many zeros
        # alone would spread the law more than it should be, there are fewer of them.
        zero = np.minimum(zero, 0.99 * variance / (variance + mean**2))
        inner_mean = mean / (1 - zero)
        inner_variance = np.maximum((variance + mean**2) / (1 - zero) - inner_mean**2, 1e-9 * inner_mean**2)
        sigma2 = np.log1p(inner_variance / inner_mean**2)
        return cls(zero, np.log(inner_mean) - sigma2 / 2, np.sqrt(sigma2))

    def logpdf(self, y):
        """Return the log probability of zero at zero, and elsewhere the log density: two different things."""
        x, zero, _, _ = self._match(y)
        with np.errstate(divide="ignore"):
            return np.where(x == 0, np.log(zero), np.log1p(-zero) + self.positive.logpdf(y))

    def cdf(self, y):
        """Return the probability of a value of at most y."""
        x, zero, _, _ = self._match(y)
        return np.where(x < 0, 0.0, zero + (1 - zero) * self.positive.cdf(y))

    def ppf(self, q):
        """Return the quantile at probability q."""
        p, zero, _, _ = self._match_probability(q)
        return np.where(p <= zero, 0.0, self.positive.ppf(np.clip((p - zero) / (1 - zero), 0.0, 1.0)))

    def mean(self):
        """Return the means."""
        return (1 - self.zero) * self.positive.mean()

    def var(self):
        """Return the variances."""
        second = (1 - self.zero) * (self.positive.var() + self.positive.mean() ** 2)
        return second - self.mean() ** 2


def main() -> None:
    """Predict costs of which about half are zero, with the normal law and with our own."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 3))
    y = np.where(rng.uniform(size=3000) < 0.8 - 0.6 * X[:, 0], 0.0, np.exp(2 * X[:, 1] + 0.6 * rng.normal(size=3000)))
    register("zero_inflated", ZeroInflated)  # or pass the class itself
    for family in ("normal", "zero_inflated"):
        u = IBUGRegressor(HistGradientBoostingRegressor(random_state=0), distribution=family, random_state=0)
        law = u.fit(X[:2000], y[:2000]).predict_dist(X[2000:])
        low, high = law.interval(0.9)
        inside = np.mean((low <= y[2000:]) & (y[2000:] <= high))
        print(
            f"{family:14} CRPS {crps(y[2000:], law):.3f}   90 % interval holds {inside:.1%}   "
            f"lowest lower end {low.min():.2f}   first row: P(0) = {float(law[0].cdf(0.0)):.2f}"
        )


if __name__ == "__main__":
    main()
