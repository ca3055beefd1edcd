"""What displays share: their base class, matplotlib, imported when something is drawn, and colours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ibug._installed import how_to_install
from ibug._typing import Integers
from ibug._validation import check_methods
from ibug.exceptions import InvalidInputError, MissingDependencyError


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``; displays call it before they compute much, so that it fails early."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            f"ibug.plotting needs matplotlib, which cannot be imported. Install it: {how_to_install('plot')}."
        ) from error
    return plt


class Display:
    """A display keeps the numbers that it draws as attributes; `plot` draws them, and returns the display."""

    ax_: Any
    figure_: Any

    def _start(self, ax: Any, *, figsize: tuple[float, float] = (6.4, 4.2)) -> None:
        """Keep the axes to draw on, with a grid: those given, or new ones in a figure of their own."""
        self.ax_ = pyplot().subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        add_grid(self.ax_)

    def _label_rows(self, places: Any, labels: list[str]) -> None:
        """Write a label beside each place of the vertical axis, without ticks and lines of the grid."""
        self.ax_.set(yticks=places, yticklabels=labels)
        self.ax_.grid(visible=False, axis="y")
        self.ax_.tick_params(axis="y", length=0)


class PredictionDisplay(Display):
    """A display of predicted distributions and observed values."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **options: Any) -> Self:
        """Draw what an estimator with ``predict_dist`` predicts for rows that it has not seen.

        Parameters
        ----------
        estimator
            The estimator.
        X, y
            The rows and their observed values.
        **options
            As in `from_predictions`.
        """
        pyplot()
        return cls.from_predictions(y, check_methods(estimator, "predict_dist").predict_dist(X), **options)

    @classmethod
    @abstractmethod
    def from_predictions(cls, y: ArrayLike, distribution: Any, **options: Any) -> Self:
        """Draw predicted distributions. Shapes: y (n_rows,)."""


def named(values: Any, name: str | None, default: str) -> dict[str, Any]:
    """Return values by name: a mapping as it is, a single value under `name` or the default."""
    if not isinstance(values, Mapping):
        return {default if name is None else name: values}
    if name is not None:
        raise InvalidInputError(f"name={name!r} is for a single curve; the keys of a mapping are the names already.")
    if not values:
        raise InvalidInputError("The mapping of names is empty: there is nothing to draw.")
    return {str(key): value for key, value in values.items()}


def one_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return one of the choices."""
    if value not in choices:
        raise InvalidInputError(f"{name} must be one of {choices}; got {value!r}.")
    return str(value)


def evenly(n: int, count: int) -> Integers:
    """Return at most `count` of the numbers 0 to n - 1, ascending and evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(np.int64))


BLACK = "#000000"
BLUE = "#0072B2"
GREEN = "#009E73"
ORANGE = "#E69F00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
LIGHT_SKY = "#B5DDF5"  # sky blue for areas that lines and points are drawn on
VERMILLION = "#D55E00"
GREY = "#8A8A8A"
LIGHT_GREY = "#D9D9D9"

# Neighbours in this list differ in lightness, dashes and marker.
_SERIES = (
    (BLUE, "-", "o"),
    (ORANGE, "--", "s"),
    (BLACK, ":", "^"),
    (VERMILLION, "-.", "D"),
    (GREEN, (0, (6, 2, 1, 2, 1, 2)), "v"),
    (PURPLE, (0, (1, 1)), "P"),
)

# The default font: a little more letters than the axes have room for before matplotlib widens them.
_LETTERS_PER_INCH = 13.5
_LETTERS_PER_HANDLE = 6
_SMALL = 0.833  # the size of small letters


def series_style(number: int) -> dict[str, Any]:
    """Return colour, dashes and marker of one of several lines; after six, colours come again with other dashes."""
    color = _SERIES[number % len(_SERIES)][0]
    _, dashes, marker = _SERIES[(number + number // len(_SERIES)) % len(_SERIES)]
    markers = {"marker": marker, "markersize": 5.5, "markeredgecolor": "white", "markeredgewidth": 0.6}
    return {"color": color, "linestyle": dashes, "linewidth": 1.8, **markers}


def add_grid(ax: Any) -> None:
    """Draw a faint grid behind the data, without the frame's upper and right sides."""
    ax.grid(visible=True, color=LIGHT_GREY, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def legend_above(ax: Any) -> Any:
    """Put the legend above the axes, where no data can be, in as many columns as there is room for.

    Where it would take more than three lines, letters are smaller.
    """
    handles, labels = ax.get_legend_handles_labels()
    room = _LETTERS_PER_INCH * ax.get_window_extent().width / ax.figure.dpi
    size, columns = "medium", _columns(labels, room)
    if len(labels) > 3 * columns:
        size, columns = "small", _columns(labels, room / _SMALL)
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    spacing: dict[str, Any] = {"columnspacing": 1.4, "handletextpad": 0.5}
    return ax.legend(handles, labels, fontsize=size, ncols=columns, frameon=False, **above, **spacing)


def _columns(labels: list[str], room: float) -> int:
    """Return the number of columns for which there is room."""
    return next(n for n in range(len(labels), 0, -1) if n == 1 or _letters(labels, n) <= room)


def _letters(labels: list[str], columns: int) -> int:
    """Return the width of a legend, in letters; it is filled column by column."""
    longest = [max(map(len, column)) for column in np.array_split(np.array(labels, object), columns)]
    return sum(longest) + _LETTERS_PER_HANDLE * columns


def percent_axis(*axes: Any) -> None:
    """Label axes of shares with percents."""
    for axis in axes:
        axis.set_major_formatter(lambda share, _: f"{100 * share:g} %")


def plain_log_axis(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic axis that runs about from low to high with plain numbers: 0.5, not 5 times a power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    few_decades = high < 300 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few_decades else (1.0,)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
    if few_decades:
        axis.set_minor_locator(NullLocator())
