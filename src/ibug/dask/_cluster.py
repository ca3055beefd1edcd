"""Where tasks run on the cluster, searches on the workers that have the shards; and waiting for what they make."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from dask import delayed
from dask._task_spec import List, Task, TaskRef
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from distributed import Client, as_completed, futures_of
from distributed.diagnostics.plugin import SchedulerPlugin

from ibug._progress import Progress


def graph_of(name: str, tasks: Mapping[Any, tuple[Any, ...]], dependencies: Sequence[Delayed]) -> HighLevelGraph:
    """Return the graph whose layer of this name has the tasks ``(function, *arguments)``."""
    known = {*tasks, *(one.key for one in dependencies)}

    def argument(value: Any) -> Any:
        if isinstance(value, list):
            return List(*map(argument, value))
        return TaskRef(value) if isinstance(value, (str, tuple)) and value in known else value

    own = {key: Task(key, function, *map(argument, rest)) for key, (function, *rest) in tasks.items()}
    return HighLevelGraph.from_collections(name, own, dependencies=dependencies)


#: How keys begin of what looks at training rows, makes shards of them, is needed for all of them, and asks them.
ROWS, SHARD, SOURCE, SEARCH = "ibug-rows", "ibug-shard", "ibug-source", "ibug-search"

_NAME = "ibug-keep-shards"


class KeepShards(SchedulerPlugin):
    """Makes Dask's scheduler build a shard where its rows are, and search it where it is.

    Left alone, the scheduler copies rows and shards to a worker that is idle whenever that seems faster, or lets that
    worker steal the task; so a worker would come to hold more than its share of the index, and answers would go to and
    fro. Annotations would say the same, but collections drop them when they optimise their graphs. A task is bound only
    as long as the worker is there: once it is gone, shards are made again and asked wherever there is room.
    """

    idempotent = True  # one for all estimators

    def update_graph(self, scheduler: Any, *, tasks: Any, **rest: Any) -> None:
        """Bind the tasks of a new graph."""
        new = [scheduler.tasks[key] for key in tasks if key in scheduler.tasks]
        shards = [task for task in new if _is_a(task.key, SHARD) and task.state != "memory"]
        _spread(sorted(shards, key=lambda task: task.key[1]), scheduler.running)
        for task in new:
            if _is_a(task.key, SEARCH):
                _bind(task)
            elif _is_a(task.key, ROWS) and (home := _home(task)) is not None:
                task.worker_restrictions = {home.address}

    def remove_worker(self, scheduler: Any, worker: str, *, stimulus_id: str, **rest: Any) -> None:
        """Let go of a worker that has left."""
        stranded = {}
        for key, task in scheduler.tasks.items():
            if _is_a(key, ROWS, SHARD, SEARCH) and worker in (task.worker_restrictions or ()):
                task.worker_restrictions = (task.worker_restrictions - {worker}) or None
                if task.state == "no-worker":  # ready to run, were it not for the worker
                    stranded[key] = "processing"
        scheduler.transitions(stranded, stimulus_id)


def _is_a(key: Any, *kinds: str) -> bool:
    return isinstance(key, tuple) and str(key[0]).startswith(kinds)


def _spread(shards: list[Any], workers: Any) -> None:
    """Bind the making of shards to the holders of their rows; where rows are yet to be read, to all workers."""
    load = dict.fromkeys(sorted(workers, key=lambda worker: worker.address), 0)
    homes = [_home(shard) for shard in shards]
    for home in homes:
        if home in load:
            load[home] += 1
    for shard, home in zip(shards, homes, strict=True):
        if home is None and load:
            home = min(load, key=lambda worker: (load[worker] + 1) / worker.nthreads)
            load[home] += 1
        shard.worker_restrictions = None if home is None else {home.address}


def _home(about: Any) -> Any:
    """Return a worker that holds the rows that a task is about; None if they are not in memory."""
    rows = [task for task in about.dependencies if not str(task.key).startswith(SOURCE)]
    held = []
    for task in rows:
        while not task.who_has and len(task.dependencies) == 1:  # renamed or cut, but nothing else
            (task,) = task.dependencies
        if task.who_has:
            held.append(task)
    return next(iter(max(held, key=lambda task: task.get_nbytes()).who_has)) if held else None


def _bind(task: Any) -> None:
    """Bind a search to the holders of its shard, and a merge of one worker's answers to this worker."""
    if task.worker_restrictions or not task.dependencies:
        return
    answers = [dependency for dependency in task.dependencies if _is_a(dependency.key, SEARCH)]
    for answer in answers:
        _bind(answer)
    places = [answer.worker_restrictions for answer in answers]
    places += [{worker.address for worker in one.who_has} for one in task.dependencies if _is_a(one.key, SHARD)]
    if places and all(place and place == places[0] for place in places):
        task.worker_restrictions = set(places[0])


def keep_shards(client: Client) -> None:
    """Register the plugin; where that cannot be done, results are the same."""
    try:
        client.register_plugin(KeepShards(), name=_NAME)
    except Exception as error:  # a scheduler without ibug, or one that takes no plugins
        logging.getLogger(__name__).info("The scheduler does not keep shards in place: %s", error)


def on_cluster(client: Client, function: Any, *arguments: Any) -> Delayed:
    """Compute on the cluster what all shards are made with, and leave it there."""
    source: Delayed = client.persist(function(*arguments, dask_key_name=f"{SOURCE}-{uuid4().hex}"))
    return source


def tasks_of(kind: str, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Delayed]:
    """Return tasks of a kind, which says where they run, each with its arguments: `SHARD`, `ROWS` or `SEARCH`."""
    name = f"{kind}-{function.__name__.strip('_')}-{uuid4().hex}"
    return [delayed(function)(*row, dask_key_name=(name, i)) for i, row in enumerate(arguments)]


def holders(client: Client, shards: list[Delayed]) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the shards by the worker that holds them, so that their answers are merged there first."""
    groups: dict[Any, list[int]] = {}
    where = client.who_has(futures_of(shards))
    for number, shard in enumerate(shards):
        groups.setdefault(tuple(where.get(shard.key, ()))[:1], []).append(number)
    return tuple(tuple(group) for group in groups.values())


def results(client: Client, tasks: Sequence[Delayed], title: str, verbose: bool) -> list[Any]:
    """Compute on the cluster, show the progress, and return the results."""
    futures = client.compute(list(tasks))
    _follow(futures, title, verbose)
    return list(client.gather(futures))


def persisted(client: Client, tasks: Sequence[Delayed], title: str, verbose: bool) -> list[Delayed]:
    """Compute on the cluster, and leave the results there."""
    held = list(client.persist(list(tasks)))
    _follow(futures_of(held), title, verbose)
    return held


def _follow(futures: Sequence[Any], title: str, verbose: bool) -> None:
    with Progress(title, len(futures), enabled=verbose) as progress:
        for future in as_completed(futures):
            if future.status == "error":
                future.result()  # raises
            progress.advance(1)
