"""Predict with an index that is mapped from its file, with less memory than it has bytes; it prints a line of JSON.

    python -m benchmarks.search.mapped model.ibug queries.npy --limit 300000000

The limit is kept by a thread of the process itself, without any right to limit a process: as soon as more of the file
is in memory, it gives the pages back (``MADV_PAGEOUT``) and lets the system forget them (``POSIX_FADV_DONTNEED``), so
that whoever needs them again reads the disk. What is in memory is told by ``/proc/self/smaps``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ibug
from benchmarks.common.threads import use_one_thread

if TYPE_CHECKING:
    from typing import Self  # in typing from Python 3.11 on

PAGEOUT = 21  # MADV_PAGEOUT of Linux
SECONDS = 0.002  # between looks


class Mapping:
    """The parts of a file that are mapped into this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._libc = ctypes.CDLL(None, use_errno=True)

    def parts(self) -> list[tuple[int, int, int]]:
        """Return start, stop and bytes in memory of each."""
        text = Path("/proc/self/smaps").read_text()
        pattern = rf"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+\s+{re.escape(str(self._path))}\n(?:.*\n)*?Rss:\s+(\d+) kB"
        return [(int(a, 16), int(b, 16), int(kb) * 1024) for a, b, kb in re.findall(pattern, text, re.MULTILINE)]

    def in_memory(self) -> int:
        """Return the bytes in memory."""
        return sum(part[2] for part in self.parts())

    def give_back(self) -> None:
        """Give all pages back, and let the system forget them."""
        for start, stop, _ in self.parts():
            address, length = ctypes.c_void_p(start), ctypes.c_size_t(stop - start)
            if self._libc.madvise(address, length, PAGEOUT) != 0:
                raise OSError(ctypes.get_errno(), "madvise failed")
        forget(self._path)


class Limit:
    """Keeps what is in memory of a mapped file below a limit, while it is entered; `largest` is the most it saw."""

    def __init__(self, mapping: Mapping, n_bytes: int) -> None:
        self._mapping, self._n_bytes, self._over = mapping, n_bytes, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.largest = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(SECONDS):
            now = self._mapping.in_memory()
            self.largest = max(self.largest, now)
            if now > 0.8 * self._n_bytes:
                self._mapping.give_back()


def forget(path: Path) -> None:
    """Let the system forget what it has of a file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bytes_read() -> int:
    """Return the bytes that this process has read from the disk."""
    account = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(account["read_bytes"])


def measure(path: Path, X: Any, limit: int) -> dict[str, Any]:
    """Return seconds by the clock, and bytes."""
    ibug.load(path, verify=False)  # which imports what loading needs
    start = time.perf_counter()
    ibug.load(path)
    verified = time.perf_counter() - start
    forget(path)
    start = time.perf_counter()
    u: Any = ibug.load(path, verify=False)
    loaded = time.perf_counter() - start
    mapping = Mapping(path)
    mapping.give_back()
    start = time.perf_counter()
    u.predict_interval(X[:1])
    first, first_bytes = time.perf_counter() - start, mapping.in_memory()
    mapping.give_back()
    before, start = bytes_read(), time.perf_counter()
    with Limit(mapping, limit) as kept:
        limited_intervals = u.predict_interval(X)
    limited, read = time.perf_counter() - start, bytes_read() - before
    u.predict_interval(X)
    start = time.perf_counter()
    free_intervals = u.predict_interval(X)
    return {
        "verified": verified,
        "load": loaded,
        "first": first,
        "first_bytes": first_bytes,
        "limit": limit,
        "largest": kept.largest,
        "limited": limited,
        "read": read,
        "free": time.perf_counter() - start,
        "n_queries": len(X),
        "equal": bool(np.array_equal(limited_intervals, free_intervals)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--limit", type=int, required=True, help="bytes of the file in memory")
    options = parser.parse_args()
    use_one_thread()
    print(json.dumps(measure(options.path, np.load(options.queries), options.limit)))


if __name__ == "__main__":
    main()
