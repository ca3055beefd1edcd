"""Scores by name, which print as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scores(Mapping[str, float]):
    """The scores by name: a mapping that prints as a table; ``pandas.Series(scores)`` and ``to_frame()`` work.

    Parameters
    ----------
    values : mapping of str to float
        The scores.
    meanings : mapping of str to str
        What each of them tells.
    n_rows : int
        How many rows they are of.
    groups : dict of ndarray, optional
        Coverage and mean width for each group of rows, as columns: ``group``, ``rows``, ``coverage_90``, ``width_90``
        and so on.
    """

    def __init__(
        self,
        values: Mapping[str, float],
        meanings: Mapping[str, str],
        n_rows: int,
        groups: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self._values = dict(values)
        self._meanings = dict(meanings)
        self.n_rows = n_rows
        self.groups = None if groups is None else dict(groups)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        width = max(map(len, self._values))
        lines = [f"{name:{width}}  {value:12.6g}  {self._meanings[name]}" for name, value in self._values.items()]
        return "\n".join([f"Scores on {self.n_rows} rows", *lines, *self._group_lines()])

    def _group_lines(self) -> list[str]:
        """Return coverage and width of each group as lines of a table."""
        if self.groups is None:
            return []
        columns = [[name, *map(_cell, column)] for name, column in self.groups.items()]
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join(f"{cell:>{width}}" if i else f"{cell:{width}}" for i, (cell, width) in enumerate(cells))
            for cells in ([*zip(line, widths, strict=True)] for line in zip(*columns, strict=True))
        ]
        return ["", "Coverage and mean width by group", *lines]

    def _repr_html_(self) -> str:
        """Return the table, and that of the groups, as notebooks show them."""
        rows = [(name, _cell(value), self._meanings[name]) for name, value in self._values.items()]
        found = _html(f"Scores on {self.n_rows:,} rows", ["score", "value", "meaning"], rows, [False, True, False])
        if self.groups is None:
            return found
        lines = [tuple(map(_cell, line)) for line in zip(*self.groups.values(), strict=True)]
        numbers = [name != "group" for name in self.groups]
        return found + _html("Coverage and mean width by group", list(self.groups), lines, numbers)

    @property
    def meanings(self) -> dict[str, str]:
        """What each score means, in a few words."""
        return dict(self._meanings)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns ``score`` and ``meaning``, indexed by the metric's name."""
        import pandas as pd

        table = {"score": list(self._values.values()), "meaning": [self._meanings[name] for name in self._values]}
        return pd.DataFrame(table, index=pd.Index(self._values, name="metric"))


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _html(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> str:
    """Return a table of HTML, with numbers on the right of their columns."""
    sides = ["right" if is_number else "left" for is_number in numbers]

    def line(tag: str, cells: Sequence[str]) -> str:
        marked = zip(cells, sides, strict=True)
        return (
            "<tr>"
            + "".join(f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for cell, side in marked)
            + "</tr>"
        )

    body = "".join(line("td", row) for row in rows)
    return f"<table><caption>{escape(title)}</caption><thead>{line('th', heads)}</thead><tbody>{body}</tbody></table>"
