"""Predicted distributions of chosen rows: densities of one target, samples of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats, Integers
from ibug._validation import check_at_least_one, check_finite, check_methods, check_target_names
from ibug.describe import density_ends, with_unit
from ibug.distributions import JointStack
from ibug.exceptions import InvalidInputError
from ibug.metrics import as_distribution, as_targets
from ibug.plotting._base import BLACK, BLUE, LIGHT_SKY, VERMILLION, Display, legend_above, pyplot

# The density is drawn between these quantiles, and beyond where it has not come down to 1 % of its peak.
_TAIL = 0.001
_GRID_POINTS = 400

# One row takes a strip of height 1: the density above its base, the rug below.
_PEAK = 0.72
_RUG = (-0.2, -0.03)


@dataclass(eq=False, repr=False)
class DensityDisplay(Display):
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
        check_methods(estimator, "predict_dist")
        chosen = _check_rows(rows, _num_samples(X))
        X_chosen = _safe_indexing(X, chosen)
        distribution, indices = _predicted(estimator, X_chosen)
        neighbors = None
        if indices is not None:
            if targets is None:
                targets = check_methods(estimator, "training_targets_").training_targets_
            neighbors = check_finite(targets, "targets")[indices]
        observed = None if y is None else check_finite(as_targets(y), "y", size=_num_samples(X))[chosen]
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
        ax, **options
            As in `plot`.
        """
        shape = np.shape(distribution[0]) if isinstance(distribution, tuple) else getattr(distribution, "shape", ())
        n = shape[0] if shape else 1
        batch = as_distribution(distribution, n)
        chosen = _check_rows(rows, n)
        targets = None if neighbors is None else np.asarray(neighbors, np.float64)
        if targets is not None and (targets.ndim != 2 or len(targets) != n or not np.all(np.isfinite(targets))):
            raise InvalidInputError(f"neighbors must be finite and of shape ({n}, k); got shape {targets.shape}.")
        observed = None if y is None else check_finite(as_targets(y), "y", size=n)[chosen]
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
        self._start(ax, figsize=(6.4, 1.4 + 0.8 * n_chosen))
        bases = np.arange(n_chosen)[::-1].astype(np.float64)  # the first row on top
        self.curves_: list[Any] = []
        self.rugs_: list[Any] = []
        self.means_: list[Any] = []
        for i, base in enumerate(bases):
            self._plot_row(i, base, labelled=i == 0)
        self.observed_: Any = None
        if self.y is not None:
            diamond = {"color": VERMILLION, "markeredgecolor": "white", "markersize": 8, "zorder": 4}
            (self.observed_,) = self.ax_.plot(self.y, bases, "D", label="observed value", **diamond)
        self.ax_.set(xlabel=with_unit("Target", unit), ylabel="Density, each scaled to its peak")
        self.ax_.set_ylim(_RUG[0] - 0.1, n_chosen - 0.1)
        self._label_rows(bases, [f"row {row}" for row in self.rows])
        legend_above(self.ax_)
        return self

    def _plot_row(self, i: int, base: float, *, labelled: bool) -> None:
        def label(text: str) -> str | None:
            return text if labelled else None

        grid, height = self.grid[i], _PEAK * _scaled(self.density[i])
        area = {"color": LIGHT_SKY, "linewidth": 0, "label": label("predicted density")}
        fill = self.ax_.fill_between(grid, base, base + height, **area)
        self.ax_.axhline(base, color=BLACK, linewidth=0.6)
        (curve,) = self.ax_.plot(grid, base + height, color=BLUE, linewidth=1.6)
        self.curves_.append((curve, fill))
        top = np.interp(self.mean[i], grid, height)
        dashed = {"color": BLUE, "linestyle": "--", "linewidth": 1.4, "label": label("predicted mean")}
        self.means_.append(self.ax_.vlines(self.mean[i], base, base + top, **dashed))
        if self.neighbors is not None:
            near = self.neighbors[i]
            self.rugs_.append(self._plot_rug(near, base, label(f"targets of {len(near)} neighbours")))

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


@dataclass(eq=False, repr=False)
class JointDisplay(Display):
    """Scatter of samples of two targets of one row, with the box that holds all targets and the observed values.

    Attributes
    ----------
    samples : ndarray of shape (n_samples, 2)
        The samples of both targets.
    names : tuple of str
        The names of both targets.
    box : ndarray of shape (2, 2) or None
        Lower and upper end of each target.
    observed : ndarray of shape (2,) or None
        The observed values.
    ax_, figure_, points_, box_, mark_
        What was drawn.
    """

    samples: Floats
    names: tuple[str, str] = ("target_0", "target_1")
    box: Floats | None = None
    observed: Floats | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        targets: tuple[int | str, int | str] = (0, 1),
        coverage: float = 0.9,
        n_samples: int = 1000,
        random_state: Any = 0,
        ax: Any = None,
    ) -> JointDisplay:
        """Draw the first row of X, by an estimator of several targets.

        Parameters
        ----------
        estimator : IBUGRegressor
            Fitted on several targets.
        X : rows
            The rows, of which the first is drawn.
        y : array-like of shape (n_targets,) or (n_rows, n_targets), optional
            The observed values of the row.
        targets : pair of int or str
            The two targets, by their numbers or names.
        coverage : float
            The coverage of the box, which holds all targets, not only these two.
        n_samples, random_state, ax
            As in `from_predictions`.
        """
        pyplot()
        names = getattr(estimator, "target_names_", None)
        if names is None:
            raise InvalidInputError("A scatter of two targets needs an estimator that was fitted on several.")
        check_target_names(names, y, "y")
        some = X.iloc[:1] if hasattr(X, "iloc") else X[:1]
        distribution = estimator.predict_dist(some)
        observed = None if y is None else np.atleast_2d(np.asarray(y, np.float64))[0]
        box = None
        if estimator.rule_.boxes is not None:
            box = estimator.predict_interval(some, coverage, joint=True)[0]
        options: dict[str, Any] = {"n_samples": n_samples, "random_state": random_state, "ax": ax}
        return cls.from_predictions(distribution, observed, box=box, names=names, targets=targets, **options)

    @classmethod
    def from_predictions(
        cls,
        distribution: JointStack,
        y: ArrayLike | None = None,
        *,
        box: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        targets: tuple[int | str, int | str] = (0, 1),
        n_samples: int = 1000,
        random_state: Any = 0,
        ax: Any = None,
    ) -> JointDisplay:
        """Draw the first row of predicted joint distributions.

        Parameters
        ----------
        distribution : JointStack
            What ``predict_dist`` returned.
        y : array-like of shape (n_targets,), optional
            The observed values of the row.
        box : array-like of shape (n_targets, 2), optional
            The ends of its box.
        names : sequence of str, optional
            The names of all targets.
        targets : pair of int or str
            The two targets, by their numbers or names.
        n_samples, random_state
            The number of samples, and their seed.
        ax
            Axes to draw on; ``None`` makes a new figure.
        """
        if not isinstance(distribution, JointStack):
            raise InvalidInputError(
                f"A JointStack is expected, as predict_dist returns it of several targets; got "
                f"{type(distribution).__name__}."
            )
        d = distribution.n_targets
        called = [f"target_{j}" for j in range(d)] if names is None else list(names)
        chosen = _numbers(targets, called)
        one = distribution if distribution.shape == (d,) else distribution[0]
        drawn = one.rvs(check_at_least_one(n_samples, "n_samples"), random_state=random_state)
        return cls(
            drawn[:, chosen],
            (called[chosen[0]], called[chosen[1]]),
            None if box is None else np.asarray(box, np.float64)[chosen],
            None if y is None else np.asarray(y, np.float64)[chosen],
        ).plot(ax)

    def plot(self, ax: Any = None) -> JointDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        """
        self._start(ax)
        x, y = self.samples.T
        label = f"{len(x):,} samples"
        self.points_: Any = self.ax_.scatter(x, y, s=12, color=BLUE, alpha=0.35, linewidths=0, label=label)
        self.box_: Any = None
        if self.box is not None and np.isfinite(self.box).all():
            from matplotlib.patches import Rectangle

            (left, right), (low, high) = self.box
            self.box_ = Rectangle((left, low), right - left, high - low, fill=False, edgecolor=BLUE, label="box")
            self.ax_.add_patch(self.box_)
        self.mark_: Any = None
        if self.observed is not None:
            self.mark_ = self.ax_.plot(*self.observed, "D", color=VERMILLION, label="observed")[0]
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        legend_above(self.ax_)
        return self


def _numbers(targets: Any, names: list[str]) -> list[int]:
    """Return the numbers of two different targets, which are given by number or name."""
    found: list[int] = []
    for one in targets if isinstance(targets, (tuple, list, np.ndarray)) else ():
        if isinstance(one, str) and names.count(one) == 1:
            found.append(names.index(one))
        elif isinstance(one, (int, np.integer)) and not isinstance(one, bool) and 0 <= one < len(names):
            found.append(int(one))
    if len(found) != 2 or len(targets) != 2 or found[0] == found[1]:
        raise InvalidInputError(
            f"targets must be two different numbers from 0 to {len(names) - 1}, or two names of {names}; got "
            f"{targets!r}."
        )
    return found
