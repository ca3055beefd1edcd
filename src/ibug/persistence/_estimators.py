"""Estimators to files and back: the only place that takes them apart and puts them together again.

The states of a source, a rule, a calibrator and a stream are plain values and arrays that these objects make and check
themselves; here they get their place in the file, with the parameters, the columns and the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ibug._validation import require
from ibug.calibration import Calibration, ConformalCalibrator, calibrator_from_state, calibrator_state
from ibug.distributions import families, resolve_family
from ibug.exceptions import InvalidInputError, NotStorableError
from ibug.neighbors import LocalSource, Sampling
from ibug.persistence._container import FormatProblemError
from ibug.persistence._files import Loading, Saving, check_trusted, inspect, reading, writing
from ibug.persistence._isolated import try_in_child
from ibug.persistence._models import load_model, save_model
from ibug.rule import Rule, TargetRule
from ibug.totals import Dependence


def save(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    compress: bool = True,
    metadata: Mapping[str, Any] | None = None,
    trusted: Iterable[str] = (),
) -> None:
    """Save a fitted estimator to one file, which `load` reads; see its method ``save``."""
    if isinstance(estimator, BaseEstimator):
        check_is_fitted(estimator)
    with writing(path, compress=compress, metadata=metadata, trusted=trusted) as saving:
        saving.description = describe(estimator, saving)


def load(
    path: str | os.PathLike[str],
    *,
    mmap: bool = True,
    verify: bool = True,
    trusted: Iterable[str] = (),
    isolate: bool = False,
) -> Any:
    """Load a regressor that ``save`` has written.

    No code in the file is run, whoever wrote it: the manifest is JSON, arrays hold numbers and text, and tree models
    are read by their own libraries. Everything is checked first, and an error says what is wrong.

    Parameters
    ----------
    path
        The file.
    mmap
        Map large arrays into memory instead of reading them, where the file was saved with ``compress=False``: it takes
        no time, and processes that load the same file share the memory. The file must stay as it is meanwhile; a new
        one may be saved in its place.
    verify
        Compare the checksums of all members, about a second per gigabyte and processor. Without it flipped bits may
        stay unnoticed; sizes, types, shapes and whether the parts belong together are always checked.
    trusted
        Names of types beyond those of scikit-learn, NumPy and SciPy that a scikit-learn model may hold: only for files
        of people you trust.
    isolate
        Load the file, and predict a few rows, in a child process with limits of time and memory first, and here only
        if that went well: the way to open a stranger's file. It takes the time to start Python. On systems other than
        Linux there is no limit of memory.

    Returns
    -------
    IBUGRegressor, CBURegressor, ProbabilisticEnsemble or AdaptiveIntervals
        As it was saved: predictions are the same, bit for bit.

    Raises
    ------
    FileFormatError
        If the file is not one of ibug's, is damaged, or is of a newer format.
    MissingDependencyError
        If the model's library is not installed.
    """
    return load_with_manifest(path, mmap=mmap, verify=verify, trusted=trusted, isolate=isolate)[0]


def load_with_manifest(
    path: str | os.PathLike[str],
    *,
    mmap: bool = True,
    verify: bool = True,
    trusted: Iterable[str] = (),
    isolate: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Load an estimator and its manifest: what `load` and `inspect` return, with the file opened once."""
    trusted, checksum = check_trusted(trusted), None
    if isolate:
        if not verify:
            raise InvalidInputError("isolate=True needs verify=True: what is loaded must be what was tried.")
        checksum = try_in_child(path, trusted, sum(entry["size"] for entry in inspect(path)["members"].values()))
    with reading(path, mmap=mmap, verify=verify, trusted=trusted, checksum=checksum) as loading:
        return restore(loading.description, loading), loading.manifest


def describe(estimator: Any, saving: Saving, *, fitted: bool = True) -> dict[str, Any]:
    """Return the description of an estimator, as JSON; of its parameters alone if not `fitted`."""
    cls = type(estimator)
    if cls.__name__ not in _STORES or cls is not _class_of(cls.__name__):
        raise NotStorableError(
            f"ibug saves {sorted(_STORES)}; this {cls.__module__}.{cls.__name__} is none of them. Pickle and joblib "
            "take it, for those who trust the file."
        )
    describe_one, _ = _STORES[cls.__name__]
    return {"class": cls.__name__, **describe_one(estimator, saving, fitted)}


def restore(spec: Any, loading: Loading) -> Any:
    """Return the estimator of a description."""
    name = spec["class"]
    if name not in _STORES:
        raise FormatProblemError(f"an estimator of the class {name!r:.100} is not known to this version of ibug")
    _, restore_one = _STORES[name]
    return restore_one(_class_of(name), spec, loading)


def _class_of(name: str) -> Any:
    import ibug  # whose estimators are above this package, and imported only when they are asked for

    return getattr(ibug, name)


# What all estimators around a model have


def describe_with_model(estimator: Any, parameters: dict[str, Any], saving: Saving, *, fitted: bool) -> dict[str, Any]:
    """Return the parameters of an estimator around a model, and the model if it is fitted."""
    template = parameters.pop("estimator")
    description: dict[str, Any] = {}
    if fitted:
        before = len(saving.model_digests)
        description["model"] = save_model(estimator.estimator_, saving)
        description["learned_with"] = sorted(saving.model_digests[before:])
    if not fitted or template is not estimator.estimator_:  # else it was trained before, and is stored already
        description["estimator"] = save_model(template, saving, fitted=estimator.prefit)
    return {"parameters": _describe_parameters(parameters, saving), **description}


def restore_with_model(cls: Any, spec: dict[str, Any], loading: Loading) -> tuple[Any, Any]:
    """Return an estimator with its parameters, and its model if it was fitted, else None."""
    model, unchanged = None, False
    if "model" in spec:
        before = len(loading.model_digests)
        model = load_model(spec["model"], loading)
        unchanged = sorted(loading.model_digests[before:]) == spec["learned_with"]
    template = load_model(spec["estimator"], loading) if "estimator" in spec else model
    estimator = cls(estimator=template, **_restore_parameters(spec, loading))
    if model is not None:
        require(unchanged, "its model does not match its index: it is not the one that the rest was learned with")
    return estimator, model


def describe_columns(estimator: Any) -> dict[str, Any]:
    """Return number, names and types of the features."""
    return {
        "n_features_in_": estimator.n_features_in_,
        "feature_names_in_": getattr(estimator, "feature_names_in_", None),
        "feature_types_": estimator.feature_types_,
    }


def restore_columns(estimator: Any, learned: Mapping[str, Any]) -> None:
    """Set number, names and types of the features."""
    n, names, types = (learned[name] for name in ("n_features_in_", "feature_names_in_", "feature_types_"))
    require(isinstance(n, int) and n > 0, "the number of its features is impossible")
    estimator.n_features_in_ = n
    if names is not None:
        names = np.asarray(names, object)
        known = names.shape == (n,) and all(isinstance(name, str) for name in names)
        require(known, "its features' names are impossible")
        estimator.feature_names_in_ = names
    require(isinstance(types, list) and len(types) == n, "its features' types are impossible")
    estimator.feature_types_ = types


def _describe_parameters(parameters: dict[str, Any], saving: Saving) -> dict[str, Any]:
    conformal = parameters["conformal"]
    if isinstance(conformal, ConformalCalibrator):
        parameters["conformal"] = {"calibrator": calibrator_state(clone(conformal))}
    if isinstance(parameters.get("sampling"), Sampling):
        parameters["sampling"] = asdict(parameters["sampling"])
    return saving.encoder.encode_parameters(parameters, "parameters")


def _restore_parameters(spec: dict[str, Any], loading: Loading) -> dict[str, Any]:
    parameters: dict[str, Any] = loading.decoder.decode(spec["parameters"])
    if isinstance(parameters["conformal"], dict):
        parameters["conformal"] = calibrator_from_state(parameters["conformal"]["calibrator"])
    if isinstance(parameters.get("sampling"), dict):
        parameters["sampling"] = Sampling(**parameters["sampling"])
    return parameters


# IBUGRegressor


def _describe_ibug(regressor: Any, saving: Saving, fitted: bool) -> dict[str, Any]:
    learned = None
    if fitted:  # what predictions need comes first: it may be refused
        rule = regressor.rule_.state()
        learned = {**describe_columns(regressor), **regressor.source_.state(), **rule}
        if regressor.source_.targets.ndim > 1:
            learned["target_names_"] = regressor.target_names_
        learned |= describe_blocks(regressor)
    parameters = regressor.get_params(deep=False)
    parameters["distribution"] = _by_name(parameters["distribution"])
    description = describe_with_model(regressor, parameters, saving, fitted=fitted)
    if learned is not None:
        description["learned"] = saving.encoder.encode(learned, "learned")
    return description


def _restore_ibug(cls: Any, spec: dict[str, Any], loading: Loading) -> Any:
    regressor, model = restore_with_model(cls, spec, loading)
    if "learned" in spec:
        learned = loading.decoder.decode(spec["learned"])
        restore_columns(regressor, learned)
        assemble(regressor, LocalSource.from_state(model, learned), Rule.from_state(learned))
        regressor.target_names_ = None
        if regressor.source_.targets.ndim > 1:
            names, n_targets = learned["target_names_"], regressor.source_.targets.shape[1]
            known = isinstance(names, list) and len(names) == n_targets and all(isinstance(n, str) for n in names)
            require(known, "the names of its targets are impossible")
            regressor.target_names_ = names
        restore_blocks(regressor, learned)
    return regressor


def describe_blocks(regressor: Any) -> dict[str, Any]:
    """Return what is known of rows of a block, where something is."""
    known = regressor.dependence_
    return {} if known is None else {"dependence_": known.state()}


def restore_blocks(regressor: Any, learned: Mapping[str, Any]) -> None:
    """Set what is known of rows of a block, which must be of the rule's targets."""
    regressor.dependence_ = None
    if "dependence_" not in learned:
        return
    dependence, n_targets = Dependence.from_state(learned["dependence_"]), len(regressor.rule_.parts)
    shape = (len(dependence.names),) if n_targets == 1 else (len(dependence.names), n_targets)
    require(dependence.correlation.shape == shape, "the correlations of its blocks are impossible")
    regressor.dependence_ = dependence


def assemble(regressor: Any, source: LocalSource, rule: Rule) -> None:
    """Give an ``IBUGRegressor`` its source and its rule, after checking that they and its columns fit together."""
    expected, n_features = source.leaves.reader.n_features, regressor.n_features_in_
    require(
        expected in (None, n_features),
        f"its model does not match its index: it expects {expected} features, and {n_features} are described",
    )
    n_targets = () if rule.coupling is None else (len(rule.parts),)
    require(source.targets.shape[1:] == n_targets, "its numbers of targets do not agree")
    for part in rule.parts:
        _check_neighbors(source, part)
    _check_quantities(source, rule.needs.items())
    regressor.source_, regressor.rule_ = source, rule


def _check_neighbors(source: LocalSource, rule: TargetRule) -> None:
    """Check that the source has the neighbours that a rule asks for."""
    require(rule.k <= source.index.n_rows, "its k is impossible")
    _check_quantities(source, [(rule.spread.quantity, rule.k), *rule.spread.needs.items(), *rule.needs.items()])
    residuals = 0 if rule.stack is None else rule.stack.needs["residuals"]
    # Experts weigh residuals by affinity, which only those of training rows come with.
    require(not residuals or source.has_training_residuals, "its experts ask for residuals that it does not have")


def _check_quantities(source: LocalSource, needs: Iterable[tuple[str, int]]) -> None:
    for quantity, k in needs:
        known = quantity == "targets" or (quantity == "residuals" and source.residuals is not None)
        require(known and 1 <= k <= source.n_neighbors(quantity), "it asks for more neighbours than it has")


def _by_name(distribution: Any) -> Any:
    """Return families by their names: a class cannot be stored, and means the same."""
    if isinstance(distribution, (list, tuple)):
        return type(distribution)(_by_name(one) for one in distribution)
    if isinstance(distribution, type):
        name, _ = resolve_family(distribution)
        return name if name in families() else distribution
    return distribution


# CBURegressor and ProbabilisticEnsemble


def _describe_calibrated(estimator: Any, saving: Saving, **more: Any) -> dict[str, Any]:
    """Return what both have learned: the features, the calibration, the targets, and something of their own."""
    learned = {
        **describe_columns(estimator),
        "gamma_": estimator.gamma_,
        "delta_": estimator.delta_,
        "conformal": calibrator_state(estimator.conformal_),
        "targets": estimator.training_targets_,
        **more,
    }
    return {"learned": saving.encoder.encode(learned, "learned")}


def _restore_calibrated(estimator: Any, learned: Mapping[str, Any]) -> None:
    restore_columns(estimator, learned)
    for name in ("gamma_", "delta_"):
        require(isinstance(learned[name], (int, float)), f"its {name} is no number")
    conformal = calibrator_from_state(learned["conformal"])
    estimator.calibration_ = Calibration(learned["gamma_"], learned["delta_"], conformal)
    estimator.training_targets_ = np.asarray(learned["targets"], np.float64)


def _describe_cbu(regressor: Any, saving: Saving, fitted: bool) -> dict[str, Any]:
    description = describe_with_model(regressor, regressor.get_params(deep=False), saving, fitted=fitted)
    if fitted:
        count = regressor.virtual_ensembles_count_
        description |= _describe_calibrated(regressor, saving, virtual_ensembles_count_=count)
    return description


def _restore_cbu(cls: Any, spec: dict[str, Any], loading: Loading) -> Any:
    from ibug.ensemble import check_model, usable_count

    regressor, model = restore_with_model(cls, spec, loading)
    if "learned" in spec:
        learned = loading.decoder.decode(spec["learned"])
        _restore_calibrated(regressor, learned)
        regressor.estimator_ = check_model(model, prefit=True)
        regressor.virtual_ensembles_count_ = usable_count(model, regressor.virtual_ensembles_count)
        require(
            regressor.virtual_ensembles_count_ == learned["virtual_ensembles_count_"],
            "its model has not the trees for its virtual ensembles",
        )
    return regressor


def _describe_ensemble(ensemble: Any, saving: Saving, fitted: bool) -> dict[str, Any]:
    parameters = ensemble.get_params(deep=False)
    given = parameters.pop("estimators")
    description: dict[str, Any] = {"parameters": _describe_parameters(parameters, saving)}
    places: dict[int, int] = {}
    if fitted:
        description["members"] = [[name, describe(one, saving)] for name, one in ensemble.named_estimators_.items()]
        # A member that was given already fitted is stored already; the number says which one it is.
        places = {id(member): place for place, member in enumerate(ensemble.estimators_)}
    description["estimators"] = [
        [name, places[id(one)] if id(one) in places else _describe_unfitted(one, saving)] for name, one in given
    ]
    if fitted:
        description |= _describe_calibrated(ensemble, saving, weights=ensemble.weights_)
    return description


def _describe_unfitted(member: Any, saving: Saving) -> Any:
    return member if isinstance(member, str) and member == "drop" else describe(member, saving, fitted=False)


def _restore_ensemble(cls: Any, spec: dict[str, Any], loading: Loading) -> Any:
    named = [(str(name), restore(member, loading)) for name, member in spec.get("members", [])]
    given: list[tuple[str, Any]] = []
    for name, member in spec["estimators"]:
        if isinstance(member, int):
            require(0 <= member < len(named), "it names a member that it does not have")
            given.append((str(name), named[member][1]))
        else:
            given.append((str(name), member if member == "drop" else restore(member, loading)))
    ensemble = cls(given, **_restore_parameters(spec, loading))
    if "learned" in spec:
        learned = loading.decoder.decode(spec["learned"])
        _restore_calibrated(ensemble, learned)
        ensemble.estimators_ = [member for _, member in named]
        ensemble.named_estimators_ = Bunch(**dict(named))
        ensemble.weights_ = np.asarray(learned["weights"], np.float64)
        require(ensemble.weights_.shape == (len(named),) and named, "it has not as many weights as members")
    return ensemble


# AdaptiveIntervals


def _describe_intervals(intervals: Any, saving: Saving, fitted: bool) -> dict[str, Any]:
    estimator = describe(intervals.estimator, saving)
    return {"estimator": estimator, "state": saving.encoder.encode(intervals.state(), "stream")}


def _restore_intervals(cls: Any, spec: dict[str, Any], loading: Loading) -> Any:
    return cls.from_state(restore(spec["estimator"], loading), loading.decoder.decode(spec["state"]))


_Describe = Callable[[Any, Saving, bool], dict[str, Any]]
_Restore = Callable[[Any, Any, Loading], Any]
_STORES: dict[str, tuple[_Describe, _Restore]] = {
    "IBUGRegressor": (_describe_ibug, _restore_ibug),
    "CBURegressor": (_describe_cbu, _restore_cbu),
    "ProbabilisticEnsemble": (_describe_ensemble, _restore_ensemble),
    "AdaptiveIntervals": (_describe_intervals, _restore_intervals),
}
