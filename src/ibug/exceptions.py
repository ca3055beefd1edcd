"""The errors and warnings of ibug.

Each error is also the built-in error that scikit-learn users expect, so that ``except ValueError`` keeps working::

    IBUGError
    ├── InvalidInputError (ValueError)        data or an option that cannot be used as given
    ├── UnsupportedModelError (TypeError)     a model whose leaves ibug cannot or must not read
    ├── ModelNotFittedError (NotFittedError)  a model that was to be wrapped, but is not fitted yet
    ├── MissingExtensionError (ImportError)   the compiled kernel was not built
    └── MissingDependencyError (ImportError)  an optional library is not installed

    IBUGWarning (UserWarning)
    └── NotCalibratedWarning                  calibration was asked for, but there is no data to do it on
"""

from sklearn.exceptions import NotFittedError

__all__ = [
    "IBUGError",
    "IBUGWarning",
    "InvalidInputError",
    "MissingDependencyError",
    "MissingExtensionError",
    "ModelNotFittedError",
    "NotCalibratedWarning",
    "UnsupportedModelError",
]


class IBUGError(Exception):
    """The base of all errors that ibug raises on purpose."""


class InvalidInputError(IBUGError, ValueError):
    """Data or an option cannot be used as given."""


class UnsupportedModelError(IBUGError, TypeError):
    """The model is not a single-output tree regressor of a supported library."""


class ModelNotFittedError(IBUGError, NotFittedError):
    """The model that was to be wrapped has not been fitted yet."""


class MissingExtensionError(IBUGError, ImportError):
    """The compiled kernel is missing: the package was not built."""


class MissingDependencyError(IBUGError, ImportError):
    """An optional library that this needs is not installed."""


class IBUGWarning(UserWarning):
    """The base of all warnings that ibug emits on purpose."""


class NotCalibratedWarning(IBUGWarning):
    """Calibration was asked for, but there are no validation rows to do it on."""
