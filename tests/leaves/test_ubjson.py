"""XGBoost's binary model files say the same as its text files."""

import json

import numpy as np
import pytest

from ibug.leaves._ubjson import parse


def plain(value):
    """Return the value with lists for arrays, and numbers of single precision for all that are no integers."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, np.ndarray)):
        return [plain(each) for each in value]
    return np.float32(value) if isinstance(value, (float, np.floating)) else value


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_model_files(booster, rows):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(n_estimators=5, booster=booster, enable_categorical=True, n_jobs=1)
    native = model.fit(rows.X, rows.y).get_booster()
    assert plain(parse(bytes(native.save_raw("ubj")))) == plain(json.loads(bytes(native.save_raw("json"))))


def test_values():
    content = b"{i\x01a[i\x05U\xffI\x01\x00TFZD\x3f\xf8\x00\x00\x00\x00\x00\x00Si\x02hi]U\x01b{}}"
    assert parse(content) == {"a": [5, 255, 256, True, False, None, 1.5, "hi"], "b": {}}


@pytest.mark.parametrize("content", [b"", b"{", b"{i\x05ab", b"[$d#i\x05\x00", b"[$?#i\x01\x00", b"?", b"L\x00"])
def test_what_is_no_document(content):
    with pytest.raises(ValueError, match=r"Binary JSON|buffer"):
        parse(content)
