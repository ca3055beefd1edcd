"""``ibug recalibrate`` and ``ibug monitor``: newer rows in a file."""

import numpy as np
import pandas as pd
import pytest

import ibug
from ibug.persistence import inspect

pytestmark = pytest.mark.once


@pytest.fixture
def newer(files):
    """Rows whose targets are twice as far from each other as those of the training file."""
    frame = pd.read_parquet(files["valid.parquet"])
    frame["target"] = 2.0 * frame["target"]
    frame.to_csv(files["newer.csv"], index=False)
    return frame


def test_recalibrated_like_in_python(files, newer):
    known = sorted(set(pd.read_parquet(files["train.parquet"])["hour"]))
    X = newer[files.features].assign(hour=pd.Categorical(newer["hour"], categories=known))
    expected = ibug.load(files["model.ibug"]).recalibrate(X, newer["target"].to_numpy(float))
    result = files.json("recalibrate", files["model.ibug"], files["newer.csv"], "-o", files["other.ibug"])
    u = ibug.load(files["other.ibug"])
    np.testing.assert_array_equal(u.predict_quantiles(X), expected.predict_quantiles(X))
    assert u.get_params()["n_jobs"] == ibug.load(files["model.ibug"]).get_params()["n_jobs"]
    assert result["rows"] == len(newer)
    assert result["after"]["crps"] < result["before"]["crps"]
    assert inspect(files["other.ibug"])["metadata"] == inspect(files["model.ibug"])["metadata"]
    assert (
        "90 %" in files.run("recalibrate", files["model.ibug"], files["newer.csv"], "-o", files["a.ibug"], "-v").stderr
    )


def test_weights(files, newer):
    newer.assign(share=0.0).assign(share=np.arange(len(newer)) % 2).to_csv(files["weighted.csv"], index=False)
    newer[1::2].to_csv(files["some.csv"], index=False)
    for name, options in (("a", ["weighted.csv", "--weight", "share"]), ("b", ["some.csv"])):
        files.run("recalibrate", files["model.ibug"], files[options[0]], *options[1:], "-o", files[f"{name}.ibug"])
    a, b = (ibug.load(files[f"{name}.ibug"]) for name in "ab")
    np.testing.assert_array_equal(a.stack_["weight"], b.stack_["weight"])


def test_the_model_file_itself_is_replaced_all_or_nothing(files, newer):
    files.run("recalibrate", files["model.ibug"], files["newer.csv"], "-o", files["own.ibug"])
    before = (files.folder / "own.ibug").read_bytes()
    newer.assign(target=np.nan).to_csv(files["bad.csv"], index=False)
    failed = files.run("recalibrate", files["own.ibug"], files["bad.csv"], "-o", files["own.ibug"], ok=False)
    assert failed.exit_code == 1
    assert (files.folder / "own.ibug").read_bytes() == before
    pd.read_parquet(files["valid.parquet"]).to_csv(files["back.csv"], index=False)
    files.run("recalibrate", files["own.ibug"], files["back.csv"], "-o", files["own.ibug"])
    assert (files.folder / "own.ibug").read_bytes() != before
    files.run("predict", files["own.ibug"], files["test.csv"], "-o", files["out.csv"])


def test_wrong_usage(files, newer):
    stream = files.run("recalibrate", files["model.ibug"], files["newer.csv"], "-o", "-", ok=False)
    assert stream.exit_code == 2
    same = files.run("recalibrate", files["model.ibug"], files["newer.csv"], "-o", files["newer.csv"], ok=False)
    assert same.exit_code == 1
    assert "choose another name" in same.stderr


def test_monitored_like_in_python(files, newer):
    calm = files.json("monitor", files["model.ibug"], files["test.csv"], "--alpha", "1e-9")
    frame = pd.read_parquet(files["test.parquet"])
    known = sorted(set(pd.read_parquet(files["train.parquet"])["hour"]))
    X = frame[files.features].assign(hour=pd.Categorical(frame["hour"], categories=known))
    expected = ibug.load(files["model.ibug"]).monitor(X, frame["target"].to_numpy(float))
    assert not calm["drifted"]
    assert calm["rows"] == len(frame)
    assert calm["p_value"] == pytest.approx(expected.p_value)
    assert set(calm["tests"]) == {"prediction", "pit", "coverage"}
    drifted = files.run("monitor", files["model.ibug"], files["newer.csv"], ok=False)
    assert drifted.exit_code == 4
    assert "Data drift" in drifted.stdout


def test_monitored_without_observed_values(files):
    pd.read_parquet(files["test.parquet"]).drop(columns="target").to_csv(files["blind.csv"], index=False)
    result = files.json("monitor", files["model.ibug"], files["blind.csv"], "--alpha", "1e-9")
    assert set(result["tests"]) == {"prediction"}
    absent = files.run("monitor", files["model.ibug"], files["blind.csv"], "--target", "price", ok=False)
    assert absent.exit_code == 1
    assert "price" in absent.stderr


def test_a_log_of_every_night(files, newer):
    frame = pd.read_parquet(files["test.parquet"])
    log, nights = files["drift.json"], []
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 2)):
        frame.iloc[part].to_csv(files[f"night{number}.csv"], index=False)
        nights.append(files.json("monitor", files["model.ibug"], files[f"night{number}.csv"], "--log", log))
    assert [night["nights"] for night in nights] == [1, 2]
    assert ["no validation rows" in " ".join(night["notes"]) for night in nights] == [True, False]  # trained here
    assert nights[-1]["tests"]["pit"]["rows"] == len(frame)
    assert not nights[-1]["drifted"]
    u = ibug.load(files["model.ibug"])
    known = sorted(set(pd.read_parquet(files["train.parquet"])["hour"]))
    X = frame[files.features].assign(hour=pd.Categorical(frame["hour"], categories=known))
    expected = ibug.online.DriftMonitor(u)
    for part in np.array_split(np.arange(len(frame)), 2):
        expected.observe(X.iloc[part], frame["target"].to_numpy(float)[part])
    assert {name: test["p_value"] for name, test in nights[-1]["tests"].items()} == pytest.approx(expected.p_values)
    assert "call 3 with this log" in files.run("monitor", files["model.ibug"], files["test.csv"], "--log", log).stdout
    newer.assign(target=newer["target"] * 10).to_csv(files["far.csv"], index=False)
    for data in ("far.csv", "test.csv"):  # an alarm stays
        found = files.run("monitor", files["model.ibug"], files[data], "--log", log, ok=False)
        assert found.exit_code == 4, found.stderr
        assert "Data drift" in found.stdout


def test_a_log_that_cannot_be_used_is_an_error_and_no_alarm(files, newer):
    files.run("recalibrate", files["model.ibug"], files["newer.csv"], "-o", files["other.ibug"])
    files.run("monitor", files["model.ibug"], files["test.csv"], "--log", files["drift.json"])
    other = files.json("monitor", files["other.ibug"], files["newer.csv"], "--alpha", "1e-9", "--log", files["b.json"])
    assert other["notes"] == []  # recalibrate has given it rows to compare with
    before = (files.folder / "drift.json").read_bytes()
    for model, log, problem in (
        ("other.ibug", files["drift.json"], "another model"),
        ("model.ibug", files["test.csv"], "is not a log of"),
        ("model.ibug", str(files.folder), "folder"),
    ):
        failed = files.run("monitor", files[model], files["test.csv"], "--log", log, ok=False)
        assert failed.exit_code == 1
        assert problem in " ".join(failed.stderr.split())
    missing = files.run("monitor", files["model.ibug"], files["absent.csv"], "--log", files["drift.json"], ok=False)
    assert missing.exit_code == 1
    assert (files.folder / "drift.json").read_bytes() == before
