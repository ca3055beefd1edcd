"""The top of the report: the model, the data, and how good the predictions are, in words that need no statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.describe import (
    Predictions,
    chance_band,
    group_lines,
    model_facts,
    model_lines,
    number,
    ordered_scores,
    percent,
)
from ibug.distributions import Distribution
from ibug.metrics import Scores, drift, evaluate, pit

#: Coverages of the intervals that are scored, besides the one that was asked for.
LEVELS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class ScoredRows:
    """Predictions of all rows, with their scores; points, lower, upper and y have the shape (n_rows,)."""

    distribution: Distribution
    points: Floats
    lower: Floats  # ends of the central interval of this coverage
    upper: Floats
    y: Floats
    coverage: float
    scores: Scores

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether the interval holds the observed value, (n_rows,)."""
        return (self.lower <= self.y) & (self.y <= self.upper)

    @property
    def width(self) -> Floats:
        """The width of the interval, (n_rows,)."""
        return self.upper - self.lower


def scored(predictions: Predictions, X: Any, y: Floats, coverage: float, groups: Any = None) -> ScoredRows:
    """Score the predictions of rows X with the observed values y, (n_rows,); also by group, as in `evaluate`."""
    lower, upper = predictions.distribution.interval(coverage)
    levels = sorted({*LEVELS, coverage})
    with np.errstate(invalid="ignore"):  # means of infinite widths
        scores = evaluate(predictions, X, y, levels=levels, groups=groups)
    return ScoredRows(predictions.distribution, predictions.points, lower, upper, y, coverage, scores)


_FEW_ROWS = 100
_VAGUE = 0.2  # the width of the range of chance from which on a coverage within it says nothing
_NAMES = {"rmse": "RMSE", "mae": "MAE", "crps": "CRPS", "nll": "NLL", "mace": "MACE", "crps_skill": "CRPS skill"}


def described(estimator: Any) -> dict[str, str]:
    """Return a few lines about the model, by label."""
    if hasattr(estimator, "rule_"):
        return model_lines(model_facts(estimator))
    return {"model": type(estimator).__name__}


def headlines(found: ScoredRows, plain: ScoredRows | None, similarity: Similarity | None) -> list[dict[str, str]]:
    """Return figures, each with a sentence that explains it and a tone: good, bad or plain."""
    skill, off = found.scores["crps_skill"], number(found.scores["mae"], 3)
    lines = []
    if np.isfinite(skill):
        figure = percent(abs(skill))
        text = (
            f"{figure} {'better' if skill >= 0 else 'worse'} than a guess that knows the training targets but no "
            "features, whole distributions compared (CRPS skill)."
        )
        lines.append({"figure": figure, "tone": "plain" if skill > 0 else "bad", "text": text})
    lines.append(_width(found, plain))
    lines.append(coverage_line(found.inside, found.coverage, "observed values are", "intervals"))
    text = f"Predictions are off by {off} on average (mean absolute error)."
    lines.append({"figure": off, "tone": "plain", "text": text})
    return lines if similarity is None else [*lines, similarity.headline()]


def coverage_line(
    inside: NDArray[np.bool_], coverage: float, what: str, kind: str, unit: str = "row"
) -> dict[str, str]:
    """Return the share of rows inside intervals or boxes, (n_rows,), in words, and whether that is as promised."""
    n, count = len(inside), int(inside.sum())
    low, high = (float(share) for share in chance_band(n, coverage))
    share = count / n
    rows = f"1 {unit}" if n == 1 else f"{n:,} {unit}s"
    text = f"{percent(share, 1)} of the {what} inside the {100 * coverage:g} % {kind} ({count:,} of {rows}). "
    chance = f"with {rows}, {percent(low, 1)} to {percent(high, 1)} would be chance"
    if low <= share <= high and high - low > _VAGUE:
        tone, verdict = "plain", f"These are too few {unit}s to say whether that is as promised: {chance}."
    elif share < low:
        tone, verdict = "bad", f"That is too few: {kind} are too narrow here ({chance})."
    elif share > high:
        tone, verdict = "plain", f"That is more than promised: they are wider than they need to be ({chance})."
    else:
        tone, verdict = "good", f"As promised ({chance})."
    return {"figure": percent(share, 1), "tone": tone, "text": text + verdict}


def _width(found: ScoredRows, plain: ScoredRows | None) -> dict[str, str]:
    level = f"{100 * found.coverage:g} %"
    width = number(typical_width(found), 3)
    text = f"The median width of {level} intervals is {width}: half of them are narrower, half wider."
    if plain is not None:
        other, inside = number(typical_width(plain), 3), percent(float(plain.inside.mean()), 1)
        text += f" Plain neighbours have {other}, with {inside} of the observed values inside."
    return {"figure": width, "tone": "plain", "text": text}


def typical_width(found: ScoredRows) -> float:
    """Return the median width; infinite widths count as such."""
    return float(np.median(found.width))


@dataclass(frozen=True)
class Similarity:
    """The similarity of rows to the training data."""

    score: Floats  # (n_rows,) mean affinity of each row's neighbours, as a share of the trees
    threshold: float  # which all but 1 % of the validation rows exceed; NaN where it is not known

    @property
    def is_low(self) -> NDArray[np.bool_]:
        """Which rows have a low similarity, (n_rows,); none where that is not known."""
        return self.score < self.threshold

    def headline(self) -> dict[str, str]:
        """Return how many rows have a low similarity, in words."""
        n, count = len(self.score), int(self.is_low.sum())
        if np.isnan(self.threshold):
            text = "It is not known which similarity is low: there were no validation rows to learn it from."
            return {"figure": "?", "tone": "plain", "text": text}
        # 1 % of rows like the validation rows are below the threshold.
        many = count > float(chance_band(n, 0.01)[1]) * n
        rows = "1 row has" if count == 1 else f"{count:,} rows have"
        text = f"{rows} a low similarity to the training data ({percent(count / n, 1)}; about 1 % is usual). "
        text += "That is many: these rows differ from what the model knows." if many else ""
        return {"figure": f"{count:,}", "tone": "bad" if many else "plain", "text": text.strip()}


def drift_section(estimator: Any, found: ScoredRows | None, near: Any) -> dict[str, Any] | None:
    """Return how the rows compare with the validation rows, as text; None where there is nothing to compare with."""
    reference = getattr(getattr(estimator, "rule_", None), "reference", None)
    if near is None or reference is None or not reference.samples:
        return None
    values, level = {"similarity": near.similarity.score, "prediction": near.means}, 0.9
    if found is not None:
        values["pit"], level = pit(found.y, found.distribution), found.coverage
    result = drift(values, reference.samples, tolerance=reference.tolerance, coverage=level)
    compared = "" if len(result.tests) == 1 else f", corrected for {len(result.tests)} comparisons"
    verdict = "Yes, these rows differ from the validation rows" if result.drifted else "There is no sign of it"
    return {
        "verdict": f"{verdict} (p = {result.p_value:.2g}{compared}).",
        "tests": [
            {
                "meaning": test.meaning,
                "observed": number(test.observed, 3),
                "expected": number(test.expected, 3),
                "p_value": f"{test.p_value:.2g}",
            }
            for test in result
        ],
    }


def caveats(found: ScoredRows, plain: ScoredRows | None, repeated: float) -> list[str]:
    """Return the limits of the report, and the reasons to doubt it."""
    n = len(found.y)
    lines = []
    if n < _FEW_ROWS:
        low, high = (float(share) for share in chance_band(n, found.coverage))
        lines.append(
            f"There are only {n} rows. The observed coverage is vague: perfect intervals would show anything from "
            f"{percent(low)} to {percent(high)}."
        )
    endless = int(np.sum(~np.isfinite(found.width)))
    if endless:
        lines.append(
            f"{endless:,} of {n:,} intervals have infinite ends: there were too few validation rows to promise "
            f"{100 * found.coverage:g} % for less. More validation rows, or a lower coverage, would give finite ones."
        )
    if repeated > 0.5:
        lines.append(
            f"{percent(repeated)} of these rows have the leaves and the target of a training row. If the model was "
            "trained on them, every figure here is too good: use rows that it has not seen."
        )
    if plain is None:
        lines.append("This kind of model has no plain neighbours to compare with.")
    lines.append(
        "Everything here holds for rows like these. It says nothing about other data, next year's for example."
    )
    return lines


def score_table(found: ScoredRows, plain: ScoredRows | None) -> list[dict[str, str | None]]:
    """Return the scores of ibug and of the plain neighbours as text."""

    def text(each: ScoredRows | None, name: str) -> str | None:
        if each is None:
            return None
        return percent(each.scores[name], 1) if name == "crps_skill" else number(each.scores[name])

    level = f"{100 * found.coverage:g}"
    names = _NAMES | {f"width_{level}": f"width of {level} % intervals"}
    return [
        {
            "name": names.get(name, name.replace("_", " ")),
            "ibug": text(found, name),
            "plain": text(plain, name),
            "meaning": found.scores.meanings[name],
        }
        for name in ordered_scores(found.scores, found.coverage)
    ]


def interval_table(found: ScoredRows, plain: ScoredRows | None) -> list[dict[str, Any]]:
    """Return the mean width of intervals of several levels, and the share of observed values inside, as text."""

    def texts(each: ScoredRows | None, level: str) -> dict[str, str] | None:
        if each is None:
            return None
        inside, width = each.scores[f"coverage_{level}"], each.scores[f"width_{level}"]
        return {"inside": percent(inside, 1), "width": number(width)}

    levels = [name.removeprefix("coverage_") for name in found.scores if name.startswith("coverage_")]
    return [{"level": f"{level} %", "ibug": texts(found, level), "plain": texts(plain, level)} for level in levels]


def group_table(found: ScoredRows, groups: Any) -> dict[str, Any] | None:
    """Return number of rows, coverage and mean width of each group, as text; None where no groups were asked for."""
    if found.scores.groups is None:
        return None
    name = groups if isinstance(groups, str) else getattr(groups, "name", None)
    return {"by": str(name or "group"), "lines": group_lines(found.scores.groups, found.coverage)}
