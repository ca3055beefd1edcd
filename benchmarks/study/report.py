"""The document of the study: everything between its marks is written by the command, no figure by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.common import document
from benchmarks.common.lines import Row
from benchmarks.study import summary, tables
from benchmarks.study.datasets import DATASETS
from benchmarks.study.methods import METHODS, bart, ngboost, quantile_forest
from benchmarks.study.methods.boosters import FEWEST_TREES, LIMITS, QUICK_RATE
from benchmarks.study.results import read, task_of
from benchmarks.study.runner import Plan
from benchmarks.study.scores import Scores

BEGIN = "<!-- python -m benchmarks tables writes its {} from here -->"
END = document.END

# Methods with one booster, whose number of trees early stopping finds.
_BOOSTED = ("ibug-catboost", "cbu", "ibug-lightgbm", "ibug-xgboost", "ibug-hist")


def write(plan: Plan, results: Path, path: Path) -> str:
    """Return the tables of a plan's results, and put them between the marks of the document if there is one."""
    parts = render(plan, wanted(plan, read(results)))
    if path.exists():
        document.write_parts(path, {BEGIN.format(name): part for name, part in parts.items()})
    return "\n".join(parts.values())


def wanted(plan: Plan, rows: list[Row]) -> list[Row]:
    """Return the rows of a plan's tasks."""
    tasks = set(plan.tasks())
    return [row for row in rows if task_of(row) in tasks]


def render(plan: Plan, rows: list[Row]) -> dict[str, str]:
    """Return the texts between the marks, by name."""
    scores = Scores(rows)
    parts = (how(plan, rows, scores), data(plan, rows, scores), tables.every(scores), missing(rows))
    return {
        "summary": summary.render(scores),
        "claims": summary.claims(scores),
        "differences": summary.far_from_paper(scores),
        "tables": "\n".join(parts),
    }


def how(plan: Plan, rows: list[Row], scores: Scores) -> str:
    """Return the command, the date, the versions and the folds."""
    options = f"--folds {plan.folds} --grid {plan.grid}" + (f" --max-rows {plan.max_rows}" if plan.max_rows else "")
    if set(plan.datasets) != set(DATASETS):
        options = f"--datasets {','.join(plan.datasets)} {options}"
    if set(plan.methods) != set(METHODS):
        options += f" --methods {','.join(plan.methods)}"
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
            f"Run {_between(dates)}. Versions: {listed}.",
            f"Of ten folds, the first ones were run: {folds or 'none'}.{_fewer(scores)}",
            "",
            *_trees(plan, rows),
            "Each cell: the mean over folds ± its standard error / the paper's value. Bold: the best, and those whose "
            "standard errors overlap with it. W-T-L: datasets on which the method of the row is better, not "
            "different, worse than that of the column, by a two-sided paired t-test over folds at the level 0.05; "
            "the paper's is over its 22 datasets and ten folds.",
            "",
        ]
    )


def _fewer(scores: Scores) -> str:
    """Return which methods were run on fewer folds than others, or on fewer datasets."""
    most = scores.fold_counts()
    listed = []
    for method, known in METHODS.items():
        counts = [len(scores.folds("crps", name, method)) for name in most]
        if any(counts) and counts != list(most.values()):
            found = [count for count in counts if count]
            folds = f"{min(found)}" if min(found) == max(found) else f"{min(found)} to {max(found)}"
            listed.append(f"{known.title}, {folds} on {len(found)} of the datasets")
    return f" Fewer were run of {'; '.join(listed)}." if listed else ""


def _trees(plan: Plan, rows: list[Row]) -> list[str]:
    """Return how long early stopping let the boosters grow."""
    if plan.grid not in LIMITS:
        return []
    most, patience = LIMITS[plan.grid]
    values = {
        "quick": f"learning rate {QUICK_RATE:g}, the library's own values for the rest",
        "full": "the learning rate, depth, leaves and fewest rows of a leaf that the paper selected for the dataset",
    }[plan.grid]
    text = (
        f"`--grid {plan.grid}` is one configuration: {FEWEST_TREES} to {most} trees, {values}, stopped when the "
        f"validation rows gain nothing from {patience} more trees. NGBoost has at most "
        f"{ngboost.SETTINGS[plan.grid][0]} trees, the quantile forest has {quantile_forest.SETTINGS[plan.grid][0]}, "
        f"BART has {bart.SETTINGS[plan.grid][0][0]} in each of {bart.SETTINGS[plan.grid][2]} samples."
    )
    shares = []
    for method in _BOOSTED:
        found = {(row["dataset"], row["fold"]): row["parameters"]["trees"] for row in rows if _grown(row, method)}
        limited = sum(trees > most - patience for trees in found.values())
        if found:
            shares.append(f"{METHODS[method].title} {limited} of {len(found)}")
    if shares:
        text += f" Fits that the limit ended, not the validation rows: {', '.join(shares)}."
    return [text, ""]


def _grown(row: Row, method: str) -> bool:
    return row["method"] == method and "trees" in row.get("parameters", {})


def _between(dates: list[str]) -> str:
    if not dates:
        return "never"
    return f"on {dates[0]}" if dates[0] == dates[-1] else f"from {dates[0]} to {dates[-1]}"


def data(plan: Plan, rows: list[Row], scores: Scores) -> str:
    """Return the table of the datasets, and the names of those left out."""
    sizes = {row["dataset"]: row for row in rows if row["status"] == "ok"}
    lines = ["## Datasets", "", "| Dataset | rows used | of | columns after encoding | the paper's n, p | source |"]
    lines.append("|---|---|---|---|---|---|")
    for name in scores.fold_counts():
        known, row = DATASETS[name], sizes[name]
        used = f"{row['n_train'] + row['n_test']:,}"
        paper = f"{known.paper_rows:,}, {known.paper_columns}"
        lines.append(f"| {known.title} | {used} | {known.rows:,} | {row['n_features']} | {paper} | {known.source} |")
    absent = [known.title for name, known in DATASETS.items() if name not in plan.datasets]
    if absent:
        lines += ["", f"Of the paper's {len(DATASETS)} datasets these are not among them: {', '.join(absent)}."]
    return "\n".join([*lines, "", "## Tables", ""])


def missing(rows: list[Row]) -> str:
    """Return what was not run or failed, and why."""
    reasons: dict[tuple[str, str, str], dict[str, list[int]]] = {}
    for row in rows:
        if row["status"] != "ok":
            key = (METHODS[row["method"]].title, row["status"], row["reason"])
            folds = reasons.setdefault(key, {}).setdefault(DATASETS[row["dataset"]].title, [])
            folds.append(row["fold"] + 1)
    lines = ["## What is missing", ""]
    if not reasons:
        return "\n".join([*lines, "Nothing: every method has a result on every dataset.", ""])
    lines += ["| Method | | Why | Dataset and folds |", "|---|---|---|---|"]
    for (method, state, reason), where in reasons.items():
        places = ", ".join(f"{title} {_ranges(folds)}" for title, folds in where.items())
        lines.append(f"| {method} | {state} | {reason.replace('|', '/')} | {places} |")
    return "\n".join([*lines, ""])


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers in few signs: 1–3, 5."""
    runs: list[list[int]] = []
    for each in sorted(numbers):
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
