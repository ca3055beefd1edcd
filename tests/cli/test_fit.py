"""``ibug fit``: models that are there already, and models that are trained."""

import numpy as np
import pandas as pd
import pytest

import ibug


@pytest.fixture
def training(files):
    """Training rows as a user of pandas has them."""
    frame = pd.read_parquet(files["train.parquet"])
    X = frame[files.features].astype({"hour": "category"})
    return X, frame["target"].to_numpy(float)


def lightgbm_file(files, X, y):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMRegressor(n_estimators=20, verbosity=-1).fit(X, y)
    model.booster_.save_model(files["model.txt"])
    return files["model.txt"], model


def xgboost_file(ending):
    def make(files, X, y):
        xgboost = pytest.importorskip("xgboost")
        model = xgboost.XGBRegressor(n_estimators=20, enable_categorical=True).fit(X, y)
        model.save_model(files["model" + ending])
        return files["model" + ending], model

    return make


def xgboost_booster_file(files, X, y):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.train({}, xgboost.DMatrix(X, y, enable_categorical=True), 20)
    model.save_model(files["model.ubj"])

    class Predictor:
        def predict(self, X):
            return model.predict(xgboost.DMatrix(X, enable_categorical=True))

    return files["model.ubj"], Predictor()


def catboost_file(files, X, y):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(
        iterations=20, cat_features=["hour"], allow_writing_files=False, logging_level="Silent"
    )
    model.fit(X.astype({"hour": str}), y).save_model(files["model.cbm"])
    return files["model.cbm"], model


MODELS = {
    "lightgbm": lightgbm_file,
    "xgboost-ubj": xgboost_file(".ubj"),
    "xgboost-json": xgboost_file(".json"),
    "xgboost-booster": xgboost_booster_file,
    "catboost": catboost_file,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_model_that_is_there_already_predicts_as_before(files, training, make):
    X, y = training
    path, model = make(files, X, y)
    facts = files.json(
        "fit", files["train.csv"], "-t", "target", "-m", path, "--valid", files["valid.csv"], "-o", files["w.ibug"]
    )
    assert facts["categorical"] == ["hour"]
    assert facts["trees"] == 20
    assert facts["validation_score"]["calibrated"] <= facts["validation_score"]["uncalibrated"]
    files.run("predict", files["w.ibug"], files["test.csv"], "-o", files["out.csv"])
    test = pd.read_parquet(files["test.parquet"])[files.features]
    known = X["hour"].cat.categories
    test["hour"] = test["hour"] if "catboost" in type(model).__module__ else pd.Categorical(test["hour"], known)
    out = pd.read_csv(files["out.csv"])["prediction"]
    np.testing.assert_allclose(out, model.predict(test), rtol=1e-9)


def test_swapped_files_are_a_note_or_an_error(files, training):
    path, _ = lightgbm_file(files, *training)
    options = ("-t", "target", "-m", path, "--valid", files["train.csv"], "-o", files["w.ibug"])
    assert "Were they swapped?" in " ".join(files.run("fit", files["valid.csv"], *options).stderr.split())
    strict = files.run("fit", files["valid.csv"], *options, "--strict", ok=False)
    assert (strict.exit_code, "The model was trained on X_val" in " ".join(strict.stderr.split())) == (1, True)


def test_integer_categories_of_pandas(files, training):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = training
    X["hour"] = X["hour"].str[1:].astype(int).astype("category")
    model = lightgbm.LGBMRegressor(n_estimators=20, verbosity=-1).fit(X, y)
    model.booster_.save_model(files["int.txt"])
    for name in ("train", "valid", "test"):
        frame = pd.read_parquet(files[f"{name}.parquet"])
        frame.assign(hour=frame["hour"].str[1:]).to_csv(files[f"{name}-int.csv"], index=False)
    options = ("--valid", files["valid-int.csv"], "-o", files["w.ibug"])
    files.run("fit", files["train-int.csv"], "-t", "target", "-m", files["int.txt"], *options)
    files.run("predict", files["w.ibug"], files["test-int.csv"], "-o", files["out.csv"])
    test = pd.read_parquet(files["test.parquet"])[files.features]
    test["hour"] = pd.Categorical(test["hour"].str[1:].astype(int), X["hour"].cat.categories)
    np.testing.assert_allclose(pd.read_csv(files["out.csv"])["prediction"], model.predict(test), rtol=1e-9)


def test_a_model_that_was_trained_on_an_array(files, training):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = training
    X = X.drop(columns="hour")
    lightgbm.LGBMRegressor(n_estimators=20, verbosity=-1).fit(X.to_numpy(), y).booster_.save_model(files["a.txt"])
    fit = ("fit", files["train.csv"], "-t", "target", "-m", files["a.txt"], "--valid", files["valid.csv"])
    refused = files.run(*fit, "-o", files["w.ibug"], ok=False)
    assert "columns without names" in refused.stderr
    files.run(*fit, "--drop", "order,hour", "-o", files["w.ibug"])
    files.run("predict", files["w.ibug"], files["test.csv"], "-o", files["out.csv"])
    test = pd.read_parquet(files["test.parquet"])[X.columns].to_numpy(float)
    expected = lightgbm.Booster(model_file=files["a.txt"]).predict(test)
    np.testing.assert_allclose(pd.read_csv(files["out.csv"])["prediction"], expected, rtol=1e-9)


def test_bounds_are_found_and_said(files):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=300)
    pd.DataFrame({"x": x, "id": 2**53 + 1, "y": rng.poisson(5 * x)}).to_csv(files["counts.csv"], index=False)
    for support, bounds in (("auto", [0, None]), ("none", None), ("-1,99", [-1, 99])):
        fit = ("fit", files["counts.csv"], "-t", "y", "--trees", "5", "--support", support, "-o", files["c.ibug"])
        assert files.json(*fit)["support"] == bounds
        reason = {"auto": "no training target is below 0", "none": "support=None", "-1,99": "given"}[support]
        assert reason in " ".join(files.run("info", files["c.ibug"]).stdout.split())
    explained = files.run("explain", files["c.ibug"], files["counts.csv"], "--row", "3")
    assert "Whole numbers beyond 2^53 lose digits" in " ".join(explained.stderr.split())


def test_huge_whole_numbers_keep_their_digits_or_a_note_says_that_they_do_not(files):
    first, rng = 9007199254740993, np.random.default_rng(0)  # 2^53 + 1, which no floating-point number is
    numbers = first + 2 * np.arange(300)
    table = pd.DataFrame({"x": rng.uniform(size=300), "number": numbers, "name": numbers, "id": numbers})
    table["y"] = table["x"] + rng.normal(size=300)
    table.to_csv(files["huge.csv"], index=False)
    fit = ("fit", files["huge.csv"], "-t", "y", "--trees", "5", "--id", "id", "--categorical", "name")
    files.run(*fit, "-o", files["h.ibug"])
    predicted = files.run("predict", files["h.ibug"], files["huge.csv"], "--id", "id").stdout
    assert [line.partition(",")[0] for line in predicted.split()[1:]] == [str(number) for number in numbers]
    explain = "explain", files["h.ibug"], files["huge.csv"], "--id", f"id={first + 8}"
    facts = files.json(*explain)
    assert (facts["row"], facts["features"]["name"]) == (4, str(first + 8))
    assert {int(one["id"]) for one in facts["neighbors"]} <= set(numbers.tolist())
    assert "lose digits, because models read floating-point numbers, in: number." in facts["notes"][-1]
    assert "in: number. If" in " ".join(files.run(*explain).stderr.split())


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost", "catboost", "sklearn"])
def test_training_with_every_booster(files, booster):
    pytest.importorskip("skops" if booster == "sklearn" else booster)
    facts = files.json(
        "fit", files["train.csv"], "-t", "target", "--id", "order", "-b", booster, "--trees", "15", "--conformal",
        "scale", "--support", "0,", "-o", files["t.ibug"],
    )  # fmt: skip
    assert facts["trees"] == 15
    assert facts["categorical"] == ["hour"]
    assert facts["support"] == [0, None]  # infinity is not JSON
    assert facts["conformal"] == "ScaleConformal"
    result = files.json("evaluate", files["t.ibug"], files["test.csv"])
    assert 0.75 < result["scores"]["coverage_90"] <= 1
    assert files.run("predict", files["t.ibug"], files["test.csv"]).stdout.count("\n") == 1 + result["rows"]


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost", "catboost", "sklearn"])
def test_early_stopping_finds_the_number_of_trees(files, training, booster):
    from ibug.cli._boosters import BOOSTERS_BY_NAME, Training

    pytest.importorskip("sklearn" if booster == "sklearn" else booster)
    X, y = training
    categorical = ("hour",)
    X = X.astype({"hour": str}) if booster == "catboost" else X
    training = Training(parameters={"learning_rate": 0.3}, jobs=1, categorical=categorical)
    model, trees = BOOSTERS_BY_NAME[booster].estimator(training, X, y, np.ones(len(y)))
    assert 1 < trees < 1000
    assert model.get_params()[BOOSTERS_BY_NAME[booster].trees] == trees
    model.fit(X, y)


def test_the_same_seed_gives_the_same_file(files):
    fit = (
        "fit",
        files["train.csv"],
        "-t",
        "target",
        "--drop",
        "order",
        "--trees",
        "10",
        "-b",
        "lightgbm",
        "--seed",
        "3",
    )
    files.run(*fit, "-o", files["a.ibug"])
    files.run(*fit, "-o", files["b.ibug"])
    assert (files.folder / "a.ibug").read_bytes() == (files.folder / "b.ibug").read_bytes()


def test_parquet_and_csv_train_the_same(files):
    fit = ("-t", "target", "--drop", "order", "--trees", "10", "-b", "lightgbm")
    found = set()
    for name in ("train.csv", "train.parquet", "train.feather", "train.csv.gz"):
        files.run("fit", files[name], *fit, "-o", files["m.ibug"])
        found.add(files.run("predict", files["m.ibug"], files["test.csv"], "-q").stdout)
    assert len(found) == 1


def test_weights_parameters_and_categories(files):
    frame = pd.read_parquet(files["train.parquet"])
    number = next(column for column in files.features if frame[column].nunique() < 200 and column != "hour")
    frame["w"] = np.arange(len(frame)) % 3
    frame.to_csv(files["weighted.csv"], index=False)
    facts = files.json(
        "fit", files["weighted.csv"], "-t", "target", "--id", "order", "--weight", "w", "--categorical", number, "-b",
        "lightgbm", "-p", "num_leaves=4", "-p", "n_estimators=12", "-o", files["m.ibug"],
    )  # fmt: skip
    assert sorted(facts["categorical"]) == sorted(["hour", number])
    u = ibug.load(files["m.ibug"])
    assert "w" not in u.feature_names_in_
    assert u.estimator_.booster_.num_trees() == 12
    assert max(tree["num_leaves"] for tree in u.estimator_.booster_.dump_model()["tree_info"]) == 4
    assert u.source_.weights is None
    frame["w"] += 1
    frame.to_csv(files["weighted.csv"], index=False)
    files.run(
        "fit", files["weighted.csv"], "-t", "target", "--drop", "order", "--weight", "w", "--weight-neighbors",
        "-b", "lightgbm", "--trees", "5", "-o", files["m.ibug"],
    )  # fmt: skip
    np.testing.assert_array_equal(ibug.load(files["m.ibug"]).source_.weights, frame["w"])
    refused = files.run("fit", files["train.csv"], "-t", "target", "-p", "leaves", "-o", files["n.ibug"], ok=False)
    assert "name=value" in refused.stderr


def test_a_share_of_the_trees(files):
    options = ["-b", "sklearn", "--trees", "70", "--tree-fraction", "0.5"]
    facts = files.json("fit", files["train.csv"], "-t", "target", "--id", "order", *options, "-o", files["m.ibug"])
    u = ibug.load(files["m.ibug"])
    assert u.sampling.tree_fraction == 0.5
    assert facts["tree_fraction"] == u.source_.tree_fraction
    assert facts["trees"] == u.source_.index.n_trees


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-m", "model.txt"], "--valid"),
        (["-m", "model.txt", "--valid", "valid.csv", "--trees", "10"], "not trained again"),
        (["--k", "many"], "a number or 'tune'"),
        (["--tree-fraction", "half"], "'--tree-fraction'"),
        (["--support", "1,0"], "below the upper"),
        (["--support", "1"], "two bounds"),
        (["--weight-neighbors"], "name the column of weights"),
        (["--scoring", "rmse"], "rmse"),
    ],
)
def test_wrong_usage(files, options, expected):
    result = files.run("fit", files["train.csv"], "-t", "target", "-o", files["m.ibug"], *options, ok=False)
    assert result.exit_code == 2
    assert expected in " ".join(result.stderr.replace("│", " ").split())


def test_model_files_that_cannot_be_used(files, training):
    fit = ("fit", files["train.csv"], "-t", "target", "--k", "10", "-o", files["m.ibug"], "-m")

    def refused(name, content=b"nonsense"):
        (files.folder / name).write_bytes(content)
        result = files.run(*fit, files[name], ok=False)
        assert result.exit_code == 1
        return " ".join(result.stderr.split())

    assert "is not that of a library's model" in refused("m.pkl")
    assert "is not a LightGBM model" in refused("m.txt")
    assert "is not an XGBoost model" in refused("m.json", b"{}")
    assert "catboost cannot load" in refused("m.cbm")
    assert "xgboost cannot load" in refused("m.ubj")
    path, _ = lightgbm_file(files, *training)
    result = files.run(*fit, path)
    assert "not calibrated" in result.stderr  # --k without --valid
    other = pd.read_parquet(files["train.parquet"]).rename(columns={"hour": "Hour"})
    other.to_csv(files["other.csv"], index=False)
    result = files.run(
        "fit", files["other.csv"], "-t", "target", "--k", "9", "-m", path, "-o", files["n.ibug"], ok=False
    )
    assert "lacks 1 of the model's" in result.stderr
    assert "'Hour'" in result.stderr


def test_too_many_categories_for_scikit_learn(files):
    frame = pd.read_parquet(files["train.parquet"])
    rows = pd.concat([frame, frame]).reset_index(drop=True)[:300]
    rows.assign(hour=[f"h{i}" for i in range(len(rows))]).to_csv(files["many.csv"], index=False)
    result = files.run("fit", files["many.csv"], "-t", "target", "-b", "sklearn", "-o", files["m.ibug"], ok=False)
    assert result.exit_code == 1
    assert "255 at most" in " ".join(result.stderr.split())


def test_a_model_saved_from_python(files, training):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = training
    model = lightgbm.LGBMRegressor(n_estimators=20, verbosity=-1).fit(X, y)
    valid = pd.read_parquet(files["valid.parquet"])
    X_val = valid[files.features].assign(hour=pd.Categorical(valid["hour"], X["hour"].cat.categories))
    u = ibug.IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val, y_val=valid["target"])
    u.save(files["python.ibug"])
    out = files.run("predict", files["python.ibug"], files["test.csv"], "--id", "order").stdout.splitlines()
    assert float(out[1].split(",")[1]) == u.predict(_as_features(files, X)[:1])[0]
    result = files.run("evaluate", files["python.ibug"], files["test.csv"], ok=False)
    assert result.exit_code == 2  # which column is the target?
    assert files.json("evaluate", files["python.ibug"], files["test.csv"], "-t", "target")["scores"]["crps"] > 0
    assert files.json("info", files["python.ibug"])["train"] is None
    explained = files.json("explain", files["python.ibug"], files["test.csv"], "--row", "0")
    assert "--train" in explained["notes"][0] or "--train" in explained["notes"][-1]


def _as_features(files, X):
    test = pd.read_parquet(files["test.parquet"])[files.features]
    return test.assign(hour=pd.Categorical(test["hour"], X["hour"].cat.categories))
