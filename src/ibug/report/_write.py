"""Write the report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._inputs import as_rows, check_count, check_probabilities, check_targets
from ibug._progress import Progress
from ibug.exceptions import InvalidInputError
from ibug.persistence import replacing
from ibug.plotting._base import at_least_one, require
from ibug.report import _charts as charts
from ibug.report import _rows as explorer
from ibug.report._page import page, plotly_script
from ibug.report._predicted import Predicted, predict
from ibug.report._summary import Familiarity, caveats, described, headlines, interval_table, score_table

_MOST_NEIGHBORS = 100


def write(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    path: str | os.PathLike[str],
    *,
    X_train: Any = None,
    X_shown: Any = None,
    ids: Sequence[Any] | None = None,
    train_ids: Sequence[Any] | None = None,
    coverage: float = 0.9,
    n_neighbors: int = 10,
    max_rows: int = 2000,
    title: str | None = None,
    target: str = "target",
    data: str | None = None,
) -> Path:
    """Write a report on rows that the model has not seen: one HTML file that opens from disk, without a network.

    It tells in words and charts how good the predictions are, before and after calibration, and has an explorer that
    shows for each row its density, its interval, the training rows behind it and the features in which they differ.

    Parameters
    ----------
    estimator
        A fitted ``IBUGRegressor``. Others with ``predict_dist`` get a report without neighbours.
    X : array-like or data frame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Their observed values.
    path
        The file to write. It appears, or an older one is replaced, when everything is written.
    X_train : array-like or data frame of shape (n_train, n_features), optional
        The rows that the estimator was fitted on, to tell in which features a row differs from its neighbours. The
        estimator itself does not keep them; the report keeps the values of neighbours that are shown.
    X_shown : array-like or data frame of shape (n_rows, any number of columns), optional
        The rows as people know them, where X is encoded: these are shown in place of X. Then X_train must have the same
        columns.
    ids, train_ids : sequence of length n_rows, n_train, optional
        Names of the rows, and of the training rows.
    coverage
        Of the intervals.
    n_neighbors
        How many of the nearest training rows to list, at most 100.
    max_rows
        How many rows the explorer and the point clouds hold at most, drawn at random where there are more: 2,000 rows
        stay under 10 MB. Scores and curves are made of all rows.
    title
        Of the page.
    target
        The name of what is predicted.
    data
        What the rows are: the name of a file, say.

    Returns
    -------
    Path
        Of the file.

    Examples
    --------
    >>> import ibug.report, tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> u = ibug.IBUGRegressor(random_state=0).fit(X[:300], y[:300])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ibug.report.write(u, X[300:], y[300:], Path(folder) / "report.html", X_train=X[:300])
    ...     path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    plotly = plotly_script()  # first, so that a missing library costs no time
    require(estimator, "predict_dist", "predict")
    X = as_rows(X)
    targets = check_targets(X, y, "y")
    shown = X if X_shown is None else as_rows(X_shown)
    _check(len(targets), shown, ids, coverage)
    at_least_one(max_rows, "max_rows")
    with Progress("report", 4, enabled=bool(getattr(estimator, "verbose", 0))) as progress:
        found = predict(estimator, X, targets, float(coverage))
        progress.advance(1)
        plain = _uncalibrated(estimator, X, targets, float(coverage))
        progress.advance(1)
        rows = explorer.choose(len(targets), max_rows)
        content, familiar, repeated = _explorer(estimator, X, found, rows, shown, X_train, ids, train_ids, n_neighbors)
        progress.advance(1)
        heading = title or f"How sure is the model of {target}?"
        content |= {
            "about": _about(estimator, heading, target, data, len(targets), len(rows)),
            "headlines": headlines(found, plain, familiar),
            "caveats": caveats(found, plain, repeated),
            "scores": score_table(found, plain),
            "intervals": interval_table(found, plain),
            "coverage": float(coverage),
            "charts": {
                "calibration": charts.calibration(found, plain),
                "pit": charts.pit_histogram(found, plain),
                "intervals": charts.intervals(found, rows),
                "spread": charts.spread_error(found),
                "tuning": charts.tuning(estimator),
            },
        }
        with replacing(Path(path)) as file:
            file.write(page(content, heading, plotly).encode("utf-8"))
        progress.advance(1)
    return Path(path)


def _check(n_rows: int, shown: Any, ids: Sequence[Any] | None, coverage: Any) -> None:
    check_probabilities(coverage, "coverage")
    if np.ndim(coverage) != 0:
        raise InvalidInputError(f"coverage must be one number; got {coverage!r}.")
    if _num_samples(shown) != n_rows:
        raise InvalidInputError(f"X_shown must have the {n_rows} rows of X; it has {_num_samples(shown)}.")
    if ids is not None and len(ids) != n_rows:
        raise InvalidInputError(f"ids must name the {n_rows} rows of X; there are {len(ids)}.")


def _uncalibrated(estimator: Any, X: Any, y: NDArray[np.float64], coverage: float) -> Predicted | None:
    return predict(estimator.uncalibrated(), X, y, coverage) if hasattr(estimator, "uncalibrated") else None


def _explorer(
    estimator: Any,
    X: Any,
    found: Predicted,
    rows: NDArray[np.int64],
    shown: Any,
    X_train: Any,
    ids: Sequence[Any] | None,
    train_ids: Sequence[Any] | None,
    n_neighbors: int,
) -> tuple[dict[str, Any], Familiarity | None, float]:
    """Return what the explorer shows, how familiar all rows are, and the share of rows that look like training rows."""
    familiar, listed, repeated = None, None, 0.0
    content: dict[str, Any] = {"neighbors": None}
    if hasattr(estimator, "kneighbors"):
        if train_ids is not None and len(train_ids) != len(estimator._targets):
            raise InvalidInputError(
                f"train_ids must name the {len(estimator._targets)} training rows; there are {len(train_ids)}."
            )
        most = min(_MOST_NEIGHBORS, estimator.index_.n_rows)
        count = min(check_count(n_neighbors, 1, 10**9, "n_neighbors"), most)
        familiar = Familiarity(estimator.affinity_score(X), float(estimator.affinity_threshold_))
        affinities, indices = estimator.kneighbors(_safe_indexing(X, rows), max(count, estimator.k_))
        same = estimator._targets[indices[:, 0]] == found.y[rows]
        repeated = float(np.mean(same & (affinities[:, 0] == estimator.index_.n_trees)))
        content["neighbors"] = explorer.neighbors(estimator, affinities, indices, count, train_ids)
        listed = indices[:, :count]
    elif X_train is not None:
        raise InvalidInputError(f"X_train is for neighbours, and {type(estimator).__name__} has none: leave it out.")
    content["rows"] = explorer.predictions(found, familiar, rows, ids)
    content["features"] = explorer.features(estimator, shown, X_train, rows, listed)
    return content, familiar, repeated


def _about(estimator: Any, title: str, target: str, data: str | None, n_rows: int, n_shown: int) -> dict[str, Any]:
    import ibug

    described_data = f"{n_rows:,} rows" if data is None else f"{data}, {n_rows:,} rows"
    return {
        "title": title,
        "target": target,
        "model": described(estimator) | {"data": described_data},
        "n_rows": n_rows,
        "n_shown": n_shown,
        "written": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
        "version": ibug.__version__,
    }
