"""The parts that displays share: matplotlib, imported on demand, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ibug._typing import Integers
from ibug.exceptions import InvalidInputError, MissingDependencyError


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``; displays call it before they compute anything, so that it fails early."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            'ibug.plotting needs matplotlib, which cannot be imported. Install it: pip install "ibug-learn[plot]".'
        ) from error
    return plt


def axes(ax: Any, *, figsize: tuple[float, float] = (6.4, 4.2)) -> Any:
    """Return the given axes, or new ones in a figure of their own."""
    plt = pyplot()
    return plt.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def named(values: Any, name: str | None, default: str) -> dict[str, Any]:
    """Return values by name: a mapping as it is, a single value under `name` or the default."""
    if not isinstance(values, Mapping):
        return {default if name is None else name: values}
    if name is not None:
        raise InvalidInputError(f"name={name!r} is for a single curve; the keys of a mapping are the names already.")
    if not values:
        raise InvalidInputError("The mapping of names is empty: there is nothing to draw.")
    return {str(key): value for key, value in values.items()}


def one_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return one of the choices."""
    if value not in choices:
        raise InvalidInputError(f"{name} must be one of {choices}; got {value!r}.")
    return str(value)


def evenly(n: int, count: int) -> Integers:
    """Return at most `count` of the numbers 0 to n - 1, ascending and evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(np.int64))
