"""The results as scores by fold."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.common.lines import Row
from benchmarks.study.datasets import DATASETS


class Scores:
    """Scores of one grid and sample, looked up by dataset, method and setting.

    Parameters
    ----------
    rows
        Result rows; those of failed tasks are left out.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[tuple[str, str, str, bool], dict[int, Row]] = {}
        for row in rows:
            if row["status"] == "ok":
                key = (row["dataset"], row["method"], row["scoring"], row["calibrated"])
                self._rows.setdefault(key, {})[row["fold"]] = row

    def folds(
        self, metric: str, dataset: str, method: str, scoring: str = "crps", calibrated: bool = True
    ) -> dict[int, float]:
        """Return the score in each fold; a number that JSON does not have is a text there."""
        found = self._rows.get((dataset, method, scoring, calibrated), {})
        return {fold: float(row[metric]) for fold, row in sorted(found.items()) if metric in row}

    def datasets(self, methods: Iterable[str]) -> list[str]:
        """Return the datasets for which any of the methods has results, in the order of the registry."""
        wanted = set(methods)
        have = {dataset for dataset, method, _, _ in self._rows if method in wanted}
        return [name for name in DATASETS if name in have]

    def fold_counts(self) -> dict[str, int]:
        """Return for each dataset the number of folds that some method has."""
        counts: dict[str, set[int]] = {}
        for (dataset, *_), found in self._rows.items():
            counts.setdefault(dataset, set()).update(found)
        return {name: len(counts[name]) for name in DATASETS if name in counts}
