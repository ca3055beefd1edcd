"""The compiled functions on spreads, or a word on how to get them."""

from __future__ import annotations

from ibug.exceptions import MissingExtensionError

try:
    from ibug.rule.spread import _spreads as kernel
except ImportError as error:  # pragma: no cover - only without a build
    raise MissingExtensionError.of("spreads of neighbours", error) from error

__all__ = ["kernel"]
