"""Make the images of plotting.md, each by the code above it in the page.

Run ``python docs/make_images.py``. With the environment variable IBUG_DATA, the folder of a ``california.parquet``
whose last column is the target, the images show California housing; without it scikit-learn's diabetes data. The model
is LightGBM's where that is installed, else scikit-learn's.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

HERE = Path(__file__).parent

# A code block, and the image that follows it, if there is one.
_BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n!\[[^\]]*\]\(images/(\w+\.png)\))?", re.DOTALL)


def load() -> tuple[Any, np.ndarray, str]:
    """Return the rows, their targets, and the targets' unit."""
    folder = os.environ.get("IBUG_DATA")
    if not folder:
        X, y = load_diabetes(return_X_y=True, as_frame=True)
        return X, y.to_numpy(), "progression score"
    import pandas as pd

    table = pd.read_parquet(Path(folder) / "california.parquet").astype(np.float64)
    return table.iloc[:, :-1], table.iloc[:, -1].to_numpy(), "100,000 USD"


def train(X: Any, y: np.ndarray) -> Any:
    """Return a trained model of moderate size."""
    options = {"learning_rate": 0.05, "random_state": 0}
    try:
        from lightgbm import LGBMRegressor
    except ImportError:
        return HistGradientBoostingRegressor(max_iter=500, max_leaf_nodes=15, **options).fit(X, y)
    return LGBMRegressor(n_estimators=500, num_leaves=15, verbose=-1, **options).fit(X, y)


def names() -> dict[str, Any]:
    """Return what the code of the page takes as given."""
    X, y, unit = load()
    X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.2, random_state=1)
    X_train, X_val, y_train, y_val = train_test_split(X_rest, y_rest, test_size=0.2, random_state=1)
    return {
        "X_train": X_train,
        "y_train": y_train,
        "X_val": X_val,
        "y_val": y_val,
        "X_test": X_test,
        "y_test": y_test,
        "unit": unit,
        "model": train(X_train, y_train),
    }


def main() -> None:
    """Run the page's code from top to bottom and keep each figure under the name that the page gives it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "images", help="folder of the images (docs/images)")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    given = names()
    for code, image in _BLOCK.findall((HERE / "plotting.md").read_text(encoding="utf-8")):
        exec(code, given)
        if image:
            plt.gcf().savefig(out / image, dpi=min(120.0, 1000.0 / plt.gcf().get_figwidth()))
            plt.close("all")
            print(out / image)


if __name__ == "__main__":
    main()
