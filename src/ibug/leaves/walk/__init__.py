"""The compiled walk over a model's trees: trees read from each library's own format, and rows sent down all of them."""

from ibug.leaves.walk._reader import CHECKED_ROWS, Answers, Link, WalkingReader
from ibug.leaves.walk._trees import NotWalkableError, Trees

__all__ = ["CHECKED_ROWS", "Answers", "Link", "NotWalkableError", "Trees", "WalkingReader"]
