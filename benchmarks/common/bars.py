"""Figures and the bars that they should clear."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A figure and the bar that it should clear."""

    text: str
    figure: str
    met: bool

    def line(self, width: int = 9) -> str:
        """Return it as a line of a table; the figure takes `width` signs."""
        return f"  {verdict(self.met):<8}{self.figure:>{width}}  {self.text}"


def verdict(met: bool) -> str:
    """Return whether a bar is met, in a word that is easily found."""
    return "met" if met else "MISSED"
