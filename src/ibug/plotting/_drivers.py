"""Which features drive the spread, beside which drive the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ibug._typing import Floats
from ibug.describe import at_least_one
from ibug.explain import Drivers, drivers
from ibug.plotting._base import axes, pyplot
from ibug.plotting._style import BLUE, ORANGE, add_grid, legend_above


@dataclass(eq=False, repr=False)
class DriversDisplay:
    """The share of each feature in what moves the spread, beside its share in what moves the prediction.

    Attributes
    ----------
    names : list of str
        The features.
    spread, prediction : ndarray of shape (n_features,)
        Their shares.
    ax_, figure_, bars_
        What was drawn.
    """

    names: list[str]
    spread: Floats
    prediction: Floats

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, background: Any = None, *, n_features: int = 10, ax: Any = None, **options: Any
    ) -> DriversDisplay:
        """Explain spread and prediction of the rows of X, and draw the mean effects of the features.

        Parameters
        ----------
        estimator, X, background
            As in `ibug.explain.drivers`.
        n_features, ax
            As in `plot`.
        **options
            Of `ibug.explain.drivers`.
        """
        pyplot()
        return cls.from_results(drivers(estimator, X, background, **options), n_features=n_features, ax=ax)

    @classmethod
    def from_results(cls, results: Drivers, *, n_features: int = 10, ax: Any = None) -> DriversDisplay:
        """Draw what `ibug.explain.drivers` has returned.

        Parameters
        ----------
        results : Drivers
            The mean effects.
        n_features, ax
            As in `plot`.
        """
        pyplot()
        display = cls(results.names, results.spread_share, results.prediction_share)
        return display.plot(ax, n_features=n_features)

    def plot(self, ax: Any = None, *, n_features: int = 10) -> DriversDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        n_features
            The number of features, those that matter most to either.
        """
        most = np.argsort(-np.maximum(self.spread, self.prediction), kind="stable")
        chosen = most[: at_least_one(n_features, "n_features")]
        chosen = chosen[np.argsort(-self.spread[chosen], kind="stable")]
        places = np.arange(len(chosen), dtype=np.float64)[::-1]
        self.ax_: Any = axes(ax, figsize=(6.4, 1.5 + 0.42 * len(chosen)))
        self.figure_: Any = self.ax_.figure
        add_grid(self.ax_)
        self.ax_.grid(visible=False, axis="y")
        style: dict[str, Any] = {"height": 0.38, "edgecolor": "white"}
        self.bars_: list[Any] = [
            self.ax_.barh(places + 0.19, self.spread[chosen], color=BLUE, label="moves the spread", **style),
            self.ax_.barh(
                places - 0.19,
                self.prediction[chosen],
                color=ORANGE,
                hatch="////",
                label="moves the prediction",
                **style,
            ),
        ]
        self.ax_.set(xlabel="Share of all effects", ylabel="Feature")
        self.ax_.set(yticks=places, yticklabels=[self.names[j] for j in chosen])
        self.ax_.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        self.ax_.tick_params(axis="y", length=0)
        legend_above(self.ax_)
        return self
