"""Samples of two targets of one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._inputs import check_target_names
from ibug._typing import Floats
from ibug.describe import at_least_one
from ibug.distributions import JointStack
from ibug.exceptions import InvalidInputError
from ibug.plotting._base import axes, pyplot
from ibug.plotting._style import BLUE, VERMILLION, add_grid, legend_above


@dataclass(eq=False, repr=False)
class JointDisplay:
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
        n_samples, random_state
            The number of samples, and their seed.
        ax
            Axes to draw on; ``None`` makes a new figure.
        """
        pyplot()
        names = getattr(estimator, "target_names_", None)
        if names is None:
            raise InvalidInputError("A scatter of two targets needs an estimator that was fitted on several.")
        check_target_names(names, y, "y")
        some = X[:1] if not hasattr(X, "iloc") else X.iloc[:1]
        distribution = estimator.predict_dist(some)
        boxes = None
        if estimator.rule_.boxes is not None:
            boxes = estimator.predict_interval(some, coverage, joint=True)[0]
        return cls.from_predictions(
            distribution,
            None if y is None else np.atleast_2d(np.asarray(y, np.float64))[0],
            box=boxes,
            names=names,
            targets=targets,
            n_samples=n_samples,
            random_state=random_state,
            ax=ax,
        )

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
        pyplot()
        if not isinstance(distribution, JointStack):
            raise InvalidInputError(
                f"A JointStack is expected, as predict_dist returns it of several targets; got "
                f"{type(distribution).__name__}."
            )
        d = distribution.n_targets
        called = [f"target_{j}" for j in range(d)] if names is None else list(names)
        chosen = _numbers(targets, called)
        one = distribution if distribution.shape == (d,) else distribution[0]
        drawn = one.rvs(at_least_one(n_samples, "n_samples"), random_state=random_state)
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
        self.ax_: Any = axes(ax)
        self.figure_: Any = self.ax_.figure
        add_grid(self.ax_)
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
