"""Tables of the accuracy benchmark: mean scores, and wins, ties and losses over the datasets."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import marks
import numpy as np
from scipy.stats import ttest_rel

SIGNIFICANCE = 0.05
BASES = ("lightgbm", "catboost")
WIDTH = 140
#: Predictions that take less processor time, in seconds, are not compared: it is not measured finely enough.
SHORTEST = 0.1

#: What is compared with what.
PAIRS = (
    ("auto", "paper"),
    ("auto", "cbu"),
    ("auto+cbu", "auto"),
    ("auto+cbu", "cbu"),
    ("auto+cbu", "paper+cbu"),
    ("residuals", "paper"),
    ("paper-continuous", "paper"),
    ("auto-60", "paper-60"),
)

#: A mean score of one method by dataset, base and fold.
Scores = dict[tuple[str, str], dict[int, float]]


def tables(rows: list[dict[str, Any]]) -> str:
    """Return all tables as text, made from whatever results there are."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    parts = []
    for scoring in ("crps", "nll"):
        scores = {method: collect(rows, method, scoring) for method in methods}
        parts += [mean_scores(scores, scoring), comparisons(scores, scoring)]
    return "\n\n".join([*parts, coverages(rows, methods)])


def collect(rows: list[dict[str, Any]], method: str, scoring: str, value: str | None = None) -> Scores:
    """Return the test score of a method that was tuned for the same score, by dataset, base and fold."""
    found: Scores = {}
    for row in rows:
        if row["method"] == method and row["scoring"] == scoring:
            found.setdefault((row["dataset"], row["base"]), {})[row["fold"]] = row[value or scoring]
    return found


def mean_scores(scores: dict[str, Scores], scoring: str) -> str:
    """Return a table of mean scores."""
    keys = sorted({key for method in scores.values() for key in method}, key=lambda key: (key[1], key[0]))
    lines = [f"{'mean test ' + scoring.upper():24}" + "".join(f"{method:>18}" for method in scores) + "   folds"]
    for dataset, base in keys:
        found = [method.get((dataset, base), {}) for method in scores.values()]
        cells = "".join(f"{np.mean(list(folds.values())):18.4g}" if folds else f"{'':18}" for folds in found)
        lines.append(f"{dataset + ', ' + base:24}{cells}   {max(len(folds) for folds in found)}")
    return "\n".join(lines)


def comparisons(scores: dict[str, Scores], scoring: str) -> str:
    """Return a table of wins, ties and losses, and which these are."""
    head = f"{scoring.upper() + ': wins-ties-losses':34}{'all':>10}"
    lines = [head + "".join(f"{base:>10}" for base in BASES) + "   better mean"]
    named = []
    for one, other in PAIRS:
        if not scores.get(one) or not scores.get(other):
            continue
        outcomes = {
            key: outcome(scores[one][key], scores[other][key]) for key in sorted(scores[one]) if key in scores[other]
        }
        cells = [wins_ties_losses([sign for sign, _ in outcomes.values()])]
        for base in BASES:
            cells.append(wins_ties_losses([sign for (_, where), (sign, _) in outcomes.items() if where == base]))
        better = sum(difference < 0 for _, difference in outcomes.values())
        shown = "".join(f"{cell:>10}" for cell in cells)
        lines.append(f"{one + ' against ' + other:34}{shown}   {better:2} of {len(outcomes):2}")
        for label, wanted in (("won", -1), ("lost", 1)):
            found = [key for key, (sign, _) in outcomes.items() if sign == wanted]
            if found:
                named.append(
                    textwrap.fill(f"{one} against {other} {label}: {listed(found)}", WIDTH, subsequent_indent="    ")
                )
    return "\n".join([*lines, "", *named] if named else lines)


def listed(keys: list[tuple[str, str]]) -> str:
    """Return datasets and bases in words."""
    bases: dict[str, list[str]] = {}
    for dataset, base in keys:
        bases.setdefault(dataset, []).append(base)
    return ", ".join(f"{d} ({'both' if len(b) == len(BASES) else ', '.join(b)})" for d, b in sorted(bases.items()))


def outcome(one: dict[int, float], other: dict[int, float]) -> tuple[int, float]:
    """Return −1 for a win, 0 for a tie, 1 for a loss of the first, and the mean difference over common folds."""
    folds = sorted(set(one) & set(other))
    difference = np.array([one[fold] - other[fold] for fold in folds])
    if len(folds) < 2 or np.ptp(difference) == 0:
        return 0, float(np.mean(difference)) if folds else 0.0
    p = ttest_rel([one[fold] for fold in folds], [other[fold] for fold in folds]).pvalue
    return (int(np.sign(difference.mean())) if p < SIGNIFICANCE else 0), float(difference.mean())


def wins_ties_losses(signs: list[int]) -> str:
    return f"{signs.count(-1)}-{signs.count(0)}-{signs.count(1)}"


def coverages(rows: list[dict[str, Any]], methods: list[str]) -> str:
    """Return how many truths 90 % intervals hold, and how long predictions take compared with the paper's rule."""
    lines = [
        f"{'method':18}{'tuned for':>10}{'coverage of 90 %: mean':>24}{'lowest':>8}{'highest':>9}"
        f"{'time to predict, paper = 1: median':>37}{'largest':>9}"
    ]
    for method in methods:
        for scoring in ("crps", "nll"):
            found = collect(rows, method, scoring, "coverage")
            means = [float(np.mean(list(folds.values()))) for folds in found.values()]
            if means:
                ratios = times(rows, method, scoring)
                shown = f"{np.median(ratios):37.2f}{max(ratios):9.2f}" if ratios else ""
                lines.append(f"{method:18}{scoring:>10}{np.mean(means):24.1%}{min(means):8.1%}{max(means):9.1%}{shown}")
    return "\n".join(lines)


def times(rows: list[dict[str, Any]], method: str, scoring: str) -> list[float]:
    """Return for each dataset and base the processor time of predictions over that of the paper's, if not short."""
    own, paper = (collect(rows, name, scoring, "predict_seconds") for name in (method, "paper"))
    ratios = []
    for key in own:
        common = sorted(set(own[key]) & set(paper.get(key, {})))
        seconds = sum(paper[key][fold] for fold in common)
        if seconds > SHORTEST:
            ratios.append(sum(own[key][fold] for fold in common) / seconds)
    return ratios


def write(path: Path, text: str) -> None:
    """Put the tables between the two marks of a document."""
    marks.write(path, "accuracy.py", text)
