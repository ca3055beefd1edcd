"""The table of your own data: CRPS of each method, and what the default's intervals hold."""

from __future__ import annotations

import math

from benchmarks.accuracy.methods import Setting
from benchmarks.accuracy.scores import Case, Scores, ratio
from benchmarks.common.lines import Row
from benchmarks.common.statistics import geometric_mean, record
from benchmarks.own.files import Table

OURS = "default"


def text(tables: list[Table], rows: list[Row], settings: list[Setting]) -> str:
    """Return the table of what was measured.

    Parameters
    ----------
    tables
        The files.
    rows
        The results.
    settings
        What was to be measured; the default is among it.
    """
    scores = Scores(rows)
    first = settings[0]
    names = [one.method for one in settings]
    width = max(8, *(len(table.name) for table in tables))
    lines = [
        f"CRPS, how far distributions are from the truths: lower is better. {OURS} is ibug's default, on {first.base}.",
        "",
        f"{'':{width}}" + "".join(f"{name:>16}" for name in names) + f"{'90 % intervals':>18}",
        f"{'file':{width}}" + "".join(f"{'':>16}" for _ in names) + f"{'of the default':>18}",
    ]
    for table in tables:
        case = Case(table.name, first.base, first.way)
        cells = [_cell(scores, name, first.scoring, case) for name in names]
        inside = scores.mean("coverage", OURS, first.scoring, case)
        held = "" if math.isnan(inside) else f"hold {inside:.1%}"
        lines.append(f"{table.name:{width}}" + "".join(f"{cell:>16}" for cell in cells) + f"{held:>18}")
    lines += [
        "",
        "In brackets: the method's score relative to that of the default, below 100 % where it is better.",
        "",
    ]
    return "\n".join([*lines, *(_summary(scores, name, tables, first) for name in names[1:])])


def _cell(scores: Scores, name: str, scoring: str, case: Case) -> str:
    mean = scores.mean("crps", name, scoring, case)
    if math.isnan(mean):
        return "–"
    if name == OURS:
        return f"{mean:.4g}"
    pair = scores.folds("crps", name, scoring, case), scores.folds("crps", OURS, scoring, case)
    return f"{mean:.4g} ({ratio(pair):.0%})" if set(pair[0]) & set(pair[1]) else f"{mean:.4g}"


def _summary(scores: Scores, name: str, tables: list[Table], first: Setting) -> str:
    cases = [Case(table.name, first.base, first.way) for table in tables]
    found = [scores.folds("crps", OURS, first.scoring, case) for case in cases]
    others = [scores.folds("crps", name, first.scoring, case) for case in cases]
    pairs = [pair for pair in zip(found, others, strict=True) if set(pair[0]) & set(pair[1])]
    if not pairs:
        return f"{OURS} against {name}: no results of {name}"
    lower = sum(ratio(pair) < 1 for pair in pairs)
    mean = geometric_mean(ratio(pair) for pair in pairs)
    return (
        f"{OURS} against {name}: lower on {lower} of {len(pairs)} files, {mean:.1%} of its CRPS on average; "
        f"wins, ties and losses by a paired t-test: {record(pairs)}"
    )
