"""Distributions as data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._frames import check_output, frame, index_of, interval_columns, quantile_columns
from ibug._inputs import check_probabilities

if TYPE_CHECKING:
    from ibug.distributions._base import Distribution


def distribution_frame(
    distribution: Distribution, coverage: ArrayLike | None, quantiles: ArrayLike | None, index: Any, output: str
) -> Any:
    """Return means, standard deviations, medians, intervals and quantiles; see ``Distribution.to_frame``."""
    check_output(output)
    values = {"mean": distribution.mean(), "std": distribution.std(), "median": distribution.median()}
    columns = {name: np.atleast_1d(value) for name, value in values.items()}
    n = len(columns["mean"])  # 1 for the distribution of one row
    if coverage is not None:
        ends = [np.reshape(end, (n, *np.shape(coverage))) for end in distribution.interval(coverage)]
        columns |= interval_columns(np.stack(ends, axis=1), coverage)
    if quantiles is not None:
        alpha = np.atleast_1d(check_probabilities(quantiles, "quantiles"))
        columns |= quantile_columns(distribution.ppf(alpha[None, :]), alpha)
    known = index_of(index)
    return frame(columns, output, index if known is None else known)
