"""The columns of predictions of several targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ibug._warnings import tell_infinite
from ibug.describe import Predictions

if TYPE_CHECKING:
    from ibug.cli.answers._predictions import OutputSpec


def several_names(wanted: OutputSpec) -> list[str]:
    """Return the names of the columns of all targets, one target after the other."""
    side = "box_" if wanted.joint else ""
    names = []
    for target in wanted.targets:
        names += [f"{target}_prediction", f"{target}_std"]
        names += [f"{target}_{side}{end}_{100 * level:g}" for level in wanted.intervals for end in ("lower", "upper")]
        names += [f"{target}_q{level:g}" for level in wanted.quantiles]
    return names


def several_columns(rule: Any, wanted: OutputSpec, found: Predictions) -> list[Any]:
    """Return the columns of all targets."""
    distribution = found.distribution
    deviation = distribution.std()
    ends = [rule.ends(distribution, level, joint=wanted.joint) for level in wanted.intervals]
    if wanted.joint or rule.conformal is not None:
        for each, level in zip(ends, wanted.intervals, strict=True):
            tell_infinite(each, level, "predict", joint=wanted.joint, conformal=rule.conformal)
    quantiles = rule.quantiles(distribution, np.asarray(wanted.quantiles)) if wanted.quantiles else None
    columns: list[Any] = []
    for j in range(distribution.n_targets):
        columns += [found.points[:, j], deviation[:, j]]
        columns += [each[:, j, end] for each in ends for end in (0, 1)]
        columns += [] if quantiles is None else list(quantiles[:, j].T)
    return columns
