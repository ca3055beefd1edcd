"""Score and prediction time against the share of the trees that count for affinities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug.describe import at_least_one, finite, require, scoring_label
from ibug.exceptions import InvalidInputError
from ibug.metrics import resolve_scoring
from ibug.plotting._base import axes, pyplot
from ibug.plotting._style import add_grid, legend_above, series_style

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(eq=False, repr=False)
class TreeFractionDisplay:
    """What sampling trees costs in score and gains in time (paper, sections 4.1 and 5.5).

    Attributes
    ----------
    fractions : ndarray of shape (n_fractions,)
        The shares τ of the trees, ascending.
    scores : dict of ndarray of shape (n_fractions,)
        The test score by order of the trees; lower is better.
    seconds : dict of ndarray of shape (n_fractions,)
        The time to predict one row, likewise. It includes the model's own prediction, always with all trees.
    scoring : str or function
        The score.
    ax_ : tuple of two axes
        That of the scores, that of the times.
    figure_, score_lines_, time_lines_
        What was drawn.
    """

    fractions: Floats
    scores: dict[str, Floats]
    seconds: dict[str, Floats]
    scoring: Any = "crps"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_train: Any,
        y_train: ArrayLike,
        X_val: Any,
        y_val: ArrayLike,
        X_test: Any,
        y_test: ArrayLike,
        *,
        fractions: Sequence[float] = FRACTIONS,
        orders: Sequence[str] = ("first", "random", "last"),
        n_repeats: int = 5,
        ax: Any = None,
        **options: Any,
    ) -> TreeFractionDisplay:
        """Index the training rows anew with each share of the trees, tune, and measure on test rows.

        The model is not trained again.

        Parameters
        ----------
        estimator
            A fitted ``IBUGRegressor``. Its settings are used, except `tree_fraction` and `tree_order`.
        X_train, y_train
            The rows that its model was trained on.
        X_val, y_val
            Rows to tune and calibrate on.
        X_test, y_test
            Rows to measure on.
        fractions
            Shares of the trees, above 0 and up to 1.
        orders
            Which trees: any of ``"first"``, ``"random"``, ``"last"``, ``"gain"``.
        n_repeats
            The number of measurements; the shortest time counts.
        ax, **options
            As in `from_results`.
        """
        pyplot()
        require(estimator, "estimator_", "get_params", "predict_dist")
        at_least_one(n_repeats, "n_repeats")
        shares = _check_fractions(fractions)
        if isinstance(orders, str) or not len(orders):
            raise InvalidInputError(f'orders must be a list of "first", "random" and "last"; got {orders!r}.')
        score = resolve_scoring(estimator.scoring)
        settings = {**estimator.get_params(deep=False), "estimator": estimator.estimator_, "prefit": True}

        def fitted(share: float, order: str) -> Any:
            sampled = type(estimator)(**{**settings, "tree_fraction": share, "tree_order": order})
            return sampled.fit(X_train, y_train, X_val=X_val, y_val=y_val)

        results = np.empty((2, len(orders), len(shares)))
        for column, share in enumerate(shares):
            # With all trees their order does not matter: one measurement serves all.
            regressors = [fitted(float(share), order) for order in (orders[:1] if share == 1 else orders)]
            predicted, seconds = _timed([partial(each.predict_dist, X_test) for each in regressors], n_repeats)
            results[0, :, column] = [score(y_test, each) for each in predicted]
            results[1, :, column] = seconds / _num_samples(X_test)
        return cls.from_results(
            shares,
            dict(zip(orders, results[0], strict=True)),
            dict(zip(orders, results[1], strict=True)),
            scoring=estimator.scoring,
            ax=ax,
            **options,
        )

    @classmethod
    def from_results(
        cls,
        fractions: ArrayLike,
        scores: Mapping[str, ArrayLike],
        seconds: Mapping[str, ArrayLike],
        *,
        scoring: Any = "crps",
        ax: Any = None,
        **options: Any,
    ) -> TreeFractionDisplay:
        """Draw what was measured already.

        Parameters
        ----------
        fractions : array-like of shape (n_fractions,)
            The shares of the trees.
        scores : mapping of str to array-like of shape (n_fractions,)
            The scores by name of the curve: the order of the trees, say.
        seconds : mapping of str to array-like of shape (n_fractions,)
            The seconds per row, of the same names.
        scoring
            The score's name, or the function.
        ax : axes, or a pair of axes
            Where to draw: the place of one is divided into two; ``None`` makes a new figure.
        **options
            Passed on to `plot`.
        """
        pyplot()
        shares = _check_fractions(fractions)
        if not scores or list(scores) != list(seconds):
            raise InvalidInputError(
                f"scores and seconds must have the same names; got {list(scores)}, {list(seconds)}."
            )
        order = np.argsort(shares)

        def column(values: ArrayLike, name: str) -> Floats:
            return finite(values, name, size=len(shares))[order]

        return cls(
            fractions=shares[order],
            scores={name: column(values, f"scores[{name!r}]") for name, values in scores.items()},
            seconds={name: column(values, f"seconds[{name!r}]") for name, values in seconds.items()},
            scoring=scoring,
        ).plot(ax, **options)

    def plot(self, ax: Any = None, *, unit: str | None = None) -> TreeFractionDisplay:
        """Draw.

        Parameters
        ----------
        ax : axes, or a pair of axes
            Where to draw: the place of one is divided into two; ``None`` makes a new figure.
        unit
            The unit of y, for the label of the axis where the score is the CRPS.
        """
        upper, lower = self.ax_ = _two_axes(ax)
        self.figure_: Any = upper.figure
        add_grid(upper)
        add_grid(lower)
        slowest = max(float(times.max()) for times in self.seconds.values())
        size, time_unit = next((each for each in _TIME_UNITS if slowest >= each[0]), _TIME_UNITS[-1])
        self.score_lines_: list[Any] = []
        self.time_lines_: list[Any] = []
        for number, name in enumerate(self.scores):
            style = series_style(number)
            self.score_lines_ += upper.plot(self.fractions, self.scores[name], label=f"{name} trees", **style)
            self.time_lines_ += lower.plot(self.fractions, self.seconds[name] / size, **style)
        upper.set(ylabel=scoring_label(self.scoring, unit))
        lower.set(xlabel="Share of the trees τ", ylabel=f"Prediction time\nper row ({time_unit})")
        lower.set_ylim(bottom=0)
        for each in (upper, lower):
            each.set_xlim(0, 1.02)
            each.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        upper.tick_params(labelbottom=False)
        legend_above(upper)
        return self


def _timed(works: Sequence[Callable[[], Any]], n_repeats: int) -> tuple[list[Any], Floats]:
    """Return what each work returns, and the shortest of its times in seconds.

    They take turns, so that other work of the machine disturbs all of them alike.
    """
    times = np.empty((n_repeats, len(works)))
    for i in range(n_repeats):
        results = []
        for j, work in enumerate(works):
            start = perf_counter()
            results.append(work())
            times[i, j] = perf_counter() - start
    return results, times.min(axis=0)


def _two_axes(ax: Any) -> tuple[Any, Any]:
    if ax is None:
        figure = pyplot().figure(figsize=(6.4, 5.6), layout="constrained")
        upper, lower = figure.subplots(2, 1)
        return upper, lower
    if np.size(ax) == 2:
        upper, lower = np.ravel(ax)
        return upper, lower
    place = axes(ax)
    place.set_axis_off()
    return place.inset_axes([0, 0.54, 1, 0.46]), place.inset_axes([0, 0, 1, 0.46])


def _check_fractions(fractions: ArrayLike) -> Floats:
    shares = finite(fractions, "fractions")
    if np.any((shares <= 0) | (shares > 1)):
        raise InvalidInputError(f"fractions must be above 0 and up to 1; got {fractions!r}.")
    return shares
