"""The report: all parts put together and written to one file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from ibug._progress import Progress
from ibug._typing import Floats, Integers
from ibug._validation import as_rows, check_at_least_one, check_count, check_methods, check_probabilities, check_targets
from ibug.describe import Predictions, predict_rows
from ibug.exceptions import InvalidInputError
from ibug.persistence import replacing
from ibug.report import _explorer as explorer
from ibug.report._charts import all_charts
from ibug.report._explorer import Near, check_same_rows, check_train, widths
from ibug.report._joint import joint_section, listed
from ibug.report._page import page, plotly_script
from ibug.report._summary import (
    ScoredRows,
    Similarity,
    caveats,
    described,
    drift_section,
    group_table,
    headlines,
    interval_table,
    score_table,
    scored,
)
from ibug.report._totals import totals_of_blocks

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
    width_seconds: float = 10.0,
    title: str | None = None,
    target: str = "target",
    data: str | None = None,
    groups: Any = None,
    blocks: Any = None,
) -> Path:
    """Write a report on rows that the model has not seen: one HTML file that opens from disk, without a network.

    It shows in words and charts how good the predictions are, compared with those of the plain neighbours. An explorer
    shows the density and the interval of each row, the training rows behind it and the features in which they differ.

    Parameters
    ----------
    estimator
        A fitted ``IBUGRegressor``. Other estimators with ``predict_dist`` get a report without neighbours.
    X : array-like or data frame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,), or (n_rows, n_targets)
        Their observed values. Of several targets, the page shows how they go together, and one of them at a time.
    path
        The file to write. It appears, or replaces an older one, when everything is written.
    X_train : array-like or data frame of shape (n_train, n_features), optional
        The rows that the estimator was fitted on, in their order, to show the features in which a row differs from its
        neighbours. The estimator itself does not keep them; the report keeps the values of the neighbours that it
        shows. Some are looked up in the index, unless X_shown is given: other rows are an error.
    X_shown : array-like or data frame of shape (n_rows, any number of columns), optional
        The rows as people know them, where X is encoded: these are shown in place of X. Then X_train must have the same
        columns.
    ids, train_ids : sequence of length n_rows, n_train, optional
        Names of the rows, and of the training rows.
    coverage
        The coverage of the intervals.
    n_neighbors
        The number of nearest training rows to list, at most 100.
    max_rows
        The most rows in the explorer and the point clouds, drawn at random where there are more. The page of 2,000 rows
        stays under 10 MB; with several targets, each adds about 1 MB, and their samples 2 MB. Scores and curves are
        made of all rows.
    width_seconds
        The time for Shapley values of log σ, which show which features make a row wide: for the widest rows of the
        explorer, as many as there is time for. They need the `shap` package (extra `explain`); 0 leaves them out.
        Several targets have none.
    title
        The title of the page.
    target
        The name of what is predicted. Several targets have the names that the estimator knows.
    data
        The name of the data, a file for example.
    groups : array-like of shape (n_rows,), str, or function, optional
        Coverage and width are shown for each group of rows, as in ``ibug.metrics.evaluate``: one entry per row, a
        column of the rows as they are shown, or a function of these.
    blocks : array-like of shape (n_rows,) or (n_rows, n_kinds), or data frame, optional
        Which rows belong together, where the estimator has learned what rows of a block have in common: totals of
        blocks are compared with observed ones. By default the columns of X, or of X_shown, that have the names of the
        blocks; where there are none, the page has no totals.

    Returns
    -------
    Path
        The path of the file.

    Examples
    --------
    >>> import ibug.report, tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> u = ibug.IBUGRegressor(random_state=0).fit(X[:300], y[:300])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ibug.report.write(u, X[300:], y[300:], f"{folder}/report.html", X_train=X[:300], width_seconds=1)
    ...     path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    plotly = plotly_script()  # first: a missing library is an error before anything takes time
    check_methods(estimator, "predict_dist", "predict")
    X = as_rows(X)
    names = getattr(estimator, "target_names_", None)
    targets = check_targets(X, y, "y", multioutput=names is not None, names=names)
    shown = X if X_shown is None else as_rows(X_shown)
    _check(targets, names, shown, ids, coverage)
    if X_train is not None and X_shown is None and hasattr(estimator, "kneighbors"):
        check_train(X_train, shown.shape[1], len(estimator.training_targets_))
        check_same_rows(estimator, X_train)
    check_at_least_one(max_rows, "max_rows")
    with Progress("report", 3, enabled=bool(getattr(estimator, "verbose", 0))) as progress:
        rows = explorer.choose(len(targets), max_rows)
        predictions, near = _predict(estimator, X, rows, n_neighbors, train_ids)
        progress.advance(1)
        parts = _Content(estimator, near, rows, shown, float(coverage), groups)
        content = parts.shared(X_train, ids, train_ids)
        totals = totals_of_blocks(estimator, X, shown, targets, blocks, float(coverage))
        if names is None:
            called, own = target, parts.of_target(predictions, targets, None)
            content = _merged(content, own.content) | {"totals": totals[0]}
            content["drift"] = drift_section(estimator, own.found, parts.near)
            content["widths"] = widths(estimator, X, rows, own.found.distribution.std()[rows], width_seconds)
        else:
            called = listed(names)
            each = [parts.of_target(one, targets[:, j], j) for j, one in enumerate(predictions.by_target())]
            content["targets"] = [one.content | {"totals": own} for one, own in zip(each, totals, strict=True)]
            content["joint"] = joint_section(
                estimator.rule_, predictions, [one.found for one in each], names, rows, parts.similarity
            )
            content["drift"] = drift_section(estimator, None, parts.near)
            content["widths"] = {"reason": "The report of several targets has no Shapley values."}
        progress.advance(1)
        heading = title or f"How sure is the model of {called}?"
        content["about"] = _about(estimator, heading, called, data, len(targets), len(rows))
        with replacing(Path(path)) as file:
            file.write(page(content, heading, plotly).encode("utf-8"))
        progress.advance(1)
    return Path(path)


def _merged(shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return both, with rows and neighbours put together: what the page does with several targets, one at a time."""
    both = {key: shared[key] | own[key] for key in ("rows", "neighbors") if shared[key] is not None}
    return shared | own | both


class _OfTarget(NamedTuple):
    """What the page says of one target, and what it was made of."""

    content: dict[str, Any]
    found: ScoredRows


@dataclass(frozen=True)
class _Content:
    """What the page says: the parts that all targets share, and those of each target."""

    estimator: Any
    near: Near | None
    rows: Integers  # (n_shown,), those of the explorer
    shown: Any  # all rows as they are shown
    coverage: float
    groups: Any

    @property
    def similarity(self) -> Similarity | None:
        return None if self.near is None else self.near.similarity

    def shared(self, X_train: Any, ids: Sequence[Any] | None, train_ids: Sequence[Any] | None) -> dict[str, Any]:
        """Return the parts of the explorer that all targets share."""
        near, estimator = self.near, self.estimator
        if near is None and X_train is not None:
            name = type(estimator).__name__
            raise InvalidInputError(f"X_train is for neighbours, and {name} has none: leave it out.")
        listed = None if near is None else near.indices[:, : near.count]
        return {
            "coverage": self.coverage,
            "neighbors": None if near is None else near.listed(estimator.source_.index.n_trees, train_ids),
            "rows": explorer.named(self.similarity, self.rows, ids),
            "features": explorer.features(estimator, self.shown, X_train, self.rows, listed),
        }

    def of_target(self, predictions: Predictions, y: Floats, target: int | None) -> _OfTarget:
        """Return what the page says of one target. Shapes: y (n_rows,)."""
        plain, near = predictions.plain_neighbors(), self.near
        found = scored(predictions, self.shown, y, self.coverage, self.groups)
        other = None if plain is None else scored(plain, self.shown, y, self.coverage)
        training = predictions.training_targets_
        similarity = self.similarity if target is None else None  # the page says it once for several targets
        content = {
            "neighbors": None if near is None or training is None else near.targets(training),
            "rows": explorer.predictions(found, self.rows),
            "headlines": headlines(found, other, similarity),
            "caveats": caveats(found, other, self._repeated(training, y)),
            "scores": score_table(found, other),
            "intervals": interval_table(found, other),
            "groups": group_table(found, self.groups),
            "charts": all_charts(self.estimator, found, other, self.rows, target),
        }
        return _OfTarget(content, found)

    def _repeated(self, training: Floats | None, y: Floats) -> float:
        """Return the share of rows, with observed values y, that have all leaves and the target of a training row."""
        if self.near is None or training is None:
            return 0.0
        same = training[self.near.indices[:, 0]] == y[self.rows]
        return float(np.mean(same & (self.near.affinities[:, 0] == self.estimator.source_.index.n_trees)))


def _check(targets: Floats, names: Sequence[str] | None, shown: Any, ids: Sequence[Any] | None, coverage: Any) -> None:
    n_rows = len(targets)
    if names is not None and targets.shape != (n_rows, len(names)):
        raise InvalidInputError(
            f"This estimator has {len(names)} targets: y must have the shape ({n_rows}, {len(names)}); got "
            f"{targets.shape}."
        )
    check_probabilities(coverage, "coverage")
    if np.ndim(coverage) != 0:
        raise InvalidInputError(f"coverage must be one number; got {coverage!r}.")
    if _num_samples(shown) != n_rows:
        raise InvalidInputError(f"X_shown must have the {n_rows} rows of X; it has {_num_samples(shown)}.")
    if ids is not None and len(ids) != n_rows:
        raise InvalidInputError(f"ids must name the {n_rows} rows of X; there are {len(ids)}.")


def _predict(
    estimator: Any, X: Any, rows: Integers, n_neighbors: int, train_ids: Sequence[Any] | None
) -> tuple[Predictions, Near | None]:
    """Predict all rows by one search, which finds the neighbours of the explorer's rows as well."""
    if not hasattr(estimator, "predict_with_neighbors"):
        return predict_rows(estimator, X, uncalibrated=True), None
    n_train = len(estimator.training_targets_)
    if train_ids is not None and len(train_ids) != n_train:
        raise InvalidInputError(f"train_ids must name the {n_train} training rows; there are {len(train_ids)}.")
    count = min(check_count(n_neighbors, 1, 10**9, "n_neighbors"), _MOST_NEIGHBORS, estimator.source_.index.n_rows)
    predictions = predict_rows(estimator, X, count, rows, uncalibrated=True)
    nearest = predictions.nearest
    assert nearest is not None, "an IBUGRegressor has neighbours"
    similarity = Similarity(nearest.similarity, float(estimator.affinity_threshold_))
    return predictions, Near(nearest.affinities, nearest.indices, count, int(estimator.k_), similarity, nearest.means)


def _about(estimator: Any, title: str, target: str, data: str | None, n_rows: int, n_shown: int) -> dict[str, Any]:
    import ibug

    described_data = f"{n_rows:,} rows" if data is None else f"{data}, {n_rows:,} rows"
    return {
        "title": title,
        "target": target,
        "model": described(estimator) | {"data": described_data},
        "n_rows": n_rows,
        "n_shown": n_shown,
        "written": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "version": ibug.__version__,
    }
