"""Tasks in the form that Dask runs, with what they depend on said explicitly."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dask._task_spec import List, Task, TaskRef


def as_tasks(tasks: Mapping[Any, tuple[Any, ...]], others: Collection[Any]) -> dict[Any, Any]:
    """Return tasks ``(function, *arguments)`` as Dask's own."""
    known = {*tasks, *others}

    def argument(value: Any) -> Any:
        if isinstance(value, list):
            return List(*map(argument, value))
        return TaskRef(value) if isinstance(value, (str, tuple)) and value in known else value

    return {key: Task(key, function, *map(argument, rest)) for key, (function, *rest) in tasks.items()}
