"""How fast families are fitted to neighbours, beside a loop of ``scipy.stats.<law>.fit``, in one run.

    python benchmarks/posterior.py [--rows 5000] [--k 100]

Values are drawn skewed and with heavy tails, so that no family fits exactly. Likelihoods are compared on the rows that
scipy was given. "shape" is the fit with mean and variance kept, the default of IBUGRegressor.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ibug.distributions import resolve_family

Floats = NDArray[np.float64]

# scipy's law, and what is fixed in its fit: the shift, which a family learns from all training targets.
SCIPY: dict[str, tuple[Any, dict[str, float]]] = {
    "normal": (stats.norm, {}),
    "skewnormal": (stats.skewnorm, {}),
    "lognormal": (stats.lognorm, {"floc": 0.0}),
    "laplace": (stats.laplace, {}),
    "student_t": (stats.t, {}),
    "logistic": (stats.logistic, {}),
    "gumbel": (stats.gumbel_r, {}),
    "weibull": (stats.weibull_min, {"floc": 0.0}),
}
LEAST_RATIO = 100.0
EQUAL = 1e-7  # scipy lets the shape of a skew normal law grow without end, where the likelihood hardly changes
SCIPY_SECONDS = 4.0  # so long scipy may fit row after row


def main() -> None:
    options = parse_options()
    values = draw(options.rows, options.k)
    print(f"{options.rows} rows, k = {options.k}; microseconds per row, mean log likelihood per value\n")
    print(f"{'family':12}{'fit':>9}{'shape':>9}{'scipy':>11}{'ratio':>9}{'likelihood':>13}{'scipy':>11}   bar")
    for name, (law, fixed) in SCIPY.items():
        print(f"... {name}", file=sys.stderr, flush=True)
        _, family = resolve_family(name)
        fitted, seconds = timed(lambda family=family: family.fit(values))
        _, with_moments = timed(
            lambda family=family: family.fit(values, loc=values.mean(axis=1), scale=values.std(axis=1))
        )
        scipy_seconds, likelihood = fit_by_scipy(law, fixed, values)
        n = len(likelihood)
        ours = fitted[:n].logpdf(values[:n]).mean(axis=1)
        per_row = seconds / len(values)
        ratio = scipy_seconds / per_row
        bar = "met" if ratio >= LEAST_RATIO and ours.mean() >= likelihood.mean() - EQUAL else "MISSED"
        print(
            f"{name:12}{per_row * 1e6:9.1f}{with_moments / len(values) * 1e6:9.1f}{scipy_seconds * 1e6:11.0f}"
            f"{ratio:8.0f}x{ours.mean():13.5f}{likelihood.mean():11.5f}   {bar}",
            flush=True,
        )
    print(f"\nBar: at least {LEAST_RATIO:.0f} x faster at an equal or better mean log likelihood.")


def draw(n_rows: int, k: int) -> Floats:
    """Return positive values of many sizes and shapes, (n_rows, k)."""
    rng = np.random.default_rng(0)
    scale = np.exp(rng.normal(size=(n_rows, 1)))
    return scale * (
        100 + rng.standard_t(5, size=(n_rows, k)) + rng.uniform(0, 2, (n_rows, 1)) * rng.gamma(2, size=(n_rows, k))
    )


def timed(function: Any) -> tuple[Any, float]:
    """Return the result and the shortest processor time of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return result, min(times)


def fit_by_scipy(law: Any, fixed: dict[str, float], values: Floats) -> tuple[float, Floats]:
    """Return the processor time per row of scipy's fit, and the mean log likelihood of each row that it was given."""
    likelihood = []
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy's optimiser tries impossible parameters on its way
        for row in values:
            parameters = law.fit(row, **fixed)
            likelihood.append(parameters)
            if time.process_time() - start > SCIPY_SECONDS:
                break
        seconds = (time.process_time() - start) / len(likelihood)
        return seconds, np.array([law.logpdf(row, *p).mean() for row, p in zip(values, likelihood, strict=False)])


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--k", type=int, default=100)
    return parser.parse_args()


if __name__ == "__main__":
    main()
