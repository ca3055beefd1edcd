"""The paper's tables as Markdown: ours, the paper's value beside it, wins-ties-losses of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.common.statistics import geometric_mean, mean_and_error, record
from benchmarks.study import facts
from benchmarks.study.datasets import DATASETS
from benchmarks.study.methods import METHODS
from benchmarks.study.scores import Scores

# Our names and the paper's.
MAIN = {
    "ngboost": "NGBoost",
    "pgbm": "PGBM",
    "cbu": "CBU",
    "ibug-catboost": "IBUG",
    "ibug+cbu": "IBUG+CBU",
}
BASES = {"ibug-catboost": "CatBoost", "ibug-lightgbm": "LightGBM", "ibug-xgboost": "XGBoost", "ibug-hist": ""}
OWN_INTERVALS = ("cqr", "quantile-forest")
TODAY = ("default-catboost", "default-lightgbm", *OWN_INTERVALS)


@dataclass(frozen=True)
class Table:
    """One table of the paper.

    Attributes
    ----------
    title
        Its heading.
    fact
        What benchmarks/paper/ calls it.
    metric, scoring, calibrated
        The score that is shown, and the setting.
    methods : dict of str
        Our names of the methods and the paper's, empty where it has none.
    heads : tuple of str
        The methods whose wins, ties and losses against all others are counted.
    note
        What a reader must know.
    better
        Which scores are better; a statement, empty for none.
    scale
        What the scores are multiplied by.
    """

    title: str
    fact: str
    metric: str
    methods: dict[str, str]
    scoring: str = "crps"
    calibrated: bool = True
    heads: tuple[str, ...] = ("ibug-catboost", "ibug+cbu")
    note: str = ""
    better: str = "Lower is better."
    scale: float = 1.0
    geometric: bool = False


_WITH_TODAY = {**MAIN, **dict.fromkeys(TODAY, "")}
_KNN = {"knn": "kNN", "knn-unscaled": "kNN", "knn-catboost": "kNN-CB", "ibug-catboost": "IBUG-CB"}
_BART = {"bart": "BART", "ibug-catboost": "IBUG"}
_TIMES = {**{ours: theirs for ours, theirs in MAIN.items() if ours != "ibug+cbu"}, "ibug-lightgbm": "", "ibug-hist": ""}
_CPU = "Ours: processor time of one thread. The paper's: of another machine, "

TABLES = (
    Table("CRPS", "crps", "crps", _WITH_TODAY),
    Table("NLL", "nll", "nll", _WITH_TODAY, scoring="nll"),
    Table("RMSE", "rmse", "rmse", _WITH_TODAY, note="The point prediction of CQR is a median."),
    Table("Check score", "check", "check", MAIN),
    Table("Interval score", "interval", "interval", MAIN),
    Table("Mean absolute calibration error (MACE)", "mace", "mace", MAIN),
    Table("Sharpness", "sharpness", "sharpness", MAIN, better="Lower is narrower, which is not better by itself."),
    Table("CRPS without calibration", "crps_uncalibrated", "crps", MAIN, calibrated=False),
    Table("NLL without calibration", "nll_uncalibrated", "nll", MAIN, scoring="nll", calibrated=False),
    Table("IBUG on different base models: CRPS", "crps_base_model", "crps", BASES, heads=tuple(BASES)),
    Table("IBUG on different base models: NLL", "nll_base_model", "nll", BASES, scoring="nll", heads=tuple(BASES)),
    Table(
        "Nearest neighbours: CRPS",
        "crps_knn",
        "crps",
        _KNN,
        heads=("ibug-catboost",),
        note="The paper has one kNN, which stands beside both of ours.",
    ),
    Table(
        "BART: CRPS",
        "crps_bart",
        "crps",
        _BART,
        heads=("ibug-catboost",),
        note="Ours is stochtree; the paper's bartpy, as PyPI has it, lacks modules and cannot be used.",
    ),
    Table("BART: RMSE", "rmse_bart", "rmse", _BART, heads=("ibug-catboost",), note="stochtree, as above."),
    Table(
        "Time to tune and train, seconds",
        "train_seconds",
        "train_seconds",
        _TIMES,
        heads=(),
        note=f"{_CPU}and of its whole grid.",
        geometric=True,
    ),
    Table(
        "Time to predict a row, milliseconds",
        "predict_ms_per_row",
        "predict_seconds",
        _TIMES,
        heads=(),
        note=f"{_CPU}and of larger models.",
        scale=1e3,
        geometric=True,
    ),
)


def render(table: Table, scores: Scores) -> str:
    """Return the table in Markdown."""
    names = list(table.methods)
    datasets = scores.datasets(names)
    lines = [f"### {table.title}", ""]
    tuned = f"Tuned for {table.scoring.upper()}, " if table.metric not in ("train_seconds", "predict_seconds") else ""
    kind = "with calibration of the variance" if table.calibrated else "without calibration of the variance"
    about = f"{tuned}{kind}." if tuned else ""
    lines.append(" ".join(part for part in (about, table.better if tuned else "", table.note) if part))
    lines += ["", "| Dataset | " + " | ".join(METHODS[name].title for name in names) + " |"]
    lines.append("|---|" + "---|" * len(names))
    for dataset in datasets:
        lines.append(f"| {DATASETS[dataset].title} | " + " | ".join(_cells(table, scores, dataset)) + " |")
    if table.geometric:
        lines.append("| *Geometric mean* | " + " | ".join(_geometric(table, scores, datasets)) + " |")
    for head in table.heads:
        row = [_wins(table, scores, datasets, head, other) for other in names]
        lines.append(f"| *{METHODS[head].title} W-T-L* | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def _folds(table: Table, scores: Scores, dataset: str, method: str) -> dict[int, float]:
    found = scores.folds(table.metric, dataset, method, table.scoring, table.calibrated)
    return {fold: value * table.scale for fold, value in found.items()}


def _cells(table: Table, scores: Scores, dataset: str) -> list[str]:
    """Return a dataset's cells; the best is bold, and those whose standard error reaches it, as in the paper."""
    found = {name: _folds(table, scores, dataset, name) for name in table.methods}
    summary = {name: mean_and_error(folds) for name, folds in found.items() if folds}
    finite = {name: pair for name, pair in summary.items() if math.isfinite(pair[0])}
    best = min((mean for mean, _ in finite.values()), default=math.nan)
    best_error = next((error for mean, error in finite.values() if mean == best), math.nan)
    cells = []
    for name, theirs in table.methods.items():
        paper = facts.values().get((table.fact, DATASETS[dataset].title, theirs))
        beside = f" / {number(paper)}" if paper is not None else ""
        if name not in summary:
            cells.append(f"–{beside}")
            continue
        mean, error = summary[name]
        reaches = mean == best or mean - _zero(error) <= best + _zero(best_error)
        text = f"**{number(mean)}**" if reaches and name in finite else number(mean)
        cells.append(text + ("" if math.isnan(error) else f" ±{number(error, 2)}") + beside)
    return cells


def _zero(error: float) -> float:
    return 0.0 if math.isnan(error) else error


def _wins(table: Table, scores: Scores, datasets: Sequence[str], head: str, other: str) -> str:
    if head == other:
        return "-"
    pairs = [(_folds(table, scores, dataset, head), _folds(table, scores, dataset, other)) for dataset in datasets]
    ours = record((a, b) for a, b in pairs if a and b)
    paper = facts.wins().get((table.fact, table.methods[head], table.methods[other]))
    return f"{ours}" + (f" / {paper}" if paper else "")


def _geometric(table: Table, scores: Scores, datasets: Sequence[str]) -> list[str]:
    """Return geometric means over the datasets that all methods have, so that they can be compared."""
    means = {
        name: {d: mean_and_error(f)[0] for d in datasets if (f := _folds(table, scores, d, name))}
        for name in table.methods
    }
    common = [d for d in datasets if all(d in each for each in means.values() if each)]
    cells = []
    for name, theirs in table.methods.items():
        paper = [facts.values().get((table.fact, DATASETS[d].title, theirs)) for d in common]
        known = [value for value in paper if value is not None]
        beside = f" / {number(geometric_mean(known))}" if known else ""
        cells.append((number(geometric_mean(means[name][d] for d in common)) if means[name] else "–") + beside)
    return cells


def calibration(scores: Scores) -> str:
    """Return the paper's Table 3: each method against itself without calibration."""
    lines = ["### Calibration of the variance: wins, ties and losses of each method against itself without it", ""]
    lines += ["| Method | CRPS | NLL |", "|---|---|---|"]
    for name in METHODS:
        if not scores.datasets([name]):
            continue
        cells = []
        for scoring in ("crps", "nll"):
            pairs = [
                tuple(scores.folds(scoring, dataset, name, scoring, calibrated) for calibrated in (True, False))
                for dataset in scores.datasets([name])
            ]
            paper = facts.wins().get((f"calibration_{scoring}", MAIN.get(name, ""), MAIN.get(name, "")))
            cells.append(f"{record((a, b) for a, b in pairs)}" + (f" / {paper}" if paper else ""))
        lines.append(f"| {METHODS[name].title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def intervals(scores: Scores) -> str:
    """Return coverage and width of 90 % intervals: those of the normal distributions, and the methods' own."""
    names = ("ibug-catboost", "ibug-lightgbm", "cbu", "ngboost", *TODAY)
    lines = ["### 90 % intervals: coverage and mean width", ""]
    lines += [
        "Tuned for NLL and calibrated, of the normal distributions; the intervals of CQR and the quantile forest are "
        "their own. The coverage should be 90 %; of two that have it, the narrower is better. The width is in standard "
        "deviations of the target.",
        "",
    ]
    lines += ["| Dataset | " + " | ".join(METHODS[name].title for name in names) + " |", "|---|" + "---|" * len(names)]
    for dataset in scores.datasets(names):
        cells = []
        for name in names:
            own = "own_" if name in OWN_INTERVALS else ""
            inside = scores.folds(f"{own}coverage", dataset, name, "nll")
            width = scores.folds(f"{own}width", dataset, name, "nll")
            unit = scores.folds("target_deviation", dataset, name, "nll")
            if not inside:
                cells.append("–")
                continue
            relative = {fold: width[fold] / unit[fold] for fold in width}
            cells.append(f"{100 * mean_and_error(inside)[0]:.1f} %, {number(mean_and_error(relative)[0])}")
        lines.append(f"| {DATASETS[dataset].title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def number(value: float, digits: int = 3) -> str:
    """Return a number with a few significant digits, in the way that takes least room."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "–∞" if value < 0 else "?"
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}"
    places = digits - 1 - (math.floor(math.log10(abs(value))) if value else 0)
    return f"{value:.{max(places, 0)}f}"


def every(scores: Scores) -> str:
    """Return all tables."""
    return "\n".join([*(render(table, scores) for table in TABLES), calibration(scores), intervals(scores)])
