"""Errors that tell in which partition the rows are that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ibug.exceptions import InvalidInputError


@contextmanager
def in_partition(number: int, name: str) -> Iterator[None]:
    """Name the partition in whatever the rows of it make ibug or the model's library complain of."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInputError(f"Partition {number} of {name}: {error}") from error
