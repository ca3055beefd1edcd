"""Calibration curves, and histograms of the probability integral transform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats, Integers
from ibug._validation import check_at_least_one, check_methods
from ibug.describe import chance_band
from ibug.metrics import as_targets, calibration_curve, miscalibration_area, pit
from ibug.plotting._base import (
    BLACK,
    BLUE,
    GREY,
    LIGHT_GREY,
    LIGHT_SKY,
    Display,
    PredictionDisplay,
    legend_above,
    named,
    percent_axis,
    pyplot,
    series_style,
)


@dataclass(eq=False, repr=False)
class CalibrationDisplay(Display):
    """Calibration curves: the share of values that the central intervals of each level hold.

    Calibrated distributions are on the diagonal. Where the curve is below it, intervals are too narrow; where it is
    above, they are too wide.

    Attributes
    ----------
    expected : ndarray of shape (n_levels,)
        Nominal coverages.
    observed : dict of ndarray of shape (n_levels,)
        Observed coverages by name.
    areas : dict of float
        The area between each curve and the diagonal, from 0 to 0.5.
    n_rows : int
        The number of rows.
    ax_, figure_, lines_, diagonal_, band_
        What was drawn.
    """

    expected: Floats
    observed: dict[str, Floats]
    areas: dict[str, float]
    n_rows: int

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, **options: Any
    ) -> CalibrationDisplay:
        """Draw the curve of an estimator with ``predict_dist``, or the curves of several, on rows it has not seen.

        Parameters
        ----------
        estimator : fitted estimator, or mapping of names to such
            The estimators.
        X, y
            The rows and their observed values.
        name
            The name of a single curve; by default the estimator's class.
        **options
            As in `from_predictions`.
        """
        pyplot()
        estimators = named(estimator, name, type(estimator).__name__)
        predicted = {key: check_methods(each, "predict_dist").predict_dist(X) for key, each in estimators.items()}
        return cls.from_predictions(y, predicted, **options)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        distribution: Any,
        *,
        n_levels: int = 100,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> CalibrationDisplay:
        """Draw the curve of predicted distributions, or the curves of several predictions of the same rows.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            The observed values.
        distribution : batched distribution, tuple (means, standard deviations), or mapping of names to such
            What ``predict_dist`` returned for the same rows.
        n_levels
            Levels, evenly spaced from 0 to 1.
        name
            The name of a single curve.
        ax, **options
            As in `plot`.
        """
        values = as_targets(y)
        predicted = named(distribution, name, "predictions")
        curves = {key: calibration_curve(values, each, n_levels=n_levels) for key, each in predicted.items()}
        areas = {key: miscalibration_area(values, each, n_levels=n_levels) for key, each in predicted.items()}
        expected = next(iter(curves.values()))[0]
        observed = {key: curve[1] for key, curve in curves.items()}
        return cls(expected, observed, areas, n_rows=len(values)).plot(ax, **options)

    def plot(self, ax: Any = None, *, band: bool = True) -> CalibrationDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        band
            Shade the range of 95 % of the points of a calibrated curve, given the number of rows.
        """
        self._start(ax, figsize=(5.4, 5.2))
        self.band_: Any = None
        if band:
            low, high = chance_band(self.n_rows, self.expected)
            style = {"color": LIGHT_GREY, "linewidth": 0, "label": "ideal, 95 % range"}
            self.band_ = self.ax_.fill_between(self.expected, low, high, **style)
        (self.diagonal_,) = self.ax_.plot([0, 1], [0, 1], color=GREY, linewidth=1.2, label="ideal")
        self.lines_: list[Any] = []
        for number, (name, observed) in enumerate(self.observed.items()):
            label = f"{name} (miscalibration area {self.areas[name]:.3f})"
            marked = (number * 3, max(1, len(observed) // 10))
            style = {"label": label, "markevery": marked, **series_style(number)}
            self.lines_ += self.ax_.plot(self.expected, observed, **style)
        self.ax_.set(xlabel="Nominal coverage of the central interval", ylabel="Observed coverage")
        self.ax_.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        percent_axis(self.ax_.xaxis, self.ax_.yaxis)
        self.ax_.legend(loc="best", fontsize="small")
        return self


@dataclass(eq=False, repr=False)
class PITDisplay(PredictionDisplay):
    """Histogram of F(y), which is flat for calibrated distributions.

    High ends mean that distributions are too narrow, a hump that they are too wide, and a slope that predictions are
    too low or too high.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        The probability integral transform of each row.
    edges : ndarray of shape (n_bins + 1,)
        The edges of the bins, from 0 to 1.
    counts : ndarray of shape (n_bins,)
        The number of rows in each bin.
    ax_, figure_, bars_, line_, band_
        What was drawn.
    """

    values: Floats
    edges: Floats
    counts: Integers

    @classmethod
    def from_predictions(
        cls, y: ArrayLike, distribution: Any, *, n_bins: int = 20, ax: Any = None, **options: Any
    ) -> PITDisplay:
        """Draw the histogram of predicted distributions.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            The observed values.
        distribution : batched distribution, or tuple (means, standard deviations)
            What ``predict_dist`` returned for the same rows.
        n_bins
            The number of bins.
        ax, **options
            As in `plot`.
        """
        values = pit(y, distribution)
        counts, edges = np.histogram(values, bins=check_at_least_one(n_bins, "n_bins"), range=(0.0, 1.0))
        return cls(values, edges, counts.astype(np.int64)).plot(ax, **options)

    def plot(self, ax: Any = None, *, band: bool = True) -> PITDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        band
            Mark the range in which 95 % of the bars of calibrated distributions end, given the number of rows.
        """
        n, n_bins = len(self.values), len(self.counts)
        self._start(ax)
        height, width = self.counts * n_bins / n, np.diff(self.edges)
        style: dict[str, Any] = {"facecolor": LIGHT_SKY, "edgecolor": BLUE, "linewidth": 1.0, "label": f"{n} rows"}
        self.bars_: Any = self.ax_.bar(self.edges[:-1], height, width, align="edge", **style)
        self.band_: Any = None
        if band:
            low, high = (float(share) * n_bins for share in chance_band(n, 1 / n_bins))
            style = {"facecolor": (0, 0, 0, 0.14), "edgecolor": BLACK, "linestyle": ":", "linewidth": 0.8}
            self.band_ = self.ax_.axhspan(low, high, label="ideal, 95 % range", **style)
        self.line_: Any = self.ax_.axhline(1.0, color=BLACK, linestyle="--", linewidth=1.4, label="ideal: uniform")
        self.ax_.set(xlabel="Probability integral transform F(y)", ylabel="Density", xlim=(0, 1))
        legend_above(self.ax_)
        return self
