"""All targets at once: scores, boxes, and samples of the explorer's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ibug._typing import Floats, Integers
from ibug.describe import Predictions, number, percent
from ibug.distributions import JointStack
from ibug.metrics import energy_score, variogram_score
from ibug.report._page import pack
from ibug.report._summary import LEVELS, ScoredRows, Similarity, coverage_line, typical_width

_MOST_SAMPLES, _FEWEST_SAMPLES = 200, 30
_SAMPLE_BYTES = 1_500_000
_STEPS = 2**16 - 1


def listed(names: Sequence[str]) -> str:
    """Return names in words: "price, days and size"."""
    return f"{', '.join(names[:-1])} and {names[-1]}"


def joint_section(
    rule: Any,
    predictions: Predictions,
    found: list[ScoredRows],
    names: Sequence[str],
    rows: Integers,
    similarity: Similarity | None,
) -> dict[str, Any]:
    """Return what the page says of all targets together. Shapes: rows (n_shown,)."""
    joint, coverage = predictions.distribution, found[0].coverage
    y = np.stack([one.y for one in found], axis=1)
    boxes = None if rule.boxes is None else rule.ends(joint, coverage, joint=True)
    lines = [] if boxes is None else [coverage_line(_inside(boxes, y), coverage, "rows have all targets", "boxes")]
    lines += [] if similarity is None else [similarity.headline()]
    return {
        "names": list(names),
        "headlines": lines,
        "scores": _scores(joint, predictions.uncalibrated, y),
        "boxes": _levels(rule, joint, found, y),
        "overview": [_line(name, one) for name, one in zip(names, found, strict=True)],
        "box": None if boxes is None else pack(boxes[rows], "float64"),
        "correlation": pack(joint[rows].correlation(), "float32"),
        "samples": _samples(joint[rows]),
    }


def _inside(boxes: Floats, y: Floats) -> Any:
    """Return whether boxes, (n_rows, d, 2), hold all targets, (n_rows,)."""
    return ((boxes[:, :, 0] <= y) & (y <= boxes[:, :, 1])).all(axis=1)


def _scores(joint: JointStack, plain: JointStack | None, y: Floats) -> list[dict[str, str | None]]:
    lines = []
    for name, score, meaning in (
        ("energy score", energy_score, "CRPS of several targets, in units of their deviations"),
        ("variogram score", variogram_score, "whether targets go together as they should"),
    ):
        other = None if plain is None else number(score(y, plain))
        lines.append({"name": name, "ibug": number(score(y, joint)), "plain": other, "meaning": meaning})
    return lines


def _levels(rule: Any, joint: JointStack, found: list[ScoredRows], y: Floats) -> list[dict[str, str]]:
    """Return the share of rows whose targets are all inside: of the box, and of the intervals of each target."""
    lines = []
    for level in sorted({*LEVELS, found[0].coverage}):
        ends = np.stack([np.stack(one.distribution.interval(level), axis=1) for one in found], axis=1)
        box = "–" if rule.boxes is None else percent(float(_inside(rule.ends(joint, level, joint=True), y).mean()), 1)
        apart = percent(float(_inside(ends, y).mean()), 1)
        lines.append({"level": f"{100 * level:g} %", "boxes": box, "apart": apart})
    return lines


def _line(name: str, found: ScoredRows) -> dict[str, str]:
    """Return the scores of one target for the table of all."""
    skill = found.scores["crps_skill"]
    return {
        "name": name,
        "mae": number(found.scores["mae"], 3),
        "crps": number(found.scores["crps"], 3),
        "skill": percent(skill) if np.isfinite(skill) else "–",
        "inside": percent(float(found.inside.mean()), 1),
        "width": number(typical_width(found), 3),
    }


def _samples(joint: JointStack) -> dict[str, Any]:
    """Return samples of each row, (n_shown, m, d), as 65535ths of their range in each target."""
    n, d = joint.loc.shape
    m = int(np.clip(_SAMPLE_BYTES // max(1, 2 * n * d), _FEWEST_SAMPLES, _MOST_SAMPLES))
    drawn = joint.rvs(m, random_state=0).transpose(1, 0, 2)
    start, stop = drawn.min(axis=1), drawn.max(axis=1)
    length = np.where(stop > start, stop - start, 1.0)
    steps = np.round((drawn - start[:, None]) / length[:, None] * _STEPS)
    return {
        "count": m,
        "start": pack(start, "float64"),
        "length": pack(length, "float64"),
        "steps": pack(steps, "uint16"),
    }
