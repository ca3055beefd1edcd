"""What makes the rows of the explorer wide: as many rows as there is time for, the widest first."""

from __future__ import annotations

from time import monotonic
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._progress import Progress
from ibug._typing import Floats, Integers
from ibug.exceptions import InvalidInputError, MissingDependencyError
from ibug.explain import Attributor
from ibug.report._pack import pack

# One row must not take long: a small background, and few orders of the features.
_BACKGROUND = 30
_EVALUATIONS = 64
_MOST_FEATURES = 8


def widths(estimator: Any, X: Any, rows: Integers, std: Floats, seconds: float) -> dict[str, Any]:
    """Return what each feature does to σ, for as many of the explorer's rows as there is time for.

    Rows are compared with a sample of all rows of the report. Where nothing can be told, the reason is.

    Shapes: rows (n_shown,); std (n_shown,).
    """
    begin = monotonic()
    if seconds <= 0:
        return {"reason": "The report was written without it (width_seconds=0)."}
    try:
        least = 2 * int(X.shape[1]) + 1
        options: dict[str, Any] = {"n_background": _BACKGROUND, "n_evaluations": max(_EVALUATIONS, least)}
        background = X if _num_samples(X) > len(rows) else None  # so that too few rows are an error
        usable = np.flatnonzero(np.isfinite(std))
        widest = usable[np.argsort(-std[usable], kind="stable")]
        parts = Attributor(estimator, _safe_indexing(X, rows[widest]), background, **options)
        found = []
        with Progress("explaining widths", parts.n_rows, enabled=False) as progress:
            for each in parts:
                found.append(each)
                progress.advance(1)
                if monotonic() - begin > seconds:
                    break
    except (MissingDependencyError, InvalidInputError) as error:
        return {"reason": str(error)}
    values = np.stack([each.values for each in found])
    largest = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :_MOST_FEATURES]
    kept = np.take_along_axis(values, largest, axis=1)
    return {
        "names": parts.names,
        "compared": parts.n_background,
        "place": pack(widest[: len(found)], "int32"),
        "base": pack(np.exp([each.base for each in found]), "float64"),
        "feature": pack(largest, "int32"),
        "value": pack(kept, "float32"),
        "rest": pack(values.sum(axis=1) - kept.sum(axis=1), "float32"),
    }
