"""Small files that would take much memory: refused before it is taken."""

import copy
import io
import tracemalloc
import zipfile

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import ibug
from ibug import IBUGRegressor
from ibug.exceptions import FileFormatError
from ibug.persistence import inspect
from ibug.persistence._container import LEAST_BYTES, MOST_MARKS, Budget, FormatProblemError, json_bytes
from tests.persistence.forge import manifest_of, nodes_of_schema, npy, put_together, take_apart, with_other_model

pytestmark = [pytest.mark.once, pytest.mark.kernel]


@pytest.fixture(scope="module")
def saved(wrapped, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.ibug"
    wrapped.save(path, compress=False)
    return path


@pytest.fixture(scope="module")
def forest(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("forest") / "model.ibug"
    X, y = rows["numbers"], rows["y"]
    model = RandomForestRegressor(2, max_leaf_nodes=5, random_state=0).fit(X[40:], y[40:])
    u = IBUGRegressor(model, prefit=True, k=5, distribution="normal")
    u.fit(X[40:], y[40:], X_val=X[:40], y_val=y[:40]).save(path)
    return path


def refused(function, path, message, most=LEAST_BYTES):
    """Check that the file is refused, with little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=message):
            function(path)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def test_an_array_that_is_mentioned_again_and_again(saved, tmp_path):
    members = take_apart(saved)
    manifest = manifest_of(members)
    name = next(name for name in manifest["members"] if "targets" in name)
    manifest["estimator"]["learned"]["more"] = [{"$array": name} for _ in range(10_000)]
    refused(ibug.load, put_together(tmp_path / "model.ibug", members, manifest), "more than once")


def test_a_model_that_is_mentioned_again(saved, tmp_path):
    members = take_apart(saved)
    manifest = manifest_of(members)
    manifest["estimator"]["estimator"] = copy.deepcopy(manifest["estimator"]["model"])
    refused(ibug.load, put_together(tmp_path / "model.ibug", members, manifest), "more than once")


def test_an_array_that_skops_would_read_again_and_again(forest, tmp_path):
    def change(members):
        members["zeros.npy"] = npy(np.zeros(10**5))
        node = {
            "__class__": "ndarray",
            "__module__": "numpy",
            "__loader__": "NdArrayNode",
            "type": "numpy",
            "file": "zeros.npy",
        }
        more = [{**node, "__id__": i} for i in range(5_000)]  # 4 GB
        root = members["schema.json"]["content"]["content"]
        root["more"] = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": more}

    refused(ibug.load, with_other_model(forest, tmp_path / "model.ibug", change), "beyond .* MiB")


@pytest.mark.parametrize("shape", [(10**13,), (10**6, 10**6), (3,)])
def test_an_array_that_is_not_as_long_as_its_header_says(shape, forest, tmp_path):
    def change(members):
        name = next(name for name in members if name.endswith(".npy"))
        header = io.BytesIO()
        described = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, described)
        members[name] = header.getvalue() + bytes(16)

    refused(ibug.load, with_other_model(forest, tmp_path / "model.ibug", change), "as long as its header says")


def test_a_sparse_matrix_that_is_a_bomb(forest, tmp_path):
    def change(members):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.npy", npy(np.zeros(2 * 10**7)))
        members["bomb.npz"] = file.getvalue()

    path = with_other_model(forest, tmp_path / "model.ibug", change)
    refused(ibug.load, path, "beyond .* MiB")


def test_raw_memory(forest, tmp_path):
    def change(members):
        next(n for n in nodes_of_schema(members["schema.json"]) if n.get("__class__") == "ndarray")["__class__"] = (
            "void"
        )

    refused(ibug.load, with_other_model(forest, tmp_path / "model.ibug", change), "raw memory")


@pytest.mark.parametrize("function", [ibug.load, inspect])
def test_json_of_very_many_values(function, saved, tmp_path, monkeypatch):
    monkeypatch.setattr("ibug.persistence._container.MOST_MARKS", 2**17)  # quicker
    members = take_apart(saved)
    manifest = manifest_of(members)
    manifest["metadata"] = {"nothing": [[]] * 2**18}
    refused(function, put_together(tmp_path / "model.ibug", members, manifest), r"525,\d\d\d brackets", 2**25)


def test_bounds_of_json():
    assert json_bytes(b"[" + b"[]," * 1000 + b"[]]") > 1000 * 56
    assert json_bytes(b'{"a": 1}') < 1000
    with pytest.raises(FormatProblemError, match="brackets"):
        json_bytes(b"," * MOST_MARKS)


def test_the_budget_grows_with_the_file():
    budget = Budget(10**9)
    budget.spend(4 * 10**9, "a large file")
    with pytest.raises(FormatProblemError, match="3,879 MiB, the most for a file of this size"):
        budget.spend(LEAST_BYTES + 1, "it")
