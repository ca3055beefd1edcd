"""Where searches run: on the workers that have the shards."""

from __future__ import annotations

import logging
from typing import Any

from dask.delayed import Delayed
from distributed import Client, futures_of
from distributed.diagnostics.plugin import SchedulerPlugin

#: How keys of searches begin.
SEARCH = "ibug-search"

_NAME = "ibug-keep-shards"


class KeepShards(SchedulerPlugin):
    """Tells Dask's scheduler that a search is to run where its shard is.

    Left alone, the scheduler copies a shard to a worker that is idle whenever that seems faster; so a worker would come
    to hold more than its share of the index. Annotations would say the same, but collections drop them when they
    optimise their graphs. The hint is a preference: once a worker is gone, its searches run wherever the shard is made
    again.
    """

    idempotent = True  # one for all estimators

    def update_graph(self, scheduler: Any, *, tasks: Any, **rest: Any) -> None:
        """Prefer the holders of the largest dependency of each search."""
        for key in tasks:
            if not isinstance(key, tuple) or not str(key[0]).startswith(SEARCH):
                continue
            task = scheduler.tasks.get(key)
            if task is None or not task.dependencies or task.worker_restrictions:
                continue
            shard = max(task.dependencies, key=lambda dependency: dependency.get_nbytes())
            if shard.who_has:
                task.worker_restrictions = {worker.address for worker in shard.who_has}
                task.loose_restrictions = True


def keep_shards(client: Client) -> None:
    """Let the scheduler know; where it cannot be told, results are the same."""
    try:
        client.register_plugin(KeepShards(), name=_NAME)
    except Exception as error:  # a scheduler without ibug, or one that takes no plugins
        logging.getLogger(__name__).info("The scheduler cannot be told to keep shards in place: %s", error)


def holders(client: Client, shards: list[Delayed]) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the shards by the worker that holds them, so that their answers are merged there first."""
    groups: dict[Any, list[int]] = {}
    where = client.who_has(futures_of(shards))
    for number, shard in enumerate(shards):
        groups.setdefault(tuple(where.get(shard.key, ()))[:1], []).append(number)
    return tuple(tuple(group) for group in groups.values())
