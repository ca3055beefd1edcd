"""The displays of ibug.plotting as PNG files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibug.plotting as p
from ibug._progress import Progress
from ibug._typing import Floats, Integers
from ibug.cli.screen import Session
from ibug.cli.tables import atomic
from ibug.describe import Predictions
from ibug.exceptions import InvalidInputError, MissingDependencyError

#: The number of rows whose densities are drawn: the first ones.
ROWS_OF_DENSITIES = 5
_DPI = 150


def require_matplotlib() -> None:
    """Import matplotlib to draw files, or say how to install it."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependencyError(f'--plots needs matplotlib: pip install "ibug-learn[plot]" ({error}).') from error
    matplotlib.use("Agg")


def draw_all(
    estimator: Any,
    X: Any,
    y: Floats,
    found: Predictions,
    plain: Predictions,
    indices: Integers,
    folder: Path,
    session: Session,
) -> list[str]:
    """Draw all displays of test rows that can be drawn; returns the files. Shapes: indices (n_drawn, k)."""
    import matplotlib.pyplot as plt

    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"--plots {folder}: this is a file; name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    makers = _makers(estimator, X, y, found, plain, indices)
    drawn = []
    with Progress("drawing", len(makers), enabled=False) as progress:
        for name, make in makers.items():
            try:
                display = make()
            except InvalidInputError as error:  # nothing was tuned, say, or there are too few rows
                session.note(f"no plot {name}: {error}")
                continue
            path = folder / f"{name}.png"
            with atomic(str(path)) as file:
                display.figure_.savefig(file, format="png", dpi=_DPI)
            plt.close(display.figure_)
            drawn.append(str(path))
            progress.advance(1)
    return drawn


def _makers(
    estimator: Any, X: Any, y: Floats, found: Predictions, plain: Predictions, indices: Integers
) -> dict[str, Callable[[], Any]]:
    """Return a function for each display, by the name of its file; none of them searches again."""
    distribution = found.distribution
    both = {"calibrated": distribution, "uncalibrated": plain.distribution}
    first = range(len(indices))
    targets = estimator.training_targets_[indices[:, : estimator.k_]]
    return {
        "calibration": lambda: p.CalibrationDisplay.from_predictions(y, both),
        "pit": lambda: p.PITDisplay.from_predictions(y, distribution),
        "intervals": lambda: p.IntervalDisplay.from_predictions(y, distribution, prediction=found.points),
        "spread_error": lambda: p.SpreadErrorDisplay.from_predictions(y, distribution),
        "densities": lambda: p.DensityDisplay.from_predictions(
            y[: len(first)], distribution[: len(first)], targets, rows=first
        ),
        "leaf_density": lambda: p.LeafDensityDisplay.from_estimator(estimator, X),
        "tuning": lambda: p.TuningDisplay.from_estimator(estimator),
    }
