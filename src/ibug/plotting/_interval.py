"""Intervals over sorted rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._typing import Floats, Integers
from ibug.describe import at_least_one, percent, require, with_unit
from ibug.metrics import as_interval, as_points, as_targets
from ibug.metrics import coverage as coverage_of
from ibug.plotting._base import axes, evenly, one_of, pyplot
from ibug.plotting._style import BLACK, BLUE, LIGHT_SKY, VERMILLION, add_grid, legend_above

SORT_KEYS = ("prediction", "y")


@dataclass(eq=False, repr=False)
class IntervalDisplay:
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
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        coverage: float = 0.9,
        sort_by: str = "prediction",
        n_rows: int = 200,
        ax: Any = None,
        **options: Any,
    ) -> IntervalDisplay:
        """Draw the intervals of an estimator with ``predict`` and ``predict_interval``.

        Parameters
        ----------
        estimator
            The estimator.
        X, y
            Rows that it has not seen, and their observed values.
        coverage, sort_by, n_rows, ax, **options
            As in `from_predictions`.
        """
        pyplot()
        require(estimator, "predict", "predict_interval")
        return cls.from_predictions(
            y,
            estimator.predict_interval(X, coverage=coverage),
            prediction=estimator.predict(X),
            coverage=coverage,
            sort_by=sort_by,
            n_rows=n_rows,
            ax=ax,
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
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        values = as_targets(y)
        one_of(sort_by, "sort_by", SORT_KEYS)
        lower, upper = as_interval(distribution, len(values), coverage)
        ends = np.stack([lower, upper], axis=1)
        if prediction is None:
            prediction = distribution if hasattr(distribution, "cdf") else ends.mean(axis=1)
        points = as_points(prediction, len(values))
        order = np.argsort(points if sort_by == "prediction" else values, kind="stable")
        drawn = evenly(len(values), at_least_one(n_rows, "n_rows"))
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
        self.ax_: Any = axes(ax, figsize=(7.2, 4.2))
        self.figure_: Any = self.ax_.figure
        add_grid(self.ax_)
        inside = self.is_inside
        observed = percent(self.observed_coverage, 1)
        label = f"{percent(self.coverage, None)} interval: {observed} of all {self.n_rows} values inside"
        self.band_: Any = self.ax_.fill_between(
            self.position,
            self.lower,
            self.upper,
            step="mid",
            color=LIGHT_SKY,
            linewidth=0,
            label=label,
        )
        # Predictions make a smooth line only where rows are sorted by them.
        dash = "-" if self.sort_by == "prediction" else "_"
        (self.line_,) = self.ax_.plot(
            self.position, self.prediction, dash, color=BLUE, linewidth=1.6, label="prediction"
        )
        (self.inside_,) = self.ax_.plot(
            self.position[inside], self.y[inside], "o", color=BLACK, markersize=2.6, label="value inside"
        )
        (self.outside_,) = self.ax_.plot(
            self.position[~inside],
            self.y[~inside],
            "X",
            color=VERMILLION,
            markeredgecolor="white",
            markeredgewidth=0.4,
            markersize=7,
            label="value outside",
        )
        shown = "" if len(self.rows) == self.n_rows else f" ({len(self.rows)} of {self.n_rows} shown)"
        key = "prediction" if self.sort_by == "prediction" else "observed value"
        self.ax_.set(xlabel=f"Rows, sorted by {key}{shown}", ylabel=with_unit("Target", unit))
        self.ax_.margins(x=0.01)
        legend_above(self.ax_)
        return self
