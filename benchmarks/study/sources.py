"""Getting the datasets from their public sources: UCI and OpenML by their own clients, or a raw file that a user has.

Columns are dropped, and taken as categories, as the paper's published code does it. What is fetched is checked against
the registry before it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.study.datasets import DATASETS, DatasetError, check

Frame = Any
Shape = Callable[[Frame], Frame]

_UCI = {
    "bike": 275,
    "communities": 183,
    "concrete": 165,
    "energy": 242,
    "facebook": 363,
    "msd": 203,
    "naval": 316,
    "news": 332,
    "power": 294,
    "protein": 265,
    "superconductor": 464,
    "wave": 494,
    "wine": 186,
    "yacht": 243,
}
_OPENML = {"ames": 41211, "kin8nm": 189}
_TABLES = {
    "obesity": "https://data.cdc.gov/api/views/hn4x-zwk7/rows.csv?accessType=DOWNLOAD",
    "star": "https://vincentarelbundock.github.io/Rdatasets/csv/AER/STAR.csv",
}
_BY_HAND = {
    "life": "Life Expectancy Data.csv, from Kaggle (kumarajarshi/life-expectancy-who), which asks for an account",
    "meps": "meps_21_reg.csv, made from AHRQ's files by the scripts of the project yromano/cqr (get_meps_data)",
}
# Where UCI has no table of the dataset for its client, the file of its archive that holds it.
_ARCHIVES = {
    "facebook": "Training/Features_Variant_1.csv, without a header",
    "wave": "the four files of WECs_DataSet, one below the other, without a header",
}


def fetch(name: str, folder: Path | None, raw: Path | None = None) -> str:
    """Get a dataset, check it and write its file; return what was done.

    Parameters
    ----------
    name
        The dataset.
    folder
        Where the file is written to.
    raw
        The source's own table as CSV, in place of a download.
    """
    dataset = DATASETS[name]
    if name == "synthetic":
        return "synthetic is generated: there is nothing to get."
    if folder is None:
        raise DatasetError("Where to? Name the data folder by --data or IBUG_DATA.")
    path = folder / f"{name}.parquet"
    if path.exists():
        return f"{path} is there already."
    frame = SHAPES[name](_read_raw(name, raw) if raw is not None else _download(name))
    check(dataset, frame)
    folder.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    frame.to_parquet(draft, index=False)
    draft.replace(path)
    return f"{path}: {len(frame)} rows, {frame.shape[1] - 1} features"


def _read_raw(name: str, raw: Path) -> Frame:
    import pandas as pd

    return pd.read_csv(raw, header=None if name in ("facebook", "wave") else "infer")


def _download(name: str) -> Frame:
    by_hand = _BY_HAND.get(name)
    if by_hand is not None:
        raise DatasetError(
            f"{DATASETS[name].title} has no public client. Get {by_hand}, and then: "
            f"python -m benchmarks fetch --datasets {name} --raw file.csv"
        )
    try:
        if name in _UCI:
            return _from_uci(_UCI[name])
        return _from_openml(_OPENML[name]) if name in _OPENML else _from_table(name)
    except Exception as error:  # clients raise whatever their network library does
        file = f" ({_ARCHIVES[name]})" if name in _ARCHIVES else ""
        raise DatasetError(
            f"{DATASETS[name].title} could not be got from {DATASETS[name].source}: {error}. Without a network, or if "
            f"the source has no table for its client: get its file as CSV{file}, and then: "
            f"python -m benchmarks fetch --datasets {name} --raw file.csv"
        ) from error


def _from_uci(number: int) -> Frame:
    from ucimlrepo import fetch_ucirepo

    return fetch_ucirepo(id=number).data.original


def _from_openml(number: int) -> Frame:
    import openml

    return openml.datasets.get_dataset(number).get_data(dataset_format="dataframe")[0]


def _from_table(name: str) -> Frame:
    import pandas as pd
    from sklearn.datasets import fetch_california_housing

    if name == "california":
        return fetch_california_housing(as_frame=True).frame
    return pd.read_csv(_TABLES[name])


def _plain(target: str, *, drop: tuple[str, ...] = (), texts: tuple[str, ...] = ()) -> Shape:
    """Return what makes the target the last column, leaves columns out, and makes texts of some."""

    def shape(frame: Frame) -> Frame:
        frame = frame.rename(columns=lambda column: str(column).strip())
        frame = frame.drop(columns=[column for column in drop if column in frame])
        for column in texts:
            values = frame[column].astype(object)
            frame[column] = values.map(str).where(values.notna(), None)
        if target not in frame:
            raise DatasetError(f"There is no column {target!r}; the source has {list(frame.columns)}.")
        y = frame.pop(target).astype(np.float64)
        return frame.assign(target=y).dropna(subset=["target"]).reset_index(drop=True)

    return shape


def _numbered(columns: list[str], shape: Shape) -> Shape:
    """Return the same for a file without a header."""

    def named(frame: Frame) -> Frame:
        if frame.shape[1] != len(columns):
            raise DatasetError(f"{frame.shape[1]} columns in place of {len(columns)}.")
        return shape(frame.set_axis(columns, axis=1))

    return named


def _categories(shape: Shape) -> Shape:
    """Return the same for a frame of which some columns are categories: these become texts."""

    def with_texts(frame: Frame) -> Frame:
        import pandas as pd

        texts = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
        return shape(frame.astype(dict.fromkeys(texts, object)))

    return with_texts


def _communities(frame: Frame) -> Frame:
    """Give the one missing OtherPerCap the mean; leave out columns with missing values."""
    frame = frame.drop(columns=["state", "communityname", "fold"]).astype(object)
    frame = frame.mask(frame == "?", np.nan)
    other = frame["OtherPerCap"].astype(np.float64)
    frame["OtherPerCap"] = other.fillna(other.mean())
    return _plain("ViolentCrimesPerPop")(frame.dropna(axis=1).astype(np.float64))


def _superconductor(frame: Frame) -> Frame:
    """Keep the 82nd feature of the paper, for comparison: it is the target itself."""
    return _plain("target")(frame.assign(target=frame["critical_temp"]))


def _obesity(frame: Frame) -> Frame:
    """Keep the years of the paper's copy and the columns that its code keeps."""
    frame = frame.rename(columns=str.strip)
    kept = ["YearStart", "YearEnd", "LocationAbbr", "Class", "Question", "Sample_Size", "Total", "Age(years)"]
    kept += ["Education", "Gender", "Income", "Race/Ethnicity", "Data_Value"]
    return _categories(_plain("Data_Value"))(frame.loc[frame["YearStart"] <= 2016, kept])


def _star(frame: Frame) -> Frame:
    """Add up the scores; leave out rows with missing values; code what has two values as 0 and 1."""
    import pandas as pd

    scores = [f"{subject}{grade}" for subject in ("read", "math") for grade in "k123"]
    frame = frame.dropna().reset_index(drop=True)
    frame = frame.assign(target=frame[scores].sum(axis=1).astype(np.float64))
    frame = frame.drop(columns=[*scores, *(column for column in ("rownames", "Unnamed: 0") if column in frame)])
    codes = {"female": 0, "male": 1, "free": 0, "non-free": 1, "cauc": 0, "afam": 1}
    for column in ("gender", *(f"lunch{g}" for g in "k123"), *(f"tethnicity{g}" for g in "k12")):
        frame[column] = frame[column].map(codes).astype(np.float64)
    if not pd.api.types.is_numeric_dtype(frame["birth"]):  # "1979 Q3"
        parts = frame["birth"].str.split(" Q", expand=True).astype(np.float64)
        frame["birth"] = parts[0] + (parts[1] - 1) / 4
    return _categories(_plain("target"))(frame)


_DAYS = [f"{kind}_{day}" for kind in ("post", "base") for day in range(7)]
_FACEBOOK = [
    *("likes", "page_check", "page_talk", "page_cat"),
    *(f"X{i}" for i in range(5, 30)),
    *(f"CC{i}" for i in range(1, 6)),
    *("base_time", "post_len", "share_count", "promo_status", "h_local"),
    *_DAYS,
    "comments",
]
_WAVE = [*(f"{kind}{i}" for kind in "XYP" for i in range(1, 17)), "total_power"]

SHAPES: dict[str, Shape] = {
    "ames": _categories(_plain("Sale_Price")),
    "bike": _plain("cnt", drop=("instant", "dteday"), texts=("hr",)),
    "california": _plain("MedHouseVal"),
    "communities": _communities,
    "concrete": _plain("Concrete compressive strength"),
    "energy": _plain("Y1", drop=("Y2",), texts=("X6", "X8")),
    "facebook": _numbered(_FACEBOOK, _plain("comments", texts=("page_cat",))),
    "kin8nm": _plain("y"),
    "life": _categories(_plain("Life expectancy")),
    "meps": _plain("UTILIZATION_reg", drop=("Unnamed: 0",)),
    "msd": _plain("year"),
    "naval": _plain("gt_t_decay"),
    "news": _plain("shares", drop=("url", "timedelta")),
    "obesity": _obesity,
    "power": _plain("PE"),
    "protein": _plain("RMSD"),
    "star": _star,
    "superconductor": _superconductor,
    "wave": _numbered(_WAVE, _plain("total_power")),
    "wine": _plain("quality", drop=("color",)),
    "yacht": _plain("resistance"),
}
