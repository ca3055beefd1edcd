"""The document of the study: everything between its marks is written by the command, no figure by hand."""

from __future__ import annotations

import platform
from collections import Counter
from pathlib import Path

from benchmarks.study import tables
from benchmarks.study.datasets import DATASETS
from benchmarks.study.methods import METHODS
from benchmarks.study.results import Row, read, task_of
from benchmarks.study.runner import Plan
from benchmarks.study.scores import Scores

BEGIN = "<!-- python -m benchmarks tables writes from here -->"
END = "<!-- to here -->"


def write(plan: Plan, results: Path, document: Path) -> str:
    """Return the tables of a plan's results, and put them between the marks of the document if there is one."""
    rows = wanted(plan, read(results))
    text = render(plan, rows)
    if document.exists():
        old = document.read_text()
        if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
            raise SystemExit(f"{document} must have the lines {BEGIN!r} and {END!r} once each, in that order.")
        before, rest = old.split(BEGIN)
        document.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}")
    return text


def wanted(plan: Plan, rows: list[Row]) -> list[Row]:
    """Return the rows of a plan's tasks."""
    tasks = set(plan.tasks())
    return [row for row in rows if task_of(row) in tasks]


def render(plan: Plan, rows: list[Row]) -> str:
    """Return the whole text between the marks."""
    scores = Scores(rows)
    return "\n".join([how(plan, rows, scores), data(rows, scores), tables.every(scores), missing(rows)])


def how(plan: Plan, rows: list[Row], scores: Scores) -> str:
    """Return the command, the date, the versions and the folds."""
    options = f"--folds {plan.folds} --grid {plan.grid}" + (f" --max-rows {plan.max_rows}" if plan.max_rows else "")
    if set(plan.datasets) != set(DATASETS):
        options = f"--datasets {','.join(plan.datasets)} {options}"
    dates = sorted(row["date"][:10] for row in rows)
    versions: dict[str, set[str]] = {}
    for row in rows:
        for name, version in row.get("versions", {}).items():
            versions.setdefault(name, set()).add(version)
    listed = ", ".join(f"{name} {'/'.join(sorted(found))}" for name, found in sorted(versions.items()))
    counts = Counter(scores.fold_counts().values())
    folds = ", ".join(f"{count} for {n} of the datasets" for count, n in sorted(counts.items(), reverse=True))
    return "\n".join(
        [
            "## How it was run",
            "",
            "```console",
            f"$ python -m benchmarks run {options}",
            f"$ python -m benchmarks tables {options}",
            "```",
            "",
            f"Run {_between(dates)}, Python {platform.python_version()}. Versions: {listed}.",
            f"Of ten folds, the first ones were run: {folds or 'none'}.",
            "",
            "Each cell: the mean over folds ± its standard error / the paper's value. Bold: the best, and those whose "
            "standard errors overlap with it. W-T-L: datasets on which the method of the row is better, not "
            "different, worse than that of the column, by a two-sided paired t-test over folds at the level 0.05; "
            "the paper's is over its 22 datasets and ten folds.",
            "",
        ]
    )


def _between(dates: list[str]) -> str:
    if not dates:
        return "never"
    return f"on {dates[0]}" if dates[0] == dates[-1] else f"from {dates[0]} to {dates[-1]}"


def data(rows: list[Row], scores: Scores) -> str:
    """Return the table of the datasets."""
    sizes = {row["dataset"]: row for row in rows if row["status"] == "ok"}
    lines = ["## Datasets", "", "| Dataset | rows used | of | columns after encoding | the paper's n, p | source |"]
    lines.append("|---|---|---|---|---|---|")
    for name in scores.fold_counts():
        known, row = DATASETS[name], sizes[name]
        used = f"{row['n_train'] + row['n_test']:,}"
        paper = f"{known.paper_rows:,}, {known.paper_columns}"
        lines.append(f"| {known.title} | {used} | {known.rows:,} | {row['n_features']} | {paper} | {known.source} |")
    return "\n".join([*lines, "", "## Tables", ""])


def missing(rows: list[Row]) -> str:
    """Return what was not run or failed, and why."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row["status"] != "ok":
            key = (METHODS[row["method"]].title, row["status"], row["reason"])
            reasons.setdefault(key, []).append(f"{DATASETS[row['dataset']].title} {row['fold'] + 1}")
    lines = ["## What is missing", ""]
    if not reasons:
        return "\n".join([*lines, "Nothing: every method has a result on every dataset.", ""])
    lines += ["| Method | | Why | Dataset and fold |", "|---|---|---|---|"]
    for (method, state, reason), where in reasons.items():
        lines.append(f"| {method} | {state} | {reason.replace('|', '/')} | {', '.join(where)} |")
    return "\n".join([*lines, ""])
