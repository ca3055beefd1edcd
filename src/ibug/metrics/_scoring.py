"""The scores that choose k and calibrate, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.metrics._crps import crps
from ibug.metrics._nll import nll

Scoring = Callable[[ArrayLike, Any], float]

_BY_NAME: dict[str, Scoring] = {"crps": crps, "nll": nll}


def resolve_scoring(scoring: str | Scoring) -> Scoring:
    """Return the scoring function of ``(y, distribution)`` for a name, or the user's own; lower is better.

    Parameters
    ----------
    scoring : {"crps", "nll"} or function (y, distribution) -> float
        The name, or the function itself.
    """
    if isinstance(scoring, str) and scoring in _BY_NAME:
        return _BY_NAME[scoring]
    if callable(scoring):
        return _checked(scoring)
    raise InvalidInputError(
        f"scoring must be one of {sorted(_BY_NAME)} or a function (y, distribution) -> float; got {scoring!r}."
    )


def weighted_scoring(scoring: str | Scoring, weights: Floats | None) -> Scoring:
    """Return a scoring function of ``(y, distribution)`` in which rows have weights; see `resolve_scoring`.

    Parameters
    ----------
    scoring : {"crps", "nll"} or function
        The name, or the function itself, which is given the weights as ``sample_weight``.
    weights : ndarray of shape (n_rows,) or None
        The weights.
    """
    if weights is None:
        return resolve_scoring(scoring)
    if not isinstance(scoring, str) and callable(scoring) and "sample_weight" not in signature(scoring).parameters:
        raise InvalidInputError(
            "Validation rows have weights, and the scoring function takes none: give it a parameter sample_weight, or "
            "leave the weights out."
        )
    resolve_scoring(scoring)
    function: Any = _BY_NAME[scoring] if isinstance(scoring, str) else scoring
    return _checked(partial(function, sample_weight=weights))


def _checked(scoring: Scoring) -> Scoring:
    def score(y: ArrayLike, distribution: Any) -> float:
        value = scoring(y, distribution)
        if np.ndim(value) != 0:
            raise InvalidInputError(
                f"The scoring function returned an array of shape {np.shape(value)}; it must return one number, "
                "the mean over the rows, say."
            )
        return float(value)

    return score
