"""Predicted standard deviation against the error that was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.describe import at_least_one, require, with_unit
from ibug.metrics import mae, sharpness
from ibug.plotting._base import axes, evenly, one_of, pyplot
from ibug.plotting._style import BLACK, SKY, VERMILLION, add_grid, legend_above, plain_log_axis

SCALES = ("auto", "log", "linear")

# The smallest error that is drawn, as a part of the median error: on a log scale an error that is near zero by chance
# would take most of the plot.
_LEAST_ERROR = 1e-2


@dataclass(eq=False, repr=False)
class SpreadErrorDisplay:
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
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, n_bins: int = 10, ax: Any = None, **options: Any
    ) -> SpreadErrorDisplay:
        """Draw for an estimator with ``predict_dist`` and rows that it has not seen.

        Parameters
        ----------
        estimator
            The estimator.
        X, y
            The rows and their observed values.
        n_bins, ax, **options
            As in `from_predictions`.
        """
        pyplot()
        return cls.from_predictions(
            y, require(estimator, "predict_dist").predict_dist(X), n_bins=n_bins, ax=ax, **options
        )

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
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        variance = sharpness(y, distribution, reduce=None)
        error = mae(y, distribution, reduce=None)
        bins = np.array_split(np.argsort(variance, kind="stable"), min(at_least_one(n_bins, "n_bins"), len(error)))
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
        one_of(scale, "scale", SCALES)
        positive = bool(np.all(self.std > 0) and np.all(self.bin_rmse > 0) and np.median(self.error) > 0)
        logarithmic = scale == "log" or (scale == "auto" and positive)
        drawn = evenly(len(self.std), at_least_one(n_points, "n_points"))
        floor = _LEAST_ERROR * float(np.median(self.error)) if logarithmic else 0.0
        self.ax_: Any = axes(ax)
        self.figure_: Any = self.ax_.figure
        add_grid(self.ax_)
        (self.points_,) = self.ax_.plot(
            self.std[drawn],
            np.maximum(self.error[drawn], floor),
            "o",
            color=SKY,
            markersize=3,
            markeredgewidth=0,
            alpha=0.55,
            label="row" if len(drawn) == len(self.std) else f"row ({len(drawn)} of {len(self.std)})",
        )
        (self.bins_,) = self.ax_.plot(
            self.bin_std,
            self.bin_rmse,
            "-D",
            color=VERMILLION,
            markeredgecolor="white",
            markersize=7,
            label="RMSE of rows with similar σ",
        )
        ends = np.array([self.std.min(), self.std.max()])
        (self.diagonal_,) = self.ax_.plot(ends, ends, "--", color=BLACK, linewidth=1.4, label="ideal: RMSE = σ")
        if logarithmic:
            self.ax_.set(xscale="log", yscale="log")
            plain_log_axis(self.ax_.xaxis, *ends)
            plain_log_axis(self.ax_.yaxis, floor, float(self.error.max()))
        self.ax_.set(xlabel=with_unit("Predicted standard deviation σ", unit), ylabel=with_unit("Absolute error", unit))
        legend_above(self.ax_)
        return self
