"""Draw the picture of architecture.md: ``python docs/draw_architecture.py``."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

INK, BLUE, ORANGE, GREY = "#222222", "#0072b2", "#d55e00", "#7a7a7a"
Point = tuple[float, float]


def box(ax: Axes, left: float, bottom: float, width: float, height: float, title: str, text: str, color: str) -> None:
    """Draw a box with a title and some lines."""
    style = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((left, bottom), width, height, style, fc=f"{color}18", ec=color, lw=1.2))
    middle = left + width / 2
    ax.text(middle, bottom + height - 0.1, title, ha="center", va="top", fontsize=10.5, color=INK, weight="bold")
    ax.text(middle, bottom + (height - 0.2) / 2, text, ha="center", va="center", fontsize=9, color=INK)


def frame(ax: Axes, left: float, bottom: float, width: float, height: float, title: str) -> None:
    """Draw a dashed frame around boxes, with its title above them."""
    style = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((left, bottom), width, height, style, fc="none", ec=GREY, lw=1, ls=(0, (4, 3))))
    ax.text(left + 0.1, bottom + height - 0.08, title, ha="left", va="top", fontsize=9.5, color=GREY)


def arrow(ax: Axes, start: Point, stop: Point, label: str = "", color: str = INK, where: Point = (0, 0.1)) -> None:
    """Draw an arrow, with a label at its middle, moved a little."""
    style = {"arrowstyle": "-|>", "color": color, "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", stop, start, arrowprops=style)
    middle = (start[0] + stop[0]) / 2 + where[0], (start[1] + stop[1]) / 2 + where[1]
    ax.text(*middle, label, ha="center", va="bottom", fontsize=9, color=color)


def draw_fit(ax: Axes) -> None:
    """Draw what happens once: parameters and rows become a source and a rule."""
    ax.text(0, 5.6, "fit, once", fontsize=12, color=ORANGE)
    box(ax, 0, 4.3, 2.0, 1.05, "Options", "parameters,\nchecked once, frozen", ORANGE)
    box(ax, 3.2, 4.3, 2.9, 1.05, "training", "the model as given, trained,\nsplit or cross-fitted", ORANGE)
    box(ax, 8.1, 4.3, 2.9, 1.05, "learn()", "validation rows choose\nand calibrate", ORANGE)
    arrow(ax, (2.0, 4.8), (3.2, 4.8), "and X, y", ORANGE)
    arrow(ax, (6.1, 4.95), (8.1, 4.95), "X_val, y_val,\nor out-of-fold rows", ORANGE)
    arrow(ax, (3.75, 4.3), (3.75, 3.35), "builds", ORANGE, (0.35, -0.1))
    arrow(ax, (7.1, 2.8), (8.5, 4.3), "batches of\nvalidation rows", ORANGE, (-0.75, -0.1))
    arrow(ax, (9.9, 4.3), (9.9, 3.35), "makes", ORANGE, (0.38, -0.1))


def draw_prediction(ax: Axes) -> None:
    """Draw the way of each row: leaves, neighbours, a batch, a distribution."""
    ax.text(0, 3.5, "predict_dist", fontsize=12, color=BLUE)
    frame(ax, 1.0, 0.8, 4.85, 2.55, "source_: a NeighborSource")
    box(ax, 1.2, 1.2, 1.95, 1.6, "leaves", "the model's trees\n→ leaf numbers\nand predictions", BLUE)
    box(ax, 3.7, 1.2, 1.95, 1.6, "neighbors", "LeafIndex → the k\ntraining rows of\nhighest affinity", BLUE)
    box(ax, 6.35, 1.2, 1.5, 1.6, "Batch", "mean, affinities,\nrows, values", BLUE)
    frame(ax, 8.45, 0.8, 2.75, 2.55, "rule_: a Rule")
    steps = "spread\n→ calibration γσ² + δ\n→ family or stack\n→ conformal"
    box(ax, 8.65, 1.0, 2.35, 2.0, "distribution(batch)", steps, BLUE)
    box(ax, 11.8, 1.2, 1.9, 1.6, "Distribution", "interval, quantiles,\ndensity, samples,\nscores", BLUE)
    for start, stop, label in [(0.35, 1.2, "X"), (3.15, 3.7, ""), (5.65, 6.35, ""), (7.85, 8.65, ""), (11.0, 11.8, "")]:
        arrow(ax, (start, 1.8), (stop, 1.8), label, BLUE)
    arrow(ax, (7.1, 1.2), (7.1, 0.45), "", BLUE)
    ax.text(7.1, 0.4, "the neighbours: the evidence", ha="center", va="top", fontsize=9, color=BLUE)
    ax.text(1.0, 0.65, "LocalSource: this machine    CrossFittedSource: clones\n"
            "ShardedIndex: shards on Dask", va="top", fontsize=9, color=GREY)  # fmt: skip


def main() -> None:
    """Draw both ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent / "images" / "architecture.png"
    parser.add_argument("--out", type=Path, default=here, help="the file (docs/images/architecture.png)")
    out = parser.parse_args().out
    figure, ax = plt.subplots(figsize=(12, 5.3), layout="constrained")
    ax.set(xlim=(-0.1, 13.8), ylim=(-0.05, 5.95))
    ax.axis("off")
    draw_fit(ax)
    draw_prediction(ax)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
