"""The compiled functions, or how to get them."""

from ibug.exceptions import MissingExtensionError

try:
    from ibug._core import likelihood, refit, search, spread, stack, walk
except ImportError as error:  # pragma: no cover - only without a build; a test starts such a Python
    raise MissingExtensionError(
        f"ibug's compiled extension cannot be loaded ({error}). "
        "Build it with `pip install .` in the source folder (a C++20 compiler is all it needs), "
        "or install a wheel with `pip install ibug-learn`. If you are in ibug's source folder, `src/ibug` itself "
        "is not built: run Python from another folder, or install with `pip install -e .`."
    ) from error

__all__ = ["likelihood", "refit", "search", "spread", "stack", "walk"]
