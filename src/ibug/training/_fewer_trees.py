"""How few trees are enough: the smallest share of them that loses nothing on validation rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from ibug._options import Options
from ibug._typing import Floats
from ibug._weights import effective_rows, weighted_mean
from ibug.metrics import resolve_scoring
from ibug.neighbors import TreeShare, ValidationRows, tree_table
from ibug.rule import Rule, joined

ALL_TREES = TreeShare("first", 1.0)
#: The smaller shares that are tried, the smallest first.
TREE_SHARES = tuple(TreeShare("gain", fraction) for fraction in (0.2, 0.35, 0.5, 0.65, 0.8))
#: With fewer trees a search takes next to no time, and each tree counts; fewer validation rows are too noisy.
LEAST_TREES, LEAST_ROWS = 50, 100

# A score of the user's own is one number for many rows: its variance is that between this many groups of rows.
_GROUPS = 30


Read = TypeVar("Read", bound=ValidationRows)


@dataclass(frozen=True, eq=False)
class Tried(Generic[Read]):
    """A share of the trees, and how good it is on validation rows."""

    share: TreeShare
    rows: Read  # with a source of the neighbours that these trees find
    rule: Rule
    scores: Floats  # (n,), of each row, or of each group of rows
    weights: Floats | None  # (n,)

    @property
    def score(self) -> float:
        """The mean score."""
        return float(weighted_mean(self.scores, self.weights))

    def loss(self, whole: Tried[Read]) -> tuple[float, float]:
        """Return by how much the score is above that of all trees, and the standard error of this difference."""
        difference = self.scores - whole.scores
        found = float(weighted_mean(difference, self.weights))
        n = effective_rows(self.weights, len(difference))
        variance = float(weighted_mean(np.square(difference - found), self.weights))
        return found, float(np.sqrt(variance / max(n - 1, 1.0)))


def shares_tried(n_trees: int, rows: ValidationRows) -> tuple[TreeShare, ...]:
    """Return all trees, and the smaller shares that are worth a try, the smallest first."""
    if effective_rows(rows.weights, len(rows.y)) < LEAST_ROWS:
        return (ALL_TREES,)
    return (ALL_TREES, *(share for share in TREE_SHARES if share.n_trees(n_trees) >= LEAST_TREES))


def select_trees(
    choices: Iterable[tuple[TreeShare, Read]], learn: Callable[[ValidationRows], Rule], options: Options
) -> tuple[Tried[Read], dict[str, Any]]:
    """Return the smallest share of the trees that loses nothing, and a table of all that were tried.

    A share loses nothing if it scores no worse on the validation rows than all trees; larger ones are then not tried.
    """
    tried: list[Tried[Read]] = []
    for share, rows in choices:
        rule = learn(rows)
        tried.append(Tried(share, rows, rule, *_scores(rule, rows, options)))
        if len(tried) > 1 and tried[-1].loss(tried[0])[0] <= 0:
            return tried[-1], _table(tried, tried[-1])
    return tried[0], _table(tried, tried[0])


def _table(tried: list[Tried[Read]], best: Tried[Read]) -> dict[str, Any]:
    losses = np.array([one.loss(tried[0]) for one in tried])
    return tree_table(
        {
            "order": [one.share.order for one in tried],
            "fraction": [one.share.fraction for one in tried],
            "score": [one.score for one in tried],
            "loss": losses[:, 0],
            "error": losses[:, 1],
            "chosen": [one is best for one in tried],
        }
    )


def _scores(rule: Rule, rows: ValidationRows, options: Options) -> tuple[Floats, Floats | None]:
    """Return the score of each row, or of each group of rows, and what each counts."""
    distribution = joined([rule.distribution(batch) for batch in rows.batches(rule.needs)])
    given, y, weights = options.scoring, rows.y, rows.weights
    if isinstance(given, str):
        found = distribution.crps(y) if given == "crps" else -distribution.logpdf(y)
        return np.asarray(found, np.float64), weights
    groups = np.array_split(np.arange(len(y)), min(_GROUPS, len(y)))
    own = [None if weights is None else weights[group] for group in groups]
    scores = [resolve_scoring(given, w)(y[group], distribution[group]) for group, w in zip(groups, own, strict=True)]
    return np.array(scores), None if weights is None else np.array([weights[group].sum() for group in groups])
