"""Results as what JSON knows."""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """Return NumPy's arrays and numbers as Python's, NaN and infinity as None, and texts that can be written."""
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
