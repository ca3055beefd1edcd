"""How fast families are fitted to neighbours, beside a loop of ``scipy.stats.<name>.fit``, in one run.

    python benchmarks/posterior.py [--rows 5000] [--k 100] [--report docs/posterior.md]

Values are drawn skewed and with heavy tails, so that no family fits exactly. Likelihoods are compared on the rows that
scipy was given. "shape" is the fit with mean and variance kept, the default of IBUGRegressor.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import stats

from benchmarks.common import document
from benchmarks.common.arguments import add_report, parser_of
from benchmarks.common.bars import verdict
from benchmarks.common.progress import say
from ibug.distributions import resolve_family
from ibug.neighbors import instruction_sets

Floats = NDArray[np.float64]

# scipy's distribution, and what is fixed in its fit: the shift, which a family learns from all training targets.
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
EQUAL = 1e-7  # scipy lets the shape of a skew normal grow without end, where the likelihood hardly changes
SECONDS, FEWEST_CALLS = float(os.environ.get("IBUG_LEAST_TIME", "0.2")), 3
SCIPY_SECONDS = 4.0  # after which scipy gets no more rows to fit


def main() -> None:
    options = parse_options()
    values = draw(options.rows, options.k)
    lines = [
        f"{options.rows} rows, k = {options.k}; microseconds per row, mean log likelihood per value; "
        f"SciPy {scipy.__version__}, {instruction_sets()[-1]}",
        "",
        f"{'family':12}{'fit':>9}{'shape':>9}{'scipy':>11}{'ratio':>9}{'likelihood':>13}{'scipy':>11}   bar",
    ]
    print("\n".join(lines))
    for name, (theirs, fixed) in SCIPY.items():
        say(f"... {name}")
        lines.append(measure(name, theirs, fixed, values))
        print(lines[-1], flush=True)
    lines += ["", f"Bar: at least {LEAST_RATIO:.0f} x faster at an equal or better mean log likelihood."]
    print("\n".join(lines[-2:]))
    if options.report:
        document.write(options.report, "posterior.py", "\n".join(lines))


def measure(name: str, distribution: Any, fixed: dict[str, float], values: Floats) -> str:
    """Return the line of one family."""
    _, family = resolve_family(name)
    mean, std = values.mean(axis=1), values.std(axis=1)
    fitted, seconds = timed(lambda: family.fit(values))
    _, with_moments = timed(lambda: family.fit(values, loc=mean, scale=std))
    scipy_seconds, theirs = fit_by_scipy(distribution, fixed, values)
    ours = fitted[: len(theirs)].logpdf(values[: len(theirs)]).mean(axis=1)
    per_row = seconds / len(values)
    ratio = scipy_seconds / per_row
    bar = verdict(ratio >= LEAST_RATIO and ours.mean() >= theirs.mean() - EQUAL)
    return (
        f"{name:12}{per_row * 1e6:9.2f}{with_moments / len(values) * 1e6:9.2f}{scipy_seconds * 1e6:11.0f}"
        f"{ratio:8.0f}x{ours.mean():13.5f}{theirs.mean():11.5f}   {bar}"
    )


def draw(n_rows: int, k: int) -> Floats:
    """Return positive values of many sizes and shapes, (n_rows, k)."""
    rng = np.random.default_rng(0)
    scale = np.exp(rng.normal(size=(n_rows, 1)))
    return scale * (
        100 + rng.standard_t(5, size=(n_rows, k)) + rng.uniform(0, 2, (n_rows, 1)) * rng.gamma(2, size=(n_rows, k))
    )


def timed(function: Any) -> tuple[Any, float]:
    """Return the result, and the median processor time of calls that take a fifth of a second together, or of three."""
    times: list[float] = []
    while len(times) < FEWEST_CALLS or sum(times) < SECONDS:
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return result, float(np.median(times))


def fit_by_scipy(distribution: Any, fixed: dict[str, float], values: Floats) -> tuple[float, Floats]:
    """Return the processor time per row of scipy's fit, and the mean log likelihood of each row that it was given."""
    found = []
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy's optimiser tries impossible parameters on its way
        for row in values:
            parameters = distribution.fit(row, **fixed)
            found.append(parameters)
            if time.process_time() - start > SCIPY_SECONDS:
                break
        seconds = (time.process_time() - start) / len(found)
        likelihoods = [distribution.logpdf(row, *p).mean() for row, p in zip(values, found, strict=False)]
    return seconds, np.array(likelihoods)


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--k", type=int, default=100)
    add_report(parser)
    return parser.parse_args()
