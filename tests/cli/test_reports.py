"""``ibug evaluate``, ``explain`` and ``info``: numbers that are the library's own."""

import base64
import json
import os
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import ibug
from ibug.explain import explain_width, plain_neighbors
from ibug.metrics import evaluate
from tests.persistence.forge import manifest_of, put_together, take_apart


@pytest.fixture
def rows(files):
    u = ibug.load(files["model.ibug"])
    known = sorted(set(pd.read_parquet(files["train.parquet"])["hour"]))
    frame = pd.read_parquet(files["test.parquet"])
    X = frame[files.features].assign(hour=pd.Categorical(frame["hour"], categories=known))
    return u, X, frame["target"].to_numpy(float)


def test_scores_and_those_of_plain_neighbours(files, rows):
    u, X, y = rows
    result = files.json("evaluate", files["model.ibug"], files["test.csv"], "--levels", "0.9")
    assert result["scores"] == pytest.approx(dict(evaluate(u, X, y, levels=[0.9])), rel=1e-12)
    assert result["plain_neighbors"] == pytest.approx(dict(evaluate(plain_neighbors(u), X, y, levels=[0.9])), rel=1e-12)
    text = files.run("evaluate", files["model.ibug"], files["test.csv"]).stdout
    assert f"{len(y)} rows of" in text
    assert "crps" in text
    assert "95 %" in text


def test_plots(files):
    pytest.importorskip("matplotlib")
    result = files.json("evaluate", files["model.ibug"], files["test.csv"], "--plots", files["plots/new"])
    names = sorted(path.name for path in (files.folder / "plots" / "new").iterdir())
    assert names == sorted(
        f"{name}.png"
        for name in ("calibration", "densities", "intervals", "leaf_density", "pit", "spread_error", "tuning")
    )
    assert len(result["plots"]) == len(names)
    assert all((files.folder / "plots" / "new" / name).read_bytes().startswith(b"\x89PNG") for name in names)


def test_explain_tells_neighbours_and_differences(files, rows):
    u, X, _ = rows
    facts = files.json("explain", files["model.ibug"], files["test.csv"], "--row", "17", "--neighbors", "4")
    distribution = u.predict_dist(X[17:18])
    lower, upper = distribution.interval(0.9)
    assert facts["prediction"] == u.predict(X[17:18])[0]
    assert (facts["interval"]["lower"], facts["interval"]["upper"]) == (lower[0], upper[0])
    affinities, indices = u.kneighbors(X[17:18], 4)
    train = pd.read_parquet(files["train.parquet"])
    for i, neighbor in enumerate(facts["neighbors"]):
        row = train.iloc[indices[0, i]]
        assert neighbor["row"] == indices[0, i]
        assert neighbor["id"] == row["order"]
        assert neighbor["target"] == row["target"]
        assert neighbor["affinity"] == affinities[0, i] / u.source_.index.n_trees
        assert neighbor["features"] == {name: row[name] for name in files.features}
    for difference in facts["differences"]:
        name = difference["feature"]
        assert any(value != difference["here"] for value in difference["neighbors"])
        assert difference["neighbors"] == [train.iloc[row][name] for row in indices[0]]
    distances = [difference["distance"] for difference in facts["differences"]]
    assert distances == sorted(distances, reverse=True)
    name = next(d["feature"] for d in facts["differences"] if d["feature"] != "hour")
    found = next(d for d in facts["differences"] if d["feature"] == name)
    expected = np.mean([abs(found["here"] - value) for value in found["neighbors"]]) / train[name].std(ddof=0)
    assert found["distance"] == pytest.approx(expected)


def test_explain_by_id_and_for_people(files):
    frame = pd.read_parquet(files["test.parquet"])
    by_id = files.json("explain", files["model.ibug"], files["test.parquet"], "--id", f"order={frame['order'][5]}")
    by_row = files.json("explain", files["model.ibug"], files["test.csv"], "--row", "5")
    assert by_id["row"] == 5
    assert by_id["prediction"] == by_row["prediction"]
    assert by_id["differences"] == by_row["differences"]
    text = files.run("explain", files["model.ibug"], files["test.csv"], "--row", "5").stdout
    assert "90 % interval" in text
    assert "row 5 (line 7)" in text
    assert "training row" in text
    assert "feature that differs" in text


def test_explain_tells_what_makes_it_wide(files, rows):
    pytest.importorskip("shap", exc_type=ImportError)
    u, X, _ = rows
    command = ("explain", files["model.ibug"], files["test.csv"], "--row", "17")
    assert "width" not in files.json(*command)
    found = files.json(*command, "--width")
    width = found["width"]
    assert width["compared_with"] == 50
    parts = {each["feature"]: each["log_std"] for each in width["features"]}
    assert sorted(parts) == sorted(files.features)
    train = pd.read_parquet(files["train.parquet"])[files.features]
    train["hour"] = pd.Categorical(train["hour"], categories=X["hour"].cat.categories)
    drawn = np.sort(np.random.default_rng(0).choice(len(train), 50, replace=False))
    expected = explain_width(u, X[17:18], train.iloc[drawn])
    assert [parts[name] for name in files.features] == pytest.approx(expected.values[0].tolist(), rel=1e-9)
    total = np.log(width["typical_std"]) + sum(parts.values())
    assert np.exp(total) == pytest.approx(found["std"])
    sizes = [abs(each["log_std"]) for each in width["features"]]
    assert sizes == sorted(sizes, reverse=True)
    text = files.run(*command, "--width").stdout
    assert "narrows │ widens" in text
    assert "Compared with 50 rows" in text
    assert files.json(*command, "--width", "--no-features")["width"]["compared_with"] == 50
    pd.read_csv(files["test.csv"])[:5].to_csv(files["few.csv"], index=False)
    few = files.run(
        "explain", files["model.ibug"], files["few.csv"], "--row", "0", "--width", "--no-features", ok=False
    )
    assert few.exit_code == 1
    assert "name the training file by --train" in " ".join(few.stderr.split())


def test_explain_without_the_training_file(files):
    (files.folder / "train.csv").unlink()
    result = files.run("explain", files["model.ibug"], files["test.csv"], "--row", "0")
    assert "--train" in result.stderr
    assert "training row" in result.stdout
    command = ("explain", files["model.ibug"], files["test.csv"], "--row", "0", "--train")
    assert files.json(*command, files["train.feather"])["differences"]
    wrong = files.run(*command, files["valid.csv"], ok=False)
    assert wrong.exit_code == 1
    assert "is not the file that the model was fitted on" in " ".join(wrong.stderr.split())


def test_explain_needs_a_row_that_is_there(files):
    command = ("explain", files["model.ibug"], files["test.csv"])
    assert files.run(*command, ok=False).exit_code == 2
    assert files.run(*command, "--row", "1", "--id", "order=1", ok=False).exit_code == 2
    assert "there is no row 100000" in files.run(*command, "--row", "100000", ok=False).stderr
    assert "no row whose 'order' is 'x'" in files.run(*command, "--id", "order=x", ok=False).stderr


def test_info(files):
    facts = files.json("info", files["model.ibug"])
    u = ibug.load(files["model.ibug"])
    assert facts["neighbors"] == u.k_
    assert facts["training_rows"] == u.source_.index.n_rows
    assert [column["name"] for column in facts["columns"]] == files.features
    assert facts["target"] == "target"
    assert facts["train"] == {"path": "train.csv", "rows": u.source_.index.n_rows, "id": "order"}
    assert facts["written_by"]["ibug"] == ibug.__version__
    hour = next(column for column in facts["columns"] if column["name"] == "hour")
    assert hour["categories"] == sorted(set(pd.read_parquet(files["train.parquet"])["hour"]))
    assert facts["distribution"] == u.distribution_ == "stack"
    text = files.run("info", files["model.ibug"]).stdout
    assert re.search(r"stack( within \S+ to \S+)?: ", text)  # counts are not below 0
    assert "lightgbm.LGBMRegressor, 30 trees" in text
    assert "hour" in text


def test_report(files, rows):
    pytest.importorskip("plotly")
    u, X, _ = rows
    output = files.folder / "report.html"
    command = ("report", files["model.ibug"], files["test.csv"], "-o", str(output))
    result = files.json(*command, "--target", "target", "--rows", "50", "--width-seconds", "1")
    assert result["bytes"] == output.stat().st_size
    assert result["rows"] == len(X)
    text = output.read_text(encoding="utf-8")
    data = json.loads(text[text.index('id="data">') + 10 : text.index("</script>")])
    frame = pd.read_parquet(files["test.parquet"])
    chosen = np.frombuffer(base64.b64decode(data["rows"]["row"]["data"]), "<i4")
    assert len(chosen) == 50
    assert data["rows"]["id"] == list(frame["order"][chosen])
    points = np.frombuffer(base64.b64decode(data["rows"]["prediction"]["data"]), "<f8")
    np.testing.assert_array_equal(points, u.predict(X)[chosen])
    assert [column["name"] for column in data["features"]["columns"]] == files.features
    assert data["features"]["differences"] is not None
    train = pd.read_parquet(files["train.parquet"])
    assert set(data["neighbors"]["id"]) <= set(train["order"])
    assert data["about"]["target"] == "target"
    assert data["widths"].get("names", files.features) == files.features


def test_report_shows_categories_that_the_model_does_not_know(files, table):
    pytest.importorskip("plotly")
    table.loc[3, "hour"] = "<b>new</b>"
    table.to_csv(files["other.csv"], index=False)
    result = files.run(
        "report", files["model.ibug"], files["other.csv"], "-o", files["report.html"], "--width-seconds", "0"
    )
    assert "categories that the model does not know" in " ".join(result.stderr.split())
    text = (files.folder / "report.html").read_text(encoding="utf-8")
    data = json.loads(text[text.index('id="data">') + 10 : text.index("</script>")])
    hour = next(column for column in data["features"]["columns"] if column["name"] == "hour")
    assert "<b>new</b>" in hour["texts"]


def test_report_needs_the_right_training_file(files):
    pytest.importorskip("plotly")
    command = ("report", files["model.ibug"], files["test.csv"], "-o", files["report.html"])
    wrong = files.run(*command, "--train", files["valid.csv"], ok=False)
    assert wrong.exit_code == 1
    assert "is not the file that the model was fitted on" in " ".join(wrong.stderr.split())
    assert not (files.folder / "report.html").exists()
    (files.folder / "train.csv").unlink()
    assert "--train" in files.run(*command, "--width-seconds", "0").stderr
    assert files.run(*command[:-1], "-", ok=False).exit_code == 2


@pytest.mark.parametrize(
    "command", [["explain", "--row", "3"], ["report", "--width-seconds", "0", "-o"]], ids=["explain", "report"]
)
def test_a_training_file_that_is_not_beside_the_model_must_be_confirmed(files, command, tmp_path):
    """Whoever made a model file could name any file of the reader's machine in it."""
    tmp_path = tmp_path / "from elsewhere"
    tmp_path.mkdir()
    model = tmp_path / "model.ibug"
    shutil.copy(files["model.ibug"], model)
    elsewhere = os.path.relpath(files["train.csv"], tmp_path)
    members = take_apart(model)
    manifest = manifest_of(members)
    manifest["metadata"]["ibug.cli"]["train"]["path"] = elsewhere
    put_together(model, members, manifest)
    arguments = [command[0], model, files["test.csv"], *command[1:]]
    arguments += [tmp_path / "report.html"] if command[0] == "report" else []
    said = " ".join(files.run(*arguments).stderr.split())
    assert "in another folder" in said
    assert "--train" in said
    assert "in another folder" not in files.run(*arguments, "--train", files["train.csv"]).stderr
    shutil.copy(files["train.csv"], tmp_path / "train.csv")
    manifest["metadata"]["ibug.cli"]["train"]["path"] = "train.csv"
    put_together(model, members, manifest)
    result = files.run(*arguments)
    assert "features are not compared" not in result.stderr
    if hasattr(os, "symlink"):
        (tmp_path / "train.csv").unlink()
        (tmp_path / "train.csv").symlink_to(files["train.csv"])
        assert "in another folder" in " ".join(files.run(*arguments).stderr.split())


def test_a_stranger_s_model_is_tried_first(files, monkeypatch):
    tried = []
    monkeypatch.setattr("ibug.persistence._estimators.try_in_child", lambda path, *rest: tried.append(path))
    plain = files.run("info", files["model.ibug"]).stdout
    assert not tried
    assert files.run("info", files["model.ibug"], "--isolate").stdout == plain
    files.run("predict", files["model.ibug"], files["test.csv"], "--isolate")
    assert tried == [files["model.ibug"]] * 2
