"""How much memory a load may take: in proportion to what the file declares, and counted before it is taken."""

from __future__ import annotations

import math
import os

from ibug.persistence._container import FormatProblemError

LEAST_BYTES = 2**26  # what any load may take, however small the file: libraries' own tables, say
_TIMES_DECLARED = 4  # beyond that, this many times the declared and checked sizes of the file's members
# The most that a mark of JSON (a bracket, a comma, a colon) stands for in Python, with its place in a collection.
_BYTES_PER_MARK = 96
# The most marks of one JSON document, 400 MB: those of a table with 800,000 columns, or four million categories.
MOST_MARKS = 2**22


class Budget:
    """The memory that is left for the rest of a load of a file whose members declare this many bytes, decompressed."""

    def __init__(self, declared: int) -> None:
        self.limit = LEAST_BYTES + _TIMES_DECLARED * declared
        self.spent = 0

    def spend(self, n_bytes: int, what: str) -> None:
        """Take some of it, or raise FormatProblemError where there is not as much."""
        self.spent += n_bytes
        if self.spent > self.limit:
            raise FormatProblemError(
                f"{what} would take its memory beyond {self.limit / 2**20:,.0f} MiB, the most for a file of this size: "
                "no file that ibug has saved needs as much"
            )


def json_bytes(text: bytes) -> int:
    """Return an upper bound of the memory that JSON takes in Python; raise FormatProblemError for too much.

    Nothing is parsed for it: each value but the first follows an opening bracket, a comma or a colon.
    """
    n_marks = 1 + sum(text.count(mark) for mark in (b"[", b"{", b",", b":"))
    if n_marks > MOST_MARKS:
        raise FormatProblemError(
            f"its JSON has {n_marks:,} brackets, commas and colons, more than {MOST_MARKS:,}: no file that ibug has "
            "saved has as many"
        )
    return 2 * len(text) + _BYTES_PER_MARK * n_marks


def memory_bytes() -> float:
    """Return how much memory the machine has; infinity where it does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf
