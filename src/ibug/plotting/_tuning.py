"""Which neighbours count: the choice of k, the share of the trees, and how full leaves are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats, Integers
from ibug._validation import check_at_least_one, check_finite, check_methods
from ibug.describe import chosen_curve, highest_drawn, named_curves, percent, scoring_label, tuning_curves
from ibug.exceptions import InvalidInputError
from ibug.explain import leaf_density
from ibug.metrics import resolve_scoring
from ibug.neighbors import Sampling
from ibug.plotting._base import (
    BLACK,
    GREY,
    VERMILLION,
    Display,
    add_grid,
    legend_above,
    named,
    one_of,
    percent_axis,
    plain_log_axis,
    pyplot,
    series_style,
)


@dataclass(eq=False, repr=False)
class TuningDisplay(Display):
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
        ax, **options
            As in `plot`.
        """
        pyplot()
        check_methods(estimator, "tuning_", "k_", "scoring")
        if not np.any(estimator.tuning_["k"]):
            raise InvalidInputError(
                f"k={estimator.k_} was given, not tuned, so there is no curve: "
                'fit IBUGRegressor(..., k="tune") with validation rows.'
            )
        chosen = chosen_curve(estimator.tuning_, estimator.distribution_, estimator.spread_)
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
        ax, **options
            As in `plot`.
        """
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
        self._start(ax)
        self._plot_curves()
        several = len(self.curves) > 1
        k, score = self.curves[self.best_family]
        chosen = score[k == self.best_k]
        self.best_: Any = None
        if chosen.size:
            self.ax_.axvline(self.best_k, color=VERMILLION, linestyle="--", linewidth=1.2)
            star = {"color": VERMILLION, "markeredgecolor": "white", "markersize": 16, "zorder": 4}
            (self.best_,) = self.ax_.plot(self.best_k, chosen[0], "*", label=self._chosen_label(several), **star)
        self.ax_.set(xscale="log", xlabel="Number of neighbours k")
        self.ax_.set_ylabel(f"{scoring_label(self.scoring, unit)}, lower is better")
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
            else:  # behind the others, with one entry in the legend
                label = f"{len(others)} others" if family == others[0] else "_"
                faint = {"color": GREY, "alpha": 0.6, "linewidth": 0.9, "zorder": 1.5}
                self.lines_ += self.ax_.plot(k, near, ".-", label=label, **faint)
        self.above_: Any = None
        far = np.unique(every_k[every_score > edge])
        if far.size:
            label = f"higher, up to {np.nanmax(every_score):.3g}"
            (self.above_,) = self.ax_.plot(far, np.full(far.size, edge), "^", color=BLACK, markersize=7, label=label)


FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(eq=False, repr=False)
class TreeFractionDisplay(Display):
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
            A fitted ``IBUGRegressor``. Its settings are used, except these two of `sampling`.
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
        check_methods(estimator, "estimator_", "get_params", "predict_dist")
        check_at_least_one(n_repeats, "n_repeats")
        shares = _check_fractions(fractions)
        if isinstance(orders, str) or not len(orders):
            raise InvalidInputError(f'orders must be a list of "first", "random" and "last"; got {orders!r}.')
        score = resolve_scoring(estimator.scoring)
        settings = {**estimator.get_params(deep=False), "estimator": estimator.estimator_, "prefit": True}

        def fitted(share: float, order: str) -> Any:
            sampling = replace(settings["sampling"] or Sampling(), tree_fraction=share, tree_order=order)
            sampled = type(estimator)(**{**settings, "sampling": sampling})
            return sampled.fit(X_train, y_train, X_val=X_val, y_val=y_val)

        results = np.empty((2, len(orders), len(shares)))
        for column, share in enumerate(shares):
            # With all trees their order does not matter: one measurement serves all.
            regressors = [fitted(float(share), order) for order in (orders[:1] if share == 1 else orders)]
            predicted, seconds = _timed([partial(each.predict_dist, X_test) for each in regressors], n_repeats)
            results[0, :, column] = [score(y_test, each) for each in predicted]
            results[1, :, column] = seconds / _num_samples(X_test)
        scores, times = (dict(zip(orders, each, strict=True)) for each in results)
        return cls.from_results(shares, scores, times, scoring=estimator.scoring, ax=ax, **options)

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
        ax, **options
            As in `plot`.
        """
        shares = _check_fractions(fractions)
        if not scores or list(scores) != list(seconds):
            raise InvalidInputError(
                f"scores and seconds must have the same names; got {list(scores)}, {list(seconds)}."
            )
        order = np.argsort(shares)

        def column(values: ArrayLike, name: str) -> Floats:
            return check_finite(values, name, size=len(shares))[order]

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
        self.figure_ = upper.figure
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
            percent_axis(each.xaxis)
        upper.tick_params(labelbottom=False)
        legend_above(upper)
        return self


def _timed(works: Sequence[Callable[[], Any]], n_repeats: int) -> tuple[list[Any], Floats]:
    """Return what each work returns, and the shortest of its times in seconds.

    They take turns, so that other work of the machine disturbs all of them equally.
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
    ax.set_axis_off()
    return ax.inset_axes([0, 0.54, 1, 0.46]), ax.inset_axes([0, 0, 1, 0.46])


def _check_fractions(fractions: ArrayLike) -> Floats:
    shares = check_finite(fractions, "fractions")
    if np.any((shares <= 0) | (shares > 1)):
        raise InvalidInputError(f"fractions must be above 0 and up to 1; got {fractions!r}.")
    return shares


WHAT = ("tree", "row")


@dataclass(eq=False, repr=False)
class LeafDensityDisplay(Display):
    """The share of the training rows that are in the same leaf, along the trees or over the rows (paper, section C.5).

    Dense leaves carry little information: a tree that has over half of the rows in a leaf hardly separates near rows
    from far ones.

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
        cls, estimator: Any, X: Any, *, per: str = "tree", name: str | None = None, ax: Any = None, **options: Any
    ) -> LeafDensityDisplay:
        """Draw the leaf density of an ``IBUGRegressor``, or of several.

        Parameters
        ----------
        estimator : fitted ``IBUGRegressor``, or mapping of names to such
            The estimators.
        X
            Rows that fall into the leaves.
        per : {"tree", "row"}
            A curve along the trees, or a histogram of the rows.
        name
            The name of a single curve; by default the model's class.
        ax, **options
            As in `plot`.
        """
        pyplot()
        one_of(per, "per", WHAT)
        model = getattr(estimator, "estimator_", estimator)
        estimators = named(estimator, name, type(model).__name__)
        density = {key: leaf_density(check_methods(each, "kneighbors"), X, per=per) for key, each in estimators.items()}
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
        ax, **options
            As in `plot`.
        """
        one_of(per, "per", WHAT)
        shares = {key: check_finite(values, f"density[{key!r}]") for key, values in named(density, None, "").items()}
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
        check_at_least_one(n_bins, "n_bins")
        self._start(ax)
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
        percent_axis(self.ax_.yaxis)
        if self.per == "tree":
            self.ax_.set(xlabel="Tree", ylabel=f"{share}, mean over rows")
        else:
            self.ax_.set(xlabel=f"{share}, mean over trees", ylabel="Share of the rows")
            percent_axis(self.ax_.xaxis)
        self.ax_.set_ylim(bottom=0)


def _running_mean(values: Floats) -> Floats:
    """Return the mean of each value and its neighbours, a twentieth of all together; fewer at the ends."""
    reach = len(values) // 40
    sums = np.concatenate([[0.0], np.cumsum(values)])
    place = np.arange(len(values))
    first, last = np.maximum(place - reach, 0), np.minimum(place + reach + 1, len(values))
    return np.asarray((sums[last] - sums[first]) / (last - first))
