"""Histogram of the probability integral transform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats, Integers
from ibug.describe import at_least_one, chance_band, require
from ibug.metrics import pit
from ibug.plotting._base import axes, pyplot
from ibug.plotting._style import BLACK, BLUE, LIGHT_SKY, add_grid, legend_above


@dataclass(eq=False, repr=False)
class PITDisplay:
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
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, n_bins: int = 20, ax: Any = None, **options: Any
    ) -> PITDisplay:
        """Draw the histogram of an estimator with ``predict_dist`` on rows that it has not seen.

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
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        values = pit(y, distribution)
        counts, edges = np.histogram(values, bins=at_least_one(n_bins, "n_bins"), range=(0.0, 1.0))
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
        self.ax_: Any = axes(ax)
        self.figure_: Any = self.ax_.figure
        add_grid(self.ax_)
        self.bars_: Any = self.ax_.bar(
            self.edges[:-1],
            self.counts * n_bins / n,
            width=np.diff(self.edges),
            align="edge",
            facecolor=LIGHT_SKY,
            edgecolor=BLUE,
            linewidth=1.0,
            label=f"{n} rows",
        )
        self.band_: Any = None
        if band:
            low, high = (float(share) * n_bins for share in chance_band(n, 1 / n_bins))
            self.band_ = self.ax_.axhspan(
                low,
                high,
                facecolor=(0, 0, 0, 0.14),
                edgecolor=BLACK,
                linestyle=":",
                linewidth=0.8,
                label="ideal, 95 % range",
            )
        self.line_: Any = self.ax_.axhline(1.0, color=BLACK, linestyle="--", linewidth=1.4, label="ideal: uniform")
        self.ax_.set(xlabel="Probability integral transform F(y)", ylabel="Density", xlim=(0, 1))
        legend_above(self.ax_)
        return self
