"""Where things are: the checkout, and the folder with the datasets."""

from __future__ import annotations

import os
from pathlib import Path

#: The checkout.
ROOT = Path(__file__).parents[2]


def data_folder(given: Path | None = None) -> Path | None:
    """Return the folder with the datasets' files: the given one, or the one that IBUG_DATA names."""
    if given is not None:
        return given
    return Path(os.environ["IBUG_DATA"]) if os.environ.get("IBUG_DATA") else None
