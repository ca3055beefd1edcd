"""What was run again, closer to the paper, to find out why a mean of the study differs from the paper's."""

from __future__ import annotations

import math
from pathlib import Path

from benchmarks.common import document
from benchmarks.common.lines import Row
from benchmarks.common.statistics import mean_and_error
from benchmarks.study import facts
from benchmarks.study.datasets import DATASETS
from benchmarks.study.methods import METHODS
from benchmarks.study.report import wanted
from benchmarks.study.results import read
from benchmarks.study.runner import Plan
from benchmarks.study.scores import Scores
from benchmarks.study.tables import TABLES, number

BEGIN = "<!-- python -m benchmarks checks writes from here -->"
NAMES = {
    method: (table.fact, theirs)
    for table in reversed(TABLES)  # the first table that has a method counts
    if table.metric == "crps" and table.calibrated
    for method, theirs in table.methods.items()
    if theirs
}


def write(plan: Plan, results: Path, again: Path, path: Path) -> str:
    """Return the table of the checks, and put it between the marks of the document if there is one."""
    text = render(Scores(wanted(plan, read(results))), read(again))
    if path.exists():
        document.write_parts(path, {BEGIN: text})
    return text


def render(study: Scores, again: list[Row]) -> str:
    """Return the table: the CRPS in the study over the folds that were run again, that of the check, the paper's."""
    groups: dict[tuple[str, str, int | None], list[Row]] = {}
    for row in again:
        groups.setdefault((row["method"], row["dataset"], row["max_rows"]), []).append(row)
    lines = [
        "| Dataset | Method | the study | run again | the paper | what was run again | folds |",
        "|---|---|---|---|---|---|---|",
    ]
    order = {name: place for place, name in enumerate((*METHODS, *DATASETS))}
    for method, dataset, most in sorted(groups, key=lambda each: (order[each[0]], order[each[1]], each[2] or math.inf)):
        folds = Scores(groups[method, dataset, most]).folds("crps", dataset, method)
        if folds:
            varied = METHODS[method].varies or method
            before = study.folds("crps", dataset, varied)
            table, theirs = NAMES[varied]
            paper = facts.values().get((table, DATASETS[dataset].title, theirs))
            cells = (
                DATASETS[dataset].title,
                METHODS[varied].title,
                _mean({fold: score for fold, score in before.items() if fold in folds}),
                _mean(folds),
                "–" if paper is None else number(paper),
                _what(method, most),
                f"{len(folds)}",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _mean(folds: dict[int, float]) -> str:
    return number(mean_and_error(folds)[0]) if folds else "–"


def _what(method: str, most: int | None) -> str:
    rows = "all rows" if most is None else f"up to {most:,} rows"
    return f"{METHODS[method].title}, {rows}" if METHODS[method].varies else rows
