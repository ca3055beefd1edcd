"""Draw the picture of how-it-works.md from a real model: ``python docs/draw_how_it_works.py``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor

TREES = (0, 5, 20)
K = 20
INK, BLUE, ORANGE, GREY = "#222222", "#0072b2", "#d55e00", "#9a9a9a"


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of two features, and targets whose noise grows with the first."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    return X, 6 * X[:, 0] + 3 * np.sin(5 * X[:, 1]) + rng.normal(scale=0.2 + 1.3 * X[:, 0])


def draw_plane(ax: Axes, title: str, star: np.ndarray) -> None:
    """Prepare axes of the two features, with the new row."""
    ax.plot(*star, marker="*", markersize=15, color=ORANGE, markeredgecolor="white", zorder=5)
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[], xlabel="feature 1", ylabel="feature 2")
    ax.set_title(title, fontsize=11, loc="left")
    ax.set_aspect("equal")


def draw_leaf(ax: Axes, model: Any, tree: int, X: np.ndarray, star: np.ndarray) -> None:
    """Shade the leaf of the new row in one tree, and mark the training rows in it."""
    side = np.linspace(0, 1, 400)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    leaf, regions, own = (model.apply(rows)[:, tree] for rows in (star[None], grid, X))
    _, region_codes = np.unique(regions, return_inverse=True)
    ax.contour(side, side, region_codes.reshape(400, 400), levels=np.arange(12) + 0.5, colors=GREY, linewidths=0.5)
    inside = (regions == leaf[0]).reshape(400, 400).astype(float)
    ax.contourf(side, side, inside, levels=[0.5, 1.5], colors=[BLUE], alpha=0.18)
    same = own == leaf[0]
    ax.scatter(*X[~same].T, s=5, color=GREY, linewidths=0)
    ax.scatter(*X[same].T, s=12, color=BLUE, linewidths=0)
    draw_plane(ax, f"tree {tree + 1}: {same.sum()} rows share the leaf", star)


def draw_affinity(ax: Axes, X: np.ndarray, affinity: np.ndarray, nearest: np.ndarray, star: np.ndarray) -> None:
    """Colour the training rows by their affinity, and ring the nearest."""
    drawn = ax.scatter(*X.T, c=affinity, s=16, cmap="Blues", vmin=0, linewidths=0.3, edgecolors=GREY)
    ax.scatter(*X[nearest].T, s=48, facecolors="none", edgecolors=ORANGE, linewidths=1.1)
    draw_plane(ax, f"affinity: leaves shared in 60 trees;\nthe {K} nearest rows are ringed", star)
    bar = ax.figure.colorbar(drawn, ax=ax, fraction=0.046, pad=0.03)
    bar.outline.set_visible(False)


def draw_distribution(ax: Axes, distribution: Any, bell: Any, targets: np.ndarray, prediction: float) -> None:
    """Draw the stack, and the normal distribution that is a part of it, over a rug of the neighbours' targets."""
    lower, upper = (float(end) for end in distribution.interval(0.9))
    span = upper - lower
    grid = np.linspace(lower - 0.25 * span, upper + 0.25 * span, 300)
    density = distribution.pdf(grid)
    ax.plot(grid, density, color=INK, linewidth=1.5, label="the stack")
    ax.plot(grid, bell.pdf(grid), color=GREY, linewidth=1, linestyle="--", label="its normal expert alone")
    within = (grid >= lower) & (grid <= upper)
    ax.fill_between(grid[within], density[within], color=ORANGE, alpha=0.2, linewidth=0)
    ax.axvline(prediction, ymax=0.93, color=ORANGE, linewidth=1.5)
    ax.plot(targets, np.full(len(targets), -0.035 * density.max()), "|", color=BLUE, markersize=11, markeredgewidth=1.2)
    at = (prediction, 0.4 * density.max())
    ax.annotate("the model's prediction", at, (6, 0), textcoords="offset points", fontsize=9)
    ax.annotate("90 % interval", ((lower + prediction) / 2, 0.25 * density.max()), ha="center", fontsize=9)
    ax.legend(loc="upper left", fontsize=9, frameon=False)
    ax.set_title("their targets (ticks), and the distribution\nmade from model and neighbours", fontsize=11, loc="left")
    ax.set(yticks=[], xlabel="target", ylim=(-0.09 * density.max(), 1.12 * density.max()))
    ax.spines[["left", "right", "top"]].set_visible(False)


def main() -> None:
    """Fit the model and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent / "images" / "how_it_works.png"
    parser.add_argument("--out", type=Path, default=here, help="the file (docs/images/how_it_works.png)")
    out = parser.parse_args().out
    X, y = data(400, seed=3)
    X_val, y_val = data(400, seed=4)
    model = GradientBoostingRegressor(n_estimators=60, max_depth=3, learning_rate=0.15, random_state=0).fit(X, y)
    u, normal = (IBUGRegressor(model, prefit=True, distribution=name) for name in ("auto", "normal"))
    for each in (u, normal):
        each.fit(X, y, X_val=X_val, y_val=y_val)
    star = np.array([0.62, 0.36])
    affinities, rows = u.kneighbors(star[None], n_neighbors=len(X))
    affinity = np.empty(len(X), int)
    affinity[rows[0]] = affinities[0]
    nearest = rows[0, :K]

    figure = plt.figure(figsize=(10, 7.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1, 1.12])
    above.suptitle(
        "1  In each tree the new row (★) shares a leaf with some training rows", fontsize=12, x=0.01, ha="left"
    )
    below.suptitle(
        "2  Rows that share the most leaves are its neighbours; what they say is its uncertainty",
        fontsize=12,
        x=0.01,
        ha="left",
    )
    for ax, tree in zip(above.subplots(1, 3), TREES, strict=True):
        draw_leaf(ax, model, tree, X, star)
    left, right = below.subplots(1, 2, width_ratios=[1, 1.3])
    draw_affinity(left, X, affinity, nearest, star)
    stack, bell = (each.predict_dist(star[None])[0] for each in (u, normal))
    draw_distribution(right, stack, bell, y[nearest], float(model.predict(star[None])[0]))
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
