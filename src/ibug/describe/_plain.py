"""Results as values that JSON can hold."""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """Return a result as JSON can hold it.

    Arrays and numbers of NumPy become lists and numbers of Python; NaN and infinity become None. Text that cannot be
    encoded gets a question mark in its place.
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and value - value != 0:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be written
    return value
