"""Work that is divided among threads: the first part is done here, each other one by a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from numbers import Integral
from threading import Thread
from typing import TypeVar

from joblib import effective_n_jobs

from ibug.exceptions import InvalidInputError

Result = TypeVar("Result")


def n_threads_of(n_jobs: int | None, most: int) -> int:
    """Return the number of threads that `n_jobs` asks for, in joblib's convention: ``None`` is one, ``-1`` all."""
    check_n_jobs(n_jobs)
    return 1 if n_jobs is None or most <= 1 or n_jobs == 1 else min(most, int(effective_n_jobs(n_jobs)))


def check_n_jobs(n_jobs: int | None) -> None:
    """Raise an error if this is neither a whole number other than 0 nor None."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise InvalidInputError(f"n_jobs must be None or a whole number other than 0, such as 2 or -1; got {n_jobs!r}.")


def run_parallel(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """Do all works at the same time, and return their results in order.

    A thread is started in some 50 microseconds and waited for without polling: a search of one millisecond may be
    divided. joblib, which looks every 10 milliseconds whether its threads are ready, is for longer works.
    """
    results: dict[int, Result] = {}
    failures: dict[int, BaseException] = {}

    def run(i: int) -> None:
        try:
            results[i] = works[i]()
        except BaseException as failure:
            failures[i] = failure

    # Each thread has the caller's context variables.
    threads = [Thread(target=copy_context().run, args=(run, i)) for i in range(1, len(works))]
    for thread in threads:
        thread.start()
    run(0)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[min(failures)]
    return [results[i] for i in range(len(works))]
