"""Fitted regressors as MLflow models."""

import json
import shutil
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
lightgbm = pytest.importorskip("lightgbm")

from sklearn.multioutput import MultiOutputRegressor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what MLflow's own imports warn of
    import mlflow
    import pandas as pd

    import ibug.mlflow
from ibug import IBUGRegressor
from ibug.exceptions import FileFormatError, IBUGWarning, InvalidInputError

# MLflow and its dependencies deprecate much among themselves.
pytestmark = pytest.mark.filterwarnings("default", "error::ibug.exceptions.IBUGWarning")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=300),
            "rooms": rng.integers(1, 6, 300),
            "city": pd.Categorical(rng.choice(["Bern", "Graz", "Lyon"], 300)),
        }
    )
    X.loc[:5, "size"] = np.nan
    return X, X["rooms"] + 2.0 * X["city"].cat.codes + rng.normal(size=300)


@pytest.fixture(scope="module")
def u(rows):
    X, y = rows
    model = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1).fit(X[:200], y[:200])
    return IBUGRegressor(model, prefit=True).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])


@pytest.fixture(scope="module")
def saved(u, rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    ibug.mlflow.save_model(u, path, compress=False)
    return path


def test_the_signature_has_columns_outputs_and_parameters(saved):
    signature = mlflow.models.get_model_info(str(saved)).signature
    assert [(c["name"], c["type"]) for c in signature.inputs.to_dict()] == [
        ("size", "double"),
        ("rooms", "any"),  # a long one could not be missing
        ("city", "any"),
    ]
    assert signature.outputs.input_names() == ["prediction", "lower", "upper"]
    assert {p.name: p.default for p in signature.params} == {"coverage": 0.9, "quantiles": []}


def test_there_is_no_pickle_in_it(saved):
    files = {str(path.relative_to(saved)) for path in saved.rglob("*") if path.is_file()}
    assert files == {"MLmodel", "conda.yaml", "python_env.yaml", "requirements.txt", "data/model.ibug"}
    members = zipfile.ZipFile(saved / "data/model.ibug").namelist()
    assert not [name for name in members if name.endswith((".pkl", ".pickle", ".joblib"))]
    requirements = (saved / "requirements.txt").read_text().splitlines()
    assert f"ibug-learn=={ibug.__version__}" in requirements  # the name on PyPI
    assert any(line.startswith("lightgbm==") for line in requirements)
    assert not any(line.startswith("ibug==") for line in requirements)  # another project


def test_pyfunc_predicts_what_the_regressor_does(saved, u, rows):
    X = rows[0]
    model = mlflow.pyfunc.load_model(str(saved))
    found = model.predict(X)
    np.testing.assert_array_equal(found["prediction"], u.predict(X))
    np.testing.assert_array_equal(found[["lower", "upper"]], u.predict_interval(X, 0.9))
    asked = model.predict(X, params={"coverage": 0.5, "quantiles": [0.1, 0.99]})
    np.testing.assert_array_equal(asked[["lower", "upper"]], u.predict_interval(X, 0.5))
    np.testing.assert_array_equal(asked[["q0.1", "q0.99"]], u.predict_quantiles(X, [0.1, 0.99]))


def test_integers_may_be_missing(saved, u, rows):
    X = rows[0].iloc[10:20]
    gap = X.assign(rooms=X["rooms"].astype(float).where(X["rooms"] != 3))
    assert gap["rooms"].isna().any()
    model = mlflow.pyfunc.load_model(str(saved))
    expected = u.predict(gap)
    for given in (
        gap,
        gap.assign(rooms=gap["rooms"].astype("Int64")),
        gap.assign(rooms=[None if np.isnan(value) else int(value) for value in gap["rooms"]]).astype({"rooms": object}),
    ):
        np.testing.assert_array_equal(model.predict(given)["prediction"], expected)
    for kind in (np.int8, np.int32, np.int64, np.uint8):
        np.testing.assert_array_equal(
            model.predict(X.assign(rooms=X["rooms"].astype(kind)))["prediction"], u.predict(X)
        )
    with pytest.raises(InvalidInputError, match="Column 'rooms' must have numbers"):
        model.predict(X.assign(rooms="many"))


def test_texts_become_categories_again(saved, u, rows):
    X = rows[0].iloc[10:20]
    texts = X.assign(city=X["city"].astype(object))[["city", "rooms", "size"]]
    model = mlflow.pyfunc.load_model(str(saved))
    np.testing.assert_array_equal(model.predict(texts)["prediction"], u.predict(X))
    with pytest.warns(IBUGWarning, match="'city' has values that the training rows did not have, 'Oslo'"):
        model.predict(texts.assign(city="Oslo"))


def test_wrong_columns_are_refused(saved, rows):
    model = mlflow.pyfunc.load_model(str(saved))
    with pytest.raises(mlflow.exceptions.MlflowException, match="rooms"):
        model.predict(rows[0].drop(columns="rooms"))


def test_arrays_have_a_tensor_signature(rows, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    own = IBUGRegressor(lightgbm.LGBMRegressor(n_estimators=5, verbose=-1), k=5, spread="targets", calibrate=False)
    own.fit(X, X[:, 0])
    ibug.mlflow.save_model(own, tmp_path / "model", input_example=X[:2])
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(X)
    np.testing.assert_array_equal(found["prediction"], own.predict(X))


def test_logged_to_a_local_store_and_loaded(u, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'tracking.db'}")
    try:
        experiment = mlflow.create_experiment("test", artifact_location=str(tmp_path / "artifacts"))
        with mlflow.start_run(experiment_id=experiment):
            info = ibug.mlflow.log_model(u, "intervals", registered_model_name="houses")
        for uri in (info.model_uri, "models:/houses/1"):
            again = ibug.mlflow.load_model(uri)
            assert type(again) is IBUGRegressor
            np.testing.assert_array_equal(again.predict_interval(rows[0]), u.predict_interval(rows[0]))
        served = mlflow.pyfunc.load_model("models:/houses/1")
        np.testing.assert_array_equal(served.predict(rows[0])["prediction"], u.predict(rows[0]))
    finally:
        mlflow.set_tracking_uri(before)


def test_another_flavour_is_refused(tmp_path):
    model = mlflow.models.Model()
    model.add_flavor("other", data="x")
    (tmp_path / "m").mkdir()
    model.save(str(tmp_path / "m" / "MLmodel"))
    with pytest.raises(FileFormatError, match=r"no model that ibug\.mlflow has saved.*other"):
        ibug.mlflow.load_model(tmp_path / "m")


def test_mlflow_models_predict(saved, u, rows, tmp_path):
    X = rows[0].iloc[10:15]
    request = {"dataframe_split": json.loads(X.to_json(orient="split", index=False)), "params": {"coverage": 0.5}}
    (tmp_path / "rows.json").write_text(json.dumps(request))
    command = [sys.executable, "-m", "mlflow", "models", "predict", "--env-manager", "local", "-m", str(saved)]
    command += ["-i", str(tmp_path / "rows.json"), "-o", str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pd.DataFrame(json.loads((tmp_path / "out.json").read_text())["predictions"])
    np.testing.assert_allclose(found["prediction"], u.predict(X))
    np.testing.assert_allclose(found[["lower", "upper"]], u.predict_interval(X, 0.5))


@pytest.fixture
def spark(monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no java")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = (
        builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    yield session
    session.stop()


def test_spark_predicts_what_the_regressor_does(spark, saved, u, rows):
    from pyspark.sql.functions import struct

    X = rows[0].iloc[10:30]
    table = spark.createDataFrame(X.assign(city=X["city"].astype(str)))
    columns = ", ".join(f"{name} double" for name in ("prediction", "lower", "upper"))
    udf = mlflow.pyfunc.spark_udf(spark, str(saved), result_type=columns, env_manager="local", params={"coverage": 0.5})
    found = table.select(udf(struct(*table.columns)).alias("p")).select("p.*").toPandas()
    np.testing.assert_array_equal(found["prediction"], u.predict(X))
    np.testing.assert_array_equal(found[["lower", "upper"]], u.predict_interval(X, 0.5))


def test_several_targets(rows, tmp_path):
    X, y = rows
    Y = pd.DataFrame({"price": y, "days": y + np.random.default_rng(1).normal(size=len(y))})
    model = MultiOutputRegressor(lightgbm.LGBMRegressor(n_estimators=10, verbose=-1)).fit(X[:200], Y[:200])
    u = IBUGRegressor(model, prefit=True, random_state=0).fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    ibug.mlflow.save_model(u, tmp_path / "model")
    signature = mlflow.models.get_model_info(str(tmp_path / "model")).signature
    names = ["price_prediction", "price_lower", "price_upper", "days_prediction", "days_lower", "days_upper"]
    assert signature.outputs.input_names() == names
    assert {p.name: p.default for p in signature.params} == {"coverage": 0.9, "quantiles": [], "joint": False}
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    found = loaded.predict(X)
    assert list(found) == names
    np.testing.assert_array_equal(found[["price_prediction", "days_prediction"]], u.predict(X))
    np.testing.assert_array_equal(found[["days_lower", "days_upper"]], u.predict_interval(X, 0.9)[:, 1])
    asked = loaded.predict(X, params={"coverage": 0.5, "joint": True, "quantiles": [0.1, 0.9]})
    np.testing.assert_array_equal(asked[["price_lower", "price_upper"]], u.predict_interval(X, 0.5, joint=True)[:, 0])
    np.testing.assert_array_equal(asked[["days_q0.1", "days_q0.9"]], u.predict_quantiles(X, [0.1, 0.9])[:, 1])
    back = ibug.mlflow.load_model(tmp_path / "model")
    np.testing.assert_array_equal(back.predict_dist(X).mean(), u.predict_dist(X).mean())
