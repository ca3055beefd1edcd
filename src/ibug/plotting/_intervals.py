"""Intervals and spreads against what was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._typing import Floats, Integers
from ibug._validation import check_at_least_one, check_methods
from ibug.describe import percent, with_unit
from ibug.metrics import as_interval, as_points, as_targets, mae, sharpness
from ibug.metrics import coverage as coverage_of
from ibug.plotting._base import (
    BLACK,
    BLUE,
    LIGHT_SKY,
    SKY,
    VERMILLION,
    Display,
    PredictionDisplay,
    evenly,
    legend_above,
    one_of,
    plain_log_axis,
    pyplot,
)


@dataclass(eq=False, repr=False)
class IntervalDisplay(Display):
    """Intervals as a band over sorted rows, with the observed values inside and outside.

    Attributes
    ----------
    rows : ndarray of shape (n_drawn,)
        The rows that are drawn, in the order of the plot.
    position : ndarray of shape (n_drawn,)
        Their places among all rows when sorted, from 1.
    y, prediction, lower, upper : ndarray of shape (n_drawn,)
        Their observed values, predictions and ends of the intervals.
    coverage : float
        The nominal coverage.
    observed_coverage : float
        The share of all rows, drawn or not, whose value is inside.
    n_rows : int
        The number of all rows.
    sort_by : str
        ``"prediction"`` or ``"y"``.
    ax_, figure_, band_, line_, inside_, outside_
        What was drawn.
    """

    rows: Integers
    position: Integers
    y: Floats
    prediction: Floats
    lower: Floats
    upper: Floats
    coverage: float
    observed_coverage: float
    n_rows: int
    sort_by: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, coverage: float = 0.9, **options: Any
    ) -> IntervalDisplay:
        """Draw the intervals of an estimator with ``predict`` and ``predict_interval``.

        Parameters
        ----------
        estimator
            The estimator.
        X, y
            Rows that it has not seen, and their observed values.
        coverage, **options
            As in `from_predictions`.
        """
        pyplot()
        check_methods(estimator, "predict", "predict_interval")
        return cls.from_predictions(
            y,
            estimator.predict_interval(X, coverage=coverage),
            prediction=estimator.predict(X),
            coverage=coverage,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        distribution: Any,
        *,
        prediction: ArrayLike | None = None,
        coverage: float = 0.9,
        sort_by: str = "prediction",
        n_rows: int = 200,
        ax: Any = None,
        **options: Any,
    ) -> IntervalDisplay:
        """Draw the intervals of predicted distributions, or given intervals.

        Parameters
        ----------
        y : array-like of shape (n,)
            The observed values.
        distribution : batched distribution, or array of shape (n, 2)
            What ``predict_dist`` or ``predict_interval`` returned for the same rows.
        prediction : array-like of shape (n,), optional
            Point predictions; by default the distributions' means, or the middle of intervals given as an array.
        coverage
            The nominal coverage. Intervals given as an array must have it; the plot only names it.
        sort_by : {"prediction", "y"}
            The key by which rows are sorted.
        n_rows
            The most rows to draw, evenly spaced among the sorted ones. The observed coverage is that of all rows.
        ax, **options
            As in `plot`.
        """
        values = as_targets(y)
        one_of(sort_by, "sort_by", ("prediction", "y"))
        lower, upper = as_interval(distribution, len(values), coverage)
        ends = np.stack([lower, upper], axis=1)
        if prediction is None:
            prediction = distribution if hasattr(distribution, "cdf") else ends.mean(axis=1)
        points = as_points(prediction, len(values))
        order = np.argsort(points if sort_by == "prediction" else values, kind="stable")
        drawn = evenly(len(values), check_at_least_one(n_rows, "n_rows"))
        rows = order[drawn]
        return cls(
            rows=rows,
            position=drawn + 1,
            y=values[rows],
            prediction=points[rows],
            lower=lower[rows],
            upper=upper[rows],
            coverage=coverage,
            observed_coverage=coverage_of(values, ends),
            n_rows=len(values),
            sort_by=sort_by,
        ).plot(ax, **options)

    @property
    def is_inside(self) -> NDArray[np.bool_]:
        """Whether each drawn value is inside its interval, (n_drawn,)."""
        return np.asarray((self.lower <= self.y) & (self.y <= self.upper))

    def plot(self, ax: Any = None, *, unit: str | None = None) -> IntervalDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        unit
            The unit of y, for the label of the axis.
        """
        self._start(ax, figsize=(7.2, 4.2))
        inside = self.is_inside
        observed = percent(self.observed_coverage, 1)
        label = f"{percent(self.coverage, None)} interval: {observed} of all {self.n_rows} values inside"
        area: dict[str, Any] = {"step": "mid", "color": LIGHT_SKY, "linewidth": 0, "label": label}
        self.band_: Any = self.ax_.fill_between(self.position, self.lower, self.upper, **area)
        # Predictions make a smooth line only where rows are sorted by them.
        dash = "-" if self.sort_by == "prediction" else "_"
        line = {"color": BLUE, "linewidth": 1.6, "label": "prediction"}
        (self.line_,) = self.ax_.plot(self.position, self.prediction, dash, **line)
        dot = {"color": BLACK, "markersize": 2.6, "label": "value inside"}
        (self.inside_,) = self.ax_.plot(self.position[inside], self.y[inside], "o", **dot)
        cross = {"color": VERMILLION, "markeredgecolor": "white", "markeredgewidth": 0.4, "markersize": 7}
        (self.outside_,) = self.ax_.plot(self.position[~inside], self.y[~inside], "X", label="value outside", **cross)
        shown = "" if len(self.rows) == self.n_rows else f" ({len(self.rows)} of {self.n_rows} shown)"
        key = "prediction" if self.sort_by == "prediction" else "observed value"
        self.ax_.set(xlabel=f"Rows, sorted by {key}{shown}", ylabel=with_unit("Target", unit))
        self.ax_.margins(x=0.01)
        legend_above(self.ax_)
        return self


# The smallest error that is drawn, as a part of the median error: on a log scale an error that is near zero by chance
# would take most of the plot.
_LEAST_ERROR = 1e-2


@dataclass(eq=False, repr=False)
class SpreadErrorDisplay(PredictionDisplay):
    """σ against absolute error, to see whether rows with a large σ have large errors.

    Rows are put into bins of equal number by σ. Where the spread is right, the root mean squared error of a bin is its
    root mean squared σ: the bins are on the diagonal.

    Attributes
    ----------
    std : ndarray of shape (n_rows,)
        Predicted standard deviations.
    error : ndarray of shape (n_rows,)
        Absolute errors of the predicted means.
    bin_std, bin_rmse : ndarray of shape (n_bins,)
        Root mean squared σ and error of each bin.
    ax_, figure_, points_, bins_, diagonal_
        What was drawn.
    """

    std: Floats
    error: Floats
    bin_std: Floats
    bin_rmse: Floats

    @classmethod
    def from_predictions(
        cls, y: ArrayLike, distribution: Any, *, n_bins: int = 10, ax: Any = None, **options: Any
    ) -> SpreadErrorDisplay:
        """Draw for predicted distributions.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            The observed values.
        distribution : batched distribution, or tuple (means, standard deviations)
            What ``predict_dist`` returned for the same rows.
        n_bins
            The number of bins; at most that of the rows.
        ax, **options
            As in `plot`.
        """
        variance = sharpness(y, distribution, reduce=None)
        error = mae(y, distribution, reduce=None)
        count = min(check_at_least_one(n_bins, "n_bins"), len(error))
        bins = np.array_split(np.argsort(variance, kind="stable"), count)
        return cls(
            std=np.sqrt(variance),
            error=error,
            bin_std=np.array([np.sqrt(np.mean(variance[rows])) for rows in bins]),
            bin_rmse=np.array([np.sqrt(np.mean(np.square(error[rows]))) for rows in bins]),
        ).plot(ax, **options)

    def plot(
        self, ax: Any = None, *, unit: str | None = None, scale: str = "auto", n_points: int = 2000
    ) -> SpreadErrorDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        unit
            The unit of y, for the labels of the axes.
        scale : {"auto", "log", "linear"}
            The scale of both axes. ``"auto"`` is logarithmic where all σ and the errors of all bins are above zero.
            On it, errors under a hundredth of the median error are drawn at that hundredth.
        n_points
            The most rows to draw as points, evenly spaced in their order.
        """
        one_of(scale, "scale", ("auto", "log", "linear"))
        positive = bool(np.all(self.std > 0) and np.all(self.bin_rmse > 0) and np.median(self.error) > 0)
        logarithmic = scale == "log" or (scale == "auto" and positive)
        drawn = evenly(len(self.std), check_at_least_one(n_points, "n_points"))
        floor = _LEAST_ERROR * float(np.median(self.error)) if logarithmic else 0.0
        self._start(ax)
        label = "row" if len(drawn) == len(self.std) else f"row ({len(drawn)} of {len(self.std)})"
        dot = {"color": SKY, "markersize": 3, "markeredgewidth": 0, "alpha": 0.55}
        error = np.maximum(self.error[drawn], floor)
        (self.points_,) = self.ax_.plot(self.std[drawn], error, "o", label=label, **dot)
        diamond = {"color": VERMILLION, "markeredgecolor": "white", "markersize": 7}
        label = "RMSE of rows with similar σ"
        (self.bins_,) = self.ax_.plot(self.bin_std, self.bin_rmse, "-D", label=label, **diamond)
        ends = np.array([self.std.min(), self.std.max()])
        (self.diagonal_,) = self.ax_.plot(ends, ends, "--", color=BLACK, linewidth=1.4, label="ideal: RMSE = σ")
        if logarithmic:
            self.ax_.set(xscale="log", yscale="log")
            plain_log_axis(self.ax_.xaxis, *ends)
            plain_log_axis(self.ax_.yaxis, floor, float(self.error.max()))
        self.ax_.set(xlabel=with_unit("Predicted standard deviation σ", unit), ylabel=with_unit("Absolute error", unit))
        legend_above(self.ax_)
        return self
