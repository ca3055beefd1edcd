"""A file that is read in a process of its own first: a library that crashes or hangs ends that process, not this."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

from ibug.exceptions import FileFormatError, IBUGError, InvalidInputError, MissingDependencyError
from ibug.leaves import BOOSTERS

#: What any file may take, and what more it may take for each byte that it declares.
LEAST_SECONDS, LEAST_BYTES = 60.0, 2**31
SECONDS_PER_BYTE, BYTES_PER_BYTE = 1e-7, 16
_LIBRARIES = {**{name: name for name in BOOSTERS}, "skops": "skops.io"}
_CODE = "from ibug.persistence._isolated import child; child()"
_SIGNALS = {number.value: number.name for number in signal.Signals}


def try_in_child(path: str | os.PathLike[str], trusted: tuple[str, ...], declared: int) -> str:
    """Load a file in a child process with limits of time and memory, predict a few rows, and return its checksum."""
    seconds, memory = LEAST_SECONDS + SECONDS_PER_BYTE * declared, LEAST_BYTES + BYTES_PER_BYTE * declared
    order = {"path": os.path.abspath(path), "trusted": trusted, "seconds": seconds, "memory": memory}
    # One thread of each library: each further one would reserve memory that it does not use.
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX"), "1")
    environment = {**os.environ, **single, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    name = os.fspath(path)
    try:
        ended = subprocess.run(
            [sys.executable, "-c", _CODE],
            input=json.dumps(order).encode(),
            capture_output=True,
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _refused(name, f"reading it took longer than {seconds:.0f} s") from error
    except OSError as error:
        raise InvalidInputError(
            f"isolate=True needs to start {sys.executable!r} as Python, which fails: {error}."
        ) from error
    answer = _last_line(ended.stdout)
    if "checksum" in answer:
        return str(answer["checksum"])
    if "error" in answer:
        if answer["error"] == "MissingDependencyError":
            raise MissingDependencyError(str(answer["message"]))
        raise FileFormatError(str(answer["message"]))
    how = _SIGNALS.get(-ended.returncode, f"the exit code {ended.returncode}")
    why = ended.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    raise _refused(name, f"the process that was to read it first has died ({', '.join([how, *why])[:300]})")


def _refused(name: Any, reason: str) -> FileFormatError:
    return FileFormatError(f"{name!r} cannot be loaded: {reason}. Nothing of it was read here.")


def _last_line(output: bytes) -> dict[str, Any]:
    """Return what the child has answered; libraries may have printed something before."""
    try:
        answer = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        return {}
    return answer if isinstance(answer, dict) else {}


def child() -> None:
    """Read what is wanted from standard input, load the file, and answer on standard output: in the child process."""
    order = json.load(sys.stdin)
    try:
        _limit_time(order["seconds"])
        answer = _load(order)
    except MemoryError:
        needs = f"it needs more than {order['memory'] / 2**30:.1f} GiB of memory"
        answer = _answer(FileFormatError(f"{order['path']!r} cannot be loaded: {needs}."))
    except IBUGError as error:
        answer = _answer(error)
    except Exception as error:  # what is no word of ours is one of a library
        answer = _answer(FileFormatError(f"{order['path']!r} cannot be loaded: {type(error).__name__}: {error}."))
    print(json.dumps(answer), flush=True)
    os._exit(0)  # whatever state the libraries are in


def _answer(error: Exception) -> dict[str, str]:
    kind = "MissingDependencyError" if isinstance(error, MissingDependencyError) else "FileFormatError"
    return {"error": kind, "message": str(error)}


def _load(order: dict[str, Any]) -> dict[str, str]:
    from ibug.persistence import checksum_of, inspect, load

    checksum = checksum_of(order["path"])
    for name in inspect(order["path"])["needs"]:
        if name in _LIBRARIES:
            try:
                importlib.import_module(_LIBRARIES[name])
            except ImportError:
                continue  # the error is raised where the library is needed
    _limit_memory(order["memory"])  # beyond what the libraries themselves take
    _ask(load(order["path"], trusted=order["trusted"]))
    return {"checksum": checksum}


def _ask(regressor: Any) -> None:
    """Predict rows of zeros and of missing values: a forged tree may be walked only now."""
    import numpy as np

    for value in (0.0, np.nan):
        rows = np.full((2, regressor.n_features_in_), value)
        for ask in (regressor.predict, regressor.predict_var):
            with suppress(Exception):  # rows that the model does not take are no fault of the file
                ask(rows)


def _limit_time(seconds: float) -> None:
    try:
        import resource
    except ImportError:  # Windows: the parent's own limit is all there is
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))


def _limit_memory(n_bytes: int) -> None:
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # not Linux: the system has no such limit, or does not keep it
        return
    resource.setrlimit(resource.RLIMIT_AS, (now + n_bytes,) * 2)
