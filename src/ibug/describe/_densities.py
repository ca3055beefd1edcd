"""Where a density is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibug._typing import Floats

_PLACES = np.linspace(0.01, 0.99, 25)  # probabilities of the quantiles at which the peak is looked for
_LOW = 0.01  # of the peak: a density that has come down to it may end
_STEP, _STEPS = 0.1, 10


def density_ends(distribution: Any, tail: float) -> tuple[Floats, Floats]:
    """Return where the drawing of each density starts and stops, (n_rows,) each; infinite ends stay infinite.

    These are quantiles, moved outwards where the density is not yet low there: a stack has its last quantiles at single
    values, and half of a kernel beyond.
    """
    start, stop = np.array(distribution.ppf(tail)), np.array(distribution.ppf(1 - tail))
    step = _STEP * (stop - start)
    with np.errstate(all="ignore"):
        peak = np.nan_to_num(distribution.pdf(distribution.ppf(_PLACES[None, :])), posinf=0.0).max(axis=1)
        for _ in range(_STEPS):
            high = [np.nan_to_num(distribution.pdf(end), posinf=0.0) > _LOW * peak for end in (start, stop)]
            if not (high[0].any() or high[1].any()):
                break
            start, stop = np.where(high[0], start - step, start), np.where(high[1], stop + step, stop)
    return start, stop
