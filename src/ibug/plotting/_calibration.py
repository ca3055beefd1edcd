"""Observed over nominal coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.describe import chance_band, require
from ibug.metrics import as_targets, calibration_curve, miscalibration_area
from ibug.plotting._base import axes, named, pyplot
from ibug.plotting._style import GREY, LIGHT_GREY, add_grid, series_style


@dataclass(eq=False, repr=False)
class CalibrationDisplay:
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
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_levels: int = 100,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> CalibrationDisplay:
        """Draw the curve of an estimator with ``predict_dist``, or the curves of several, on rows it has not seen.

        Parameters
        ----------
        estimator : fitted estimator, or mapping of names to such
            The estimators.
        X, y
            The rows and their observed values.
        n_levels, name, ax, **options
            As in `from_predictions`.
        """
        pyplot()
        estimators = named(estimator, name, type(estimator).__name__)
        predicted = {key: require(each, "predict_dist").predict_dist(X) for key, each in estimators.items()}
        return cls.from_predictions(y, predicted, n_levels=n_levels, ax=ax, **options)

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
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
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
        self.ax_: Any = axes(ax, figsize=(5.4, 5.2))
        self.figure_: Any = self.ax_.figure
        add_grid(self.ax_)
        self.band_: Any = None
        if band:
            low, high = chance_band(self.n_rows, self.expected)
            self.band_ = self.ax_.fill_between(
                self.expected, low, high, color=LIGHT_GREY, linewidth=0, label="ideal, 95 % range"
            )
        (self.diagonal_,) = self.ax_.plot([0, 1], [0, 1], color=GREY, linewidth=1.2, label="ideal")
        self.lines_: list[Any] = []
        for number, (name, observed) in enumerate(self.observed.items()):
            label = f"{name} (miscalibration area {self.areas[name]:.3f})"
            self.lines_ += self.ax_.plot(
                self.expected,
                observed,
                label=label,
                markevery=(number * 3, max(1, len(observed) // 10)),
                **series_style(number),
            )
        self.ax_.set(
            xlabel="Nominal coverage of the central interval",
            ylabel="Observed coverage",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        self.ax_.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        self.ax_.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        self.ax_.legend(loc="best", fontsize="small")
        return self
