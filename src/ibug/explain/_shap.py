"""The shap package, imported on demand, and its explainers for one row."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ibug._typing import Floats
from ibug.exceptions import MissingDependencyError


def shap_package() -> Any:
    """Return ``shap``, or say how to install it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # it changes colour maps in a way that newer versions of matplotlib deprecate
            import shap
    except ImportError as error:
        raise MissingDependencyError(
            "Shapley values of the width need the shap package, which cannot be imported "
            f'({error}). Install it: pip install "ibug-learn[explain]". It brings numba and llvmlite.'
        ) from error
    return shap


def shapley_values(
    function: Callable[[Any], Floats], row: Floats, others: Floats, n_evaluations: int, seed: int
) -> tuple[Floats, float]:
    """Return the Shapley values of one row, and the mean of the function over the others.

    They are exact if there are enough evaluations for every set of features, else means over random orders of the
    features, each run through forwards and backwards. shap draws these from NumPy's global generator; it is put back.

    Shapes: row (n_features,); others (n_background, n_features).
    """
    shap = shap_package()
    masker = shap.maskers.Independent(others, max_samples=len(others))
    exact = 2 ** len(row) <= n_evaluations
    with _own_random_numbers():
        if exact:
            explainer = shap.ExactExplainer(function, masker)
            found = explainer(row[None], max_evals=2 ** len(row), silent=True)
        else:
            explainer = shap.PermutationExplainer(function, masker, seed=seed)
            found = explainer(row[None], max_evals=n_evaluations, silent=True)
    return np.asarray(found.values[0], np.float64), float(np.ravel(found.base_values)[0])


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    state = np.random.get_state()  # noqa: NPY002 - the one that shap seeds
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002 - likewise
