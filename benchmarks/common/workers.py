"""Processes that run tasks one after the other, and can be ended when one takes too long or dies.

A process imports the libraries once and then runs many tasks. If a task passes its time limit, its process is killed
and another one takes its place; if a process dies (a library crashed), its task is reported as failed. When the parent
is gone, its processes end by themselves.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_END = 5.0
_READY = "ready"


class Outcome(NamedTuple):
    """What came of a task: ``"ok"`` and what was returned, or ``"failed"``, ``"timeout"``, ``"skipped"`` and why."""

    task: Any
    status: str
    result: Any
    reason: str
    seconds: float

    @property
    def problem(self) -> str:
        """What went wrong, in words; empty where nothing did."""
        return "" if self.status == "ok" else f"{self.status}: {self.reason}"


class Worker:
    """One process with the task that it has in hand."""

    def __init__(self, function: Callable[[Any], Any], skip: type[Exception]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of the libraries
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, function, skip), daemon=True)
        self._process.start()
        theirs.close()
        self.task: Any = None
        self.alive = True
        self._started = time.monotonic()
        self._ready = False

    def give(self, task: Any) -> None:
        """Hand over a task."""
        self.task, self._started = task, time.monotonic()
        self.connection.send(task)

    @property
    def seconds(self) -> float:
        """How long the task has been worked on: while the process starts it is not."""
        return time.monotonic() - self._started if self._ready else 0.0

    def receive(self) -> Outcome | None:
        """Return the outcome of the task, "failed" if the process has died, or None if it has just started."""
        try:
            status, result, reason = self.connection.recv()
        except (EOFError, OSError):
            self._process.join(10)
            self.alive = False
            reason = f"the process died (exit code {self._process.exitcode})"
            return Outcome(self.task, "failed", None, reason, self.seconds)
        if status == _READY:
            self._started, self._ready = time.monotonic(), True
            return None
        return Outcome(self.task, status, result, reason, self.seconds)

    def end(self, patience: float = 0.0) -> None:
        """End the process at once, or after some seconds in which it may end by itself."""
        if patience:
            self._process.join(patience)
        self._process.kill()
        self._process.join()
        self.connection.close()


def run_all(
    tasks: Sequence[T],
    function: Callable[[T], Any],
    *,
    jobs: int,
    time_limit: float | None,
    skip: type[Exception] = NotImplementedError,
) -> Iterator[Outcome]:
    """Yield the outcomes as they come; tasks are begun in their order.

    Parameters
    ----------
    tasks, function
        What is done. Both must be picklable.
    jobs
        The number of processes.
    time_limit
        Seconds after which a task is ended; None for never.
    skip
        The exception by which a task says that it is not for it: its status is ``"skipped"``.
    """
    waiting = list(reversed(tasks))
    busy: list[Worker] = []
    idle: list[Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker = idle.pop() if idle else Worker(function, skip)
                worker.give(waiting.pop())
                busy.append(worker)
            for worker, outcome in _finished(busy, time_limit):
                busy.remove(worker)
                if outcome.status == "timeout" or not worker.alive:
                    worker.end()
                else:
                    idle.append(worker)
                yield outcome
    finally:
        for worker in idle:
            worker.connection.close()  # it ends by itself, and frees what it has
        for worker in busy:
            worker.end()
        for worker in idle:
            worker.end(patience=_SECONDS_TO_END)


def _finished(busy: list[Worker], time_limit: float | None) -> list[tuple[Worker, Outcome]]:
    connections = {worker.connection: worker for worker in busy}
    ready = wait(list(connections), timeout=_SECONDS_BETWEEN_LOOKS)
    received = [(connections[each], connections[each].receive()) for each in ready if isinstance(each, Connection)]
    done = [(worker, outcome) for worker, outcome in received if outcome is not None]
    if time_limit is not None:
        late = [worker for worker in busy if worker.seconds > time_limit and worker.connection not in ready]
        reason = f"passed the time limit of {time_limit:g} s"
        done += [(worker, Outcome(worker.task, "timeout", None, reason, worker.seconds)) for worker in late]
    return done


def _serve(connection: Connection, function: Callable[[Any], Any], skip: type[Exception]) -> None:
    """Run tasks until the other end is closed."""
    connection.send((_READY, None, ""))
    while True:
        try:
            task = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer: tuple[str, Any, str] = ("ok", function(task), "")
        except KeyboardInterrupt:
            return
        except skip as reason:
            answer = ("skipped", None, str(reason))
        except BaseException as error:  # whatever a library may do, the others go on
            where = traceback.extract_tb(error.__traceback__)[-1]
            answer = ("failed", None, f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})")
        try:
            connection.send(answer)
        except OSError:
            return
