"""The paper's figures: run times, tree sampling in three orders, posteriors, leaf density per library and per tree.

The run times are read from the results. For the others models are trained as the study trains them (those that it has
trained already are taken from beside the results), and looked at with the displays of ibug.plotting.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.statistics import mean_and_error
from benchmarks.study.datasets import DATASETS, load
from benchmarks.study.methods import METHODS, Split
from benchmarks.study.methods.boosters import Booster, CatBoost, LightGBM, Tuned, XGBoost
from benchmarks.study.protocol import prepare
from benchmarks.study.report import wanted
from benchmarks.study.results import read
from benchmarks.study.runner import Plan
from benchmarks.study.scores import Scores
from benchmarks.study.task import Task
from ibug import IBUGRegressor
from ibug.explain import leaf_density as density
from ibug.metrics import nll
from ibug.plotting import DensityDisplay, LeafDensityDisplay, TreeFractionDisplay

TIMED = ("ngboost", "pgbm", "cbu", "ibug-catboost", "ibug-lightgbm", "quantile-forest", "cqr", "bart")
# The paper's figures show six datasets, and MEPS and Wine; of those not at hand others take the place.
FRACTION_DATASETS = ("concrete", "communities", "kin8nm", "naval", "power", "wine")
POSTERIOR_DATASETS = ("wine", "communities")
TREE_DATASETS = ("concrete", "kin8nm", "wine")
FRACTIONS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
REPEATS = 15  # of each time, of which the shortest counts
ROWS_DRAWN = 5
LIBRARIES: dict[str, type[Booster]] = {"CatBoost": CatBoost, "LightGBM": LightGBM, "XGBoost": XGBoost}

_COLORS = ("#0072B2", "#E69F00", "#000000", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#8A8A8A")
_MARKERS = "osD^vP*X"

Fold = tuple[Split, Any, Any]


class Source:
    """The folds of the datasets, and the models that the study trains on them."""

    def __init__(self, plan: Plan, results: Path, folder: Path | None) -> None:
        self.plan, self.results, self.folder = plan, results, folder
        self._folds: dict[tuple[str, int], Fold] = {}
        self._models: dict[tuple[str, str, int], Tuned] = {}

    def fold(self, dataset: str, number: int = 0) -> Fold:
        """Return what a method may see, the test rows and their targets."""
        if (dataset, number) not in self._folds:
            task = Task(dataset, "", number, self.plan.grid, self.plan.max_rows)
            X, y = load(dataset, self.folder, self.plan.max_rows)
            self._folds[dataset, number] = prepare(X, y, task, self.results.with_suffix(".models"))
        return self._folds[dataset, number]

    def tuned(self, dataset: str, library: str, number: int = 0) -> Tuned:
        """Return the library's models."""
        key = (dataset, library, number)
        if key not in self._models:
            print(f"[study] {library} on {dataset}, fold {number + 1}", file=sys.stderr, flush=True)
            self._models[key] = LIBRARIES[library]().tune(self.fold(dataset, number)[0])
        return self._models[key]

    def among(self, names: Sequence[str]) -> list[str]:
        """Return those of the datasets that the plan has; its first ones if it has none."""
        return [name for name in names if name in self.plan.datasets] or list(self.plan.datasets[:2])


def draw(plan: Plan, results: Path, folder: Path | None, images: Path, only: Sequence[str] | None = None) -> list[Path]:
    """Draw the figures, all or those named, and return the files."""
    import matplotlib

    matplotlib.use("Agg")
    unknown = sorted(set(only or ()) - set(FIGURES))
    if unknown:
        raise SystemExit(f"There is no figure {', '.join(unknown)}; there are: {', '.join(FIGURES)}.")
    source = Source(plan, results, folder)
    images.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in only or FIGURES:
        figure = FIGURES[name](source)
        paths.append(images / f"study_{name}.png")
        figure.savefig(paths[-1], dpi=110)
    return paths


def _figure(width: float, height: float) -> Any:
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


def _grid(ax: Any) -> None:
    ax.grid(visible=True, color="#D9D9D9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def runtime(source: Source) -> Any:
    """Draw the times to train and to predict (paper, Figure 4)."""
    scores = Scores(wanted(source.plan, read(source.results)))
    datasets = scores.datasets(TIMED)
    figure = _figure(10, 0.32 * len(datasets) + 1.8)
    panels = (("train_seconds", 1.0, "Tune and train (s)"), ("predict_seconds", 1e3, "Predict a row (ms)"))
    axes = figure.subplots(1, 2, sharey=True, squeeze=False)[0]
    for ax, (metric, scale, label) in zip(axes, panels, strict=True):
        for number, method in enumerate(TIMED):
            found = {d: scores.folds(metric, d, method) for d in datasets}
            times = [(mean_and_error(f)[0] * scale, i) for i, f in enumerate(found.values()) if f]
            if times:
                x, y = zip(*times, strict=True)
                style = {"color": _COLORS[number], "marker": _MARKERS[number], "markersize": 6}
                ax.plot(x, y, linestyle="", label=METHODS[method].title, alpha=0.85, **style)
        ax.set(xscale="log", xlabel=f"{label}, one thread")
        ax.set_yticks(range(len(datasets)), [DATASETS[name].title for name in datasets])
        _grid(ax)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure


def tree_fraction(source: Source) -> Any:
    """Draw NLL and prediction time against the share of the trees, for three orders (paper, Figures 5 and 7)."""
    datasets = source.among(FRACTION_DATASETS)
    columns = min(3, len(datasets))
    lines = -(-len(datasets) // columns)
    figure = _figure(4.6 * columns, 4.8 * lines)
    parts = figure.subfigures(lines, columns, squeeze=False).ravel()
    for part, dataset in zip(parts, datasets, strict=False):
        measured = [_sampled_trees(source, dataset, number) for number in range(source.plan.folds)]
        # Times by the median: other work of the machine may have disturbed a fold.
        scores = {order: np.mean([each.scores[order] for each in measured], axis=0) for order in measured[0].scores}
        seconds = {order: np.median([each.seconds[order] for each in measured], axis=0) for order in scores}
        axes = part.subplots(2, 1, sharex=True)
        TreeFractionDisplay.from_results(FRACTIONS, scores, seconds, scoring="nll", ax=axes)
        part.suptitle(f"{DATASETS[dataset].title}, {len(measured)} folds")
    return figure


def _sampled_trees(source: Source, dataset: str, number: int) -> TreeFractionDisplay:
    import matplotlib.pyplot as plt

    split, X_test, y_test = source.fold(dataset, number)
    model = source.tuned(dataset, "CatBoost", number).part
    paper: dict[str, Any] = {"distribution": "normal", "spread": "targets", "scoring": "nll"}
    u = IBUGRegressor(model, prefit=True, **paper, n_jobs=1, random_state=number)
    rows = (split.X_part, split.y_part, split.X_val, split.y_val)
    u.fit(rows[0], rows[1], X_val=rows[2], y_val=rows[3])
    scratch = plt.figure()
    display = TreeFractionDisplay.from_estimator(
        u, *rows, X_test, y_test, fractions=FRACTIONS, n_repeats=REPEATS, ax=scratch.subplots(2, 1)
    )
    plt.close(scratch)
    return display


def posteriors(source: Source) -> Any:
    """Draw distributions of the family that validation rows choose; their NLL beside the normal one's (Figure 3)."""
    datasets = source.among(POSTERIOR_DATASETS)
    figure = _figure(10, 4.4 * len(datasets))
    axes = figure.subplots(len(datasets), 2, squeeze=False, width_ratios=(2, 1))
    for (left, right), dataset in zip(axes, datasets, strict=True):
        split, X_test, y_test = source.fold(dataset)
        model = source.tuned(dataset, "CatBoost").part
        scores = {}
        for family in ("normal", "tune"):
            u = IBUGRegressor(
                model, prefit=True, spread="targets", scoring="nll", distribution=family, n_jobs=1, random_state=0
            )
            u.fit(split.X_part, split.y_part, X_val=split.X_val, y_val=split.y_val)
            each = nll(y_test, u.predict_dist(X_test), reduce=None)
            scores[u.distribution_] = float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(len(each)))
        rows = np.random.default_rng(0).choice(len(y_test), ROWS_DRAWN, replace=False)
        DensityDisplay.from_estimator(u, X_test, y_test, rows=sorted(map(int, rows)), ax=left)
        left.set_title(f"{DATASETS[dataset].title}: {u.distribution_}", loc="left", pad=46)
        means, errors = zip(*scores.values(), strict=True)
        right.bar(list(scores), means, yerr=errors, color=list(_COLORS[: len(scores)]), width=0.6, capsize=4)
        right.set(ylabel="Test NLL, with standard error")
        right.spines[["top", "right"]].set_visible(False)
    return figure


def leaf_density(source: Source) -> Any:
    """Draw the share of the training rows in a test row's leaves, by dataset and library (paper, Figure 8)."""
    datasets = sorted(source.plan.datasets, key=lambda name: len(source.fold(name)[0].y_part))
    figure = _figure(9, 0.42 * len(datasets) + 1.6)
    ax = figure.subplots()
    for number, library in enumerate(LIBRARIES):
        found = [100 * density(_indexed(source, name, library), source.fold(name)[1]) for name in datasets]
        places = np.arange(len(datasets)) + 0.2 * (number - 1)
        style: dict[str, Any] = {"color": _COLORS[number], "marker": _MARKERS[number], "capsize": 2, "linestyle": ""}
        means, deviations = [each.mean() for each in found], [each.std() for each in found]
        ax.errorbar(means, places, xerr=deviations, label=library, **style)
    sizes = [len(source.fold(name)[0].y_part) for name in datasets]
    labels = [f"{DATASETS[name].title} ({rows:,})" for name, rows in zip(datasets, sizes, strict=True)]
    ax.set_yticks(range(len(datasets)), labels)
    ax.invert_yaxis()
    ax.set(xlabel="Training rows in the same leaf (%), mean and deviation over test rows")
    ax.set(ylabel="Dataset (training rows)")
    ax.set_xlim(left=0)
    _grid(ax)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=len(LIBRARIES), frameon=False)
    return figure


def leaf_density_trees(source: Source) -> Any:
    """Draw the same along the trees (paper, Figure 9)."""
    datasets = source.among(TREE_DATASETS)
    figure = _figure(5 * len(datasets), 5)
    axes = figure.subplots(1, len(datasets), squeeze=False)[0]
    for ax, dataset in zip(axes, datasets, strict=True):
        indexed = {library: _indexed(source, dataset, library) for library in LIBRARIES}
        LeafDensityDisplay.from_estimator(indexed, source.fold(dataset)[1], per="tree", ax=ax)
        ax.set_title(DATASETS[dataset].title, pad=58)
    return figure


def _indexed(source: Source, dataset: str, library: str) -> IBUGRegressor:
    split = source.fold(dataset)[0]
    model = source.tuned(dataset, library).part
    return IBUGRegressor(model, prefit=True, k=3, spread="targets", calibrate=False, n_jobs=1).fit(
        split.X_part, split.y_part
    )


FIGURES: dict[str, Callable[[Source], Any]] = {
    "runtime": runtime,
    "tree_fraction": tree_fraction,
    "posteriors": posteriors,
    "leaf_density": leaf_density,
    "leaf_density_trees": leaf_density_trees,
}
