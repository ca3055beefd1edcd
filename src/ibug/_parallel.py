"""Work that is divided among threads: the first part is done here, each other one by a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from numbers import Integral
from threading import Thread
from typing import Generic, TypeVar

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
    others = [_Running(work) for work in works[1:]]
    try:
        first = works[0]()
    finally:
        for other in others:
            other.join()
    return [first, *(other.result() for other in others)]


class _Running(Generic[Result]):
    """One work in a thread of its own, with the caller's context variables."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._found: list[Result] = []
        self._failure: BaseException | None = None
        self._thread = Thread(target=copy_context().run, args=(self._run, work))
        self._thread.start()

    def _run(self, work: Callable[[], Result]) -> None:
        try:
            self._found.append(work())
        except BaseException as failure:
            self._failure = failure

    def join(self) -> None:
        self._thread.join()

    def result(self) -> Result:
        if self._failure is not None:
            raise self._failure
        return self._found[0]
