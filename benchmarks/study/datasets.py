"""The paper's 22 datasets (section B.1): what each must look like, and where its file is looked up.

A file is ``<name>.parquet``: typed columns, texts for categories, the target last under the name ``target``. Files are
in the folder that ``--data`` or ``IBUG_DATA`` names; none is part of the project. ``python -m benchmarks fetch`` gets
them from their public sources (sources.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAMPLE_SEED = 1
_TOLERANCE = 1e-3  # of the target's mean and standard deviation, relative to the latter: sources round differently


class DatasetError(RuntimeError):
    """A dataset is not at hand, or is not what it should be."""


@dataclass(frozen=True)
class Dataset:
    """A dataset of the registry.

    Attributes
    ----------
    name, title
        As files and as tables call it.
    source, target
        Where it comes from, and what is predicted.
    rows, numeric, categorical
        What the file must have: the release that is known here.
    encoded
        The number of columns after one-hot encoding, fitted on all rows.
    paper_rows, paper_columns
        What the paper says (its Table 5), after encoding.
    mean, deviation
        Of the target; None where no copy of the data has been seen, so that they cannot be checked.
    """

    name: str
    title: str
    source: str
    target: str
    rows: int
    numeric: int | None
    categorical: int | None
    encoded: int | None
    paper_rows: int
    paper_columns: int
    mean: float | None = None
    deviation: float | None = None


# fmt: off
_ALL = (
    Dataset(
        "ames", "Ames", "OpenML 41211", "sale price, USD",
        2930, 33, 47, 359, 2930, 358, 180796.0600682594, 79873.05865192253,
    ),
    Dataset(
        "bike", "Bike", "UCI 275", "bikes rented in the hour",
        17379, 13, 1, 37, 17379, 37, 189.46308763450142, 181.38238043116908,
    ),
    Dataset(
        "california", "California", "StatLib, by scikit-learn", "median house value, 100,000 USD",
        20640, 8, 0, 8, 20640, 100, 2.068558169089147, 1.1539282040412253,
    ),
    Dataset(
        "communities", "Communities", "UCI 183", "violent crimes per population, normalised",
        1994, 100, 0, 100, 1994, 100, 0.2379789368104313, 0.23292647291156512,
    ),
    Dataset(
        "concrete", "Concrete", "UCI 165", "compressive strength, MPa",
        1030, 8, 0, 8, 1030, 8, 35.8178358261136, 16.697567652576247,
    ),
    Dataset(
        "energy", "Energy", "UCI 242", "heating load",
        768, 6, 2, 16, 768, 16, 22.3071953125, 10.08363268719098,
    ),
    Dataset(
        "facebook", "Facebook", "UCI 363", "comments",
        40949, 52, 1, 133, 40949, 133, 7.322889447849764, 35.49411638048905,
    ),
    Dataset(
        "kin8nm", "Kin8nm", "OpenML 189", "distance of the robot arm's end",
        8192, 8, 0, 8, 8192, 8, 0.714283492357422, 0.2635907059246763,
    ),
    Dataset(
        "life", "Life", "WHO, by Kaggle", "life expectancy, years",
        2928, 19, 2, 204, 2928, 204, 69.22493169398908, 9.522241005447514,
    ),
    Dataset(
        "meps", "MEPS", "AHRQ, panel 21", "utilisation",
        15670, None, None, 140, 15656, 139, 8.014805360561583, 27.075472484970366,
    ),
    Dataset(
        "msd", "MSD", "UCI 203", "year of release",
        515345, 90, 0, 90, 515345, 90,
    ),
    Dataset(
        "naval", "Naval", "UCI 316", "decay of the gas turbine",
        11934, 17, 0, 17, 11934, 17, 0.9875, 0.0075,
    ),
    Dataset(
        "news", "News", "UCI 332", "shares of the article",
        39133, 58, 0, 58, 39644, 58, 3401.5841872588353, 11685.699327655804,
    ),
    Dataset(
        "obesity", "Obesity", "CDC hn4x-zwk7", "share of adults, %",
        40352, 3, 9, 95, 48346, 100, 30.99127676447264, 10.14886608380472,
    ),
    Dataset(
        "power", "Power", "UCI 294", "electrical output, MW",
        9568, 4, 0, 4, 9568, 4, 454.36500940635455, 17.0661030975792,
    ),
    Dataset(
        "protein", "Protein", "UCI 265", "size of the residue, RMSD",
        45730, 9, 0, 9, 45730, 9, 7.748528427727969, 6.118244779017878,
    ),
    Dataset(
        "star", "STAR", "R package AER", "sum of reading and maths scores",
        2161, 21, 18, 96, 2161, 95, 4483.115224433132, 261.6585924887451,
    ),
    Dataset(
        "superconductor", "Superconductor", "UCI 464", "critical temperature, K; it is among the paper's features",
        21263, 82, 0, 82, 21263, 82, 34.42121913535249, 34.25355694704622,
    ),
    Dataset(
        "synthetic", "Synthetic", "generated (Friedman 1)", "Friedman's function with noise",
        10000, 100, 0, 100, 10000, 100,
    ),
    Dataset(
        "wave", "Wave", "UCI 494", "power of the wave energy converters, W",
        287999, 48, 0, 48, 287999, 48,
    ),
    Dataset(
        "wine", "Wine", "UCI 186", "quality, 3 to 9",
        6497, 11, 0, 11, 6497, 11, 5.818377712790519, 0.8731880644450568,
    ),
    Dataset(
        "yacht", "Yacht", "UCI 243", "residuary resistance",
        308, 6, 0, 6, 308, 6, 10.495357142857143, 15.135858907655322,
    ),
)
# fmt: on
DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}


def at_hand(folder: Path | None) -> list[str]:
    """Return the names of the datasets whose file is there, and of the one that is generated."""
    return [name for name in DATASETS if name == "synthetic" or (folder and (folder / f"{name}.parquet").exists())]


def load(name: str, folder: Path | None, max_rows: int | None = None) -> tuple[Any, Floats]:
    """Return a frame of features and the targets, checked; a random sample if there are more than `max_rows` rows."""
    X, y = _synthetic() if name == "synthetic" else _read(name, folder)
    if max_rows is not None and len(y) > max_rows:
        rows = np.sort(np.random.default_rng(SAMPLE_SEED).choice(len(y), max_rows, replace=False))
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    return X, y


def _read(name: str, folder: Path | None) -> tuple[Any, Floats]:
    import pandas as pd

    if name not in DATASETS:
        raise DatasetError(f"There is no dataset {name!r}. The registry has: {', '.join(DATASETS)}.")
    dataset = DATASETS[name]
    path = (folder or Path("the data folder")) / f"{name}.parquet"
    if folder is None or not path.exists():
        raise DatasetError(
            f"{dataset.title} is not at hand: put {name}.parquet ({dataset.source}; target: {dataset.target}) into "
            f"{folder or 'a folder and name it by --data or IBUG_DATA'}, or get it with "
            f"`python -m benchmarks fetch --datasets {name}` where there is a network."
        )
    frame = pd.read_parquet(path)
    check(dataset, frame)
    return frame.drop(columns="target"), frame["target"].to_numpy(np.float64)


def _synthetic() -> tuple[Any, Floats]:
    import pandas as pd
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(n_samples=10000, n_features=100, noise=10, random_state=1)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]), y


def check(dataset: Dataset, frame: Any) -> None:
    """Raise DatasetError unless rows, columns and target are those that the registry expects."""
    import pandas as pd

    problems = []
    if "target" not in frame or frame.columns[-1] != "target":
        raise DatasetError(f"{dataset.name}: the last column must be named 'target'; got {list(frame.columns)[-3:]}.")
    features = frame.drop(columns="target")
    numeric = sum(pd.api.types.is_numeric_dtype(features[column]) for column in features)
    found = {"rows": len(frame), "numeric": numeric, "categorical": features.shape[1] - numeric}
    known = len(frame) == dataset.rows
    for what, count in found.items():
        expected = getattr(dataset, what)
        if what == "rows" and count == dataset.paper_rows:  # the paper's release, where the one known here is another
            continue
        if expected is not None and count != expected:
            problems.append(f"{count} {what if what == 'rows' else what + ' columns'} in place of {expected}")
    y = frame["target"].to_numpy(np.float64)
    if not np.all(np.isfinite(y)):
        problems.append("targets that are missing or infinite")
    elif known and dataset.mean is not None and dataset.deviation is not None:
        for what, value, expected in (("mean", y.mean(), dataset.mean), ("deviation", y.std(), dataset.deviation)):
            if abs(value - expected) > _TOLERANCE * dataset.deviation:
                problems.append(f"a target with {what} {value:g} in place of {expected:g}")
    if problems:
        raise DatasetError(
            f"{dataset.name} ({dataset.source}) is another release than the one known here: it has "
            f"{'; '.join(problems)}. Results would not be comparable."
        )
