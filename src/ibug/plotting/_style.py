"""Colours of Okabe and Ito, which colour-blind readers can tell apart; lines and markers differ in grey as well."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    return {
        "color": color,
        "linestyle": dashes,
        "linewidth": 1.8,
        "marker": marker,
        "markersize": 5.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
    }


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
    return ax.legend(
        handles,
        labels,
        fontsize=size,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        columnspacing=1.4,
        handletextpad=0.5,
    )


def _columns(labels: list[str], room: float) -> int:
    """Return the number of columns for which there is room."""
    return next(n for n in range(len(labels), 0, -1) if n == 1 or _letters(labels, n) <= room)


def _letters(labels: list[str], columns: int) -> int:
    """Return the width of a legend, in letters; it is filled column by column."""
    longest = [max(map(len, column)) for column in np.array_split(np.array(labels, object), columns)]
    return sum(longest) + _LETTERS_PER_HANDLE * columns


def plain_log_axis(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic axis that runs about from low to high with plain numbers: 0.5, not 5 times a power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    few_decades = high < 300 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few_decades else (1.0,)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
    if few_decades:
        axis.set_minor_locator(NullLocator())
