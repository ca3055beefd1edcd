"""Warnings at the line of the user, and those of infinite intervals."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import numpy as np

from ibug.exceptions import NarrowWarning, TooFewRowsWarning


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of ibug that has led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ibug":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


#: By the name of a conformal calibrator: the number of rows from which on an interval of coverage p has finite ends.
ROWS_FOR_COVERAGE: dict[str, Callable[[float], int]] = {
    "scale": lambda p: ceil(p / (1 - p) - 1e-9),
    "distribution": lambda p: ceil(2 / (1 - p) - 1 - 1e-9),
}


def warn_infinite(ends: Any, coverage: Any, action: str, *, joint: bool = False, conformal: Any = None) -> None:
    """Warn once of intervals or boxes that have infinite ends, whatever the number of rows.

    Shapes: ends (n_rows, 2); coverage (n_coverages,).
    """
    if np.isfinite(ends).all():
        return
    endless = np.isinf(np.asarray(ends).reshape(-1, np.size(coverage))).any(axis=0)
    least = float(np.min(np.ravel(coverage)[endless], initial=1 - 1e-9))
    if joint:
        # A box has the largest error of each validation row, as "scale" has the error of one target.
        warn_user(
            f"{action}: boxes of coverage {least:g} have infinite ends. Validation rows show how large boxes must be, "
            f"and there were too few for this coverage: it needs {ROWS_FOR_COVERAGE['scale'](least)} at least. Give "
            "more validation rows to fit, or ask for less coverage.",
            TooFewRowsWarning,
        )
        return
    calibrators = conformal if isinstance(conformal, (tuple, list)) else [] if conformal is None else [conformal]
    if calibrators and all(one.has_rows_for(least) for one in calibrators):
        _warn_other_reason(f"{action}: intervals of coverage {least:g} have infinite ends", calibrators)
        return
    needs = ", ".join(f'{rows(least)} with "{name}"' for name, rows in ROWS_FOR_COVERAGE.items())
    warn_user(
        f"{action}: intervals of coverage {least:g} have infinite ends. Conformal calibration cannot guarantee this "
        f"coverage with the few validation rows that it had: it needs {needs}. Give more validation rows to fit, ask "
        "for less coverage, or leave conformal out.",
        TooFewRowsWarning,
    )


def _warn_other_reason(found: str, calibrators: Sequence[Any]) -> None:
    """Warn of infinite ends that have another reason than the number of validation rows."""
    n_impossible = sum(one.n_impossible for one in calibrators)
    if n_impossible:
        warn_user(
            f"{found}. There were enough validation rows, but {n_impossible} of them have targets that their predicted "
            "distributions call impossible, and no finite interval is sure to hold such targets. Choose another "
            "distribution, 'auto' say, or ask for less coverage.",
            NarrowWarning,
        )
        return
    warn_user(
        f"{found}. Some of the new rows have likelihood ratios so large that the validation rows count too little "
        "beside them for this coverage. Give more validation rows like the new ones, or ask for less coverage.",
        TooFewRowsWarning,
    )
