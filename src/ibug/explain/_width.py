"""Which features make an interval wide: Shapley values of the spread, of a row or over a whole dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._progress import Progress
from ibug._typing import Floats, Integers
from ibug._validation import as_rows, check_at_least_one, check_methods, check_probability
from ibug.exceptions import IBUGError, InvalidInputError
from ibug.explain._shapley import background_of, cell_table, shap_package, shapley_values
from ibug.rule import one_target

Of = str | float | Callable[[Any], Any]

#: Enough for all sets of eight features, and for six orders of twenty.
_EVALUATIONS = 256


class Attribution(NamedTuple):
    """What each feature adds to a number of one row."""

    row: int
    values: Floats  # (n_features,) they add up to the row's number less `base`
    base: float  # the mean of that number over the background


class Attributor:
    """Attributes a number of each row, its log σ say, to the row's features; one row at a time.

    Parameters
    ----------
    estimator, X, background, of, coverage, choose, n_background, n_evaluations, random_state
        As in `explain_width`.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        background: Any = None,
        *,
        of: Of = "log_std",
        coverage: float = 0.9,
        choose: str = "random",
        n_background: int = 50,
        n_evaluations: int | None = None,
        random_state: int = 0,
    ) -> None:
        shap_package()  # first: a missing library is an error before anything takes time
        quiet = _quiet(check_methods(estimator, "predict_dist", "predict_var"))
        if getattr(estimator, "target_names_", None) is not None:
            one_target(estimator.rule_, "explain_width")
        X = as_rows(X)
        self.value = value_of(quiet, of, coverage)
        self.expected = _finite(self.value.predict(X), self.value.name)  # which checks X, too
        self.n_rows, n_features = _num_samples(X), int(X.shape[1])
        self._n_evaluations = _checked_evaluations(n_evaluations, n_features)
        self._seed = random_state
        rows, self._chosen = background_of(quiet, X, background, choose, n_background, random_state)
        self.n_background = int(self._chosen.shape[1])
        self.cells = cell_table(X, rows)
        self.names = _names(estimator, X)

    def row(self, i: int) -> Attribution:
        """Return what each feature adds to the number of row i.

        Raises
        ------
        IBUGError
            If the values do not add up to the number that is predicted for the row.
        """
        places = np.concatenate([[i], self.n_rows + self._chosen[i]])
        own = self.cells.codes[places]
        # A cell is its row's place here, 0 where it equals that of the row itself: shap then need not evaluate it.
        codes = np.where(own[1:] == own[0], 0, np.arange(1, len(places))[:, None]).astype(np.float64)

        def predict(cells: Floats) -> Floats:
            return _finite(self.value.predict(self.cells.take(places[cells.astype(np.intp)])), self.value.name)

        found, base = shapley_values(predict, np.zeros(codes.shape[1]), codes, self._n_evaluations, self._seed)
        expected = float(self.expected[i])
        if not np.isclose(base + found.sum(), expected, rtol=1e-6, atol=1e-6 * (1.0 + abs(base))):
            raise IBUGError(
                f"The parts of row {i} add up to {base + found.sum():.8g}, but its {self.value.name} is "
                f"{expected:.8g}. A prediction must be the same each time, whatever the other rows are."
            )
        return Attribution(i, found, base)

    def __iter__(self) -> Iterator[Attribution]:
        return map(self.row, range(self.n_rows))


def explain_width(
    estimator: Any,
    X: Any,
    background: Any = None,
    *,
    of: Of = "log_std",
    coverage: float = 0.9,
    choose: str = "random",
    n_background: int = 50,
    n_evaluations: int | None = None,
    random_state: int = 0,
) -> Any:
    """Attribute the width of each row's distribution to its features, by Shapley values of the `shap` package.

    A positive value says that the feature makes the distribution wider than those of the background are, a negative
    one that it makes it narrower. The values of a row and its base value add up to the row's log σ; this is checked.

    Parameters
    ----------
    estimator
        A fitted probabilistic regressor of ibug.
    X : array-like or data frame of shape (n_rows, n_features)
        The rows to explain.
    background : array-like or data frame of shape (n_background_rows, n_features), optional
        The rows to compare with: the training rows, say, which the estimator does not keep. ``None`` compares the rows
        of X with each other, if there are at least 20.
    of : {"log_std", "width", "prediction"}, float or function
        What is attributed: log σ, the width of the central interval, the model's own prediction, the quantile at a
        probability, or what a function makes of a batched distribution, (n_rows,).
    coverage : float
        The coverage of the interval, for ``of="width"``.
    choose : {"random", "nearest"}
        Compare with a random sample of the background, the same for all rows; or each row with the training rows that
        have the highest affinity with it. Then the background must be the X that was given to `fit`.
    n_background : int
        The number of rows to compare with.
    n_evaluations : int, optional
        The number of sets of features that are evaluated for a row, each with all rows of the background. If it is
        enough for all sets, values are exact; else they are means over random orders of the features. By default it
        is 256, or more if one order needs more.
    random_state : int
        For the sample and the orders. A row's values do not depend on the other rows.

    Returns
    -------
    shap.Explanation
        Values of shape (n_rows, n_features), for shap's own plots and for `ibug.plotting.WidthDisplay`.
    """
    parts = Attributor(
        estimator,
        X,
        background,
        of=of,
        coverage=coverage,
        choose=choose,
        n_background=n_background,
        n_evaluations=n_evaluations,
        random_state=random_state,
    )
    values, base = np.empty((parts.n_rows, len(parts.names))), np.empty(parts.n_rows)
    with Progress("explaining widths", parts.n_rows, enabled=bool(getattr(estimator, "verbose", 0))) as progress:
        for part in parts:
            values[part.row], base[part.row] = part.values, part.base
            progress.advance(1)
    columns = [parts.cells.arrays[j][: parts.n_rows] for j in range(len(parts.names))]
    shown = None if all(column.dtype.kind in "biuf" for column in columns) else np.stack(columns, 1, dtype=object)
    return shap_package().Explanation(
        values,
        base,
        data=np.stack([_numbers(column, parts.cells.codes[: parts.n_rows, j]) for j, column in enumerate(columns)], 1),
        display_data=shown,
        feature_names=parts.names,
    )


@dataclass(frozen=True, eq=False)
class Drivers:
    """How much each feature moves the spread, and how much the prediction.

    Attributes
    ----------
    names : list of str
        The features.
    spread, prediction : ndarray of shape (n_features,)
        Mean absolute Shapley values: of log σ, and of the prediction in units of the target.
    """

    names: list[str]
    spread: Floats
    prediction: Floats

    @property
    def spread_share(self) -> Floats:
        """The shares of the features in all that moves the spread, (n_features,)."""
        return _shares(self.spread)

    @property
    def prediction_share(self) -> Floats:
        """The shares of the features in all that moves the prediction, (n_features,)."""
        return _shares(self.prediction)


def drivers(estimator: Any, X: Any, background: Any = None, **options: Any) -> Drivers:
    """Return how much each feature drives the spread over the rows of X, and how much the prediction.

    Parameters
    ----------
    estimator
        A fitted probabilistic regressor of ibug.
    X : array-like or data frame of shape (n_rows, n_features)
        Rows of the dataset; some hundred are enough.
    background : array-like or data frame, optional
        As in `explain_width`.
    **options
        ``choose``, ``n_background``, ``n_evaluations`` and ``random_state`` of `explain_width`.
    """
    both = [Attributor(estimator, X, background, of=of, **options) for of in ("log_std", "prediction")]
    sums = np.zeros((2, len(both[0].names)))
    verbose = bool(getattr(estimator, "verbose", 0))
    with Progress("explaining spread and prediction", 2 * both[0].n_rows, enabled=verbose) as progress:
        for i, parts in enumerate(both):
            for part in parts:
                sums[i] += np.abs(part.values)
                progress.advance(1)
    spread, prediction = sums / both[0].n_rows
    return Drivers(both[0].names, spread, prediction)


def _shares(amounts: Floats) -> Floats:
    total = amounts.sum()
    return amounts / total if total > 0 else np.zeros_like(amounts)


class Value(NamedTuple):
    """A number of each row, with its name."""

    name: str
    predict: Callable[[Any], Floats]  # rows -> (n_rows,)


def value_of(estimator: Any, of: Of, coverage: float) -> Value:
    """Return the function whose values are attributed."""
    if callable(of):
        return Value(getattr(of, "__name__", "value"), lambda X: np.asarray(of(estimator.predict_dist(X)), np.float64))
    if not isinstance(of, str):
        level = check_probability(of, "of, if it is a number and so the probability of a quantile,")
        return Value(f"quantile {level:g}", lambda X: estimator.predict_quantiles(X, level)[:, 0])
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


def _quiet(estimator: Any) -> Any:
    """Return an estimator that shows no progress of each of many predictions."""
    if not getattr(estimator, "verbose", 0):
        return estimator
    quiet = copy(estimator)
    quiet.verbose = 0
    return quiet


def _checked_evaluations(n_evaluations: int | None, n_features: int) -> int:
    least: int = min(2 * n_features + 1, 2**n_features)  # one order, forwards and backwards; or all sets
    if n_evaluations is None:
        return max(_EVALUATIONS, least)
    if check_at_least_one(n_evaluations, "n_evaluations") < least:
        raise InvalidInputError(
            f"n_evaluations must be at least {least}, for one order of {n_features} features; got {n_evaluations}."
        )
    return n_evaluations


def _finite(values: Floats, name: str) -> Floats:
    if not np.all(np.isfinite(values)):
        raise InvalidInputError(
            f"The {name} is not finite for {int(np.sum(~np.isfinite(values)))} of {len(values)} rows: it cannot be "
            "divided among features. A lower coverage has finite intervals."
        )
    return values


def _names(estimator: Any, X: Any) -> list[str]:
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    names = getattr(estimator, "feature_names_in_", None)
    return [f"column {j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names]


def _numbers(column: NDArray[Any], ranks: Integers) -> Floats:
    """Return a column as numbers, for the colours of plots: texts and categories by their order."""
    return np.asarray(column if column.dtype.kind in "biuf" else ranks, np.float64)
