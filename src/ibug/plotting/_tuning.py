"""The validation score of each number of neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug.exceptions import InvalidInputError
from ibug.plotting._base import Floats, Integers, axes, finite, pyplot, require, scoring_label
from ibug.plotting._style import BLACK, VERMILLION, add_grid, legend_above, plain_log_axis, series_style

# With few neighbours of equal targets the NLL can be astronomical, and nothing else could be seen. Where a score is
# further above the best one than _FAR times the median distance, all beyond _NEAR times are drawn at the upper edge.
_FAR, _NEAR = 30.0, 4.0


@dataclass(eq=False, repr=False)
class TuningDisplay:
    """The score of each candidate k, and the chosen one.

    Attributes
    ----------
    k : ndarray of shape (n_candidates,)
        The candidates, ascending.
    score : ndarray of shape (n_candidates,)
        Their validation scores, lower is better; NaN where there is none.
    best_k : int
        The chosen k.
    scoring : str or function
        What the score is.
    ax_, figure_, line_, best_, above_
        What was drawn.
    """

    k: Integers
    score: Floats
    best_k: int
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
        if not len(estimator.tuning_["k"]):
            raise InvalidInputError(
                f"k={estimator.k_} was given, not tuned, so there is no curve: "
                'fit IBUGRegressor(..., k="tune") with validation rows.'
            )
        return cls.from_results(estimator.tuning_, best_k=estimator.k_, scoring=estimator.scoring, ax=ax, **options)

    @classmethod
    def from_results(
        cls,
        tuning: Mapping[str, ArrayLike],
        *,
        best_k: int | None = None,
        scoring: Any = "crps",
        ax: Any = None,
        **options: Any,
    ) -> TuningDisplay:
        """Draw the scores of candidates.

        Parameters
        ----------
        tuning : mapping with the columns "k" and "score"
            What ``tuning_`` holds.
        best_k
            The chosen k; by default the one of the lowest score, the smallest of these.
        scoring
            The score's name, or the function.
        ax
            Axes to draw on; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        if "k" not in tuning or "score" not in tuning:
            raise InvalidInputError(f'The columns "k" and "score" are expected; got {sorted(tuning)}.')
        k = finite(tuning["k"], "k").astype(np.int64)
        score = np.asarray(tuning["score"], np.float64)
        if score.shape != k.shape or not np.any(np.isfinite(score)):
            raise InvalidInputError(
                f"score must have shape {k.shape}, as k has, and some finite values; got shape {score.shape}."
            )
        order = np.argsort(k, kind="stable")
        k, score = k[order], np.where(np.isfinite(score), score, np.nan)[order]
        return cls(k, score, int(k[np.nanargmin(score)]) if best_k is None else int(best_k), scoring).plot(
            ax, **options
        )

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
        edge = _upper_edge(self.score)
        far = self.score > edge
        (self.line_,) = self.ax_.plot(
            self.k, np.where(far, np.nan, self.score), label="validation score", **series_style(0)
        )
        self.above_: Any = None
        if np.any(far):
            (self.above_,) = self.ax_.plot(
                self.k[far],
                np.full(int(far.sum()), edge),
                "^",
                color=BLACK,
                markersize=7,
                label=f"higher, up to {np.nanmax(self.score):.3g}",
            )
        chosen = self.score[self.k == self.best_k]
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
                label=f"chosen: k = {self.best_k}",
            )
        self.ax_.set(
            xscale="log",
            xlabel="Number of neighbours k",
            ylabel=f"{scoring_label(self.scoring, unit)}, lower is better",
        )
        plain_log_axis(self.ax_.xaxis, float(self.k[0]), float(self.k[-1]))
        legend_above(self.ax_)
        return self


def _upper_edge(score: Floats) -> float:
    """Return the highest score that is drawn as it is."""
    excess = score - np.nanmin(score)
    usual = float(np.nanmedian(excess))
    is_outlier = usual > 0 and np.nanmax(excess) > _FAR * usual
    return float(np.nanmin(score)) + _NEAR * usual if is_outlier else np.inf
