"""What is attributed to features: one number that tells of a distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ibug._inputs import check_probability
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError

Of = str | float | Callable[[Any], Any]


class Value(NamedTuple):
    """A number of each row, with its name."""

    name: str
    predict: Callable[[Any], Floats]  # rows -> (n_rows,)


def value_of(estimator: Any, of: Of, coverage: float) -> Value:
    """Return the function whose values are attributed."""
    if callable(of):
        return Value(getattr(of, "__name__", "value"), lambda X: np.asarray(of(estimator.predict_dist(X)), np.float64))
    if isinstance(of, str):
        return _named(estimator, of, coverage)
    level = check_probability(of, "of, if it is a number and so the probability of a quantile,")
    return Value(f"quantile {level:g}", lambda X: estimator.predict_quantiles(X, level)[:, 0])


def _named(estimator: Any, of: str, coverage: float) -> Value:
    if of == "log_std":
        return Value("log σ", lambda X: _log_std(estimator.predict_var(X)))
    if of == "prediction":
        return Value("prediction", lambda X: np.asarray(estimator.predict(X), np.float64))
    if of == "width":
        level = check_probability(coverage, "coverage")
        return Value(f"width of the {100 * level:g} % interval", lambda X: _widths(estimator, X, level))
    raise InvalidInputError(
        'of must be "log_std", "width", "prediction", the probability of a quantile, or a function of a distribution; '
        f"got {of!r}."
    )


def _log_std(variance: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 * np.log(variance))


def _widths(estimator: Any, X: Any, coverage: float) -> Floats:
    interval = estimator.predict_interval(X, coverage)
    return np.asarray(interval[:, 1] - interval[:, 0])
