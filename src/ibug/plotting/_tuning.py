"""The validation score of each number of neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats, Integers
from ibug.describe import curve_name, highest_drawn, named_curves, require, scoring_label, tuning_curves
from ibug.exceptions import InvalidInputError
from ibug.plotting._base import axes, pyplot
from ibug.plotting._style import BLACK, GREY, VERMILLION, add_grid, legend_above, plain_log_axis, series_style


@dataclass(eq=False, repr=False)
class TuningDisplay:
    """The score of each candidate k, in each family and spread that was tried, and the chosen ones.

    Where there are more than six, the best and the chosen one have names, and the others are grey.

    Attributes
    ----------
    curves : dict of (ndarray, ndarray), both of shape (n_candidates,)
        By family, and by spread where several were tried: the candidates, ascending, and their validation scores,
        lower is better; NaN where there is none. They are the scores before calibration.
    best_k : int
        The chosen k.
    best_family : str
        The chosen family.
    scoring : str or function
        The score.
    ax_, figure_, lines_, best_, above_
        What was drawn.
    """

    curves: dict[str, tuple[Integers, Floats]]
    best_k: int
    best_family: str
    scoring: Any = "crps"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> TuningDisplay:
        """Draw how k was chosen when the estimator was fitted.

        Parameters
        ----------
        estimator
            A fitted ``IBUGRegressor`` with ``k="tune"``.
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        require(estimator, "tuning_", "k_", "scoring")
        if not np.any(estimator.tuning_["k"]):
            raise InvalidInputError(
                f"k={estimator.k_} was given, not tuned, so there is no curve: "
                'fit IBUGRegressor(..., k="tune") with validation rows.'
            )
        several = len(set(estimator.tuning_["spread"]) - {""}) > 1
        chosen = curve_name(estimator.distribution_, estimator.spread_ if several else None)
        k, families = estimator.tuning_["k"], estimator.tuning_["distribution"]
        best_k = int(k[families == "stack"][0]) if estimator.distribution_ == "stack" else estimator.k_
        options = {"best_k": best_k, "best_family": chosen, "scoring": estimator.scoring, **options}
        return cls.from_results(estimator.tuning_, ax=ax, **options)

    @classmethod
    def from_results(
        cls,
        tuning: Mapping[str, ArrayLike],
        *,
        best_k: int | None = None,
        best_family: str | None = None,
        scoring: Any = "crps",
        ax: Any = None,
        **options: Any,
    ) -> TuningDisplay:
        """Draw the scores of candidates.

        Parameters
        ----------
        tuning : mapping with the columns "k" and "score", and "distribution" and "spread" where there are several
            What ``tuning_`` holds. Candidates without a score are left out.
        best_k
            The chosen k; by default the one of the lowest score, the smallest of these.
        best_family
            The chosen curve, ``"family"`` or ``"family, spread"``; by default the best one at `best_k`.
        scoring
            The score's name, or the function.
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        curves = tuning_curves(tuning)
        names = np.repeat(list(curves), [len(k) for k, _ in curves.values()])
        k, score = (np.concatenate(column) for column in zip(*curves.values(), strict=True))
        if best_k is None:
            best_k = int(k[score == np.nanmin(score)].min())
        at_best = np.where(k == best_k, score, np.nan)
        best = np.nanargmin(at_best if np.any(np.isfinite(at_best)) else score)
        return cls(curves, int(best_k), best_family or str(names[best]), scoring).plot(ax, **options)

    def plot(self, ax: Any = None, *, unit: str | None = None) -> TuningDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        unit
            The unit of y, for the label of the axis where the score is the CRPS.
        """
        self.ax_: Any = axes(ax)
        self.figure_: Any = self.ax_.figure
        add_grid(self.ax_)
        self._plot_curves()
        several = len(self.curves) > 1
        k, score = self.curves[self.best_family]
        chosen = score[k == self.best_k]
        self.best_: Any = None
        if chosen.size:
            self.ax_.axvline(self.best_k, color=VERMILLION, linestyle="--", linewidth=1.2)
            (self.best_,) = self.ax_.plot(
                self.best_k,
                chosen[0],
                "*",
                color=VERMILLION,
                markeredgecolor="white",
                markersize=16,
                zorder=4,
                label=self._chosen_label(several),
            )
        self.ax_.set(
            xscale="log",
            xlabel="Number of neighbours k",
            ylabel=f"{scoring_label(self.scoring, unit)}, lower is better",
        )
        every_k = np.concatenate([k for k, _ in self.curves.values()])
        plain_log_axis(self.ax_.xaxis, float(every_k.min()), float(every_k.max()))
        legend_above(self.ax_)
        return self

    def _chosen_label(self, several: bool) -> str:
        if self.best_family == "stack":
            return f"chosen: stack, of up to {self.best_k} neighbours"
        return f"chosen: {self.best_family}, k = {self.best_k}" if several else f"chosen: k = {self.best_k}"

    def _plot_curves(self) -> None:
        """Draw a line for each curve, and one mark for each k at which scores are beyond the upper edge."""
        every_k = np.concatenate([k for k, _ in self.curves.values()])
        every_score = np.concatenate([score for _, score in self.curves.values()])
        edge = highest_drawn(every_score)
        self.lines_: list[Any] = []
        named = named_curves(self.curves, self.best_family)
        others = [family for family in self.curves if family not in named]
        for number, family in enumerate([*named, *others]):
            k, score = self.curves[family]
            near = np.where(score > edge, np.nan, score)
            if number < len(named):
                label = family if len(self.curves) > 1 else "validation score"
                self.lines_ += self.ax_.plot(k, near, label=label, **series_style(number))
            else:  # behind the others, and told as one
                label = f"{len(others)} others" if family == others[0] else "_"
                self.lines_ += self.ax_.plot(
                    k, near, ".-", color=GREY, alpha=0.6, linewidth=0.9, zorder=1.5, label=label
                )
        self.above_: Any = None
        far = np.unique(every_k[every_score > edge])
        if far.size:
            label = f"higher, up to {np.nanmax(every_score):.3g}"
            (self.above_,) = self.ax_.plot(far, np.full(far.size, edge), "^", color=BLACK, markersize=7, label=label)
