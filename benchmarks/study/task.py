"""What is done at a time. Nothing heavy is imported here: processes exchange tasks before they need the libraries."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


class NotRun(Exception):  # noqa: N818 - it is no error
    """The method is not for this dataset, or its package is not there."""


@dataclass(frozen=True)
class Task:
    """One dataset, one method, one fold."""

    dataset: str
    method: str
    fold: int
    grid: str
    max_rows: int | None

    def __str__(self) -> str:
        return f"{self.dataset} {self.method} fold {self.fold + 1}"

    @property
    def kind(self) -> str:
        """What decides how long it takes."""
        return self.method

    def as_row(self) -> dict[str, Any]:
        """Return the columns that name it."""
        return asdict(self)
