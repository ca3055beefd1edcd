"""The compiled functions that make leaf values again, or a word on how to get them."""

from __future__ import annotations

from ibug.exceptions import MissingExtensionError

try:
    from ibug.training import _refit as kernel
except ImportError as error:  # pragma: no cover - only without a build
    raise MissingExtensionError.of("leaf values", error) from error

__all__ = ["kernel"]
