"""``ibug fit --blocks`` and ``ibug predict --total-by``."""

import io

import numpy as np
import pandas as pd
import pytest

import ibug

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def daily(shared, tmp_path_factory):
    """Rows of days, whose weather the model does not know; the day is a column of the files."""
    from tests.cli.conftest import Files

    pytest.importorskip("lightgbm")
    folder = tmp_path_factory.mktemp("totals")
    rng = np.random.default_rng(0)
    day = np.arange(1500) // 15
    X = pd.DataFrame(rng.normal(size=(1500, 2)), columns=["a", "b"])
    y = X["a"] + 0.7 * rng.normal(size=100)[day] + rng.normal(size=1500)
    dates = pd.to_datetime("2024-01-01") + pd.to_timedelta(day, unit="D")
    frame = X.assign(y=y, day=dates.strftime("%Y-%m-%d"), store=np.arange(1500) % 3)
    for name, part in {"train": frame[:600], "valid": frame[600:1200], "test": frame[1200:]}.items():
        part.to_csv(folder / f"{name}.csv", index=False)
        part.to_parquet(folder / f"{name}.parquet", index=False)
    files = Files(folder, ["a", "b"])
    files.run(
        "fit", files["train.csv"], "-t", "y", "--drop", "store", "--valid", files["valid.csv"], "--blocks", "day",
        "-b", "lightgbm", "--trees", "20", "-o", files["model.ibug"],
    )  # fmt: skip
    return files


def totals(files, *arguments, data="test.csv", model="model.ibug"):
    return pd.read_csv(io.StringIO(files.run("predict", files[model], files[data], *arguments).stdout))


def test_the_day_is_no_feature_and_is_learned_from(daily):
    u = ibug.load(daily["model.ibug"])
    assert list(u.feature_names_in_) == ["a", "b"]
    assert u.dependence_.names == ("day",)
    assert u.dependence_.n_blocks == (40,)
    assert 0.1 < u.dependence_.estimate[0] < 0.6
    (known,) = daily.json("info", daily["model.ibug"])["blocks"]
    assert known["name"] == "day"
    assert known["blocks"] == 40
    assert known["estimate"] == pytest.approx(u.dependence_.estimate[0])
    assert "rows of a day have a correlation of 0." in daily.run("info", daily["model.ibug"]).stdout


@pytest.mark.parametrize("data", ["test.csv", "test.parquet"])
def test_one_line_for_each_group(daily, data):
    found = totals(daily, "--total-by", "day", data=data)
    frame = pd.read_parquet(daily["test.parquet"])
    assert list(found.columns) == ["group", "n_rows", "mean", "median", "lower", "upper"]
    assert list(found["group"]) == sorted(set(frame["day"]))
    assert set(found["n_rows"]) == {15}
    u = ibug.load(daily["model.ibug"])
    expected = u.predict_total(frame[["a", "b"]], frame["day"], blocks=frame["day"])
    np.testing.assert_allclose(found[["lower", "upper"]], expected, rtol=1e-9)
    named = totals(daily, "--total-by", "day", "--blocks", "day", data=data)
    pd.testing.assert_frame_equal(named, found)


def test_groups_that_are_no_blocks_and_groups_by_two_columns(daily):
    stores = totals(daily, "--total-by", "store", "--interval", "0.5,0.9")
    assert list(stores.columns) == ["group", "n_rows", "mean", "median", "lower_50", "upper_50", "lower_90", "upper_90"]
    assert list(stores["group"]) == [0, 1, 2]
    both = totals(daily, "--total-by", "store,day")
    assert list(both.columns[:3]) == ["store", "day", "n_rows"]
    assert len(both) == 60
    np.testing.assert_allclose(both.groupby("store")["mean"].sum(), stores["mean"], rtol=1e-6)


def test_independent_rows_have_narrower_totals(daily):
    known = totals(daily, "--total-by", "day")
    result = daily.run("predict", daily["model.ibug"], daily["test.csv"], "--total-by", "day", "--blocks", "none")
    alone = pd.read_csv(io.StringIO(result.stdout))
    assert np.all((alone["upper"] - alone["lower"]) < 0.8 * (known["upper"] - known["lower"]))
    assert "independent" not in result.stderr


def test_a_model_without_blocks_says_so(daily, tmp_path):
    plain = str(tmp_path / "plain.ibug")
    arguments = ("-t", "y", "--drop", "day,store", "-b", "lightgbm", "--trees", "20", "-o", plain)
    daily.run("fit", daily["train.csv"], *arguments)
    assert daily.json("info", plain)["blocks"] is None
    result = daily.run("predict", plain, daily["test.csv"], "--total-by", "day", "-v")
    assert "Rows are taken as independent of each other" in result.stderr
    assert "--blocks COLUMN learns it" in result.stderr
    failed = daily.run("predict", plain, daily["test.csv"], "--total-by", "day", "--blocks", "day", ok=False)
    assert failed.exit_code == 2
    assert "has not learned" in failed.stderr


def test_a_model_learns_of_blocks_later(daily, tmp_path):
    path = str(tmp_path / "later.ibug")
    start = ("recalibrate", daily["model.ibug"], daily["test.csv"], "-o", path)
    daily.run(*start)
    assert ibug.load(path).dependence_.n_blocks == (40,)
    daily.run(*start, "--blocks", "store,day")
    assert ibug.load(path).dependence_.n_blocks == (3, 20)
    assert daily.run(*start, "--blocks", "week", ok=False).exit_code == 1


def test_files_and_facts(daily, tmp_path):
    path = str(tmp_path / "days.parquet")
    facts = daily.json("predict", daily["model.ibug"], daily["test.csv"], "--total-by", "day", "-o", path)
    assert facts["groups"] == len(pd.read_parquet(path)) == 20
    assert facts["rows"] == 300
    assert facts["total_by"] == facts["blocks"] == ["day"]
    said = daily.run("predict", daily["model.ibug"], daily["test.csv"], "--total-by", "day", "-o", path, "-v").stderr
    assert "20 totals of 300 rows" in said


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--blocks", "day"], 2, "blocks are for totals"),
        (["--total-by", "day", "--quantiles", "0.5"], 2, "leave --quantiles out"),
        (["--total-by", "day", "--samples", "3", "--id", "day"], 2, "leave --samples, --id out"),
        (["--total-by", "days"], 1, "did you mean 'day'"),
        (["--total-by", "day", "--blocks", "store,day"], 2, "blocks of 1 kinds, day"),
        (["--total-by", "day", "--blocks", "dya"], 1, "has no column 'dya'"),
    ],
)
def test_wrong_usage(daily, options, code, message):
    result = daily.run("predict", daily["model.ibug"], daily["test.csv"], *options, ok=False)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_files_without_the_column_or_some_labels(daily, tmp_path):
    frame = pd.read_csv(daily["test.csv"])
    frame.drop(columns="day").to_csv(tmp_path / "none.csv", index=False)
    result = daily.run("predict", daily["model.ibug"], tmp_path / "none.csv", "--total-by", "store", ok=False)
    assert result.exit_code == 2
    assert "has no column 'day'" in " ".join(result.stderr.replace("│", " ").split())
    frame.loc[3, "day"] = None
    frame.to_csv(tmp_path / "some.csv", index=False)
    result = daily.run("predict", daily["model.ibug"], tmp_path / "some.csv", "--total-by", "day", ok=False)
    assert result.exit_code == 1
    assert "'day' has no label for 1 of the 300 rows" in result.stderr


def test_fitting_needs_validation_rows_with_the_column(daily, tmp_path):
    start = ("fit", daily["train.csv"], "-t", "y", "-o", str(tmp_path / "m.ibug"), "--blocks")
    result = daily.run(*start, "day", ok=False)
    assert result.exit_code == 2
    assert "--valid FILE" in result.stderr
    result = daily.run(*start, "week", "--valid", daily["valid.csv"], "--trees", "5", ok=False)
    assert result.exit_code == 1
    assert "has no column 'week'" in result.stderr


def test_a_trained_model_keeps_the_block_as_a_feature(daily, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    frame = pd.read_parquet(daily["train.parquet"])
    model = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1).fit(frame[["a", "b", "store"]], frame["y"])
    model.booster_.save_model(tmp_path / "model.txt")
    path = str(tmp_path / "m.ibug")
    daily.run(
        "fit", daily["train.csv"], "-t", "y", "--model", tmp_path / "model.txt", "--valid", daily["valid.csv"],
        "--blocks", "store,day", "-o", path,
    )  # fmt: skip
    u = ibug.load(path)
    assert list(u.feature_names_in_) == ["a", "b", "store"]
    assert u.dependence_.names == ("store", "day")
    assert len(totals(daily, "--total-by", "day", model=path)) == 20
