"""The tables: coverage, CRPS and widths of totals by each method, correlations, times, and the bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.common.bars import Bar
from benchmarks.common.lines import Row
from benchmarks.common.statistics import Folds, compare
from benchmarks.totals.data import KNOWN
from benchmarks.totals.measure import COVERAGE

METHODS = ("factor", "independent", "ends", "ranks")
#: From this many validation blocks on, coverage has to be within 3 points of what was asked for; else within 5.
MANY, NEAR, FAR = 100, 0.03, 0.05
#: From this correlation on, totals must have a better CRPS than those of independent rows.
CORRELATED = 0.03
#: What totals may lose where rows are independent.
MOST_LOST = 0.003
#: The share of splits whose estimates are within two standard errors of known correlations: 95 % if all is right, so
#: that fewer than 8 of 10 have a probability of 1 %.
FOUND = 0.8
#: The most that totals may cost, in times of the distributions of the rows.
MOST_TIME = 2.0
_WORDS = {1: "won", 0: "tie", -1: "lost"}

Scores = dict[str, dict[str, list[Row]]]


def text(rows: list[Row]) -> str:
    """Return all tables and bars."""
    scores = by_case(rows)
    parts = [coverage_table(scores), crps_table(scores), width_table(scores), correlation_table(scores)]
    return "\n\n".join([*parts, *speeds(rows), "\n".join(["Bars", *bars(rows)])])


def by_case(rows: Iterable[Row]) -> Scores:
    """Return the rows of each case and method, in the order of splits."""
    found: Scores = {}
    for row in sorted(rows, key=lambda one: one["split"]):
        if row["method"] in METHODS:
            found.setdefault(row["case"], {}).setdefault(row["method"], []).append(row)
    order = {name: number for number, name in enumerate(KNOWN, 1)}
    return {name: found[name] for name in sorted(found, key=lambda one: (order.get(one, 0), one))}


def share_inside(rows: list[Row]) -> float:
    """Return the share of totals inside their intervals, over all splits."""
    return float(np.average([row["coverage"] for row in rows], weights=[row["groups"] for row in rows]))


def mean_crps(rows: list[Row]) -> float:
    """Return the mean CRPS over splits."""
    return float(np.mean([row["crps"] for row in rows]))


def folds(rows: list[Row]) -> Folds:
    """Return the CRPS by split."""
    return {row["split"]: row["crps"] for row in rows}


def coverage_table(scores: Scores) -> str:
    """Return the shares of totals inside their intervals, and the ratios of the mean CRPS to independent rows."""
    title = f"Totals: share inside {COVERAGE:.0%} intervals, and mean CRPS as a ratio to independent rows (t-test)"
    header = f"  {'':14}{'totals':>7}{'blocks':>8} |" + "".join(f"{name:>12}" for name in METHODS) + " |"
    others = [name for name in METHODS if name != "independent"]
    lines = [title, header + "".join(f"{name:>12}" for name in others)]
    for case, methods in scores.items():
        ours, base = methods["factor"], methods["independent"]
        shares = "".join(f"{share_inside(methods[name]):12.1%}" for name in METHODS)
        ratios = "".join(
            f"{mean_crps(methods[name]) / mean_crps(base):7.3f} {word(methods[name], base)}" for name in others
        )
        lines.append(
            f"  {case:14}{sum(row['groups'] for row in ours):7}{ours[0]['units']:8} |{shares} |{ratios}".rstrip()
        )
    return "\n".join(lines)


def word(ours: list[Row], theirs: list[Row]) -> str:
    """Return the word of the t-test over splits."""
    return f"{_WORDS[compare(folds(ours), folds(theirs))]:4}"


def crps_table(scores: Scores) -> str:
    """Return the mean CRPS, in units of the target."""
    lines = ["Mean CRPS of totals", f"  {'':14}" + _names()]
    lines += [
        f"  {case:14}" + _cells(methods, lambda rows: f"{mean_crps(rows):.4g}") for case, methods in scores.items()
    ]
    return "\n".join(lines)


def width_table(scores: Scores) -> str:
    """Return the mean widths of intervals."""
    lines = [f"Mean width of {COVERAGE:.0%} intervals", f"  {'':14}" + _names()]
    for case, methods in scores.items():
        lines.append(f"  {case:14}" + _cells(methods, lambda rows: f"{np.mean([row['width'] for row in rows]):.4g}"))
    return "\n".join(lines)


def correlation_table(scores: Scores) -> str:
    """Return the mean estimates, standard errors and correlations that are used, over splits, by kind of blocks."""
    title = "Correlations of rows of a block: means over splits, and what is known of made rows"
    lines = [title, f"  {'':14}{'':>12}{'estimate':>10}{'std. error':>12}{'used':>8}{'known':>8}{'within 2 s.e.':>15}"]
    for case, methods in scores.items():
        rows = methods["factor"]
        for i, kind in enumerate(rows[0]["kinds"]):
            estimate, error, used = (np.mean([row[key][i] for row in rows]) for key in ("estimates", "errors", "used"))
            line = f"  {case:14}{kind:>12}{estimate:10.3f}{error:12.3f}{used:8.3f}"
            if case in KNOWN:
                near = sum(within(rows, i, KNOWN[case][kind]))
                line += f"{KNOWN[case][kind]:8.2f}{f'{near} of {len(rows)}':>15}"
            lines.append(line)
    return "\n".join(lines)


def within(rows: list[Row], kind: int, known: float) -> list[bool]:
    """Return for each split whether the estimate is within two standard errors of what is known."""
    return [abs(row["estimates"][kind] - known) <= 2 * row["errors"][kind] for row in rows]


def speeds(rows: Iterable[Row]) -> list[str]:
    """Return the times, if they were measured: those measured last."""
    found = [row for row in rows if row["method"] == "speed"][-1:]
    return [
        f"Seconds on one thread, {row['n_rows']:,} rows in {row['groups']:,} groups: total_dist {row['totals']:.2f}, "
        f"predict_dist {row['rows']:.2f}, ratio {row['ratio']:.2f}"
        for row in found
    ]


def bars(rows: list[Row]) -> list[str]:
    """Return what has to be reached, and whether it is."""
    judged = []
    for case, methods in by_case(rows).items():
        ours, base = methods["factor"], methods["independent"]
        units = ours[0]["units"]
        off = NEAR if units >= MANY else FAR
        inside = share_inside(ours)
        words = f"{case}: {COVERAGE - off:.0%} to {COVERAGE + off:.0%} inside, {units} validation blocks"
        judged.append(Bar(words, f"{inside:.1%}", abs(inside - COVERAGE) <= off))
        correlation = float(np.mean([np.sum(row["estimates"]) for row in ours]))
        ratio = mean_crps(ours) / mean_crps(base)
        if sum(KNOWN.get(case, {"": 1.0}).values()) == 0:
            words = f"{case}: CRPS no worse than {MOST_LOST:.1%} where rows are independent"
            judged.append(Bar(words, f"{ratio:.4f}", ratio <= 1 + MOST_LOST))
        elif correlation > CORRELATED:
            won = compare(folds(ours), folds(base)) == 1
            judged.append(Bar(f"{case}: CRPS better than of independent rows by a t-test", f"{ratio:.3f}", won))
        for i, (kind, known) in enumerate(KNOWN.get(case, {}).items()):
            near = within(ours, i, known)
            words = f"{case}: {kind}'s {known} is within two standard errors in {FOUND:.0%} of splits or more"
            judged.append(Bar(words, f"{sum(near)} of {len(near)}", np.mean(near) >= FOUND))
    for row in [row for row in rows if row["method"] == "speed"][-1:]:
        words = f"totals take at most {MOST_TIME:.0f} times as long as distributions of rows"
        judged.append(Bar(words, f"{row['ratio']:.2f}", row["ratio"] <= MOST_TIME))
    return [bar.line(width=10) for bar in judged] or ["  There are no results yet."]


def _names() -> str:
    return "".join(f"{name:>13}" for name in METHODS)


def _cells(methods: dict[str, list[Row]], cell: Callable[[list[Row]], str]) -> str:
    return "".join(f"{cell(methods[name]):>13}" for name in METHODS)
