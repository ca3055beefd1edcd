"""What IBUGRegressor is made of, as plain values, and how it is put together again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.affinity import AffinitySearch
from ibug.calibration import ConformalCalibrator, calibrator_from_state, calibrator_state
from ibug.distributions import families, resolve_family
from ibug.leaves import LeafReader, read_leaves_of
from ibug.neighbors import LeafIndex
from ibug.persistence import FormatProblemError, Loading, Saving, Storable, encode_parameters, load_model, save_model
from ibug.posterior import Posterior
from ibug.spread import QUANTITIES, Spread, spread_from_state

_NUMBERS = ("k_", "min_variance_", "gamma_", "delta_", "affinity_threshold_")


class StoredRegressor(Storable):
    """The part of IBUGRegressor that takes it apart and puts it together."""

    def _describe(self, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        regressor: Any = self
        learned = _learned(regressor) if fitted else None  # what predictions need is told first if it cannot be saved
        parameters = regressor.get_params(deep=False)
        parameters["distribution"] = _by_name(parameters["distribution"])
        description = describe_estimator(regressor, parameters, saving, fitted=fitted)
        if learned is not None:
            description["learned"] = saving.encoder.encode(learned, "learned")
        return description

    @classmethod
    def _restore(cls, spec: dict[str, Any], loading: Loading) -> StoredRegressor:
        regressor: Any = restore_estimator(cls, spec, loading)
        if "learned" in spec:
            learned = loading.decoder.decode(spec["learned"])
            _set_learned(regressor, learned, read_leaves_of(regressor.estimator_))
        return regressor  # type: ignore[no-any-return]


def describe_estimator(regressor: Any, parameters: dict[str, Any], saving: Saving, *, fitted: bool) -> dict[str, Any]:
    """Return the parameters of a regressor around a model, and the model if it is fitted."""
    estimator = parameters.pop("estimator")
    description: dict[str, Any] = {}
    if fitted:
        before = len(saving.model_digests)
        description["model"] = save_model(regressor.estimator_, saving)
        description["learned_with"] = sorted(saving.model_digests[before:])
    if not fitted or estimator is not regressor.estimator_:  # else it was trained before, and is stored already
        description["estimator"] = save_model(estimator, saving, fitted=regressor.prefit)
    encoded = encode_parameters(describe_parameters(parameters), saving.encoder, "parameters")
    return {"parameters": encoded, **description}


def restore_estimator(cls: type, spec: dict[str, Any], loading: Loading) -> Any:
    """Return a regressor with its parameters, and with its model as ``estimator_`` if it was fitted."""
    model, unchanged = None, False
    if "model" in spec:
        before = len(loading.model_digests)
        model = load_model(spec["model"], loading)
        unchanged = sorted(loading.model_digests[before:]) == spec["learned_with"]
    estimator = load_model(spec["estimator"], loading) if "estimator" in spec else model
    regressor = cls(estimator=estimator, **restore_parameters(loading.decoder.decode(spec["parameters"])))
    if model is not None:
        regressor.estimator_ = model
        require(unchanged, "its model does not match its index: it is not the one that the rest was learned with")
    return regressor


def describe_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with a conformal calibrator as plain values."""
    conformal = parameters["conformal"]
    if isinstance(conformal, ConformalCalibrator):
        parameters["conformal"] = {"calibrator": calibrator_state(type(conformal)(n_bins=conformal.n_bins))}
    return parameters


def restore_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as the constructor takes them."""
    if isinstance(parameters["conformal"], dict):
        parameters["conformal"] = calibrator_from_state(parameters["conformal"]["calibrator"])
    return parameters


def describe_columns(regressor: Any) -> dict[str, Any]:
    """Return number, names and types of the features."""
    return {
        "n_features_in_": regressor.n_features_in_,
        "feature_names_in_": getattr(regressor, "feature_names_in_", None),
        "feature_types_": regressor.feature_types_,
    }


def restore_columns(regressor: Any, learned: Mapping[str, Any]) -> None:
    """Set number, names and types of the features."""
    n, names = learned["n_features_in_"], learned["feature_names_in_"]
    require(isinstance(n, int) and n > 0, "the number of its features is impossible")
    regressor.n_features_in_ = n
    if names is not None:
        names = np.asarray(names, object)
        known = names.shape == (n,) and all(isinstance(name, str) for name in names)
        require(known, "its features' names are impossible")
        regressor.feature_names_in_ = names
    types = learned["feature_types_"]
    require(isinstance(types, list) and len(types) in (0, n), "its features' types are impossible")
    regressor.feature_types_ = types


def require(condition: Any, problem: str) -> None:
    """Raise FormatProblemError unless the condition holds."""
    if not condition:
        raise FormatProblemError(problem)


def _by_name(distribution: Any) -> Any:
    """Return families by their names: a class cannot be stored, and means the same."""
    if isinstance(distribution, (list, tuple)):
        return type(distribution)(_by_name(one) for one in distribution)
    if isinstance(distribution, type):
        name, _ = resolve_family(distribution)
        return name if name in families() else distribution
    return distribution


def _learned(regressor: Any) -> dict[str, Any]:
    search: AffinitySearch = regressor._search
    residual_index: LeafIndex | None = regressor._residual_index
    return {
        **{name: getattr(regressor, name) for name in _NUMBERS},
        **describe_columns(regressor),
        "index": search.index.arrays(),
        "residual_index": None if residual_index is None else residual_index.arrays(),
        "n_model_trees": search.n_model_trees,
        "trees": search.trees,
        "rows": search.rows,
        "targets": regressor._targets,
        "residuals": regressor.residuals_,
        "reader": search.reader.findings(),
        "spread": regressor._spread.state(),
        "posterior": regressor._posterior.state(),
        "conformal": calibrator_state(regressor.conformal_),
        "tuning": regressor.tuning_,
    }


def _set_learned(regressor: Any, learned: Mapping[str, Any], reader: LeafReader) -> None:
    restore_columns(regressor, learned)
    for name in _NUMBERS:
        value = learned[name]
        require(isinstance(value, (int, float)) and not isinstance(value, bool), f"its {name} is no number")
        setattr(regressor, name, value)
    index = LeafIndex.from_arrays(learned["index"])
    stored = learned["residual_index"]
    regressor._residual_index = None if stored is None else LeafIndex.from_arrays(stored)
    trees, rows = _numbers(learned["trees"]), _numbers(learned["rows"])
    _check_model(regressor, reader, learned["n_model_trees"])
    regressor._search = AffinitySearch(reader, index, learned["n_model_trees"], trees, rows)
    regressor.index_ = index
    regressor._targets, regressor.residuals_ = _floats(learned["targets"]), _floats(learned["residuals"])
    regressor._spread = spread_from_state(learned["spread"])
    regressor.spread_ = regressor._spread.name
    regressor._posterior = Posterior.from_state(learned["posterior"])
    regressor.distribution_ = regressor._posterior.name
    regressor.conformal_ = calibrator_from_state(learned["conformal"])
    regressor.tuning_ = {str(name): np.asarray(column) for name, column in learned["tuning"].items()}
    _check_together(regressor)
    reader.recall(learned["reader"])
    regressor.walk_ = reader.how


def _numbers(array: Any) -> NDArray[np.intp] | None:
    """Return row or tree numbers, ascending."""
    if array is None:
        return None
    numbers = np.asarray(array)
    require(numbers.dtype.kind == "i" and numbers.ndim == 1 and numbers.size, "its row or tree numbers are impossible")
    require(numbers[0] >= 0 and np.all(np.diff(numbers) > 0), "its row or tree numbers are not ascending")
    return numbers.astype(np.intp, copy=False)


def _floats(array: Any) -> NDArray[np.float64] | None:
    if array is None:
        return None
    floats = np.asarray(array)
    require(floats.dtype == np.float64 and floats.ndim == 1, "its targets or residuals are no numbers")
    return floats


def _check_model(regressor: Any, reader: LeafReader, n_model_trees: Any) -> None:
    """Check that the model is the one that the index was made with, as far as it can tell."""
    require(
        reader.n_trees == n_model_trees,
        f"its model does not match its index: it has {reader.n_trees} trees, and {n_model_trees!r:.50} were indexed",
    )
    require(
        reader.n_features in (None, regressor.n_features_in_),
        f"its model does not match its index: it expects {reader.n_features} features, and {regressor.n_features_in_} "
        "are described",
    )


def _check_together(regressor: Any) -> None:
    search, targets = regressor._search, regressor._targets
    index, rows, trees = search.index, search.rows, search.trees
    n_train = 0 if targets is None else len(targets)
    n_rows = n_train if rows is None else len(rows)
    require(index.n_rows == n_rows and (rows is None or rows[-1] < n_train), "its index does not match its targets")
    n_trees = search.n_model_trees if trees is None else len(trees)
    require(
        index.n_trees == n_trees and (trees is None or trees[-1] < search.n_model_trees),
        "its model does not match its index: the number of trees is another one",
    )
    other, residuals = regressor._residual_index, regressor.residuals_
    known = {"targets": index.n_rows, "residuals": 0 if residuals is None else index.n_rows}
    if other is not None:
        require(residuals is not None and len(residuals) == other.n_rows, "its residuals do not match their index")
        require(other.n_trees == index.n_trees, "its two indexes have not the same number of trees")
        known["residuals"] = other.n_rows
    elif residuals is not None:
        require(len(residuals) == n_train, "its residuals do not match its targets")
    require(isinstance(regressor.k_, int) and 1 <= regressor.k_ <= index.n_rows, "its k is impossible")
    spread: Spread = regressor._spread
    needs = {**spread.n_neighbors, spread.shape: max(spread.n_neighbors[spread.shape], regressor.k_)}
    for quantity, k in needs.items():
        require(quantity in QUANTITIES and 1 <= k <= known[quantity], "it asks for more neighbours than it has")
