"""Predicted densities of chosen rows, with the neighbours behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats, Integers
from ibug.describe import density_ends, finite, require, with_unit
from ibug.exceptions import InvalidInputError
from ibug.metrics import as_distribution, as_targets
from ibug.plotting._base import axes, pyplot
from ibug.plotting._style import BLACK, BLUE, LIGHT_SKY, VERMILLION, add_grid, legend_above

# The density is drawn between these quantiles, and beyond where it has not come down to 1 % of its peak.
_TAIL = 0.001
_GRID_POINTS = 400

# One row takes a strip of height 1: the density above its base, the rug below.
_PEAK = 0.72
_RUG = (-0.2, -0.03)


@dataclass(eq=False, repr=False)
class DensityDisplay:
    """The predicted density of each chosen row, one above the other, over a rug of its neighbours' targets.

    It is the paper's posterior figure (section 5.3): does the shape of the distribution fit the training rows that it
    is made from?

    Attributes
    ----------
    rows : ndarray of shape (n_chosen,)
        The chosen rows.
    grid, density : ndarray of shape (n_chosen, n_points)
        Values and the density at them.
    mean : ndarray of shape (n_chosen,)
        The means of the distributions.
    neighbors : ndarray of shape (n_chosen, k) or None
        The neighbours' targets.
    y : ndarray of shape (n_chosen,) or None
        The observed values.
    ax_, figure_, curves_, rugs_, means_, observed_
        What was drawn.
    """

    rows: Integers
    grid: Floats
    density: Floats
    mean: Floats
    neighbors: Floats | None
    y: Floats | None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        rows: Sequence[int] = (0, 1, 2, 3, 4),
        targets: ArrayLike | None = None,
        ax: Any = None,
        **options: Any,
    ) -> DensityDisplay:
        """Draw the densities of an estimator for some rows of X, and the neighbours where it has them.

        Parameters
        ----------
        estimator
            A fitted estimator with ``predict_dist``. If it also has ``kneighbors``, as ``IBUGRegressor`` does, the
            neighbours' targets are drawn as a rug.
        X : array-like or data frame of shape (n, n_features)
            The rows to choose from.
        y : array-like of shape (n,), optional
            Their observed values, to be marked.
        rows
            The numbers of the rows to draw, from 0.
        targets : array-like of shape (n_training_rows,), optional
            The training targets; by default those that the estimator was fitted on.
        ax, **options
            As in `from_predictions`.
        """
        pyplot()
        require(estimator, "predict_dist")
        chosen = _check_rows(rows, _num_samples(X))
        X_chosen = _safe_indexing(X, chosen)
        distribution, indices = _predicted(estimator, X_chosen)
        neighbors = None
        if indices is not None:
            if targets is None:
                targets = require(estimator, "training_targets_").training_targets_
            neighbors = finite(targets, "targets")[indices]
        observed = None if y is None else _observed(y, _num_samples(X))[chosen]
        return cls._of(chosen, distribution, neighbors, observed).plot(ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike | None,
        distribution: Any,
        neighbors: ArrayLike | None = None,
        *,
        rows: Sequence[int] = (0, 1, 2, 3, 4),
        ax: Any = None,
        **options: Any,
    ) -> DensityDisplay:
        """Draw the densities of some of the predicted distributions.

        Parameters
        ----------
        y : array-like of shape (n,) or None
            The observed values, to be marked.
        distribution : batched distribution, or tuple (means, standard deviations)
            What ``predict_dist`` returned for the same rows.
        neighbors : array-like of shape (n, k), optional
            The targets of each row's neighbours.
        rows
            The numbers of the rows to draw, from 0.
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        shape = np.shape(distribution[0]) if isinstance(distribution, tuple) else getattr(distribution, "shape", ())
        n = shape[0] if shape else 1
        batch = as_distribution(distribution, n)
        chosen = _check_rows(rows, n)
        targets = None if neighbors is None else np.asarray(neighbors, np.float64)
        if targets is not None and (targets.ndim != 2 or len(targets) != n or not np.all(np.isfinite(targets))):
            raise InvalidInputError(f"neighbors must be finite and of shape ({n}, k); got shape {targets.shape}.")
        observed = None if y is None else _observed(y, n)[chosen]
        near = None if targets is None else targets[chosen]
        return cls._of(chosen, batch[chosen], near, observed).plot(ax, **options)

    @classmethod
    def _of(cls, rows: Integers, batch: Any, neighbors: Floats | None, y: Floats | None) -> DensityDisplay:
        grid = np.linspace(*density_ends(batch, _TAIL), _GRID_POINTS, axis=1)
        return cls(rows, grid, batch.pdf(grid), batch.mean(), neighbors, y)

    def plot(self, ax: Any = None, *, unit: str | None = None) -> DensityDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        unit
            The unit of y, for the label of the axis.
        """
        n_chosen = len(self.rows)
        self.ax_: Any = axes(ax, figsize=(6.4, 1.4 + 0.8 * n_chosen))
        self.figure_: Any = self.ax_.figure
        add_grid(self.ax_)
        bases = np.arange(n_chosen)[::-1].astype(np.float64)  # the first row on top
        self.curves_: list[Any] = []
        self.rugs_: list[Any] = []
        self.means_: list[Any] = []
        for i, base in enumerate(bases):
            self._plot_row(i, base, labelled=i == 0)
        self.observed_: Any = None
        if self.y is not None:
            (self.observed_,) = self.ax_.plot(
                self.y,
                bases,
                "D",
                color=VERMILLION,
                markeredgecolor="white",
                markersize=8,
                zorder=4,
                label="observed value",
            )
        self.ax_.set(
            xlabel=with_unit("Target", unit),
            ylabel="Density, each scaled to its peak",
            yticks=bases,
            yticklabels=[f"row {row}" for row in self.rows],
            ylim=(_RUG[0] - 0.1, n_chosen - 0.1),
        )
        self.ax_.grid(visible=False, axis="y")
        self.ax_.tick_params(axis="y", length=0)
        legend_above(self.ax_)
        return self

    def _plot_row(self, i: int, base: float, *, labelled: bool) -> None:
        def label(text: str) -> str | None:
            return text if labelled else None

        height = _PEAK * _scaled(self.density[i])
        fill = self.ax_.fill_between(
            self.grid[i], base, base + height, color=LIGHT_SKY, linewidth=0, label=label("predicted density")
        )
        self.ax_.axhline(base, color=BLACK, linewidth=0.6)
        (curve,) = self.ax_.plot(self.grid[i], base + height, color=BLUE, linewidth=1.6)
        top = np.interp(self.mean[i], self.grid[i], height)
        mean = self.ax_.vlines(
            self.mean[i], base, base + top, color=BLUE, linestyle="--", linewidth=1.4, label=label("predicted mean")
        )
        self.curves_.append((curve, fill))
        self.means_.append(mean)
        if self.neighbors is not None:
            self.rugs_.append(
                self._plot_rug(self.neighbors[i], base, label(f"targets of {len(self.neighbors[i])} neighbours"))
            )

    def _plot_rug(self, values: Floats, base: float, label: str | None) -> Any:
        """Draw a line for each value: darker where they crowd, longer where several are equal."""
        places, counts = np.unique(values, return_counts=True)
        top, bottom = base + _RUG[1], base + _RUG[0]
        length = (top - bottom) * (0.4 + 0.6 * counts / counts.max())
        alpha = float(np.clip(25 / len(places), 0.2, 0.8))
        return self.ax_.vlines(places, top - length, top, color=BLACK, alpha=alpha, linewidth=1.0, label=label)


def _predicted(estimator: Any, X: Any) -> tuple[Any, Integers | None]:
    """Return the distributions of rows, and their neighbours (n_rows, k), by one search where the estimator can."""
    if hasattr(estimator, "predict_with_neighbors"):
        distribution, _, indices = estimator.predict_with_neighbors(X)
        return distribution, indices
    return estimator.predict_dist(X), estimator.kneighbors(X)[1] if hasattr(estimator, "kneighbors") else None


def _scaled(density: Floats) -> Floats:
    """Return the density divided by its highest finite value, which also takes the place of infinite ones."""
    usable = np.isfinite(density)
    peak = float(density[usable].max()) if usable.any() else 0.0
    return np.minimum(density / peak, 1.0) if peak > 0 else np.zeros_like(density)


def _check_rows(rows: Sequence[int], n: int) -> Integers:
    chosen = np.atleast_1d(np.asarray(rows))
    if chosen.ndim != 1 or not chosen.size or chosen.dtype.kind not in "iu":
        raise InvalidInputError(f"rows must be a list of row numbers; got {rows!r}.")
    if np.any((chosen < 0) | (chosen >= n)):
        raise InvalidInputError(f"rows must be from 0 to {n - 1}, as there are {n} rows; got {rows!r}.")
    return chosen.astype(np.int64)


def _observed(y: ArrayLike, n: int) -> Floats:
    values = as_targets(y)
    return finite(values, "y", size=n)
