"""What a hurried reader wants of the tables: where IBUG wins, ties and loses, and where we are far from the paper."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from benchmarks.common.statistics import Record, compare, mean_and_error
from benchmarks.study import facts
from benchmarks.study.datasets import DATASETS
from benchmarks.study.methods import METHODS, SCORINGS
from benchmarks.study.scores import Scores
from benchmarks.study.tables import MAIN, TABLES, number

HEADS = ("ibug-catboost", "ibug-lightgbm", "ibug+cbu", "default-catboost", "default-lightgbm")
OTHERS = ("ngboost", "pgbm", "cbu", "knn", "knn-catboost", "bart", "cqr", "quantile-forest", "ibug-catboost")
# What the paper claims by its wins, ties and losses (its Table 1).
CLAIMS = (("ibug-catboost", "ngboost"), ("ibug-catboost", "pgbm"), ("ibug-catboost", "cbu"), ("ibug+cbu", "cbu"))
_VERDICTS = {1: "we agree", 0: "not told apart", -1: "we do not agree"}
FACTOR = 1.3  # from here on a difference from the paper is listed


def render(scores: Scores) -> str:
    """Return the summary in Markdown."""
    datasets = scores.datasets(METHODS)
    if not datasets:
        return "There are no results yet.\n"
    heads = [name for name in HEADS if scores.datasets([name])]
    others = [name for name in OTHERS if scores.datasets([name])]
    lines = [
        f"Wins-ties-losses of each column's method against each row's over {len(datasets)} datasets, or those that "
        "both were run on, by a paired t-test over folds. In brackets the median over datasets: of the ratio of their "
        "CRPS (below 1 the column's is better), of the difference of their NLL (below 0 the column's is better).",
        "",
    ]
    for scoring in SCORINGS:
        lines.append(f"| {scoring.upper()}, against | " + " | ".join(METHODS[head].title for head in heads) + " |")
        lines.append("|---|" + "---|" * len(heads))
        for other in others:
            cells = [_against(scores, scoring, head, other) for head in heads]
            lines.append(f"| {METHODS[other].title} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += [
        f"- **{METHODS[head].title}**, by {scoring.upper()}: {_where(scores, scoring, head)}"
        for head in heads
        for scoring in SCORINGS
    ]
    return "\n".join(lines) + "\n"


def claims(scores: Scores) -> str:
    """Return the table of what the paper claims, by CRPS, and whether our results say the same."""
    lines = [
        "The paper's claims by CRPS, wins-ties-losses over its 22 datasets, and ours over those that both methods were "
        "run on. We agree where the same method wins more datasets than it loses.",
        "",
        "| | the paper | here | |",
        "|---|---|---|---|",
    ]
    for head, other in CLAIMS:
        theirs = facts.wins()["crps", MAIN[head], MAIN[other]]
        found = list(_results(scores, "crps", head, other).values())
        ours = _record(found)
        verdict = (
            "not run"
            if not found
            else _VERDICTS[np.sign(theirs.wins - theirs.losses) * np.sign(ours.wins - ours.losses)]
        )
        here = f"{ours} of {len(found)}" if found else "–"
        lines.append(f"| {METHODS[head].title} against {METHODS[other].title} | {theirs} | {here} | {verdict} |")
    return "\n".join(lines) + "\n"


def _results(scores: Scores, scoring: str, head: str, other: str) -> dict[str, int]:
    """Return by dataset that both have: 1 where the head is better, -1 where it is worse, else 0."""
    pairs = {
        name: tuple(scores.folds(scoring, name, method, scoring) for method in (head, other))
        for name in scores.datasets([head])
    }
    return {name: compare(a, b) for name, (a, b) in pairs.items() if set(a) & set(b)}


def _record(results: Sequence[int]) -> Record:
    return Record(results.count(1), results.count(0), results.count(-1))


def _common_means(scores: Scores, scoring: str, name: str, head: str, other: str) -> tuple[float, float]:
    """Return the mean scores of two methods over the folds that both have."""
    a, b = (scores.folds(scoring, name, method, scoring) for method in (head, other))
    common = set(a) & set(b)
    return tuple(mean_and_error({fold: each[fold] for fold in common})[0] for each in (a, b))


def _against(scores: Scores, scoring: str, head: str, other: str) -> str:
    if head == other:
        return "-"
    results = _results(scores, scoring, head, other)
    if not results:
        return "–"
    means = [_common_means(scores, scoring, name, head, other) for name in results]
    if scoring == "nll":
        middle = f"{round(median(a - b for a, b in means), 2) + 0.0:+.2f}"  # no negative zero
    else:
        middle = f"{median(a / b for a, b in means):.2f}"
    return f"{_record(list(results.values()))} ({middle})"


def _where(scores: Scores, scoring: str, head: str) -> str:
    """Return sentences: against whom the head wins more datasets than it loses, as many or fewer; where it loses."""
    more, same, fewer = "more wins than losses against", "as many against", "fewer against"
    standing: dict[str, list[str]] = {more: [], same: [], fewer: []}
    losses = []
    for other in OTHERS:
        results = _results(scores, scoring, head, other)
        if not results or other == head:
            continue
        won = _record(list(results.values()))
        title = METHODS[other].title
        which = more if won.wins > won.losses else fewer if won.wins < won.losses else same
        standing[which].append(title)
        lost = [DATASETS[name].title for name, result in results.items() if result < 0]
        if lost:
            losses.append(f"to {title} on {', '.join(lost)}")
    order = "; ".join(f"{which} {', '.join(names)}" for which, names in standing.items() if names)
    return f"{order or 'not run'}. It loses {'; '.join(losses) or 'nowhere'}."


def far_from_paper(scores: Scores) -> str:
    """Return the table of mean CRPS and RMSE that differ from the paper's by a factor of `FACTOR` or more."""
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    for table in TABLES:
        if table.metric not in ("crps", "rmse") or not table.calibrated:
            continue
        for method, theirs in table.methods.items():
            for name in scores.datasets([method]):
                paper = facts.values().get((table.fact, DATASETS[name].title, theirs))
                folds = scores.folds(table.metric, name, method, table.scoring)
                if paper and folds:
                    found[table.metric, name, method] = mean_and_error(folds)[0], paper
    far = {key: pair for key, pair in found.items() if not 1 / FACTOR < pair[0] / pair[1] < FACTOR}
    lines = [
        f"Of {len(found)} means of CRPS and RMSE that the paper has as well (calibrated, tuned for CRPS), {len(far)} "
        f"differ from it by a factor of {FACTOR:g} or more. As ours / the paper's:",
        "",
        "| Dataset | score | higher here | lower here |",
        "|---|---|---|---|",
    ]
    for metric in ("crps", "rmse"):
        for name in DATASETS:
            mine = {m: pair for (score, d, m), pair in far.items() if (score, d) == (metric, name)}
            if mine:
                cells = [_listed({m: p for m, p in mine.items() if (p[0] > p[1]) is up}) for up in (True, False)]
                lines.append(f"| {DATASETS[name].title} | {metric.upper()} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def _listed(pairs: dict[str, tuple[float, float]]) -> str:
    return ", ".join(f"{METHODS[m].title} {number(ours)} / {number(paper)}" for m, (ours, paper) in pairs.items())
