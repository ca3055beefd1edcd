"""All scores of one model on one set of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._typing import Floats, Integers
from ibug._validation import check_probabilities, check_target_names, check_weights
from ibug._warnings import warn_infinite, warn_user
from ibug.exceptions import InvalidInputError, SeenRowsWarning
from ibug.metrics._calibration import mace, miscalibration_area, rms_calibration_error
from ibug.metrics._inputs import as_distribution, as_multioutput_targets, as_targets, reduced
from ibug.metrics._scorers import predict_dist
from ibug.metrics._scores import (
    check_score,
    coverage,
    crps,
    crps_skill,
    energy_score,
    interval_score,
    mae,
    mean_width,
    nll,
    rmse,
    sharpness,
    variogram_score,
)


class Scores(Mapping[str, float]):
    """The scores by name: a mapping that prints as a table; ``pandas.Series(scores)`` and ``to_frame()`` work.

    Parameters
    ----------
    values : mapping of str to float
        The scores.
    meanings : mapping of str to str
        What each of them means.
    n_rows : int
        How many rows they are of.
    groups : dict of ndarray, optional
        Coverage and mean width for each group of rows, as columns: ``group``, ``rows``, ``coverage_90``, ``width_90``
        and so on.
    """

    def __init__(
        self,
        values: Mapping[str, float],
        meanings: Mapping[str, str],
        n_rows: int,
        groups: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self._values = dict(values)
        self._meanings = dict(meanings)
        self.n_rows = n_rows
        self.groups = None if groups is None else dict(groups)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        width = max(map(len, self._values))
        lines = [f"{name:{width}}  {value:12.6g}  {self._meanings[name]}" for name, value in self._values.items()]
        return "\n".join([f"Scores on {self.n_rows} rows", *lines, *self._group_lines()])

    def _group_lines(self) -> list[str]:
        """Return coverage and width of each group as lines of a table."""
        if self.groups is None:
            return []
        columns: list[list[str]] = []
        for name, values in self.groups.items():
            cells = [name, *map(_text, values)]
            side, width = ">" if columns else "<", max(map(len, cells))  # names on the left, numbers on the right
            columns.append([f"{cell:{side}{width}}" for cell in cells])
        return ["", "Coverage and mean width by group", *map("  ".join, zip(*columns, strict=True))]

    def _repr_html_(self) -> str:
        """Return the table, and that of the groups, as notebooks show them."""
        rows = [(name, _text(value), self._meanings[name]) for name, value in self._values.items()]
        found = _html(f"Scores on {self.n_rows:,} rows", ["score", "value", "meaning"], rows, [False, True, False])
        if self.groups is None:
            return found
        lines = [tuple(map(_text, line)) for line in zip(*self.groups.values(), strict=True)]
        numbers = [name != "group" for name in self.groups]
        return found + _html("Coverage and mean width by group", list(self.groups), lines, numbers)

    @property
    def meanings(self) -> dict[str, str]:
        """What each score means, in a few words."""
        return dict(self._meanings)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns ``score`` and ``meaning``, indexed by the metric's name."""
        import pandas as pd

        table = {"score": list(self._values.values()), "meaning": [self._meanings[name] for name in self._values]}
        return pd.DataFrame(table, index=pd.Index(self._values, name="metric"))


def _html(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> str:
    """Return a table of HTML, with numbers on the right of their columns."""
    sides = ["right" if is_number else "left" for is_number in numbers]

    def line(tag: str, cells: Sequence[str]) -> str:
        marked = zip(cells, sides, strict=True)
        found = (f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for cell, side in marked)
        return f"<tr>{''.join(found)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><caption>{escape(title)}</caption><thead>{line('th', heads)}</thead><tbody>{body}</tbody></table>"


_MOST_GROUPS = 100
_MOST_NUMBERS = 20  # more different numbers than these are divided into ranges
_RANGES = 5


def group_table(y: Floats, distribution: Any, levels: Floats, groups: Any, X: Any) -> dict[str, NDArray[Any]]:
    """Return number of rows, coverage and mean width of intervals for each group, as columns.

    Shapes: y (n,); levels (n_levels,).
    """
    names, codes = grouped(groups, X, len(y))
    members = [codes == code for code in range(len(names))]
    table: dict[str, NDArray[Any]] = {
        "group": np.array(names, str),
        "rows": np.array([each.sum() for each in members], np.int64),
    }
    for level in levels:
        percent = f"{100 * level:g}"
        for kind, metric in (("coverage", coverage), ("width", mean_width)):
            values = metric(y, distribution, float(level), reduce=None)
            with np.errstate(invalid="ignore"):  # means of infinite widths
                table[f"{kind}_{percent}"] = np.array([np.mean(values[each]) for each in members])
    return table


def grouped(groups: Any, X: Any, n: int) -> tuple[list[str], Integers]:
    """Return the names of the groups, in their order, and the group of each row, (n,)."""
    values = _column(groups, X)
    array = np.asarray(values)
    if array.shape == (n, 1):
        array = array[:, 0]
    if array.shape != (n,):
        raise InvalidInputError(
            f"groups must have one entry for each of the {n} rows, or be the name of a column or a function of X that "
            f"returns such an array; got shape {array.shape}."
        )
    missing = _missing(array)
    places = np.full(n, -1, np.int64)
    names, places[~missing] = _places(array[~missing], getattr(getattr(values, "dtype", None), "categories", None))
    used = np.unique(places[places >= 0])
    names, places = [names[place] for place in used], np.where(missing, len(used), np.searchsorted(used, places))
    return [*names, *(["missing"] if missing.any() else [])], places


def _column(groups: Any, X: Any) -> Any:
    if callable(groups):
        return groups(X)
    if not isinstance(groups, str):
        return groups
    names = [str(name) for name in getattr(X, "columns", ())]
    if groups not in names:
        known = (
            f"the columns are {names}" if names else "X has no names of columns: give an array with one entry per row"
        )
        raise InvalidInputError(f"There is no column {groups!r} to group by; {known}.")
    return X[X.columns[names.index(groups)]]


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.array([value is None or type(value).__name__ == "NAType" or value != value for value in values], bool)
    return np.asarray(values != values)


def _places(values: NDArray[Any], categories: Any) -> tuple[list[str], Integers]:
    """Return names of groups in their order, and the place of each value among them."""
    if categories is not None:
        texts = [_text(category) for category in categories]
        return texts, _lookup([_text(value) for value in values], texts)
    if values.dtype.kind == "O" and all(isinstance(value, (bool, int, float, np.number)) for value in values):
        values = values.astype(np.float64)  # a column of integers with gaps
    if values.dtype.kind in "OU":
        texts = sorted({_text(value) for value in values})
        return _few(texts), _lookup([_text(value) for value in values], texts)
    different = np.unique(values)
    if len(different) > _MOST_NUMBERS and values.dtype.kind in "iufM":
        return _ranges(values)
    return _few([_text(value) for value in different]), np.searchsorted(different, values).astype(np.int64)


def _ranges(values: NDArray[Any]) -> tuple[list[str], Integers]:
    """Divide numbers or dates into ranges with about as many rows each."""
    ordered = np.sort(values)
    edges = np.unique(ordered[[len(ordered) * i // _RANGES for i in range(1, _RANGES)]])
    edges = edges[edges > ordered[0]]
    if not len(edges):  # almost all values are the smallest one
        edges = ordered[ordered > ordered[0]][:1]
    texts = [_text(edge) for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(texts)]
    names = [f"below {texts[0]}", *between, f"{texts[-1]} and more"]
    return names, np.searchsorted(edges, values, side="right").astype(np.int64)


def _lookup(texts: list[str], names: list[str]) -> Integers:
    place = {name: i for i, name in reversed(list(enumerate(names)))}
    return np.array([place[text] for text in texts], np.int64)


def _few(names: list[str]) -> list[str]:
    if len(names) > _MOST_GROUPS:
        raise InvalidInputError(
            f"These are {len(names)} groups ({names[0]!r}, {names[1]!r}, …); {_MOST_GROUPS} at most are possible. "
            "Put them together first: give an array, or a function of X, with one name of a larger group per row."
        )
    return names


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _evaluate_multioutput(
    estimator: Any, X: Any, y: ArrayLike, levels: Sequence[float], sample_weight: ArrayLike | None
) -> Scores:
    """Return the scores of all targets together, and those of each one. Shapes: sample_weight (n,)."""
    names = estimator.target_names_
    shape = np.shape(y)
    if len(shape) != 2 or shape[1] != len(names):
        n_rows = shape[0] if shape else "n"
        raise InvalidInputError(
            f"This estimator has {len(names)} targets: y must have the shape ({n_rows}, {len(names)}); got {shape}."
        )
    check_target_names(names, y, "y")
    values = as_multioutput_targets(y)
    weights = None if sample_weight is None else check_weights(sample_weight, len(values))
    distribution, points = estimator.predict_dist(X), estimator.predict(X)
    energy = energy_score(values, distribution, sample_weight=weights)
    dependence = variogram_score(values, distribution, sample_weight=weights)
    found: Found = {
        "energy_score": (energy, "score of all targets together, in units of their deviations"),
        "variogram_score": (dependence, "whether the dependence between targets is right"),
    }
    coverages = np.atleast_1d(check_probabilities(levels, "levels")).tolist()
    for level in coverages:
        percent, inside = f"{100 * level:g}", _box_coverage(estimator, X, values, level, weights)
        found[f"box_coverage_{percent}"] = inside, f"share of rows with all values inside the {percent} % box"
    for j, name in enumerate(names):
        for key, predicted in (("rmse", points[:, j]), ("mae", points[:, j]), ("crps", distribution.marginal(j))):
            metric, meaning = _METRICS[key]
            found[f"{name}_{key}"] = metric(values[:, j], predicted, sample_weight=weights), meaning
    for level in coverages:
        ends = estimator.predict_interval(X, level)
        for j, name in enumerate(names):
            own = _interval_scores(values[:, j], ends[:, j], level, weights)
            found |= {f"{name}_{key}": score for key, score in own.items()}
    return _as_scores(found, len(values))


Found = dict[str, tuple[float, str]]  # scores by name, each with its meaning


def _as_scores(found: Found, n_rows: int, groups: Mapping[str, NDArray[Any]] | None = None) -> Scores:
    values = {name: value for name, (value, _) in found.items()}
    return Scores(values, {name: meaning for name, (_, meaning) in found.items()}, n_rows, groups)


def _interval_scores(y: Floats, intervals: Any, level: float, weights: Floats | None) -> Found:
    """Return coverage and mean width of the intervals of one level."""
    percent = f"{100 * level:g}"
    share, width = (metric(y, intervals, level, sample_weight=weights) for metric in (coverage, mean_width))
    return {
        f"coverage_{percent}": (share, f"share of values inside the {percent} % interval"),
        f"width_{percent}": (width, f"mean width of the {percent} % interval"),
    }


def _box_coverage(estimator: Any, X: Any, y: Floats, level: float, weights: Floats | None) -> float:
    """Return the share of rows inside their boxes; NaN where the estimator had no rows to size boxes with."""
    try:
        boxes = estimator.predict_interval(X, level, joint=True)
    except InvalidInputError:
        return float("nan")
    inside = ((boxes[:, :, 0] <= y) & (y <= boxes[:, :, 1])).all(axis=1)
    return float(reduced(inside.astype(np.float64), "mean", weights))


_METRICS: dict[str, tuple[Callable[..., Any], str]] = {
    "rmse": (rmse, "root mean squared error of the point prediction"),
    "mae": (mae, "mean absolute error of the point prediction"),
    "crps": (crps, "continuous ranked probability score"),
    "nll": (nll, "negative log likelihood"),
    "check_score": (check_score, "pinball loss over 99 quantiles"),
    "interval_score": (interval_score, "width and misses over 99 intervals"),
    "mace": (mace, "mean absolute calibration error"),
    "rms_calibration_error": (rms_calibration_error, "root mean squared calibration error"),
    "miscalibration_area": (miscalibration_area, "area between calibration curve and diagonal"),
    "sharpness": (sharpness, "root mean predicted variance"),
}


def _skill(y: Floats, distribution: Any, reference: ArrayLike | None, weights: Floats | None) -> float:
    """Return the skill, against the training targets if the estimator keeps them; NaN where targets do not vary."""
    try:
        return crps_skill(y, distribution, reference=reference, sample_weight=weights)
    except InvalidInputError:
        return float("nan")


def _warn_training_rows(estimator: Any, y: Floats) -> None:
    """Warn of training rows, whose scores are too good; equal targets in the same order are no coincidence."""
    targets = getattr(estimator, "training_targets_", None)
    if targets is not None and len(y) > 1 and np.array_equal(y, targets):
        warn_user(
            "evaluate: these are the training rows. The model knows them, and each is its own nearest neighbour, so "
            "that the scores are too good. Give rows that it was not trained on.",
            SeenRowsWarning,
        )


def evaluate(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    levels: Sequence[float] = (0.5, 0.8, 0.9, 0.95),
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Scores:
    """Return all scores of an estimator on rows that it has not seen.

    Parameters
    ----------
    estimator
        Anything with ``predict_dist``.
    X, y
        The rows and their observed values, in any form that `fit` takes. With several targets, (n_rows, n_targets), the
        energy score, the variogram score and the coverage of joint boxes come first, then scores of each target.
    levels
        Nominal coverages of the intervals whose observed coverage and mean width are reported.
    groups : array-like of shape (n_rows,), str, or function, optional
        Coverage and width are reported for each group of rows, too: ``scores.groups`` has them as columns, ready for a
        DataFrame. One entry per row, the name of a column of X, or a function of X that returns such an array. More
        than 20 different numbers or dates are divided into five ranges with about as many rows each.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in all scores but those of groups.

    Examples
    --------
    >>> from ibug import IBUGRegressor
    >>> from ibug.metrics import evaluate
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> u = IBUGRegressor(random_state=0).fit(X[:300], y[:300])
    >>> scores = evaluate(u, X[300:], y[300:], levels=[0.9])
    >>> scores["coverage_90"] > 0.8
    True
    >>> by_sex = evaluate(u, X[300:], y[300:], levels=[0.9], groups=lambda X: X[:, 1] > 0)
    >>> by_sex.groups["group"].tolist(), by_sex.groups["rows"].tolist()
    (['False', 'True'], [74, 68])
    """
    if getattr(estimator, "target_names_", None) is not None:
        if groups is not None:
            raise InvalidInputError("groups are for one target: evaluate several targets without.")
        return _evaluate_multioutput(estimator, X, y, levels, sample_weight)
    values = as_targets(y)
    _warn_training_rows(estimator, values)
    weights = None if sample_weight is None else check_weights(sample_weight, len(values))
    distribution = as_distribution(predict_dist(estimator, X), len(values))
    # The point prediction is the model's own; a conformal distribution may have another mean.
    points = estimator.predict(X) if hasattr(estimator, "predict") else distribution
    found: Found = {}
    for name, (metric, meaning) in _METRICS.items():
        predicted = points if metric in (rmse, mae) else distribution
        found[name] = metric(values, predicted, sample_weight=weights), meaning
    skill = _skill(values, distribution, getattr(estimator, "training_targets_", None), weights)
    found["crps_skill"] = skill, "1 is perfect, 0 as good as no model"
    coverages = np.atleast_1d(check_probabilities(levels, "levels"))
    for level in coverages.tolist():
        found |= _interval_scores(values, distribution, level, weights)
    infinite = [level for level in coverages.tolist() if found[f"width_{100 * level:g}"][0] == np.inf]
    if infinite:
        warn_infinite(np.inf, min(infinite), "evaluate", conformal=getattr(estimator, "conformal_", None))
    by_group = None if groups is None else group_table(values, distribution, coverages, groups, X)
    return _as_scores(found, len(values), by_group)
