"""The displays of ibug.plotting as PNG files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibug.plotting as p
from ibug._progress import Progress
from ibug.cli._session import Session
from ibug.cli._writing import atomic
from ibug.exceptions import InvalidInputError, MissingDependencyError

_ROWS_OF_DENSITIES = 5
_DPI = 150


def require_matplotlib() -> None:
    """Import matplotlib, for files alone; or say how to install it."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependencyError(f'--plots needs matplotlib: pip install "ibug[plot]" ({error}).') from error
    matplotlib.use("Agg")


def draw_all(estimator: Any, X: Any, y: Any, folder: Path, unit: str, session: Session) -> list[str]:
    """Draw what can be drawn of test rows; returns the files."""
    import matplotlib.pyplot as plt

    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"--plots {folder}: this is a file; name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    makers: dict[str, Callable[[], Any]] = {
        "calibration": lambda: p.CalibrationDisplay.from_estimator(
            {"calibrated": estimator, "uncalibrated": estimator.uncalibrated()}, X, y
        ),
        "pit": lambda: p.PITDisplay.from_estimator(estimator, X, y),
        "intervals": lambda: p.IntervalDisplay.from_estimator(estimator, X, y),
        "spread_error": lambda: p.SpreadErrorDisplay.from_estimator(estimator, X, y),
        "densities": lambda: p.DensityDisplay.from_estimator(
            estimator, X, y, rows=range(min(_ROWS_OF_DENSITIES, len(y)))
        ),
        "leaf_density": lambda: p.LeafDensityDisplay.from_estimator(estimator, X),
        "tuning": lambda: p.TuningDisplay.from_estimator(estimator),
    }
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
