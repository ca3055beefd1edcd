"""The errors and warnings of ibug.

Each error is also the built-in error that scikit-learn users expect, so that ``except ValueError`` keeps working::

    IBUGError
    ├── InvalidInputError (ValueError)        data or an option that cannot be used as given
    ├── UnsupportedModelError (TypeError)     a model whose leaves ibug cannot or must not read
    ├── ModelNotFittedError (NotFittedError)  a model that was to be wrapped, but is not fitted yet
    ├── NotStorableError (TypeError)          something that cannot be saved without pickle
    ├── FileFormatError (ValueError)          a file that is not one of ibug's, is damaged, or cannot be read here
    ├── MissingExtensionError (ImportError)   the compiled kernel was not built
    └── MissingDependencyError (ImportError)  an optional library is not installed

    IBUGWarning (UserWarning)
    ├── NameConflictWarning                   another distribution has a package named ibug, too
    ├── NarrowWarning                         intervals hold far fewer of the validation rows than they should
    ├── NotCalibratedWarning                  calibration was asked for, but there is no data to do it on
    ├── NotStoredWarning                      a parameter that predictions do not need is left out of a saved file
    ├── OlderLibraryWarning                   a file was written with a newer version of a library than is installed
    ├── OtherUnitWarning                      ibug predicts in the unit of the target, where the model itself does not
    ├── OutsideSupportWarning                 later targets are outside the bounds that support="auto" had found
    ├── IndependentRowsWarning                rows of a total are taken as independent of each other
    ├── UnknownCategoryWarning                rows have categories that the training rows did not have
    └── LikelyMistakeWarning                  what was asked for works, but is probably not what was meant:
        ├── SeenRowsWarning                   rows that should be new to the model are training rows
        ├── OtherRowsWarning                  training rows are not the rows that the model was trained on
        ├── OldRowsWarning                    rows to calibrate on disagree with the latest neighbours
        ├── TrainedAnewWarning                a trained estimator is cloned and trained again
        ├── TooFewRowsWarning                 there are too few validation rows for what was asked for
        ├── NotCentralWarning                 the model's prediction is not a centre: it was trained for a quantile, say
        └── TargetOrderWarning                targets are in another order than the model's, or than their rows

``warnings.simplefilter("error", LikelyMistakeWarning)`` turns these mistakes into errors, and ``"ignore"`` turns them
off; on the command line they are notes, and errors with ``--strict``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import NotFittedError

__all__ = [
    "FileFormatError",
    "IBUGError",
    "IBUGWarning",
    "IndependentRowsWarning",
    "InvalidInputError",
    "LikelyMistakeWarning",
    "MissingDependencyError",
    "MissingExtensionError",
    "ModelNotFittedError",
    "NameConflictWarning",
    "NarrowWarning",
    "NotCalibratedWarning",
    "NotCentralWarning",
    "NotStorableError",
    "NotStoredWarning",
    "OldRowsWarning",
    "OlderLibraryWarning",
    "OtherRowsWarning",
    "OtherUnitWarning",
    "OutsideSupportWarning",
    "SeenRowsWarning",
    "TargetOrderWarning",
    "TooFewRowsWarning",
    "TrainedAnewWarning",
    "UnknownCategoryWarning",
    "UnsupportedModelError",
]


class IBUGError(Exception):
    """The base of all errors that ibug raises on purpose."""


class InvalidInputError(IBUGError, ValueError):
    """Data or an option cannot be used as given."""


class UnsupportedModelError(IBUGError, TypeError):
    """The model is not a single-output tree regressor of a supported library."""


class NotStorableError(IBUGError, TypeError):
    """An estimator has a part that cannot be saved without pickle."""


class FileFormatError(IBUGError, ValueError):
    """A file is not one that ibug has saved, is damaged, or cannot be read by this version; the message says which."""


class MissingExtensionError(IBUGError, ImportError):
    """The compiled extension is missing: the package was not built."""


class MissingDependencyError(IBUGError, ImportError):
    """An optional library that this needs is not installed."""


class IBUGWarning(UserWarning):
    """The base of all warnings that ibug emits on purpose."""


class NameConflictWarning(IBUGWarning):
    """Another distribution has installed a package named ibug into the same environment."""


class NarrowWarning(IBUGWarning):
    """Intervals hold far fewer of the validation rows than they should, or only infinite ones hold them.

    The distributions fit these rows badly.
    """


class NotCalibratedWarning(IBUGWarning):
    """Calibration was asked for, but there are no validation rows to do it on."""


class NotStoredWarning(IBUGWarning):
    """A parameter cannot be saved without pickle; predictions do not need it, so it is left out of the file."""


class OlderLibraryWarning(IBUGWarning):
    """A file was written with a newer version of a library than the one that is to read it."""


class OtherUnitWarning(IBUGWarning):
    """ibug predicts in the unit of the target, where the model itself predicts logarithms."""


class OutsideSupportWarning(IBUGWarning):
    """Bounds of the target that ``support="auto"`` had found are dropped: later targets are outside."""


class UnknownCategoryWarning(IBUGWarning):
    """Rows have categories, or texts in a column of text, that the training rows did not have."""


class IndependentRowsWarning(IBUGWarning):
    """Rows of a total are taken as independent of each other, since it is not known which belong together."""


class LikelyMistakeWarning(IBUGWarning):
    """The base of warnings of classic mistakes: what was asked for works, but is probably not what was meant."""


class SeenRowsWarning(LikelyMistakeWarning):
    """Rows that choose, calibrate or score, and so should be new to the model, are rows that it was trained on."""


class OtherRowsWarning(LikelyMistakeWarning):
    """Rows were given as training rows that the trained model was not trained on, it seems."""


class OldRowsWarning(LikelyMistakeWarning):
    """The model's errors on rows to calibrate on differ from those on the latest rows that became neighbours."""


class TrainedAnewWarning(LikelyMistakeWarning):
    """An estimator that is trained already was given without ``prefit=True``: a clone of it is trained again."""


class TooFewRowsWarning(LikelyMistakeWarning):
    """There are too few validation rows for what was asked for."""


class NotCentralWarning(LikelyMistakeWarning):
    """The model's prediction is no centre of the distribution: it was trained for a quantile, or too little."""


class TargetOrderWarning(LikelyMistakeWarning):
    """Several targets are in another order than the model's, or targets in another than their rows, it seems."""


if TYPE_CHECKING:

    class ModelNotFittedError(IBUGError, NotFittedError):
        """The model that was to be wrapped has not been fitted yet."""


def __getattr__(name: str) -> Any:
    """Make ModelNotFittedError when it is first asked for: its base is scikit-learn's, which takes long to import."""
    if name != "ModelNotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError

    text = "The model that was to be wrapped has not been fitted yet."
    error = type(name, (IBUGError, NotFittedError), {"__doc__": text, "__module__": __name__})
    globals()[name] = error
    return error
