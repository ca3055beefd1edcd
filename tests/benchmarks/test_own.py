"""The default on somebody's own Parquet files: it reads what people have, and can be stopped and taken up."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("lightgbm")

import pandas as pd

from benchmarks.own.files import examine
from benchmarks.study.cli import main
from benchmarks.study.datasets import DatasetError

pytestmark = pytest.mark.newest


def table(n=300, seed=0):
    """A table as people have it: dates, texts, flags, gaps; the last column is the target, under a name of its own."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(size=n)
    price = 10 * size + rng.normal(size=n) * (0.2 + size)
    price[:4] = np.nan
    return pd.DataFrame(
        {
            "size": np.where(rng.uniform(size=n) < 0.1, np.nan, size),
            "day": pd.date_range("2026-01-01", periods=n),
            "town": pd.Series(rng.choice(["York", "Bath", None], n)),
            "new": rng.uniform(size=n) < 0.5,
            "price": price,
        }
    )


@pytest.fixture
def folder(tmp_path):
    table().to_parquet(tmp_path / "houses.parquet")
    table(250, seed=1).assign(house=[f"id{i}" for i in range(250)])[["house", "size", "price"]].to_parquet(
        tmp_path / "ids.parquet"
    )
    return tmp_path


def options(folder, *more):
    few = ["--folds", "2", "--max-trees", "20", "--only-ibug", "--base", "lightgbm"]
    return ["compare", "--data", str(folder), "--results", str(folder / "own.jsonl"), *few, *more]


def test_it_measures_stops_and_resumes(folder, capsys):
    assert main(options(folder)) == 0
    printed = capsys.readouterr()
    assert "houses: 296 rows, 4 features, the target is 'price'" in printed.err
    assert "4 rows have no target" in printed.err
    assert "house: more than half of the texts differ" in printed.err
    assert "[compare] 4/4" in printed.err
    assert "default against normal: lower on" in printed.out
    rows = [json.loads(line) for line in (folder / "own.jsonl").read_text().splitlines()]
    assert {(row["dataset"], row["fold"], row["method"]) for row in rows} == {
        (name, fold, method)
        for name in ("houses", "ids")
        for fold in (0, 1)
        for method in ("default", "normal", "paper")
    }
    mean = np.mean([row["crps"] for row in rows if row["dataset"] == "ids" and row["method"] == "default"])
    line = next(line for line in printed.out.splitlines() if line.startswith("ids"))
    assert line.split()[1] == f"{mean:.4g}"

    kept = (folder / "own.jsonl").read_text()
    (folder / "own.jsonl").write_text("".join(kept.splitlines(keepends=True)[:-3]) + '{"data')  # as if it were stopped
    assert main(options(folder)) == 0
    again = capsys.readouterr()
    assert "3 of 4 tasks are done already" in again.err
    assert again.out == printed.out

    table(220, seed=5).to_parquet(folder / "houses.parquet")  # another file of the same name
    assert main(options(folder)) == 0
    assert "2 of 4 tasks are done already" in capsys.readouterr().err


def test_files_that_cannot_be_measured(folder, tmp_path):
    bad = {
        "texts": table().assign(last="a"),
        "few": table(100),
        "constant": table().assign(price=1.0),
        "infinite": table().assign(price=np.inf),
        "single": table()[["price"]],
    }
    for name, frame in bad.items():
        frame.to_parquet(folder / f"{name}.parquet")
    (folder / "broken.parquet").write_bytes(b"nonsense")
    tables, problems = examine(folder)
    assert [one.name for one in tables] == ["houses", "ids"]
    said = "\n".join(problems)
    for part in (
        "is not numeric",
        "200 at least",
        "1 everywhere",
        "infinite",
        "it has 1 column",
        "broken.parquet is left",
    ):
        assert part in said


def test_wrong_usage(tmp_path, capsys):
    with pytest.raises(DatasetError, match="is no folder"):
        examine(tmp_path / "nowhere")
    assert main(["compare", "--data", str(tmp_path)]) == 1
    assert "has no Parquet file" in capsys.readouterr().err
    assert main(options(tmp_path, "--folds", "1")) == 1
    table(100).to_parquet(tmp_path / "few.parquet")
    assert main(options(tmp_path)) == 1
    assert "can be measured" in capsys.readouterr().err
