"""The compiled kernel, or a word on how to get it."""

from ibug.exceptions import MissingExtensionError

try:
    from ibug.neighbors import _kernel as kernel
except ImportError as error:  # pragma: no cover - only without a build; a test starts such a Python
    raise MissingExtensionError.of("kernel", error) from error

__all__ = ["kernel"]
