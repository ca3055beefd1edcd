"""The results as scores by fold, looked up by method, score and case."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.accuracy.methods import METHODS, PEERS
from benchmarks.common.lines import Row
from benchmarks.common.statistics import Folds


class Case(NamedTuple):
    """A dataset with a base model, in one of the ways."""

    dataset: str
    base: str
    way: str


class Scores:
    """Scores of one experiment.

    Parameters
    ----------
    rows
        Result rows; those without scores are left out.

    Attributes
    ----------
    methods : list of str
        The methods that have results.
    cases : list of Case
        The cases that some method has results for. A peer needs no base model: it takes part in every case of a
        dataset, with the same scores.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[tuple[str, str, Case], dict[int, Row]] = {}
        for row in rows:
            if row["status"] == "ok":
                case = Case(row["dataset"], row["base"], row["way"])
                self._rows.setdefault((row["method"], row["scoring"], case), {})[row["fold"]] = row
        found = {method for method, _, _ in self._rows}
        self.methods = [method for method in METHODS if method in found]
        self.cases = sorted({case for _, _, case in self._rows if case.base})

    def folds(self, metric: str, method: str, scoring: str, case: Case) -> Folds:
        """Return the score in each fold; folds in which the method has none are left out."""
        place = Case(case.dataset, "", "") if method in PEERS else case
        rows = self._rows.get((method, scoring, place), {})
        found = {fold: float(row[metric]) for fold, row in sorted(rows.items()) if row.get(metric) is not None}
        return {fold: score for fold, score in found.items() if not math.isnan(score)}

    def mean(self, metric: str, method: str, scoring: str, case: Case) -> float:
        """Return the mean over the folds; NaN where there are none."""
        found = self.folds(metric, method, scoring, case)
        return float(np.mean(list(found.values()))) if found else float("nan")

    def common(self, metric: str, one: str, other: str, scoring: str, way: str) -> dict[Case, tuple[Folds, Folds]]:
        """Return the scores of two methods in the cases of a way that both have."""
        pairs = {
            case: (self.folds(metric, one, scoring, case), self.folds(metric, other, scoring, case))
            for case in self.cases
            if case.way == way
        }
        return {case: (a, b) for case, (a, b) in pairs.items() if set(a) & set(b)}

    def ways(self) -> list[str]:
        """Return the ways that there are results for."""
        return list(dict.fromkeys(case.way for case in self.cases))


def ratio(pair: tuple[Folds, Folds]) -> float:
    """Return the mean score of the first over that of the second, over the folds that both have."""
    one, other = pair
    common = set(one) & set(other)
    return sum(one[fold] for fold in common) / sum(other[fold] for fold in common)


def difference(pair: tuple[Folds, Folds]) -> float:
    """Return the mean difference, the first minus the second, over the folds that both have."""
    one, other = pair
    return float(np.mean([one[fold] - other[fold] for fold in set(one) & set(other)]))
