"""skops: scikit-learn objects without pickle, of trusted types only."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable
from io import BytesIO
from typing import Any

from ibug.exceptions import IBUGWarning, MissingDependencyError, NotStorableError
from ibug.persistence._format import FormatProblemError
from ibug.persistence._session import Loading, Saving

#: Trusted beyond what skops trusts by itself (scikit-learn's estimators, NumPy, SciPy's functions). skops leaves trees
#: out because scikit-learn believes the numbers in them; here they are checked before anything is predicted.
_TRUSTED = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn._loss.link.IdentityLink",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogLink",
    "sklearn._loss.loss.AbsoluteError",
    "sklearn._loss.loss.HalfGammaLoss",
    "sklearn._loss.loss.HalfPoissonLoss",
    "sklearn._loss.loss.HalfSquaredError",
    "sklearn._loss.loss.HuberLoss",
    "sklearn._loss.loss.PinballLoss",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils.validation.check_array",  # with which HistGradientBoosting reads columns beside categorical ones,
    "functools.partial",  # as a partial function: one of a function that must be trusted itself
)


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
    unknown = _untrusted(io, data)
    if unknown:
        warnings.warn(
            f"This {type(model).__name__} holds types that ibug.load does not trust by itself: {unknown}. Whoever "
            "loads the file has to pass them: ibug.load(path, trusted=[...]).",
            IBUGWarning,
            stacklevel=2,
        )
    return saving.add_model(data, ".skops")


def parse(name: str, loading: Loading) -> Any:
    """Return the object of a member, if all types in it are trusted."""
    io = _skops()
    data = loading.model(name)
    _check_sizes(data)
    try:
        untrusted = _untrusted(io, data, loading.trusted)
        if not untrusted:
            return io.loads(data, trusted=[*_TRUSTED, *loading.trusted])
    except Exception as error:  # of many kinds, on files that skops has not written, or for another scikit-learn
        raise FormatProblemError(
            f"its scikit-learn model cannot be read by this version of skops and scikit-learn ({type(error).__name__}: "
            f"{error})"
        ) from error
    raise FormatProblemError(
        f"its scikit-learn model holds types that are not trusted: {untrusted}. If you know them and trust whoever "
        "wrote the file, pass them: ibug.load(path, trusted=[...])"
    )


def _untrusted(io: Any, data: bytes, trusted: Iterable[str] = ()) -> list[str]:
    return sorted(set(io.get_untrusted_types(data=data)) - {*_TRUSTED, *trusted})


def _check_sizes(data: bytes) -> None:
    """Check that nothing in the inner container grows when it is read: skops compresses nothing here."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            infos = archive.infolist()
    except Exception as error:
        raise FormatProblemError(f"its scikit-learn model is damaged ({error})") from error
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos) or sum(i.file_size for i in infos) > len(data):
        raise FormatProblemError("its scikit-learn model claims an absurd size")


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingDependencyError(
            f"scikit-learn models are saved and loaded through skops, which cannot be imported ({error}). Install it: "
            'pip install "ibug[skops]".'
        ) from error
    return skops.io
