"""New rows compared with the validation rows: data drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug._validation import check_methods
from ibug.exceptions import InvalidInputError
from ibug.metrics import Drift
from ibug.plotting._base import BLACK, BLUE, VERMILLION, Display, legend_above, one_of, pyplot

_LABELS = {
    "similarity": "Affinity score: similarity to the training data",
    "prediction": "Prediction",
    "pit": "Probability integral transform F(y)",
}


@dataclass(eq=False, repr=False)
class DriftDisplay(Display):
    """Shares of rows with at most a value, of new rows and of validation rows: close to one curve without data drift.

    The largest distance between them, which the dotted line marks, is what Kolmogorov and Smirnov's test looks at.

    Attributes
    ----------
    values, before : ndarray of shape (n_rows,) and (n,)
        Affinity scores, predictions or transforms of the rows and of the validation rows, ascending.
    kind : {"similarity", "prediction", "pit"}
        Which of them.
    p_value : float
        Of the test, not corrected for others.
    ax_, figure_, curves_, gap_
        What was drawn.
    """

    values: Floats
    before: Floats
    kind: str
    p_value: float

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike | None = None, *, kind: str = "prediction", ax: Any = None
    ) -> DriftDisplay:
        """Draw how rows compare with the validation rows of an estimator.

        Parameters
        ----------
        estimator
            A fitted ``IBUGRegressor``.
        X, y
            The rows, and their observed values where these are known.
        kind : {"similarity", "prediction", "pit"}
            What to compare, ``"prediction"`` by default; ``"pit"`` needs observed values.
        ax
            Axes to draw on; ``None`` makes a new figure.
        """
        pyplot()
        return cls.from_results(check_methods(estimator, "monitor").monitor(X, y), kind=kind, ax=ax)

    @classmethod
    def from_results(cls, drift: Drift, *, kind: str = "prediction", ax: Any = None) -> DriftDisplay:
        """Draw what ``monitor`` has returned.

        Parameters
        ----------
        drift : Drift
            The comparisons.
        kind, ax
            As in `from_estimator`.
        """
        one_of(kind, "kind", tuple(_LABELS))
        if kind not in drift.samples:
            have = f"There are samples of: {', '.join(drift.samples)}."
            raise InvalidInputError(
                f'kind="pit" needs observed values: monitor(X, y). {have}'
                if kind == "pit"
                else f"kind={kind!r} is not compared by this model; see monitor. {have}"
            )
        values, before = drift.samples[kind]
        return cls(np.sort(values), np.sort(before), kind, drift[kind].p_value).plot(ax)

    def plot(self, ax: Any = None) -> DriftDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        """
        self._start(ax)
        lines = (self.before, BLUE, "-", "validation rows"), (self.values, VERMILLION, "--", f"{len(self.values)} rows")
        self.curves_: Any = []
        for x, color, dashes, label in lines:
            shares_below = np.arange(1, len(x) + 1) / len(x)
            self.curves_ += self.ax_.step(x, shares_below, where="post", color=color, linestyle=dashes, label=label)
        every = np.unique(np.concatenate([self.before, self.values]))
        shares = [np.searchsorted(x, every, side="right") / len(x) for x in (self.before, self.values)]
        widest = int(np.argmax(np.abs(shares[0] - shares[1])))
        self.gap_: Any = self.ax_.plot(
            [every[widest]] * 2,
            [shares[0][widest], shares[1][widest]],
            color=BLACK,
            linestyle=":",
            label=f"largest distance, p = {self.p_value:.2g}",
        )[0]
        self.ax_.set(xlabel=_LABELS[self.kind], ylabel="Share of rows at or below", ylim=(0, 1))
        legend_above(self.ax_)
        return self
