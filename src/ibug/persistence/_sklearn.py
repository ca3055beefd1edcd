"""scikit-learn models through skops, which takes objects apart without pickle; and what wraps any library's model."""

from __future__ import annotations

import copy
import json
import math
import threading
import zipfile
from collections.abc import Iterable
from io import BytesIO
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import Pipeline

from ibug._installed import how_to_install
from ibug.exceptions import MissingDependencyError, NotStorableError
from ibug.leaves import BOOSTERS, library_of, reader_type
from ibug.persistence._allowed_types import ALLOWED_TYPES
from ibug.persistence._container import Budget, FormatProblemError, json_bytes
from ibug.persistence._files import Loading, Saving
from ibug.persistence._models import ModelStore, load_model, not_storable, save_model
from ibug.persistence._sklearn_trees import check_trees

_SCHEMA = "schema.json"
_MAX_HEADER_BYTES = 10_000  # of a .npy file
# Held while NumPy or skops reads headers: Python's parser, which they use, is not safe in several threads.
_HEADERS = threading.Lock()

_MULTIOUTPUT = (MultiOutputRegressor, RegressorChain)
_WRAPPERS = (Pipeline, TransformedTargetRegressor, FrozenEstimator, *_MULTIOUTPUT)
_CLASSES = {
    cls.__name__: cls
    for cls in (
        ExtraTreesRegressor,
        GradientBoostingRegressor,
        HistGradientBoostingRegressor,
        RandomForestRegressor,
        *_WRAPPERS,
    )
}


class SklearnStore(ModelStore):
    """Forests and gradient boosting, and what is around any model: a pipeline, one model per target and so on.

    What wraps a model of another library is saved without it, and the model in its own native format.
    """

    library = "sklearn"
    classes = tuple(_CLASSES)

    def class_of(self, name: str) -> Any:
        """Return the class of this name."""
        return _CLASSES[name]

    def describe(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return the member that skops made, and the description of an inner model of another library."""
        if isinstance(model, FrozenEstimator):
            return {"inner": save_model(model.estimator, saving)}
        if _is_sklearn_throughout(model):
            return {"member": dump(model if fitted else clone(model), saving)}
        shell = copy.copy(model)
        spec: dict[str, Any] = {}
        if isinstance(model, Pipeline):
            spec["inner"] = save_model(model.steps[-1][1], saving, fitted=fitted)
            shell.steps = [*model.steps[:-1], (model.steps[-1][0], "passthrough")]
        elif isinstance(model, TransformedTargetRegressor):
            spec["template"] = save_model(model.regressor, saving, fitted=False)
            if fitted:
                spec["inner"] = save_model(model.regressor_, saving)
                del shell.regressor_
            shell.regressor = None
        elif isinstance(model, _MULTIOUTPUT):
            spec["template"] = save_model(reader_type(model).wrapped(model), saving, fitted=False)
            if fitted:
                spec["members"] = [save_model(member, saving) for member in model.estimators_]
                del shell.estimators_
            _set_template(shell, None)
        else:  # a library's estimator around another one's model is none of the classes
            raise not_storable(model, "it holds a model of another library")
        return {**spec, "member": dump(shell if fitted else clone(shell), saving)}

    def restore(self, cls: Any, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model, put together again."""
        if cls is FrozenEstimator:
            return FrozenEstimator(load_model(spec["inner"], loading))
        model = parse(spec["member"], loading)
        if type(model) is not cls:
            raise FormatProblemError(f"a {cls.__name__} was announced, and a {type(model).__name__} found")
        if "template" in spec and cls in _MULTIOUTPUT:
            _set_template(model, load_model(spec["template"], loading))
            if "members" in spec:
                model.estimators_ = [load_model(member, loading) for member in spec["members"]]
        elif "template" in spec:
            model.regressor = load_model(spec["template"], loading)
        if "inner" in spec:
            inner = load_model(spec["inner"], loading)
            if cls is Pipeline:
                model.steps[-1] = (model.steps[-1][0], inner)
            else:
                model.regressor_ = inner
        check_trees(model)
        return model


def _is_sklearn_throughout(model: Any) -> bool:
    while (inner := reader_type(model).wrapped(model)) is not None:
        model = inner
    return library_of(model) not in BOOSTERS


def _set_template(model: Any, template: Any) -> None:
    """Set the estimator that is trained for each of several targets; a chain had another name for it."""
    has_own_name = "estimator" in model.get_params(deep=False)
    setattr(model, "estimator" if has_own_name else "base_estimator", template)


def dump(model: Any, saving: Saving) -> str:
    """Store a scikit-learn object, and return the member's name."""
    io = _skops()
    saving.libraries.add("skops")
    try:
        data = io.dumps(model)
    except Exception as error:  # of many kinds, from deep inside the object
        raise NotStorableError(
            f"skops cannot save this {type(model).__name__} ({type(error).__name__}: {error}). Pickle and joblib may "
            "take it, for those who trust the file."
        ) from error
    unknown = _untrusted(io, data, saving.trusted)
    if unknown:
        raise NotStorableError(
            f"This {type(model).__name__} holds {', '.join(unknown)}, which ibug.load does not trust by itself: "
            f"{_way_out(unknown)}"
        )
    _check_own(io, data, model, saving)
    return saving.add_model(data, ".skops")


def _way_out(unknown: list[str]) -> str:
    """Return what can be done about types that are not trusted."""
    if any("<lambda>" in name for name in unknown):
        return (
            "a lambda has no name by which it could be found again. Write it as a function in a module of yours, "
            'or take one of NumPy\'s, FunctionTransformer(np.log1p) say; save(path, trusted=["module.function"]) then '
            "takes your own. Pickle and joblib take this one only if they are told how (cloudpickle)."
        )
    names = ", ".join(f'"{name}"' for name in unknown)
    return (
        f"nothing was saved. If you know them, save(path, trusted=[{names}]) stores their names; whoever loads the "
        "file needs the same modules, and passes the same list to ibug.load."
    )


def _check_own(io: Any, data: bytes, model: Any, saving: Saving) -> None:
    """Load what holds a user's own types once: skops stores names, which need not lead back to them."""
    own = sorted(set(io.get_untrusted_types(data=data)) & set(saving.trusted))
    here = [name for name in own if name.startswith("__main__.")]
    try:
        if own and not here:
            io.loads(data, trusted=[*ALLOWED_TYPES, *own])
    except Exception as error:
        reason = f"they cannot be found again under these names ({type(error).__name__}: {error})"
    else:
        if not here:
            return
        reason = "__main__ is another module in every program"
    raise NotStorableError(
        f"This {type(model).__name__} holds {', '.join(own)}, and could not be loaded again: {reason}. Define them at "
        "the top level of a module that can be imported."
    )


def parse(name: str, loading: Loading) -> Any:
    """Return the object of a member, if all types in it are trusted."""
    io = _skops()
    data = loading.model(name)
    _check_sizes(data, loading.budget)
    try:
        with _HEADERS:
            untrusted = _untrusted(io, data, loading.trusted)
            if not untrusted:
                return io.loads(data, trusted=[*ALLOWED_TYPES, *loading.trusted])
    except Exception as error:  # of many kinds, on files that skops has not written, or for another scikit-learn
        raise FormatProblemError(
            f"its scikit-learn model cannot be read by this version of skops and scikit-learn ({type(error).__name__}: "
            f"{error})"
        ) from error
    raise FormatProblemError(
        f"its scikit-learn model holds types that are not trusted: {untrusted}. If you know them and trust whoever "
        "wrote the file, pass them: ibug.load(path, trusted=[...]), or --trusted NAME on the command line"
    )


def _untrusted(io: Any, data: bytes, trusted: Iterable[str] = ()) -> list[str]:
    return sorted(set(io.get_untrusted_types(data=data)) - {*ALLOWED_TYPES, *trusted})


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingDependencyError(
            f"scikit-learn models are saved and loaded through skops, which cannot be imported ({error}). Install it: "
            f"{how_to_install('skops')}."
        ) from error
    return skops.io


def _check_sizes(data: bytes, budget: Budget) -> None:
    """Raise FormatProblemError where reading would take more memory than the file's size allows.

    skops compresses nothing, so that nothing in it grows when it is read, but for sparse matrices. It reads an array
    each time that it is mentioned, and makes an array as large as its header says.
    """
    with _HEADERS:
        try:
            with zipfile.ZipFile(BytesIO(data)) as archive:
                _check_plain(archive, len(data))
                sizes = {info.filename: _size(archive, info, budget) for info in archive.infolist()}
                schema = archive.read(_SCHEMA)
        except FormatProblemError:
            raise
        except Exception as error:  # of a dozen kinds
            raise FormatProblemError(f"its scikit-learn model is damaged ({error})") from error
    budget.spend(json_bytes(schema), "its scikit-learn model")
    budget.spend(_mentioned(json.loads(schema), sizes), "its scikit-learn model")


def _check_plain(archive: zipfile.ZipFile, n_bytes: int) -> None:
    infos = archive.infolist()
    plain = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
    if not plain or sum(info.file_size for info in infos) > n_bytes:
        raise FormatProblemError("its scikit-learn model claims an absurd size")


def _mentioned(schema: Any, sizes: dict[str, int]) -> int:
    """Return the bytes of all members that the schema mentions, each as often as it would be read."""
    total, seen = 0, set()
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        if not isinstance(value, dict):
            continue
        waiting += value.values()
        file, number = value.get("file"), value.get("__id__")
        if isinstance(file, str) and (file, number) not in seen:
            total += sizes.get(file, 0)
            if isinstance(number, int):
                seen.add((file, number))  # which skops reads once
        if value.get("__class__") == "void":  # of one number NumPy would make as many bytes
            raise FormatProblemError("its scikit-learn model holds raw memory")
    return total


def _size(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> int:
    """Return how many bytes a member takes when it is read."""
    with archive.open(info) as file:
        head = file.read(_MAX_HEADER_BYTES)
    if info.filename.endswith(".npz"):
        with zipfile.ZipFile(BytesIO(archive.read(info))) as inner:
            size = sum(member.file_size for member in inner.infolist())
            budget.spend(size, "its scikit-learn model")
            for member in inner.infolist():
                _size(inner, member, budget)
            return size
    if head.startswith(b"\x93NUMPY"):
        _check_array(head, info.file_size)
    return info.file_size


def _check_array(head: bytes, size: int) -> None:
    file = BytesIO(head)
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, _, dtype = read(file, max_header_size=_MAX_HEADER_BYTES)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise FormatProblemError("its scikit-learn model has an array that is not as long as its header says")
