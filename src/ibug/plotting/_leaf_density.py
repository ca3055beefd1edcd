"""How full the leaves are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibug._typing import Floats
from ibug.describe import at_least_one, finite, percent, require
from ibug.plotting._base import axes, named, one_of, pyplot
from ibug.plotting._style import add_grid, legend_above, series_style

WHAT = ("tree", "row")


@dataclass(eq=False, repr=False)
class LeafDensityDisplay:
    """The share of the training rows that are in the same leaf, along the trees or over the rows (paper, section C.5).

    Dense leaves tell little: a tree that has over half of the rows in a leaf hardly separates near rows from far ones.

    Attributes
    ----------
    density : dict of ndarray
        By name: for each tree the mean over the rows, or for each row the mean over the trees.
    per : str
        ``"tree"`` or ``"row"``.
    ax_, figure_, lines_
        What was drawn.
    """

    density: dict[str, Floats]
    per: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        per: str = "tree",
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> LeafDensityDisplay:
        """Draw the leaf density of an ``IBUGRegressor``, or of several.

        Parameters
        ----------
        estimator : fitted estimator with ``leaf_density``, or mapping of names to such
            The estimators.
        X
            Rows that fall into the leaves.
        per : {"tree", "row"}
            A curve along the trees, or a histogram of the rows.
        name
            The name of a single curve; by default the model's class.
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        one_of(per, "per", WHAT)
        model = getattr(estimator, "estimator_", estimator)
        estimators = named(estimator, name, type(model).__name__)
        density = {key: require(each, "leaf_density").leaf_density(X, per=per) for key, each in estimators.items()}
        return cls.from_results(density, per=per, ax=ax, **options)

    @classmethod
    def from_results(
        cls, density: Mapping[str, Any], *, per: str = "tree", ax: Any = None, **options: Any
    ) -> LeafDensityDisplay:
        """Draw what ``leaf_density`` returned.

        Parameters
        ----------
        density : mapping of names to array-like of shape (n,)
            Shares of the training rows, for each tree or for each row.
        per : {"tree", "row"}
            Whether there is a share for each tree or for each row.
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        one_of(per, "per", WHAT)
        shares = {key: finite(values, f"density[{key!r}]") for key, values in named(density, None, "").items()}
        return cls(shares, per).plot(ax, **options)

    def plot(self, ax: Any = None, *, n_bins: int = 30) -> LeafDensityDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        n_bins
            The number of bins of the histogram with ``per="row"``.
        """
        at_least_one(n_bins, "n_bins")
        self.ax_: Any = axes(ax)
        self.figure_: Any = self.ax_.figure
        add_grid(self.ax_)
        self.lines_: list[Any] = []
        edges = np.linspace(0, max(float(shares.max()) for shares in self.density.values()), n_bins + 1)
        for number, (name, shares) in enumerate(self.density.items()):
            style = series_style(number)
            label = f"{name}: {percent(float(shares.mean()), 1)} on average"
            if self.per == "tree":
                self.lines_.append(self._plot_trees(shares, label, style))
            else:
                counts, _ = np.histogram(shares, bins=edges)
                dashes = {key: style[key] for key in ("color", "linestyle", "linewidth")}
                self.lines_.append(self.ax_.stairs(counts / len(shares), edges, label=label, **dashes))
        self._label_axes()
        legend_above(self.ax_)
        return self

    def _plot_trees(self, shares: Floats, label: str, style: dict[str, Any]) -> Any:
        """Draw each tree as a faint dot and the running mean as a line: neighbouring trees can differ wildly."""
        trees = np.arange(1, len(shares) + 1)
        self.ax_.plot(trees, shares, ".", color=style["color"], markersize=3, alpha=0.45)
        (line,) = self.ax_.plot(trees, _running_mean(shares), label=label, markevery=max(1, len(shares) // 12), **style)
        return line

    def _label_axes(self) -> None:
        share = "Training rows in the same leaf"
        if self.per == "tree":
            self.ax_.set(xlabel="Tree", ylabel=f"{share}, mean over rows")
            axis = self.ax_.yaxis
        else:
            self.ax_.set(xlabel=f"{share}, mean over trees", ylabel="Share of the rows")
            axis = self.ax_.xaxis
            self.ax_.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        axis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        self.ax_.set_ylim(bottom=0)


def _running_mean(values: Floats) -> Floats:
    """Return the mean of each value and its neighbours, a twentieth of all together; fewer at the ends."""
    reach = len(values) // 40
    sums = np.concatenate([[0.0], np.cumsum(values)])
    place = np.arange(len(values))
    first, last = np.maximum(place - reach, 0), np.minimum(place + reach + 1, len(values))
    return np.asarray((sums[last] - sums[first]) / (last - first))
