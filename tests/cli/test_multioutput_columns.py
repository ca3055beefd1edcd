"""Several targets on the command line: fit, predict, evaluate, report, info, and what is for one target."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.multioutput import MultiOutputRegressor

import ibug

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    noise = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=600)
    frame = pd.DataFrame(x, columns=["x", "y", "z"]).assign(
        price=3 * x[:, 0] + noise[:, 0], days=x[:, 1] - x[:, 0] + noise[:, 1], order=np.arange(600).astype(str)
    )
    for name, rows in {"train": slice(0, 300), "valid": slice(300, 450), "test": slice(450, 600)}.items():
        frame[rows].to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def fitted(tables):
    from tests.cli.conftest import Files

    files = Files(tables, ["x", "y", "z"])
    facts = files.json(
        "fit", files["train.csv"], "--target", "price, days", "--valid", files["valid.csv"], "--booster", "sklearn",
        "--trees", "30", "--id", "order", "-o", files["several.ibug"],
    )  # fmt: skip
    return files, facts


def test_fit(fitted):
    files, facts = fitted
    assert facts["scoring"] == "energy"
    assert facts["validation_score"]["calibrated"] > 0
    assert len(facts["gamma"]) == 2
    u = ibug.load(files["several.ibug"])
    assert u.target_names_ == ["price", "days"]
    assert u.feature_names_in_.tolist() == ["x", "y", "z"]
    text = files.run("info", files["several.ibug"]).stdout
    assert "price, days" in text
    assert "each target's own" in text


def test_predict(fitted):
    files, _ = fitted
    options = ("--id", "order", "--interval", "0.5,0.9", "--quantiles", "0.5", "--neighbors", "2", "--flags")
    files.run("predict", files["several.ibug"], files["test.csv"], "-o", files["out.csv"], *options)
    files.run(
        "predict", files["several.ibug"], files["test.csv"], "-o", files["chunks.csv"], *options, "--chunk-rows", 7
    )
    files.run("predict", files["several.ibug"], files["test.csv"], "-o", files["boxes.csv"], "--joint")
    out, test = pd.read_csv(files["out.csv"]), pd.read_csv(files["test.csv"])
    pd.testing.assert_frame_equal(out, pd.read_csv(files["chunks.csv"]))
    u, X = ibug.load(files["several.ibug"]), test[["x", "y", "z"]]
    ends = u.predict_interval(X, [0.5, 0.9])
    for j, name in enumerate(["price", "days"]):
        np.testing.assert_allclose(out[f"{name}_prediction"], u.predict(X)[:, j])
        np.testing.assert_allclose(out[f"{name}_std"], np.sqrt(u.predict_var(X)[:, j]))
        np.testing.assert_allclose(out[f"{name}_upper_90"], ends[:, j, 1, 1])
        np.testing.assert_allclose(out[f"{name}_q0.5"], u.predict_quantiles(X, 0.5)[:, j, 0])
        np.testing.assert_allclose(out[f"{name}_2"], u.training_targets_[u.kneighbors(X, 2)[1][:, 1], j])
        boxes = pd.read_csv(files["boxes.csv"])
        np.testing.assert_allclose(boxes[f"{name}_box_lower_90"], u.predict_interval(X, joint=True)[:, j, 0])
    np.testing.assert_allclose(out["affinity"], u.affinity_score(X))


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "sklearn", "catboost", "forest"])
def test_point_predictions_are_the_models_own_and_made_once(fitted, library, monkeypatch):
    """Bit for bit, with whatever sums the walk of the trees has; no chunk is searched or predicted twice."""
    files, _ = fitted
    train, valid, test = (pd.read_csv(files[f"{name}.csv"]) for name in ("train", "valid", "test"))
    model = a_model(library).fit(train[["x", "y", "z"]], train[["price", "days"]])
    u = ibug.IBUGRegressor(model, prefit=True, k=20)
    u.fit(
        train[["x", "y", "z"]], train[["price", "days"]], X_val=valid[["x", "y", "z"]], y_val=valid[["price", "days"]]
    )
    u.save(files["own.ibug"])
    counted = Counter()

    def count(cls, method):
        before = getattr(cls, method)

        def counting(self, rows, *more, **options):
            counted[method] += len(rows)
            return before(self, rows, *more, **options)

        monkeypatch.setattr(cls, method, counting)

    count(ibug.LeafIndex, "query")
    count(type(model), "predict")
    u.predict_dist(test[["x", "y", "z"]])
    once = counted["query"]  # each target may have an index of its own
    counted.clear()
    options = ("--chunk-rows", 60, "--neighbors", 30, "--flags")
    files.run("predict", files["own.ibug"], files["test.csv"], "-o", files["own.parquet"], *options)
    assert counted == {"query": once, "predict": len(test)}
    found = pd.read_parquet(files["own.parquet"])[["price_prediction", "days_prediction"]]
    np.testing.assert_array_equal(found, model.predict(test[["x", "y", "z"]]))


def test_evaluate_searches_each_row_once(fitted, monkeypatch):
    """All levels, boxes and the plain neighbours come from one search."""
    files, _ = fitted
    u, X = ibug.load(files["several.ibug"]), pd.read_csv(files["test.csv"])[["x", "y", "z"]]
    searched, query = [], ibug.LeafIndex.query
    monkeypatch.setattr(ibug.LeafIndex, "query", lambda *a, **o: searched.append(len(a[1])) or query(*a, **o))
    u.predict_dist(X)
    once = sum(searched)
    searched.clear()
    files.run("evaluate", files["several.ibug"], files["test.csv"])
    assert sum(searched) == once


def a_model(library):
    if library == "lightgbm":
        return MultiOutputRegressor(pytest.importorskip(library).LGBMRegressor(n_estimators=20, verbose=-1))
    if library == "xgboost":
        return pytest.importorskip(library).XGBRegressor(n_estimators=20)
    if library == "catboost":
        return pytest.importorskip(library).CatBoostRegressor(n_estimators=20, loss_function="MultiRMSE", verbose=False)
    if library == "forest":
        return RandomForestRegressor(10, random_state=0)
    return MultiOutputRegressor(GradientBoostingRegressor(n_estimators=20))


def test_evaluate(fitted):
    files, _ = fitted
    found = files.json("evaluate", files["several.ibug"], files["test.csv"], "--levels", "0.9")
    u, test = ibug.load(files["several.ibug"]), pd.read_csv(files["test.csv"])
    expected = u.predict_dist(test[["x", "y", "z"]]).energy_score(test[["price", "days"]]).mean()
    assert found["scores"]["energy_score"] == pytest.approx(expected)
    assert 0.75 < found["scores"]["box_coverage_90"] <= 1
    assert found["plain_neighbors"]["energy_score"] > 0
    text = files.run("evaluate", files["several.ibug"], files["test.csv"]).stdout
    assert "variogram_score" in text
    assert "price_crps" in text


def test_report(fitted):
    pytest.importorskip("plotly")
    files, _ = fitted
    found = files.json("report", files["several.ibug"], files["test.csv"], "--groups", "x", "-o", files["report.html"])
    assert found["rows"] == 150
    text = Path(files["report.html"]).read_text(encoding="utf-8")
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert data["joint"]["names"] == ["price", "days"]
    assert data["rows"]["id"][0] == "450"
    assert data["neighbors"]["id"] is not None  # the training file is still there
    assert data["targets"][1]["groups"]["by"] == "x"
    result = files.run(
        "report", files["several.ibug"], files["test.csv"], "--target", "price", "-o", "no.html", ok=False
    )
    assert "the model has 2 targets: name all" in " ".join(result.stderr.split()).replace("│ ", "")


def test_a_trained_model(fitted):
    files, _ = fitted
    xgboost = pytest.importorskip("xgboost")
    train = pd.read_csv(files["train.csv"])
    model = xgboost.XGBRegressor(n_estimators=20, multi_strategy="multi_output_tree")
    model.fit(train[["x", "y", "z"]], train[["price", "days"]]).save_model(files["model.ubj"])
    files.run(
        "fit", files["train.csv"], "--target", "price,days", "--model", files["model.ubj"],
        "--valid", files["valid.csv"], "--id", "order", "-o", files["wrapped.ibug"],
    )  # fmt: skip
    u = ibug.load(files["wrapped.ibug"])
    assert u.target_names_ == ["price", "days"]
    np.testing.assert_allclose(u.predict(train[["x", "y", "z"]]), model.predict(train[["x", "y", "z"]]), rtol=1e-6)
    options = ("--valid", files["valid.csv"], "--id", "order", "-o", files["no.ibug"])
    fewer = files.run("fit", files["train.csv"], "-t", "price", "-m", files["model.ubj"], *options, ok=False)
    assert "The model predicts 2 targets, and --target names one: price. Name all of them" in fewer.stderr
    assert "--target a,b." in fewer.stderr
    model.fit(train[["x", "y", "z"]], train["price"]).save_model(files["one.ubj"])
    more = files.run("fit", files["train.csv"], "-t", "price,days", "-m", files["one.ubj"], *options, ok=False)
    assert "The model predicts one target, and --target names 2: price, days." in more.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "MODEL", "TEST", "--row", "0"], "ibug explain is for one target, and the model has 2"),
        (["recalibrate", "MODEL", "TEST", "-o", "OUT"], "ibug recalibrate is for one target"),
        (["monitor", "MODEL", "TEST"], "ibug monitor is for one target"),
        (["predict", "MODEL", "TEST", "--samples", "3"], "samples of several targets are drawn in Python"),
        (["evaluate", "MODEL", "TEST", "--groups", "x"], "these are for one target"),
        (["evaluate", "MODEL", "TEST", "--target", "price"], "the model has 2 targets: name all"),
    ],
)
def test_what_is_for_one_target(fitted, arguments, message):
    files, _ = fitted
    names = {"MODEL": files["several.ibug"], "TEST": files["test.csv"], "OUT": files["other.ibug"]}
    result = files.run(*(names.get(one, one) for one in arguments), ok=False)
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.split()).replace("│ ", "")


def test_a_column_that_is_missing(fitted):
    files, _ = fitted
    result = files.run("fit", files["train.csv"], "--target", "price,dayz", "-o", files["no.ibug"], ok=False)
    assert result.exit_code != 0
    assert "dayz" in result.stderr
