"""Columns may have any name: libraries that refuse some get others, and users see their own everywhere."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBRegressor

import ibug
from ibug import IBUGRegressor
from ibug.exceptions import FileFormatError
from ibug.leaves import names_taken
from tests.persistence.forge import manifest_of, put_together, take_apart

NAMES = ["a [USD]", "b: x", "zone, type", "größe", 'say "it"', "{c} <d>"]
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 6)), columns=NAMES)
Y = X["a [USD]"].to_numpy() + rng.normal(size=120)

MODELS = {
    "lightgbm": LGBMRegressor(n_estimators=5, num_leaves=5, verbose=-1, n_jobs=1),
    "xgboost": XGBRegressor(n_estimators=5, n_jobs=1),
    "catboost": CatBoostRegressor(iterations=5, verbose=0, allow_writing_files=False, thread_count=1),
    "histogram": HistGradientBoostingRegressor(max_iter=5),
    "target": TransformedTargetRegressor(LGBMRegressor(n_estimators=5, num_leaves=5, verbose=-1, n_jobs=1)),
    "one step": make_pipeline(XGBRegressor(n_estimators=5, n_jobs=1)),
    "steps": make_pipeline(
        make_column_transformer((StandardScaler(), ["zone, type", "größe"])),
        LGBMRegressor(n_estimators=5, num_leaves=5, verbose=-1, n_jobs=1),
    ),
}


@pytest.mark.filterwarnings("ignore::ibug.exceptions.NotCentralWarning")  # five trees are few
@pytest.mark.parametrize("way", ["cross-fitted", "split", "validated"])
@pytest.mark.parametrize("name", list(MODELS))
def test_every_booster_takes_every_name(name, way, tmp_path):
    options = {"spread": "targets"} if way == "split" else {"cv": 2} if way == "cross-fitted" else {}
    u = IBUGRegressor(MODELS[name], random_state=0, k=10, distribution="normal", **options)
    rows = {"X_val": X[90:], "y_val": Y[90:]} if way == "validated" else {}
    u.fit(X[:90], Y[:90], **rows)
    assert u.feature_names_in_.tolist() == NAMES
    assert [column["name"] for column in u.feature_types_] == NAMES
    expected = u.predict_interval(X)
    u.save(tmp_path / "model.ibug")
    for other in (ibug.load(tmp_path / "model.ibug"), pickle.loads(pickle.dumps(u))):
        assert other.feature_names_in_.tolist() == NAMES
        assert other.predict_interval(X).tobytes() == expected.tobytes()
        assert other.predict(X).tobytes() == u.predict(X).tobytes()
    with pytest.raises(ValueError, match="größe"):  # the user's names, in the message, too
        u.predict(X.rename(columns={"größe": "other"}))
    with pytest.raises(ValueError, match="order"):
        u.predict(X[NAMES[::-1]])


def test_predictions_are_those_of_the_same_data_under_plain_names():
    model = MODELS["lightgbm"]
    plain = X.set_axis(list("abcdef"), axis=1)
    u = IBUGRegressor(model, random_state=0, k=10, distribution="normal").fit(X, Y)
    same = IBUGRegressor(model, random_state=0, k=10, distribution="normal").fit(plain, Y)
    assert u.predict_interval(X).tobytes() == same.predict_interval(plain).tobytes()
    assert u.source_.walk == same.source_.walk == "compiled walk"


def test_polars_and_eval_sets(recwarn):
    u = IBUGRegressor(MODELS["xgboost"], k=10, calibrate=False, spread="targets")
    frame = pl.from_pandas(X)
    assert u.fit(frame, Y).predict(frame).shape == (120,)
    early = XGBRegressor(n_estimators=5, n_jobs=1, early_stopping_rounds=3)
    u = IBUGRegressor(early, k=10, calibrate=False, spread="targets")
    assert u.fit(X, Y, eval_set=[(X, Y)], verbose=False).predict(X).shape == (120,)
    whole = X.assign(**{"zone, type": np.arange(120) % 4})
    u = IBUGRegressor(MODELS["lightgbm"], k=10, calibrate=False, spread="targets")
    u.fit(whole, Y, categorical_feature=["zone, type"])
    assert "zone__type" in u.estimator_.booster_.feature_name()


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["a b", "c"], None),
        (["a b", "a_b"], ["a_b", "a_b_2"]),
        (["a:", "a_2", "a_"], ["a_", "a_2", "a__2"]),
        (["", "x"], ["_", "x"]),
        (["größe", "größe:"], ["größe", "größe_"]),
    ],
)
def test_names_for_lightgbm(names, taken):
    assert names_taken(LGBMRegressor(), names) == taken
    frame = pd.DataFrame(rng.normal(size=(60, len(names))), columns=names)
    u = IBUGRegressor(MODELS["lightgbm"], k=5, calibrate=False, spread="targets").fit(frame, rng.normal(size=60))
    assert u.predict(frame).shape == (60,)


def test_forged_names_are_refused(tmp_path):
    path = tmp_path / "model.ibug"
    IBUGRegressor(MODELS["xgboost"], k=5, calibrate=False, spread="targets").fit(X, Y).save(path)
    for names in (["a"] * 6, ["a"], [1, 2, 3, 4, 5, 6], "abcdef"):
        members = take_apart(path)
        manifest = manifest_of(members)
        manifest["estimator"]["learned"]["reader"]["names"] = names
        put_together(tmp_path / "forged.ibug", members, manifest)
        with pytest.raises(FileFormatError, match="names"):
            ibug.load(tmp_path / "forged.ibug")
