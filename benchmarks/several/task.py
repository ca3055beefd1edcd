"""One table and one fold of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    """One table and one fold."""

    dataset: str
    fold: int
    folds: int
    max_rows: int
    folder: Path | None

    def __str__(self) -> str:
        return f"{self.dataset} fold {self.fold + 1}"

    @property
    def kind(self) -> str:
        """What decides how long it takes."""
        return self.dataset

    def as_row(self) -> dict[str, Any]:
        """Return the columns that name it."""
        return {"dataset": self.dataset, "fold": self.fold, "folds": self.folds, "max_rows": self.max_rows}
