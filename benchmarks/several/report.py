"""The tables: the joint stack beside other methods, coverage of boxes, conditional distributions, and the bars."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from benchmarks.common.bars import Bar
from benchmarks.common.lines import Row
from benchmarks.common.statistics import Folds, compare
from benchmarks.several.boxes import COVERAGE
from benchmarks.several.data import MADE

OTHERS = ("independent", "copula", "treeffuser")
#: A loss of less than this share is none: sampling alone moves a score by as much.
SAME = 0.002
#: What a conditional distribution may lose against the marginal where the other targets tell nothing.
MOST_LOST = 0.01
_WORDS = {1: "won", 0: "tie", -1: "lost"}


def text(rows: list[Row]) -> str:
    """Return all tables and bars."""
    scores = joint_scores(rows)
    sizes = sorted({row["max_rows"] for row in scores}, reverse=True)
    parts = [
        table(f"{name} score, at most {size:,} rows", found(scores, size, name))
        for size in sizes
        for name in ("energy", "variogram")
    ]
    return "\n\n".join([*parts, boxes_table(rows), conditional_table(rows), "\n".join(["Bars", *bars(rows, sizes)])])


def joint_scores(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that have energy and variogram scores."""
    return [row for row in rows if row["method"] not in ("boxes", "conditional")]


def found(rows: Iterable[Row], size: int, score: str) -> dict[str, dict[str, Folds]]:
    """Return the score by dataset, method and fold."""
    result: dict[str, dict[str, dict[int, float]]] = {}
    for row in rows:
        if row["max_rows"] == size:
            result.setdefault(row["dataset"], {}).setdefault(row["method"], {})[row["fold"]] = float(row[score])
    return {dataset: dict(methods) for dataset, methods in result.items() if "joint" in methods}


def ratio(ours: Folds, theirs: Folds) -> float:
    """Return our mean over theirs, of the folds that both have."""
    common = sorted(set(ours) & set(theirs))
    return float(np.mean([ours[fold] for fold in common]) / np.mean([theirs[fold] for fold in common]))


def table(title: str, scores: dict[str, dict[str, Folds]]) -> str:
    """Return the mean of the joint stack, and its ratio to each other method with the word of the t-test."""
    lines = [
        f"{title}: the joint stack, and its ratio to",
        f"  {'':14}{'joint':>10}" + "".join(f"{name:>20}" for name in OTHERS),
    ]
    for dataset, methods in scores.items():
        cells = [f"{np.mean(list(methods['joint'].values())):10.4g}"]
        for other in OTHERS:
            if other not in methods:
                cells.append(f"{'':>20}")
                continue
            folds = len(set(methods["joint"]) & set(methods[other]))
            word = _WORDS[compare(methods["joint"], methods[other])]
            cells.append(f"{ratio(methods['joint'], methods[other]):9.3f} {word:4} of {folds:2}")
        lines.append((f"  {dataset:14}" + "".join(cells)).rstrip())
    return "\n".join(lines)


def boxes_table(rows: Iterable[Row]) -> str:
    """Return the coverage of boxes."""
    lines = [
        f"Boxes of {COVERAGE:.0%}: the share of rows that have all targets inside, over {{splits}} splits",
        f"  {'':14}{'targets':>8}{'boxes':>9}{'± s.e.':>9}{'at most':>9}{'all intervals':>15}{'rows to size them':>19}",
    ]
    splits = 0
    for row in rows:
        if row["method"] == "boxes":
            splits = row["splits"]
            most = f"{most_of(row):.4f}" if row["continuous"] else "ties"
            lines.append(
                f"  {row['dataset']:14}{row['n_targets']:8}{row['coverage']:9.4f}{row['error']:9.4f}{most:>9}"
                f"{row['all_intervals']:15.4f}{row['n_conformal']:19}"
            )
    return "\n".join(lines).format(splits=splits)


def conditional_table(rows: Iterable[Row]) -> str:
    """Return the CRPS of targets once the others are known, beside that of their marginals."""
    lines = [
        "CRPS of a target when all others are known, and of its marginal: means over targets, in units",
        f"  {'':14}{'conditional':>12}{'marginal':>10}{'ratio':>15}{'least':>16}{'largest of a target':>21}",
    ]
    for dataset, folds in by_dataset(rows).items():
        ours, theirs = ({row["fold"]: row[name] for row in folds} for name in ("crps", "marginal"))
        cells = f"{np.mean(list(ours.values())):12.4g}{np.mean(list(theirs.values())):10.4g}"
        word = f"{ratio(ours, theirs):8.3f} {_WORDS[compare(ours, theirs)]:4} of {len(folds):2}"
        least, most = (np.mean([row[name] for row in folds]) for name in ("best", "worst"))
        lines.append(f"  {dataset:14}{cells}{word:>20}{least:11.3f}{most:21.3f}")
    return "\n".join(lines)


def by_dataset(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the folds of each table on which conditional distributions were measured."""
    result: dict[str, list[Row]] = {}
    for row in rows:
        if row["method"] == "conditional":
            result.setdefault(row["dataset"], []).append(row)
    return result


def most_of(row: Row) -> float:
    """Return the largest coverage that boxes of continuous targets have, on average."""
    return float(COVERAGE + 1 / (row["n_conformal"] + 1))


def bars(rows: list[Row], sizes: list[int]) -> list[str]:
    """Return what has to be reached, and whether it is."""
    scores = joint_scores(rows)
    judged = []
    if not sizes:
        return ["  There are no scores yet."]
    main = found(scores, sizes[0], "energy")
    against = {name: ratio(methods["joint"], methods["independent"]) for name, methods in main.items()}
    dependent = {name: value for name, value in against.items() if MADE.get(name, True)}
    better = sum(value < 1 for value in dependent.values())
    judged.append(
        Bar(
            "better than independent marginals where targets are dependent",
            f"{better} of {len(dependent)}",
            better == len(dependent),
        )
    )
    free = [value for name, value in against.items() if not MADE.get(name, True)]
    if free:
        judged.append(Bar(f"no loss where they are not (beyond {SAME:.1%})", f"{max(free):.4f}", max(free) <= 1 + SAME))
    pairs = [
        ratio(methods["joint"], methods["treeffuser"])
        for size in sizes[-1:]
        for methods in found(scores, size, "energy").values()
        if "treeffuser" in methods
    ]
    if pairs:
        wins, losses = sum(value < 1 for value in pairs), sum(value > 1 for value in pairs)
        judged.append(Bar("better than Treeffuser on more tables than worse", f"{wins} to {losses}", wins > losses))
    covered = [row for row in rows if row["method"] == "boxes"]
    if covered:
        inside = [
            COVERAGE - 3 * row["error"] <= row["coverage"]
            and (not row["continuous"] or row["coverage"] <= most_of(row) + 3 * row["error"])
            for row in covered
        ]
        words = "boxes within three standard errors of what is guaranteed; from below where targets have ties"
        judged.append(Bar(words, f"{sum(inside)} of {len(inside)}", all(inside)))
    known = {
        name: float(np.mean([row["crps"] for row in folds]) / np.mean([row["marginal"] for row in folds]))
        for name, folds in by_dataset(rows).items()
    }
    if known:
        lost = max(known.values())
        words = f"knowing other targets never costs more than {MOST_LOST:.0%}"
        judged.append(Bar(words, f"{lost:.4f}", lost <= 1 + MOST_LOST))
    return [bar.line(width=10) for bar in judged]
