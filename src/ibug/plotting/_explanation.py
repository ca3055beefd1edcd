"""What makes distributions wide or narrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug._validation import check_at_least_one, check_methods
from ibug.describe import number
from ibug.exceptions import InvalidInputError
from ibug.explain import Drivers, drivers, explain_width
from ibug.plotting._base import BLACK, BLUE, ORANGE, VERMILLION, Display, legend_above, percent_axis, pyplot


@dataclass(eq=False, repr=False)
class WidthDisplay(Display):
    """What each feature of one row does to σ: it widens the distribution, or narrows it.

    The factors multiply: the typical σ of the background times all factors is the row's σ.

    Attributes
    ----------
    names : list of str
        The features.
    shown : list of str
        Their values in this row, as text.
    values : ndarray of shape (n_features,)
        Shapley values of log σ.
    base : float
        The mean of log σ over the background.
    ax_, figure_, bars_, texts_
        What was drawn.
    """

    names: list[str]
    shown: list[str]
    values: Floats
    base: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        background: Any = None,
        *,
        row: int = 0,
        n_features: int = 8,
        ax: Any = None,
        **options: Any,
    ) -> WidthDisplay:
        """Explain the width of one row, and draw it.

        Parameters
        ----------
        estimator
            A fitted probabilistic regressor of ibug.
        X : array-like or data frame of shape (n_rows, n_features)
            The rows to choose from.
        background : array-like or data frame, optional
            The rows to compare with, the training rows say; by default those of X.
        row
            The number of the row, from 0.
        n_features, ax
            As in `plot`.
        **options
            Of `ibug.explain.explain_width`.
        """
        pyplot()
        check_methods(estimator, "predict_dist")
        chosen = _safe_indexing(X, [_checked_row(row, _num_samples(X))])
        found = explain_width(estimator, chosen, X if background is None else background, **options)
        return cls.from_results(found, n_features=n_features, ax=ax)

    @classmethod
    def from_results(cls, explanation: Any, *, row: int = 0, n_features: int = 8, ax: Any = None) -> WidthDisplay:
        """Draw one row of what ``explain_width`` returned for log σ.

        Parameters
        ----------
        explanation : shap.Explanation
            Of at least one row.
        row, n_features, ax
            As in `from_estimator`.
        """
        i = _checked_row(row, len(explanation.values))
        data = explanation.data if explanation.display_data is None else explanation.display_data
        names = [str(name) for name in explanation.feature_names]
        shown = [_text(value) for value in data[i]]
        base = float(np.ravel(explanation.base_values)[i])
        return cls(names, shown, np.asarray(explanation.values[i], np.float64), base).plot(ax, n_features=n_features)

    def plot(self, ax: Any = None, *, n_features: int = 8) -> WidthDisplay:
        """Draw.

        Parameters
        ----------
        ax
            Axes to draw on; ``None`` makes a new figure.
        n_features
            The number of features that have a bar of their own, those with the largest effect; the others share one.
        """
        order = np.argsort(-np.abs(self.values), kind="stable")
        own, rest = order[: check_at_least_one(n_features, "n_features")], order[n_features:]
        labels = [f"{self.names[j]} = {self.shown[j]}" for j in own]
        values = list(self.values[own])
        if len(rest):
            labels.append(f"{len(rest)} other features")
            values.append(float(self.values[rest].sum()))
        places = np.arange(len(labels))[::-1]
        self._start(ax, figsize=(6.4, 1.5 + 0.34 * len(labels)))
        self.bars_: list[Any] = []
        self.texts_: list[Any] = []
        for widens, color, label, hatch in ((True, VERMILLION, "widens", None), (False, BLUE, "narrows", "////")):
            chosen = [i for i, value in enumerate(values) if (value > 0) == widens and value != 0]
            if chosen:
                style = {"color": color, "label": label, "height": 0.68, "hatch": hatch, "edgecolor": "white"}
                self.bars_.append(self.ax_.barh(places[chosen], [values[i] for i in chosen], **style))
        for place, value in zip(places, values, strict=True):
            offset, side = (4, "left") if value >= 0 else (-4, "right")
            where = {"xytext": (offset, 0), "textcoords": "offset points", "ha": side, "va": "center"}
            self.texts_.append(self.ax_.annotate(f"× {np.exp(value):.2f}", (value, place), **where))
        self.ax_.axvline(0.0, color=BLACK, linewidth=0.8)
        self.ax_.margins(x=0.18)
        typical, actual = np.exp([self.base, self.base + self.values.sum()]).tolist()
        self.ax_.set_xlabel(f"Factor of σ: typical {number(typical, 3)}, of this row {number(actual, 3)}")
        self.ax_.set_ylabel("Feature of this row")
        self._label_rows(places, labels)
        low, high = self.ax_.get_xlim()
        self.ax_.set_xticks(_ticks(low, high))
        self.ax_.set_xlim(low, high)
        self.ax_.xaxis.set_major_formatter(lambda value, _: f"× {np.exp(value).round(2):g}")
        if self.bars_:
            legend_above(self.ax_)
        return self


def _ticks(low: float, high: float) -> Floats:
    """Return the logarithms of round factors between two logarithms, 1 among them, not too close together."""
    kept = [0.0]
    for step in np.log([1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100]):
        if step - kept[-1] > (high - low) / 9:
            kept.append(float(step))
    ticks: Floats = np.array([*[-each for each in kept[:0:-1]], *kept])
    return ticks[(low <= ticks) & (ticks <= high)]


def _checked_row(row: Any, n: int) -> int:
    if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not 0 <= row < n:
        raise InvalidInputError(f"row must be a number from 0 to {n - 1}, as there are {n} rows; got {row!r}.")
    return int(row)


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating, int, np.integer)) and not isinstance(value, bool):
        return "missing" if value != value else f"{value:.4g}"
    return "missing" if value is None else str(value)


@dataclass(eq=False, repr=False)
class DriversDisplay(Display):
    """The share of each feature in what moves the spread, and in what moves the prediction.

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
        return cls(results.names, results.spread_share, results.prediction_share).plot(ax, n_features=n_features)

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
        chosen = most[: check_at_least_one(n_features, "n_features")]
        chosen = chosen[np.argsort(-self.spread[chosen], kind="stable")]
        places = np.arange(len(chosen), dtype=np.float64)[::-1]
        self._start(ax, figsize=(6.4, 1.5 + 0.42 * len(chosen)))
        self.bars_: list[Any] = []
        for shares, shift, color, hatch, what in (
            (self.spread, 0.19, BLUE, None, "spread"),
            (self.prediction, -0.19, ORANGE, "////", "prediction"),
        ):
            style = {"height": 0.38, "color": color, "hatch": hatch, "edgecolor": "white"}
            self.bars_.append(self.ax_.barh(places + shift, shares[chosen], label=f"moves the {what}", **style))
        self.ax_.set(xlabel="Share of all effects", ylabel="Feature")
        self._label_rows(places, [self.names[j] for j in chosen])
        percent_axis(self.ax_.xaxis)
        legend_above(self.ax_)
        return self
