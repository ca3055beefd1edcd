"""All diagnostics of an estimator in one figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._validation import as_rows, check_methods
from ibug.describe import Predictions, number, percent, predict_rows
from ibug.exceptions import InvalidInputError
from ibug.metrics import Scores, as_targets, evaluate
from ibug.plotting._base import pyplot
from ibug.plotting._calibration import CalibrationDisplay, PITDisplay
from ibug.plotting._density import DensityDisplay
from ibug.plotting._intervals import IntervalDisplay, SpreadErrorDisplay
from ibug.plotting._tuning import LeafDensityDisplay, TuningDisplay

_MOSAIC = [
    ["calibration", "pit", "scores"],
    ["intervals", "intervals", "spread_error"],
    ["densities", "tuning", "leaf_density"],
]
_TITLES = {
    "calibration": "Do intervals hold what they promise?",
    "pit": "Where do observed values fall?",
    "scores": "Scores",
    "intervals": "Intervals of rows, sorted by prediction",
    "spread_error": "Are uncertain rows the ones with large errors?",
    "densities": "Predicted densities",
    "tuning": "How k was chosen",
    "leaf_density": "How full are the leaves?",
}
_SHOWN = ("rmse", "mae", "crps", "nll", "mace")
_LEVELS = (0.5, 0.8, 0.9, 0.95)
_ROWS_OF_DENSITIES = 5


@dataclass(eq=False, repr=False)
class Diagnosis:
    """What `diagnose` has drawn.

    Parameters
    ----------
    displays : dict
        The displays by name: ``calibration``, ``pit``, ``intervals``, ``spread_error``, ``densities``, ``tuning`` and
        ``leaf_density``, without those that could not be drawn.
    reasons : dict of str
        Why the others could not be drawn.
    scores : Scores
        All scores.

    Attributes
    ----------
    figure_, axes_ : Figure, dict of Axes
        What was drawn, and the axes by name.
    """

    displays: dict[str, Any]
    reasons: dict[str, str]
    scores: Scores
    figure_: Any = field(init=False)
    axes_: dict[str, Any] = field(init=False)


def diagnose(
    estimator: Any, X: Any, y: ArrayLike, *, coverage: float = 0.9, unit: str | None = None, figure: Any = None
) -> Diagnosis:
    """Draw all diagnostics of an estimator on rows that it has not seen: one figure, one search.

    These are calibration curve, PIT, intervals, spread against error, densities of the first five rows, the choice of
    k, leaf density, and the scores. Where an estimator does not have something, the reason is in its place.

    Parameters
    ----------
    estimator
        A fitted ``IBUGRegressor``, or another estimator with ``predict_dist`` and ``predict``.
    X, y
        The rows and their observed values.
    coverage
        The coverage of the intervals.
    unit
        The unit of y, for the labels of axes.
    figure
        A figure of matplotlib to draw on; ``None`` makes a new one.
    """
    plt = pyplot()
    check_methods(estimator, "predict_dist", "predict")
    X, values = as_rows(X), as_targets(y)
    # Predictions with and without calibration, and the neighbours of the first rows, if the estimator has some.
    first = np.arange(min(_ROWS_OF_DENSITIES, len(values)))
    found = predict_rows(estimator, X, listed=first, uncalibrated=True)
    scores = evaluate(found, X, values, levels=sorted({*_LEVELS, float(coverage)}))
    figure = plt.figure(figsize=(18, 15), layout="constrained") if figure is None else figure
    axes = figure.subplot_mosaic(_MOSAIC)
    displays, reasons = {}, {}
    for name, make in _makers(estimator, X, values, found, coverage, unit).items():
        try:
            displays[name] = make(axes[name])
        except InvalidInputError as error:  # nothing was tuned, say, or it has no leaves
            reasons[name] = str(error)
            _write_reason(axes[name], reasons[name])
    _write_scores(axes["scores"], scores)
    for name, ax in axes.items():
        _title(ax, _TITLES[name], in_legend=name != "calibration")  # whose legend is inside
    diagnosis = Diagnosis(displays, reasons, scores)
    diagnosis.figure_, diagnosis.axes_ = figure, axes
    return diagnosis


def _makers(
    estimator: Any, X: Any, y: Any, found: Predictions, coverage: float, unit: str | None
) -> dict[str, Callable[[Any], Any]]:
    """Return a function of axes for each display."""
    distribution, plain = found.distribution, found.plain_neighbors()
    both = {"predicted": distribution}
    if plain is not None:
        both = {"ibug": distribution, "plain neighbours": plain.distribution}
    rows, targets = range(min(_ROWS_OF_DENSITIES, len(y))), None
    if found.nearest is not None:
        targets = estimator.training_targets_[found.nearest.indices[:, : estimator.k_]]
    return {
        "calibration": lambda ax: CalibrationDisplay.from_predictions(y, both, ax=ax),
        "pit": lambda ax: PITDisplay.from_predictions(y, distribution, ax=ax),
        "intervals": lambda ax: IntervalDisplay.from_predictions(
            y, distribution, prediction=found.points, coverage=coverage, ax=ax, unit=unit
        ),
        "spread_error": lambda ax: SpreadErrorDisplay.from_predictions(y, distribution, ax=ax, unit=unit),
        "densities": lambda ax: DensityDisplay.from_predictions(
            y[: len(rows)], distribution[: len(rows)], targets, rows=rows, ax=ax, unit=unit
        ),
        "tuning": lambda ax: TuningDisplay.from_estimator(estimator, ax=ax, unit=unit),
        "leaf_density": lambda ax: LeafDensityDisplay.from_estimator(estimator, X, ax=ax),
    }


def _title(ax: Any, text: str, *, in_legend: bool) -> None:
    """Write a title at the left; that of a legend which is above the axes is above both."""
    legend = ax.get_legend()
    if legend is None or not in_legend:
        ax.set_title(text, loc="left", fontweight="bold")
    else:
        legend.set_title(text, {"weight": "bold", "size": ax.title.get_fontsize()})
        legend.set_alignment("left")


def _write_reason(ax: Any, text: str) -> None:
    ax.set_axis_off()
    ax.text(0.0, 0.95, fill(text, 52), transform=ax.transAxes, va="top")


def _write_scores(ax: Any, scores: Scores) -> None:
    """Write scores, and coverage and mean width of intervals, as a table."""
    lines = [f"{scores.n_rows:,} rows", ""]
    lines += [f"{name.upper():<12}{number(scores[name]):>12}" for name in _SHOWN]
    if np.isfinite(scores["crps_skill"]):
        lines.append(f"{'CRPS skill':<12}{percent(scores['crps_skill'], 1):>12}")
    lines += ["", f"{'interval':<12}{'held':>12}{'mean width':>14}"]
    for level in [name.removeprefix("coverage_") for name in scores if name.startswith("coverage_")]:
        held, width = percent(scores[f"coverage_{level}"], 1), number(scores[f"width_{level}"])
        lines.append(f"{level + ' %':<12}{held:>12}{width:>14}")
    ax.set_axis_off()
    ax.text(0.0, 0.95, "\n".join(lines), transform=ax.transAxes, va="top", family="monospace", fontsize="large")
