"""The columns of predictions of several targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ibug._mistakes import tell_infinite
from ibug._typing import Floats

if TYPE_CHECKING:
    from ibug.cli.answers._predictions import Wanted


def several_names(wanted: Wanted) -> list[str]:
    """Return the names of the columns of all targets, one target after the other.

    Parameters
    ----------
    wanted
        What is to be predicted.
    """
    side = "box_" if wanted.joint else ""
    names = []
    for target in wanted.targets:
        names += [f"{target}_prediction", f"{target}_std"]
        names += [f"{target}_{side}{end}_{100 * level:g}" for level in wanted.intervals for end in ("lower", "upper")]
        names += [f"{target}_q{level:g}" for level in wanted.quantiles]
    return names


def several_columns(estimator: Any, wanted: Wanted, X: Any) -> tuple[list[Any], Floats, Any, Any]:
    """Return the columns of all targets, the affinity score of each row, and its nearest rows with their affinities.

    Parameters
    ----------
    estimator : IBUGRegressor
        Of several targets.
    wanted
        What is to be predicted.
    X
        The rows, as the model takes them.
    """
    k = max(estimator.k_, wanted.neighbors)
    found, affinities, rows = estimator.predict_with_neighbors(X, k)
    deviation, rule = found.std(), estimator.rule_
    ends = [rule.ends(found, level, joint=wanted.joint) for level in wanted.intervals]
    if wanted.joint or rule.conformal is not None:
        for each, level in zip(ends, wanted.intervals, strict=True):
            tell_infinite(each, level, "predict", joint=wanted.joint, conformal=rule.conformal)
    quantiles = rule.quantiles(found, np.asarray(wanted.quantiles)) if wanted.quantiles else None
    columns: list[Any] = []
    for j in range(found.n_targets):
        columns += [found.loc[:, j], deviation[:, j]]
        columns += [each[:, j, end] for each in ends for end in (0, 1)]
        columns += [] if quantiles is None else list(quantiles[:, j].T)
    score = affinities[:, : estimator.k_].mean(axis=1) / estimator.index_.n_trees
    return columns, score, rows, affinities
