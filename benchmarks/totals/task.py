"""One case and one split of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    """One case and one split of it into training, validation and test blocks."""

    case: str
    split: int
    trees: int
    max_units: int | None
    folder: Path | None

    def __str__(self) -> str:
        return f"{self.case} split {self.split + 1}"

    @property
    def kind(self) -> str:
        """What decides how long it takes."""
        return self.case

    def as_row(self) -> dict[str, Any]:
        """Return the columns that name it."""
        return {"case": self.case, "split": self.split, "trees": self.trees, "max_units": self.max_units}
