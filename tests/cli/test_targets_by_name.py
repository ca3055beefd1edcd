"""Which targets are meant: named one by one, twice, in another order, or otherwise than the model's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import ibug
from tests.cli.conftest import Files

pytestmark = pytest.mark.once

FEATURES = ["x", "z"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    files = Files(tmp_path_factory.mktemp("names"), FEATURES)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 2))
    frame = pd.DataFrame(x, columns=FEATURES).assign(
        a=x[:, 0] + rng.normal(size=160), **{"b, too": 100 + 10 * x[:, 1] + rng.normal(size=160)}
    )
    frame["c"] = -frame["a"]
    for name, rows in {"train": slice(0, 80), "valid": slice(80, 120), "test": slice(120, 160)}.items():
        frame[rows].to_csv(files[f"{name}.csv"], index=False)
    return files


def fit(files, *options, output="model.ibug", **more):
    return files.run(
        "fit", files["train.csv"], "--booster", "sklearn", "--trees", "5", "--k", "5", "-o", files[output], *options,
        **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def several(own):
    fit(own, "--target", "a", "--target", "b, too", "--drop", "c", "--valid", own["valid.csv"])
    return own["model.ibug"]


@pytest.fixture(scope="module")
def unnamed(own):
    """A model that was saved from Python, whose targets have no names."""
    train, valid = (pd.read_csv(own[f"{name}.csv"]) for name in ("train", "valid"))
    y, y_valid = (rows[["a", "b, too"]].to_numpy() for rows in (train, valid))
    forest = RandomForestRegressor(5, random_state=0).fit(train[FEATURES], y)
    u = ibug.IBUGRegressor(forest, prefit=True, k=5).fit(train[FEATURES], y, X_val=valid[FEATURES], y_val=y_valid)
    u.save(own["unnamed.ibug"])
    return own["unnamed.ibug"]


def said(result):
    """Return what was told, without the frame of the error."""
    return " ".join(result.stderr.replace("│", " ").split())


def test_targets_one_by_one(own, several):
    u = ibug.load(several)
    assert u.target_names_ == ["a", "b, too"]
    assert u.feature_names_in_.tolist() == FEATURES
    assert own.json("info", several)["target"] == "a, b, too"
    assert own.json("evaluate", several, own["test.csv"])["rows"] == 40  # the file keeps the names apart


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["a,a"], "'a' is named twice"),
        (["a", "a"], "'a' is named twice"),
        (["a", "c,a"], "'a' is named twice"),
        ([" , "], "name a column"),
    ],
)
def test_targets_that_are_refused(own, targets, message):
    result = fit(own, *(part for name in targets for part in ("--target", name)), output="no.ibug", ok=False)
    assert (result.exit_code, message in said(result)) == (2, True)


def test_targets_are_matched_by_name(own, several):
    expected = own.json("evaluate", several, own["test.csv"])
    given = own.json("evaluate", several, own["test.csv"], "--target", "b, too", "-t", "a")
    assert given["scores"] == expected["scores"]
    assert given["scores"]["a_rmse"] < 10


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["a", "c"], "the model's targets are a, b, too, not a, c."),
        (["a"], "the model has 2 targets: name all, --target a --target 'b, too'."),
        (["a,c", "b, too"], "the model has 2 targets"),
        (["a", "b, to"], "has no column 'b'"),
        (["a,a"], "'a' is named twice"),
    ],
)
def test_other_targets_than_the_models(own, several, targets, message):
    options = [part for name in targets for part in ("--target", name)]
    for command in (["evaluate", several, own["test.csv"]], ["report", several, own["test.csv"], "-o", own["r.html"]]):
        result = own.run(*command, *options, ok=False)
        assert result.exit_code in (1, 2)
        assert message in said(result)


def test_a_report_of_targets_in_another_order(own, several):
    pytest.importorskip("plotly")
    command = ("report", several, own["test.csv"], "--no-features")
    own.run(*command, "-o", own["one.html"])
    own.run(*command, "-o", own["other.html"], "--target", "b, too", "--target", "a")
    one, other = ((own.folder / f"{name}.html").read_bytes() for name in ("one", "other"))
    assert one == other


def test_targets_without_names_go_by_their_order(own, unnamed):
    command = ("evaluate", unnamed, own["test.csv"])
    result = own.run(*command, "--target", "a", "--target", "b, too")
    assert "The model has no names for its targets: a, b, too are taken in this order." in said(result)
    assert "does not name its 2 targets" in said(own.run(*command, ok=False))
    assert "the model has 2 targets, without names" in said(own.run(*command, "--target", "a", ok=False))
    renamed = pd.read_csv(own["test.csv"]).rename(columns={"a": "target_0", "b, too": "target_1"})
    renamed.to_csv(own["renamed.csv"], index=False)
    first = own.json("evaluate", unnamed, own["renamed.csv"], "--target", "target_1,target_0")
    assert not any("in this order" in note for note in first["notes"])
    assert first["scores"] == pytest.approx(own.json(*command, "-t", "a", "-t", "b, too")["scores"], rel=1e-9)


def test_several_targets_of_a_model_of_one(own):
    fit(own, "--target", "a", "--drop", "b, too", "--drop", "c", "--valid", own["valid.csv"], output="one.ibug")
    assert (
        "2 columns that the model does not know are ignored"
        in own.run("evaluate", own["one.ibug"], own["test.csv"]).stderr
    )
    pd.read_csv(own["test.csv"]).drop(columns="c").to_csv(own["fewer.csv"], index=False)
    told = own.run("evaluate", own["one.ibug"], own["fewer.csv"]).stderr
    assert "1 column that the model does not know is ignored: b, too." in told
    for command in (["evaluate"], ["monitor"], ["recalibrate", "-o", own["again.ibug"]]):
        result = own.run(*command, own["one.ibug"], own["test.csv"], "--target", "a", "--target", "c", ok=False)
        assert "the model has one target, and 2 are named: a, c." in said(result)
