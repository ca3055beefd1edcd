"""A saved model behind MLflow's ``predict(model_input, params)``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ibug._columns import FeatureType
from ibug._typing import Floats
from ibug._warnings import tell_infinite
from ibug.exceptions import IBUGWarning, InvalidInputError
from ibug.mlflow._signature import COVERAGE, OUTPUTS
from ibug.persistence import load


class UncertainModel:
    """Predictions with intervals and quantiles, as a frame.

    Parameters
    ----------
    u
        The fitted regressor.
    """

    def __init__(self, u: Any) -> None:
        self.u = u

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Return ``prediction``, ``lower``, ``upper`` and a column ``q…`` per quantile, one line per row.

        Of several targets there are such columns for each, with its name in front: ``price_lower``, say.

        Shapes: model_input (n_rows, n_features).
        """
        given = params or {}
        X = self._rows(model_input)
        if getattr(self.u, "target_names_", None) is not None:
            return pd.DataFrame(self._several(X, given), index=getattr(model_input, "index", None))
        distribution = self.u.predict_dist(X)
        lower, upper = distribution.interval(float(given.get("coverage", COVERAGE)))
        columns = {"prediction": self.u.predict(X), "lower": lower, "upper": upper}
        levels = _levels(given)
        if levels.size:
            quantiles = distribution.ppf(levels[None, :])
            columns |= {f"q{level:g}": quantiles[:, i] for i, level in enumerate(levels)}
        return pd.DataFrame(columns, index=getattr(model_input, "index", None))

    def _several(self, X: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of each target."""
        points, levels, found, rule = self.u.predict(X), _levels(given), self.u.predict_dist(X), self.u.rule_
        coverage, joint = float(given.get("coverage", COVERAGE)), bool(given.get("joint", False))
        ends = rule.ends(found, coverage, joint=joint)
        tell_infinite(ends, coverage, "predict", joint=joint, conformal=rule.conformal)
        quantiles = rule.quantiles(found, levels) if levels.size else np.empty((*points.shape, 0))
        columns: dict[str, Any] = {}
        for j, target in enumerate(self.u.target_names_):
            named = zip(OUTPUTS, (points[:, j], ends[:, j, 0], ends[:, j, 1]), strict=True)
            columns |= {f"{target}_{name}": values for name, values in named}
            columns |= {f"{target}_q{level:g}": quantiles[:, j, i] for i, level in enumerate(levels)}
        return columns

    def _rows(self, model_input: Any) -> Any:
        if not hasattr(self.u, "feature_names_in_"):
            return np.asarray(model_input, np.float64)
        if not hasattr(model_input, "columns"):
            return model_input  # the regressor's own error tells what is missing
        # CSV and JSON keep neither the order of columns nor their categories.
        X = model_input[list(self.u.feature_names_in_)]
        return X.assign(**{column["name"]: _as_known(X[column["name"]], column) for column in self.u.feature_types_})


def _levels(given: dict[str, Any]) -> Floats:
    """Return the probabilities of the quantiles that are wanted."""
    return np.asarray(given.get("quantiles", ()), np.float64).reshape(-1)


def _as_known(values: pd.Series, column: FeatureType) -> pd.Series:
    """Return a column as the model knows it: its categories, or numbers, some of which may be missing."""
    if "categories" in column:
        return _as_categories(values, column)
    is_number = column["dtype"].lower().startswith(("float", "int", "uint", "bool"))
    return _as_numbers(values, column["name"]) if is_number and values.dtype.kind not in "iufb" else values


def _as_numbers(values: pd.Series, name: str) -> pd.Series:
    try:
        return pd.to_numeric(values, errors="raise").astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"Column {name!r} must have numbers, or missing values: {error}.") from error


def _as_categories(values: pd.Series, column: FeatureType) -> pd.Series:
    known = values.isin(column["categories"])
    unseen = values[~known & values.notna()]
    if len(unseen):
        warnings.warn(
            f"Column {column['name']!r} has values that the training rows did not have, {unseen.iloc[0]!r} say; they "
            f"count as missing in {len(unseen)} row(s).",
            IBUGWarning,
            stacklevel=2,
        )
    # As objects first: a column with other categories takes no new values.
    return values.astype(object).where(known, None).astype(pd.CategoricalDtype(column["categories"]))


def _load_pyfunc(path: str) -> UncertainModel:
    """Load what `save_model` has written; MLflow calls this by its name."""
    found = Path(path)
    return UncertainModel(load(found / "model.ibug" if found.is_dir() else found))
