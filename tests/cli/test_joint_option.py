"""Boxes of several targets: with quantiles, and where too few validation rows tell their size."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import ibug
from ibug.exceptions import TooFewRowsWarning
from tests.cli.conftest import Files

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Files of rows, and models of two targets that had few validation rows, or enough."""
    files = Files(tmp_path_factory.mktemp("boxes"), ["x", "z"])
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=files.features)
    Y = pd.DataFrame(X.to_numpy() + rng.normal(size=(120, 2)), columns=["a", "b"])
    X[100:].to_csv(files["test.csv"], index=False)
    X.join(Y)[100:].to_csv(files["labelled.csv"], index=False)
    forest = RandomForestRegressor(5, random_state=0).fit(X[:80], Y[:80])
    for name, conformal, last in (("few", None, 85), ("conformal", "scale", 86), ("enough", None, 100)):
        u = ibug.IBUGRegressor(forest, prefit=True, k=5, conformal=conformal)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooFewRowsWarning)
            u.fit(X[:80], Y[:80], X_val=X[80:last], y_val=Y[80:last])
        u.save(files[f"{name}.ibug"])
    return files


def test_names_of_a_data_frame_are_known(own):
    found = own.json("evaluate", own["enough.ibug"], own["labelled.csv"])
    assert not [note for note in found["notes"] if "columns" in note or "in this order" in note]
    swapped = own.json("evaluate", own["enough.ibug"], own["labelled.csv"], "--target", "b,a")
    assert swapped["scores"] == found["scores"]


def predict(files, model, *options, **more):
    return files.run("predict", files[model], files["test.csv"], "-o", files["out.csv"], *options, **more)


def test_infinite_boxes_are_noted_once(own):
    told = predict(own, "few.ibug", "--joint", "--chunk-rows", "7").stderr
    assert told.count("predict: boxes of coverage 0.9 have infinite ends") == 1
    assert "it needs 9 at least" in told
    assert "conformal" not in told.lower()
    assert "infinite" not in predict(own, "few.ibug", "--joint", "--interval", "0.5").stderr
    assert "infinite" not in predict(own, "few.ibug").stderr
    assert "infinite" not in predict(own, "enough.ibug", "--joint").stderr
    assert predict(own, "few.ibug", "--joint", "--strict", ok=False).exit_code == 1


def test_infinite_intervals_of_several_targets_are_noted(own):
    told = predict(own, "conformal.ibug").stderr
    assert "predict: intervals of coverage 0.9 have infinite ends. Conformal calibration" in told


def test_infinite_boxes_are_told_in_python(own):
    u = ibug.load(own["few.ibug"])
    with pytest.warns(TooFewRowsWarning, match="predict_interval: boxes of coverage 0.9 .* needs 9 at least") as told:
        u.predict_interval(pd.read_csv(own["test.csv"]), [0.5, 0.9], joint=True)
    assert len(told) == 1
    assert "onformal" not in str(told[0].message)


def test_boxes_and_quantiles(own):
    predict(own, "enough.ibug", "--joint", "--quantiles", "0.1")
    found = pd.read_csv(own["out.csv"])
    one = ["prediction", "std", "box_lower_90", "box_upper_90", "q0.1"]
    assert list(found) == [f"{target}_{column}" for target in "ab" for column in one]
    u, X = ibug.load(own["enough.ibug"]), pd.read_csv(own["test.csv"])
    np.testing.assert_allclose(found["b_box_upper_90"], u.predict_interval(X, joint=True)[:, 1, 1])
    np.testing.assert_allclose(found["b_q0.1"], u.predict_quantiles(X, 0.1)[:, 1, 0])
