"""Where searches run: on the workers that have the shards."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from dask import delayed
from dask.delayed import Delayed
from distributed import Client, futures_of
from distributed.diagnostics.plugin import SchedulerPlugin

#: How keys of tasks begin that are to run where their shard is; or where all of what they merge is.
SEARCH = "ibug-search"

_NAME = "ibug-keep-shards"


class KeepShards(SchedulerPlugin):
    """Tells Dask's scheduler that a search is to run where its shard is.

    Left alone, the scheduler copies a shard to a worker that is idle whenever that seems faster, or lets that worker
    steal the search; so a worker would come to hold more than its share of the index, and answers would go to and fro.
    Annotations would say the same, but collections drop them when they optimise their graphs. Only as long as the
    worker is there: once it is gone, its searches run wherever their shards are made again.
    """

    idempotent = True  # one for all estimators

    def update_graph(self, scheduler: Any, *, tasks: Any, **rest: Any) -> None:
        """Bind each search to the holders of its shard, and merges of one worker's answers to this worker."""
        for key in tasks:
            task = scheduler.tasks.get(key)
            if task is not None and _is_search(key):
                _bind(task)

    def remove_worker(self, scheduler: Any, worker: str, *, stimulus_id: str, **rest: Any) -> None:
        """Let go of a worker that has left."""
        stranded = {}
        for key, task in scheduler.tasks.items():
            if _is_search(key) and worker in (task.worker_restrictions or ()):
                task.worker_restrictions = (task.worker_restrictions - {worker}) or None
                if task.state == "no-worker":  # its shard is elsewhere by now
                    stranded[key] = "processing"
        scheduler.transitions(stranded, stimulus_id)


def _is_search(key: Any) -> bool:
    return isinstance(key, tuple) and str(key[0]).startswith(SEARCH)


def _bind(task: Any) -> None:
    if task.worker_restrictions or not task.dependencies:
        return
    answers = [dependency for dependency in task.dependencies if _is_search(dependency.key)]
    if not answers:
        held = [dependency for dependency in task.dependencies if dependency.who_has]  # queries are not read yet
        if held:
            shard = max(held, key=lambda dependency: dependency.get_nbytes())
            task.worker_restrictions = {worker.address for worker in shard.who_has}
        return
    for answer in answers:
        _bind(answer)
    places = [answer.worker_restrictions for answer in answers]
    if all(place and place == places[0] for place in places):
        task.worker_restrictions = set(places[0])


def keep_shards(client: Client) -> None:
    """Let the scheduler know; where it cannot be told, results are the same."""
    try:
        client.register_plugin(KeepShards(), name=_NAME)
    except Exception as error:  # a scheduler without ibug, or one that takes no plugins
        logging.getLogger(__name__).info("The scheduler cannot be told to keep shards in place: %s", error)


def on_shards(function: Callable[..., Any], shards: list[Delayed], *arguments: Any) -> list[Delayed]:
    """Return what a function says of each shard, computed where the shard is; each argument has one item per shard."""
    name = f"{SEARCH}-{function.__name__.strip('_')}-{uuid4().hex}"
    rows = zip(shards, *arguments, strict=True)
    return [delayed(function)(*row, dask_key_name=(name, i)) for i, row in enumerate(rows)]


def holders(client: Client, shards: list[Delayed]) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the shards by the worker that holds them, so that their answers are merged there first."""
    groups: dict[Any, list[int]] = {}
    where = client.who_has(futures_of(shards))
    for number, shard in enumerate(shards):
        groups.setdefault(tuple(where.get(shard.key, ()))[:1], []).append(number)
    return tuple(tuple(group) for group in groups.values())
