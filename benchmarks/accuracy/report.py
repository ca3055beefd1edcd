"""Tables of the accuracy benchmark: mean scores, wins, ties and losses, intervals, point predictions and bars."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.accuracy import bars
from benchmarks.accuracy.bars import WORDS
from benchmarks.accuracy.methods import BASES, PEERS, SCORINGS
from benchmarks.accuracy.scores import Case, Scores, difference, ratio
from benchmarks.common.lines import Row
from benchmarks.common.statistics import compare, geometric_mean, record

WIDTH = 140
#: Predictions that take less processor time, in seconds, are not compared: it is not measured finely enough.
SHORTEST = 0.1

#: What is compared with what.
PAIRS = (
    ("default", "normal"),
    ("default", "normal-targets"),
    ("default", "targets-only"),
    ("targets-only", "normal-targets"),
    ("own", "default"),
    ("own", "targets-only"),
    ("default", "paper"),
    ("normal", "paper"),
    ("residuals", "paper"),
    ("paper-continuous", "paper"),
    *((name, "default") for name in ("half-gain", "half-first", "half-random")),
    *(("default", peer) for peer in PEERS),
    *(("normal", peer) for peer in PEERS),
    *((f"{name}+cbu", other) for name in ("default", "normal") for other in (name, "cbu", "paper+cbu")),
)


def tables(rows: list[Row]) -> str:
    """Return all tables as text, made from whatever results there are."""
    scores = Scores(rows)
    parts = [
        part
        for way in scores.ways()
        for scoring in SCORINGS
        for part in (mean_scores(scores, scoring, way), comparisons(scores, scoring, way))
    ]
    parts += [mean_scores(scores, "crps", way, "coverage") for way in scores.ways()]
    judged = [bar.line(width=16) for bar in bars.judge(scores)]
    parts += [intervals(scores), point_predictions(scores), "\n".join(["Bars", *judged]) if judged else ""]
    return "\n\n".join(part for part in [*parts, missing(rows)] if part)


def only_comparisons(rows: list[Row]) -> str:
    """Return wins, ties and losses as text, and the share of the trees that neighbours were found by."""
    scores = Scores(rows)
    parts = [comparisons(scores, scoring, way) for way in scores.ways() for scoring in SCORINGS]
    return "\n\n".join(part for part in [*parts, tree_shares(scores)] if part)


def tree_shares(scores: Scores) -> str:
    """Return the mean share of the trees that count for affinities, and that of all cases in which all trees do."""
    lines = [f"{'Share of the trees':34}{'tuned for':>10}{'mean':>8}{'all trees':>12}"]
    for way in scores.ways():
        for method, scoring in product(shown_methods(scores, way), SCORINGS):
            cases = [case for case in scores.cases if case.way == way]
            shares = [s for case in cases for s in scores.folds("tree_fraction", method, scoring, case).values()]
            if shares:
                every = f"{np.mean(np.array(shares) == 1):.0%}"
                lines.append(f"{method + ', ' + WORDS[way]:34}{scoring:>10}{np.mean(shares):8.2f}{every:>12}")
    return "\n".join(lines) if len(lines) > 1 else ""


def shown_methods(scores: Scores, way: str) -> list[str]:
    """Return the methods that have results in a way; peers, which use all training rows, where the others do so."""
    own = [m for m in scores.methods if any(scores.folds("n", m, "crps", c) for c in scores.cases if c.way == way)]
    return [method for method in own if method not in PEERS or way == "trained"]


def mean_scores(scores: Scores, scoring: str, way: str, measure: str = "") -> str:
    """Return a table of means of the score that methods were tuned for, or of another measure."""
    methods, measure = shown_methods(scores, way), measure or scoring
    head = f"{WORDS[way]}: mean test {measure.upper() if measure == scoring else measure}"
    lines = [f"{head:28}" + "".join(f"{method:>17}" for method in methods) + "   folds"]
    for case in sorted((c for c in scores.cases if c.way == way), key=lambda c: (c.base, c.dataset)):
        means = [scores.mean(measure, method, scoring, case) for method in methods]
        cells = "".join(f"{'':17}" if math.isnan(mean) else f"{mean:17.4g}" for mean in means)
        folds = max((len(scores.folds(measure, method, scoring, case)) for method in methods), default=0)
        lines.append(f"{case.dataset + ', ' + case.base:28}{cells}   {folds}")
    return "\n".join(lines)


def comparisons(scores: Scores, scoring: str, way: str) -> str:
    """Return a table of wins, ties and losses, and where the losses are."""
    measure = "ratio" if scoring == "crps" else "difference"
    head = f"{WORDS[way]}, {scoring.upper()}: wins-ties-losses"
    bases = [base for base in BASES if any(case.base == base for case in scores.cases)]
    lines = [
        f"{head:40}{'all':>10}" + "".join(f"{base:>10}" for base in bases) + f"   better mean   {measure:>10}     worst"
    ]
    losses = []
    for one, other in PAIRS:
        pairs = scores.common(scoring, one, other, scoring, way)
        if not pairs or (other in PEERS and way != "trained"):  # peers get all training rows
            continue
        records = [record(pairs.values())]
        records += [record(pair for case, pair in pairs.items() if case.base == base) for base in bases]
        differences = [difference(pair) for pair in pairs.values()]
        values = [ratio(pair) for pair in pairs.values()] if scoring == "crps" else differences
        middle = geometric_mean(values) if scoring == "crps" else float(np.mean(values))
        better = f"{sum(value < 0 for value in differences):2} of {len(pairs):2}"
        shown = "".join(f"{found!s:>10}" for found in records)
        lines.append(f"{one + ' against ' + other:40}{shown}   {better:>11}   {middle:10.3f}{max(values):10.3f}")
        lost = [case for case, pair in pairs.items() if compare(*pair) < 0]
        if lost:
            text = f"{one} against {other} lost: {listed(lost, bases)}"
            losses.append(textwrap.fill(text, WIDTH, subsequent_indent="    "))
    return "\n".join([*lines, "", *losses] if losses else lines) if len(lines) > 1 else ""


def listed(cases: list[Case], known: list[str]) -> str:
    """Return datasets and bases in words."""
    bases: dict[str, list[str]] = {}
    for case in cases:
        bases.setdefault(case.dataset, []).append(case.base)
    every = "both" if len(known) == 2 else "all"
    return ", ".join(
        f"{dataset} ({every if 1 < len(own) == len(known) else ', '.join(own)})"
        for dataset, own in sorted(bases.items())
    )


def intervals(scores: Scores) -> str:
    """Return how 90 % intervals do, and how long predictions take."""
    lines = [
        f"{'90 % intervals':34}{'tuned for':>10}{'coverage: mean':>16}{'lowest':>8}{'highest':>9}"
        f"{'width, normal = 1':>19}{'interval score':>16}{'time, paper = 1: median':>25}{'largest':>9}"
    ]
    for way in scores.ways():
        for method in shown_methods(scores, way):
            lines += [line for scoring in SCORINGS for line in interval_line(scores, method, scoring, way)]
    return "\n".join(lines)


def interval_line(scores: Scores, method: str, scoring: str, way: str) -> Iterator[str]:
    """Yield the line of one method, if it has results."""
    cases = [case for case in scores.cases if case.way == way]
    shares = [scores.mean("coverage", method, scoring, case) for case in cases]
    shares = [share for share in shares if not math.isnan(share)]
    if not shares:
        return
    cells = [f"{np.mean(shares):16.1%}{min(shares):8.1%}{max(shares):9.1%}"]
    for metric, width in (("width", 19), ("interval_score", 16)):
        pairs = scores.common(metric, method, "normal", scoring, way).values()
        ratios = [value for value in map(ratio, pairs) if math.isfinite(value)]
        cells.append(f"{geometric_mean(ratios):{width}.3f}" if ratios else " " * width)
    times = predict_times(scores, method, scoring, way)
    cells.append(f"{np.median(times):25.2f}{max(times):9.2f}" if times else "")
    yield f"{method + ', ' + WORDS[way]:34}{scoring:>10}{''.join(cells)}".rstrip()


def predict_times(scores: Scores, method: str, scoring: str, way: str) -> list[float]:
    """Return for each case the processor time of predictions over that of the paper's rule, if not short."""
    pairs = scores.common("predict_seconds", method, "paper", scoring, way).values()
    return [ratio(pair) for pair in pairs if sum(pair[1].values()) > SHORTEST]


def point_predictions(scores: Scores) -> str:
    """Return the RMSE of the model's predictions and of the mean of the default's distributions, where they differ."""
    lines = [f"{'RMSE, default':34}{'the model':>14}{'the mean':>14}{'ratio':>9}"]
    for case in scores.cases:
        model, mean = (scores.mean(metric, "default", "crps", case) for metric in ("rmse", "rmse_mean"))
        if not math.isnan(model) and not math.isclose(model, mean, rel_tol=1e-9):
            where = f"{case.dataset}, {case.base}, {WORDS[case.way]}"
            lines.append(f"{where:40}{model:14.4g}{mean:14.4g}{mean / model:9.3f}")
    return "\n".join(lines) if len(lines) > 1 else ""


def missing(rows: list[Row]) -> str:
    """Return what was not run or failed, and why."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["status"] != "ok":
            reasons.setdefault(f"{row['method']} {row['status']}: {row['reason']}", []).append(row["dataset"])
    lines = [f"  {reason} ({', '.join(dict.fromkeys(where))})" for reason, where in reasons.items()]
    return "\n".join(["Not measured", *lines]) if lines else ""
