"""skops: scikit-learn objects without pickle, of trusted types only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ibug.exceptions import MissingDependencyError, NotStorableError
from ibug.persistence._format import FormatProblemError
from ibug.persistence._session import Loading, Saving
from ibug.persistence._skops_sizes import READING, check_sizes
from ibug.persistence._trusted import TRUSTED


def dump(model: Any, saving: Saving) -> str:
    """Store a scikit-learn object, and return the member's name."""
    io = _skops()
    saving.need("skops")
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
            io.loads(data, trusted=[*TRUSTED, *own])
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
    check_sizes(data, loading.budget)
    try:
        with READING:
            untrusted = _untrusted(io, data, loading.trusted)
            if not untrusted:
                return io.loads(data, trusted=[*TRUSTED, *loading.trusted])
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
    return sorted(set(io.get_untrusted_types(data=data)) - {*TRUSTED, *trusted})


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingDependencyError(
            f"scikit-learn models are saved and loaded through skops, which cannot be imported ({error}). Install it: "
            'pip install "ibug-learn[skops]".'
        ) from error
    return skops.io
