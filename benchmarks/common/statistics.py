"""Is one method better than another? The paper's paired t-test over folds, and wins, ties and losses over datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import ttest_rel

LEVEL = 0.05

Folds = Mapping[int, float]  # fold → score


class Record(NamedTuple):
    """Datasets on which a method was better, not different, and worse."""

    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return f"{self.wins}-{self.ties}-{self.losses}"


def compare(ours: Folds, theirs: Folds) -> int:
    """Return 1 if ours is lower by a two-sided paired t-test over the folds that both have, -1 if higher, else 0.

    With fewer than two common folds nothing can be told: 0. Where all differences are the same, the test statistic has
    no denominator, and their sign decides.
    """
    common = sorted(set(ours) & set(theirs))
    if len(common) < 2:
        return 0
    difference = np.array([ours[fold] - theirs[fold] for fold in common])
    if not np.all(np.isfinite(difference)):
        return 0
    if np.ptp(difference) == 0:
        return -int(np.sign(difference[0]))
    a, b = (np.array([scores[fold] for fold in common]) for scores in (ours, theirs))
    return -int(np.sign(difference.mean())) if ttest_rel(a, b).pvalue < LEVEL else 0


def record(pairs: Iterable[tuple[Folds, Folds]]) -> Record:
    """Return wins, ties and losses over datasets, of which each is a pair of the scores of both methods."""
    results = [compare(ours, theirs) for ours, theirs in pairs]
    return Record(results.count(1), results.count(0), results.count(-1))


def mean_and_error(scores: Folds) -> tuple[float, float]:
    """Return the mean over folds and its standard error, which is NaN for a single fold."""
    values = np.array(list(scores.values()))
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(np.mean(values)), error


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of numbers above zero; NaN for none."""
    logs = np.log([value for value in values if value > 0])
    return float(np.exp(np.mean(logs))) if len(logs) else float("nan")
