"""Draw the CRPS of the default relative to other methods, dataset by dataset: ``python docs/draw_accuracy.py``.

It reads the committed results of ``benchmarks/accuracy.py`` on at most 4,000 rows, three folds; ``--results`` reads
others. ``--out`` is the folder of the picture, by default ``docs/images``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "accuracy-small.jsonl.gz"
EXPERIMENT = {"folds": 3, "max_rows": 4000, "max_trees": 500, "scoring": "crps", "status": "ok"}
OURS = ("default", "catboost", "trained")

#: What is drawn: the method, its base model and way, by the name in the picture.
OTHERS = {
    "IBUG, normal": ("normal", "catboost", "trained"),
    "CatBoost\nuncertainty": ("cbu", "", ""),
    "NGBoost": ("ngboost", "", ""),
    "PGBM": ("pgbm", "", ""),
    "quantile\nforest": ("quantile-forest", "", ""),
    "CQR\n(MAPIE)": ("cqr", "", ""),
}
FAILED, HIGHEST = 0.1, 1.25  # below the first the other method has failed; the second is the end of the axis
BETTER, WORSE = "#0072B2", "#D55E00"

Key = tuple[str, str, str]


def read(path: Path) -> dict[Key, dict[tuple[str, int], float]]:
    """Return the CRPS of each method, by dataset and fold."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: dict[Key, dict[tuple[str, int], float]] = {}
    for row in map(json.loads, content.splitlines()):
        if EXPERIMENT.items() <= row.items():
            key = row["method"], row["base"], row["way"]
            found.setdefault(key, {})[row["dataset"], row["fold"]] = float(row["crps"])
    return found


def ratios(found: dict[Key, dict[tuple[str, int], float]]) -> dict[str, dict[str, float]]:
    """Return the mean CRPS of the default over that of each other method, by dataset, on the folds that both have."""
    ours, result = found[OURS], {}
    for name, key in OTHERS.items():
        theirs = found[key]
        datasets = sorted({dataset for dataset, _ in set(ours) & set(theirs)})
        common = {name: [place for place in set(ours) & set(theirs) if place[0] == name] for name in datasets}
        result[name] = {
            dataset: sum(ours[place] for place in places) / sum(theirs[place] for place in places)
            for dataset, places in common.items()
        }
    return result


def draw(found: dict[str, dict[str, float]], path: Path) -> None:
    """Draw a column of dots for each method, one per dataset, with their median: means do not survive a failure."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
    ax.axhspan(0, 1, color=BETTER, alpha=0.07, linewidth=0)
    ax.axhline(1, color="black", linewidth=1)
    for place, by_dataset in enumerate(found.values()):
        values = np.array(list(by_dataset.values()))
        colors = [BETTER if value < 1 else WORSE for value in values]
        ax.scatter(place + _aside(values), values, color=colors, s=26, alpha=0.85, linewidth=0, zorder=3, clip_on=False)
        middle = float(np.median(values))
        ax.plot([place - 0.32, place + 0.32], [middle, middle], color="black", linewidth=2, zorder=4)
        text = f"{1 - middle:.0%} lower" if middle < 1 else f"{middle - 1:.0%} higher"
        ax.text(place, HIGHEST, text, ha="center", va="bottom", fontsize=11, fontweight="bold")
        ax.text(
            place,
            HIGHEST - 0.01,
            f"better on {np.sum(values < 1)} of {len(values)}",
            ha="center",
            va="top",
            fontsize=8.5,
        )
    ax.set(ylim=(0, HIGHEST), xlim=(-0.5, len(found) - 0.5))
    ax.set_xticks(range(len(found)), list(found))
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "¼", "½", "¾", "the same"])
    ax.set_title("Error (CRPS) of ibug's default, compared with that of …   one dot is a dataset", loc="left", pad=24)
    ax.text(-0.45, 0.03, "ibug is better", ha="left", va="bottom", color=BETTER)
    ax.text(-0.45, 1.02, "ibug is worse", ha="left", va="bottom", color=WORSE)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="x", length=0)
    ax.figure.savefig(path, dpi=120)


def _aside(values: Any) -> Any:
    """Return how far dots stand aside, so that none hides another: left, middle and right by turns, in their order."""
    return 0.13 * (np.argsort(np.argsort(values)) % 3 - 1)


def main() -> None:
    """Print the ratios, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "images")
    options = parser.parse_args()
    found = read(options.results)
    missing = [key for key in (OURS, *OTHERS.values()) if key not in found]
    if missing:
        sys.exit(f"{options.results} has no results of {missing}.")
    shown = ratios(found)
    for name, by_dataset in shown.items():
        worst = ", ".join(f"{dataset} {value:.2f}" for dataset, value in by_dataset.items() if value >= 1)
        low = ", ".join(f"{dataset} {value:.2g}" for dataset, value in by_dataset.items() if value < FAILED)
        middle = np.median(list(by_dataset.values()))
        print(
            f"{' '.join(name.split()):22} median {middle:.3f} of {len(by_dataset)}; above 1: {worst or 'none'}; "
            f"below {FAILED}: {low or 'none'}"
        )
    draw(shown, options.out / "accuracy.png")


if __name__ == "__main__":
    main()
