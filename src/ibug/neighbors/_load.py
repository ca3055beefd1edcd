"""The compiled kernel, or a word on how to get it."""

from ibug.exceptions import MissingExtensionError

try:
    from ibug.neighbors import _kernel as kernel
except ImportError as error:  # pragma: no cover - only without a build; a test starts such a Python
    raise MissingExtensionError(
        f"ibug's compiled kernel cannot be loaded ({error}). "
        "Build it with `pip install .` in the source folder (a C++20 compiler is all it needs), "
        "or install a wheel with `pip install ibug`. If you are in ibug's source folder, `src/ibug` itself "
        "is not built: run Python from another folder, or install with `pip install -e .`."
    ) from error

__all__ = ["kernel"]
