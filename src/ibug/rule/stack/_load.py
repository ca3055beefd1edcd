"""The compiled functions on experts, or a word on how to get them."""

from __future__ import annotations

from ibug.exceptions import MissingExtensionError

try:
    from ibug.rule.stack import _experts as kernel
except ImportError as error:  # pragma: no cover - only without a build
    raise MissingExtensionError.of("stacks of experts", error) from error

__all__ = ["kernel"]
