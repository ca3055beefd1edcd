"""``--groups`` of evaluate and report, and numbers in one form."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import ibug
from ibug.cli._explain import _value
from ibug.metrics import evaluate

pytestmark = pytest.mark.once


@pytest.fixture
def expected(files):
    u = ibug.load(files["model.ibug"])
    known = sorted(set(pd.read_parquet(files["train.parquet"])["hour"]))
    frame = pd.read_parquet(files["test.parquet"])
    X = frame[files.features].assign(hour=pd.Categorical(frame["hour"], categories=known))
    return lambda groups: evaluate(u, X, frame["target"], groups=groups).groups


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_scores_by_a_feature_and_by_a_column_that_is_none(files, expected, kind):
    frame = pd.read_parquet(files["test.parquet"]).assign(region=lambda rows: np.where(rows.index % 3, "north", "süd"))
    path = files[f"with_region.{kind}"]
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    for column in ("hour", "region"):
        found = files.json("evaluate", files["model.ibug"], path, "--groups", column)["groups"]
        wanted = expected(frame[column])
        assert found["group"] == wanted["group"].tolist()
        assert found["rows"] == wanted["rows"].tolist()
        np.testing.assert_allclose(found["coverage_90"], wanted["coverage_90"])
        np.testing.assert_allclose(found["width_90"], wanted["width_90"])
    text = files.run("evaluate", files["model.ibug"], path, "--groups", "region").stdout
    assert re.search(r"region +rows +90 % inside +by chance +mean width", text)
    assert "süd" in text
    assert "interval" in text


def test_a_column_of_numbers_is_divided_into_ranges(files):
    found = files.json("evaluate", files["model.ibug"], files["test.csv"], "--groups", "target", "--levels", "0.8")
    assert len(found["groups"]["group"]) == 5
    assert found["groups"]["group"][0].startswith("below ")
    text = files.run("evaluate", files["model.ibug"], files["test.csv"], "--groups", "target", "--levels", "0.8").stdout
    assert "80 % inside" in text
    assert "groups" not in files.json("evaluate", files["model.ibug"], files["test.csv"])


def test_a_column_that_is_not_there(files):
    result = files.run("evaluate", files["model.ibug"], files["test.csv"], "--groups", "hours", ok=False)
    assert result.exit_code == 1
    assert "'hours'" in result.stderr


def test_the_report_has_a_table_of_groups(files):
    pytest.importorskip("plotly")
    command = ("report", files["model.ibug"], files["test.csv"], "--groups", "hour", "--width-seconds", "0")
    files.run(*command, "-o", files["report.html"])
    page = (files.folder / "report.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["groups"]["by"] == "hour"
    assert sum(int(line["rows"]) for line in data["groups"]["lines"]) == len(pd.read_parquet(files["test.parquet"]))


def test_explain_has_one_form_of_numbers(files):
    train, test = (pd.read_csv(files[f"{name}.csv"]) for name in ("train", "test"))
    for name, frame in (("train", train), ("test", test)):
        frame.assign(target=100_000 + 351.5 * frame["target"]).to_csv(files[f"large_{name}.csv"], index=False)
    files.run(
        "fit", files["large_train.csv"], "-t", "target", "--id", "order", "-b", "lightgbm", "--trees", 5, "-o",
        files["large.ibug"],
    )  # fmt: skip
    text = files.run("explain", files["large.ibug"], files["large_test.csv"], "--row", 3).stdout
    assert re.search(r"Their targets go from \d{3},\d{3} to \d{3},\d{3}, mean \d{3},\d{3}", text)
    assert "e+0" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2020, "2020"), (1_160_000, "1160000"), (1_160_000.0, "1160000"), (1_234_567.8, "1234568"), (0.25, "0.25"),
        (3.0, "3"), (1 / 3, "0.333333"), (1.5e-7, "1.5e-07"), (2e20, "2e+20"), (True, "true"), (None, "missing"),
        (float("inf"), "inf"), ("a", "a"),
    ],
)  # fmt: skip
def test_features_are_shown_as_they_are(value, text):
    assert _value(value) == text
