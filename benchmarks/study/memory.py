"""Models that several methods share are trained once for all of them; the time of the training counts for each."""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


class Memory:
    """Results on disk, by key, with the processor time that they took.

    Parameters
    ----------
    folder
        Where they are kept; ``None`` remembers nothing.
    place
        What every key begins with: dataset, fold and so on.

    Attributes
    ----------
    saved_seconds : float
        The processor time that was not spent because a result was there already.
    """

    def __init__(self, folder: Path | None = None, place: tuple[Any, ...] = ()) -> None:
        self._folder = folder
        self._place = place
        self.saved_seconds = 0.0

    def recall(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return what `make` returns, or returned when it was called with that key before."""
        if self._folder is None:
            return make()
        name = hashlib.sha256(repr((*self._place, *key)).encode()).hexdigest()
        path = self._folder / f"{name}.pickle"
        try:
            with path.open("rb") as file:
                value, seconds = pickle.load(file)
        except (OSError, EOFError, pickle.UnpicklingError, ModuleNotFoundError):  # the last: from another version
            pass
        else:
            self.saved_seconds += seconds
            result: T = value
            return result
        start = time.process_time()
        result = make()
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        with draft.open("wb") as file:
            pickle.dump((result, time.process_time() - start), file)
        draft.replace(path)  # at once: a process that is killed leaves no half file under that name
        return result
