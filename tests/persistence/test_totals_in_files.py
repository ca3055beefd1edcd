"""What rows of a block have in common, in files, pickles and clones."""

import copy
import io
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor

import ibug
from ibug import IBUGRegressor
from ibug.exceptions import FileFormatError
from tests.persistence.forge import manifest_of, put_together, take_apart

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X, day = rng.normal(size=(600, 2)), np.arange(600) // 12
    y = X[:, 0] + rng.normal(size=50)[day] + rng.normal(size=600)
    model = GradientBoostingRegressor(n_estimators=8, random_state=0).fit(X[:300], y[:300])
    u = IBUGRegressor(model, prefit=True)
    return u.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:], blocks_val=day[300:]), X, day


def same_totals(first, second, X, day):
    for name in ("loc", "scale", "lower", "upper"):
        one, other = (getattr(u.total_dist(X, day // 2, blocks=day), name) for u in (first, second))
        np.testing.assert_array_equal(one, other)


def test_a_file_keeps_what_blocks_have_in_common(fitted, tmp_path):
    u, X, day = fitted
    u.save(tmp_path / "model.ibug")
    again = ibug.load(tmp_path / "model.ibug")
    assert str(again.dependence_) == str(u.dependence_)
    assert again.dependence_.columns is None
    same_totals(u, again, X, day)


def test_pickles_copies_and_clones(fitted):
    u, X, day = fitted
    for again in (pickle.loads(pickle.dumps(u)), copy.deepcopy(u)):
        same_totals(u, again, X, day)
    assert clone(u).dependence_ is None


def test_names_of_columns_and_several_targets(tmp_path):
    rng = np.random.default_rng(1)
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": rng.normal(size=600), "day": np.arange(600) // 12 % 25})
    y = rng.normal(size=(600, 2)) + rng.normal(size=(50, 2))[np.arange(600) // 12]
    model = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=8, random_state=0)).fit(X[:300], y[:300])
    u = IBUGRegressor(model, prefit=True).fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:], blocks_val="day")
    u.save(tmp_path / "model.ibug")
    again = ibug.load(tmp_path / "model.ibug")
    assert again.dependence_.columns == ("day",)
    np.testing.assert_array_equal(again.dependence_.correlation, u.dependence_.correlation)
    np.testing.assert_array_equal(again.predict_total(X, "day"), u.predict_total(X, "day"))


def test_without_blocks_nothing_is_kept(fitted, tmp_path):
    u, X, _ = fitted
    model = u.estimator_
    plain = IBUGRegressor(model, prefit=True, k=20, calibrate=False).fit(X[:300], X[:300, 0])
    plain.save(tmp_path / "model.ibug")
    assert "dependence_" not in manifest_of(take_apart(tmp_path / "model.ibug"))["estimator"]["learned"]
    assert ibug.load(tmp_path / "model.ibug").dependence_ is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": []}, "its blocks are impossible"),
        ({"names": [3]}, "its blocks are impossible"),
        ({"n_blocks": [1]}, "its blocks are impossible"),
        ({"n_blocks": ["many"]}, "its blocks are impossible"),
        ({"columns": ["day", "hour"]}, "its blocks are impossible"),
        ({"columns": [None]}, "its blocks are impossible"),
        ({"correlation": [2.0]}, "correlations of its blocks"),
        ({"correlation": [-0.5]}, "correlations of its blocks"),
        ({"standard_error": [np.nan]}, "correlations of its blocks"),
        ({"correlation": [[0.1, 0.1]], "estimate": [[0.1, 0.1]], "standard_error": [[0.1, 0.1]]}, "correlations of"),
    ],
)
def test_forged_states_are_refused(change, message, fitted, tmp_path):
    u, _, _ = fitted
    u.save(tmp_path / "model.ibug")
    members = take_apart(tmp_path / "model.ibug")
    manifest = manifest_of(members)
    state = manifest["estimator"]["learned"]["dependence_"]
    for name, value in change.items():
        if not isinstance(state[name], dict):
            state[name] = value
            continue
        array, file = np.asarray(value, float), io.BytesIO()
        member = next(one for one in members if f"dependence_/{name}" in one)
        np.save(file, array)
        members[member] = file.getvalue()
        manifest["members"][member].update({"dtype": array.dtype.str, "shape": list(array.shape)})
    path = put_together(tmp_path / "forged.ibug", members, manifest)
    with pytest.raises(FileFormatError, match=message):
        ibug.load(path)
