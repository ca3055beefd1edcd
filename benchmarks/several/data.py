"""Tables with several targets: real ones from a folder, and made ones whose dependence is known.

Nothing here needs ibug: Treeffuser's environment reads the same rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common.data import Floats, load

REAL = ("energy", "births", "households", "naval")
#: Made tables, and whether their targets depend on each other given the features.
MADE = {"correlated": True, "turning": True, "branches": True, "ring": True, "independent": False}
MADE_ROWS = 3000
#: The second target of naval, which the file has among the features.
_SECOND_OF_NAVAL = "gt_compressor_decay_state"


def names(folder: Path | None) -> list[str]:
    """Return the names of the tables at hand; without a folder the made ones."""
    return [*(() if folder is None else REAL), *MADE]


def load_several(name: str, folder: Path | None, max_rows: int | None) -> tuple[Any, Floats]:
    """Return a frame of features, texts as categories, and the targets, (n, d)."""
    if name in MADE:
        return made(name, MADE_ROWS if max_rows is None else min(MADE_ROWS, max_rows))
    if folder is None:
        raise SystemExit(f"{name} is not at hand: set IBUG_DATA to the folder that has it.")
    if name == "naval":
        X, y = load(name, folder, max_rows)
        return X.drop(columns=_SECOND_OF_NAVAL), np.column_stack([y, X[_SECOND_OF_NAVAL].to_numpy(np.float64)])
    frame = pd.read_parquet(folder / "several" / f"{name}.parquet")
    if max_rows is not None and len(frame) > max_rows:
        frame = frame.sample(max_rows, random_state=0)
    frame = frame.reset_index(drop=True)
    targets = [column for column in frame if column.startswith("target_")]
    X = frame.drop(columns=targets)
    texts = [column for column in X if not pd.api.types.is_numeric_dtype(X[column])]
    return X.astype(dict.fromkeys(texts, "category")), frame[targets].to_numpy(np.float64)


def made(name: str, n: int) -> tuple[Any, Floats]:
    """Return a made table: features are uniform, and how targets depend on each other is written here."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-2, 2, size=(n, 5))
    center = np.column_stack([np.sin(2 * x[:, 0]) + x[:, 1], x[:, 1] * x[:, 2]])
    z = rng.normal(size=(n, 2))
    if name in ("correlated", "turning"):  # by 0.8; from −0.9 to 0.9 along a feature that both targets depend on
        rho = np.full(n, 0.8) if name == "correlated" else 0.45 * x[:, 1]
        y = center + 0.6 * np.column_stack([z[:, 0], rho * z[:, 0] + np.sqrt(1 - rho**2) * z[:, 1]])
    elif name == "branches":  # both up or both down, which no feature tells
        side = rng.choice([-1.0, 1.0], size=(n, 1))
        y = center + side * (1 + 0.5 * np.abs(x[:, 3:4])) + 0.3 * z
    elif name == "ring":  # uncorrelated, and far from independent
        angle = rng.uniform(0, 2 * np.pi, size=n)
        y = center + (1.2 + 0.1 * z[:, :1]) * np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        y = center + (0.3 + 0.3 * np.abs(x[:, 3:4])) * z
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(5)]), y
