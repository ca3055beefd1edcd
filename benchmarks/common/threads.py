"""One thread for numerical libraries, so that processor times can be compared."""

from __future__ import annotations

import os

_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM")


def limit_threads() -> None:
    """Keep numerical libraries to one thread: those that are loaded later, here and in processes that are started."""
    for library in _LIBRARIES:
        os.environ[f"{library}_NUM_THREADS"] = "1"


def use_one_thread() -> None:
    """Keep every library to one thread; CatBoost, which predicts with all processors, by giving it only one."""
    limit_threads()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
