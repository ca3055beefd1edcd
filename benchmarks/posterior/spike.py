"""How a density score runs away on a discrete target: Weibull distributions of counts with many zeros.

    python benchmarks/posterior_spike.py [--report docs/posterior.md]

The counts are made: like those of medical visits, many are zero and the rest is skewed. Each row gets the Weibull
distribution that is most likely for its neighbours' targets, as in the paper's section 5.4. Its support must begin
below zero, the smallest target; how far below is arbitrary. The nearer, the higher the density at zero.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.common import document
from benchmarks.common.arguments import add_report, parser_of
from benchmarks.posterior.choice import rounded_nll
from ibug import IBUGRegressor
from ibug.distributions import Distribution, Weibull
from ibug.metrics import crps, nll

Floats = NDArray[np.float64]
SHIFTS = (1.0, 1e-1, 1e-2, 1e-4, 1e-8, 1e-12)
K = 201


def main() -> None:
    options = parse_options()
    printed = "\n".join(lines())
    print(printed)
    if options.report:
        document.write(options.report, "posterior_spike.py", printed)


def lines() -> list[str]:
    """Return the table: the same neighbours, with supports that begin ever nearer to zero."""
    X, y = made_counts(6000)
    train, validation, test = slice(3000), slice(3000, 4000), slice(4000, None)
    model = HistGradientBoostingRegressor(random_state=0).fit(X[train], y[train])
    u = IBUGRegressor(model, prefit=True, k=K, distribution="normal", spread="targets", scoring="nll")
    u.fit(X[train], y[train], X_val=X[validation], y_val=y[validation])
    values = y[train][u.kneighbors(X[test])[1]]

    def line(name: str, found: Distribution) -> str:
        scores = nll(y[test], found), rounded_nll(y[test], found, y[train]), crps(y[test], found)
        return f"{name:28}{scores[0]:10.3f}{scores[1]:13.3f}{scores[2]:9.4g}"

    table = [
        f"{len(y[test])} test rows, {np.mean(y == 0):.0%} zeros, mean {y.mean():.1f}, k = {K}",
        "",
        f"{'distribution':28}{'NLL':>10}{'rounded NLL':>13}{'CRPS':>9}",
        line("normal", u.predict_dist(X[test])),
    ]
    return table + [line(f"Weibull from {-shift:g} on", Weibull.fit(values, shift=-shift)) for shift in SHIFTS]


def made_counts(n: int) -> tuple[Floats, Floats]:
    """Return rows and counts: zero with a probability between 10 and 80 %, else one plus a negative binomial number."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 5))
    some = rng.uniform(size=n) > 0.8 - 0.7 * X[:, 0]
    size = np.exp(3 * X[:, 1])
    return X, np.where(some, 1.0 + rng.negative_binomial(0.8, 0.8 / (0.8 + size)), 0.0)


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_report(parser)
    return parser.parse_args()
