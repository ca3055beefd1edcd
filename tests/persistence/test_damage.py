"""Whatever is wrong with a file is an error, and nothing of it is believed."""

import copy
import hashlib
import io
import json
import os
import pickle
import stat
import sys
import zipfile

import numpy as np
import pytest

import ibug
from ibug.exceptions import FileFormatError, MissingDependencyError, OlderLibraryWarning
from ibug.persistence import inspect
from tests.persistence.forge import manifest_of, put_together, take_apart
from tests.persistence.same import assert_same

pytestmark = [pytest.mark.once, pytest.mark.kernel]


@pytest.fixture(scope="module")
def saved(wrapped, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.ibug"
    wrapped.save(path, compress=False)
    return path


@pytest.fixture
def parts(saved):
    members = take_apart(saved)
    return members, manifest_of(members)


def refuses(path, message, **options):
    with pytest.raises(FileFormatError, match=message) as caught:
        ibug.load(path, **options)
    assert str(path) in str(caught.value)


def test_put_together_again_it_is_accepted(parts, tmp_path, wrapped, rows):
    path = put_together(tmp_path / "model.ibug", *parts)
    assert_same(wrapped, ibug.load(path), rows["numbers"])


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        ibug.load(tmp_path / "model.ibug")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"tree\nversion=v4\n" * 9, "not a file that ibug has saved"),
        (pickle.dumps([1, 2, 3]), "pickle"),
        (b"PK\x03\x04" + bytes(100), "truncated"),
    ],
)
def test_other_files(data, message, tmp_path):
    path = tmp_path / "model.ibug"
    path.write_bytes(data)
    refuses(path, message)


def test_another_zip(tmp_path):
    path = tmp_path / "model.ibug"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    refuses(path, r"without manifest\.json")


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
def test_truncated(share, saved, tmp_path):
    data = saved.read_bytes()
    path = tmp_path / "model.ibug"
    path.write_bytes(data[: int(share * len(data))])
    refuses(path, "truncated")


def test_a_flipped_bit_in_a_member(saved, tmp_path):
    data = bytearray(saved.read_bytes())
    start = data.index(b"\x93NUMPY") + 200
    data[start] ^= 4
    path = tmp_path / "model.ibug"
    path.write_bytes(data)
    refuses(path, "checksum")


def test_a_changed_manifest(parts, tmp_path):
    members, manifest = parts
    manifest["estimator"]["learned"]["parts"][0]["gamma"] = 2.5
    path = tmp_path / "model.ibug"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, json.dumps(manifest) if name == "manifest.json" else data)
    refuses(path, r"manifest\.json is damaged")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not one of ibug"),
        ({"format_version": 3}, "version 3.*Install a newer one"),
        ({"format_version": "1"}, "version of its format"),
        ({"members": []}, "members"),
        ({"needs": {}}, "needs"),
        ({"estimator": None}, "estimator"),
        ({"estimator": {"class": "os.system"}}, "not known"),
    ],
)
def test_manifests_of_others(change, message, parts, tmp_path):
    members, manifest = parts
    if "members" in change or "estimator" in change:
        refuses(put_together(tmp_path / "m.ibug", members, {**manifest, **change}), message)
    else:
        refuses(put_together(tmp_path / "m.ibug", members, {**manifest, **change}, keep_facts=False), message)


def test_members_that_are_missing_or_unknown(parts, tmp_path):
    members, manifest = parts
    fewer = {name: data for name, data in members.items() if "targets" not in name}
    refuses(put_together(tmp_path / "fewer.ibug", fewer, manifest), "missing .*targets")
    refuses(put_together(tmp_path / "more.ibug", {**members, "run.py": b"1"}, manifest), r"unknown .*run\.py")


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../up", "a/../../b", "C:\\x", "a//b", "a/", "ü", ".hidden", "x" * 300]
)
def test_path_tricks(name, parts, tmp_path):
    members, manifest = parts
    manifest["members"][name] = {}
    refuses(put_together(tmp_path / "model.ibug", {**members, name: b"x"}, manifest), "name")


def test_two_members_of_one_name(parts, tmp_path):
    path = put_together(tmp_path / "model.ibug", *parts)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("manifest.json", "{}")
    refuses(path, "two members")


def test_links(parts, tmp_path):
    path = put_together(tmp_path / "model.ibug", *parts)
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(info, "/etc/passwd")
    refuses(path, "a link")


def test_a_bomb(parts, tmp_path):
    """A member that would need gigabytes is refused before memory is taken for it."""
    members, _ = parts
    name = next(name for name in members if "targets" in name)
    path = tmp_path / "model.ibug"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for other, data in members.items():
            archive.writestr(other, bytes(10**8) if other == name else data)
    with zipfile.ZipFile(path) as archive:
        stored = archive.getinfo(name).compress_size
    data = path.read_bytes().replace((10**8).to_bytes(4, "little"), (4 * 10**9).to_bytes(4, "little"))
    path.write_bytes(data)
    assert 1032 * stored < 4 * 10**9
    refuses(path, "absurd size")


def test_more_than_the_memory(wrapped, tmp_path, monkeypatch):
    wrapped.save(tmp_path / "model.ibug")
    monkeypatch.setattr("ibug.persistence._files.memory_bytes", lambda: 1000)
    refuses(tmp_path / "model.ibug", "memory")


@pytest.mark.parametrize("verify", [True, False])
def test_arrays_that_are_not_as_described(verify, parts, tmp_path):
    members, manifest = parts
    name = next(name for name in members if "targets" in name)
    for array in (
        np.zeros(3),
        np.zeros(240, np.float32),
        np.array([None] * 240),
        np.asfortranarray(np.zeros((20, 12))),
    ):
        file = io.BytesIO()
        np.save(file, array, allow_pickle=True)
        changed = {**members, name: file.getvalue()}
        path = put_together(tmp_path / "model.ibug", changed, copy.deepcopy(manifest))
        refuses(path, "array", verify=verify)
    refuses(put_together(tmp_path / "m.ibug", {**members, name: b"\x93NUMPY"}, manifest), "array", verify=verify)


def replaced(members, part, array):
    """Return members and a changer of the manifest, with another array in place of one."""
    name = next(name for name in members if part in name)
    file = io.BytesIO()
    np.save(file, array)
    return {**members, name: file.getvalue()}, name, {"dtype": array.dtype.str, "shape": list(array.shape)}


@pytest.mark.parametrize(
    ("part", "array", "message"),
    [
        ("targets", np.zeros(10), "does not match its targets"),
        ("residuals", np.zeros(10), "do not match"),
        ("numbering", np.full((6, 32), 10**6, np.int32), "numbering"),
        ("leaf_counts", np.full(6, 10**6, np.int32), "leaf_counts"),
        ("leaf_counts", np.zeros(3, np.int32), "leaf_counts|tiles"),
        ("order", np.zeros(240, np.uint32), "each row number"),
        ("order", np.arange(10**5, dtype=np.uint32), "tiles of 100000 rows"),
        ("order", np.arange(240.0), "order must be an array of uint32"),
        ("tiles", np.zeros((1, 8, 16), np.uint8), "tiles of 240 rows"),
        ("tiles", np.zeros((16, 5, 16), np.uint8), "tiles of 240 rows"),
        ("tiles", np.zeros((16, 8, 16), np.float64), "tiles must be an array"),
    ],
)
def test_parts_that_do_not_fit_together(part, array, message, parts, tmp_path):
    members, manifest = parts
    changed, name, facts = replaced(members, part, array)
    manifest["members"][name].update(facts)
    refuses(put_together(tmp_path / "model.ibug", changed, manifest), message)


def test_a_model_that_does_not_match(parts, rows, tmp_path):
    from lightgbm import LGBMRegressor

    members, manifest = parts
    name = next(name for name in members if name.startswith("models/"))
    X, y = rows["numbers"], rows["y"]
    trees = LGBMRegressor(n_estimators=7, num_leaves=5, verbose=-1).fit(X, y)
    features = LGBMRegressor(n_estimators=6, num_leaves=5, verbose=-1).fit(X.iloc[:, :4], y)
    for model, message in ((trees, "7 trees, and 6"), (features, "4 features, and 10")):
        text = model.booster_.model_to_string().encode()
        path = put_together(tmp_path / "model.ibug", {**members, name: text}, copy.deepcopy(manifest))
        refuses(path, "does not match its index: it is not the one")
        forged = copy.deepcopy(manifest)
        forged["estimator"]["learned_with"] = [hashlib.sha256(text).hexdigest()]
        refuses(put_together(path, {**members, name: text}, forged), f"does not match its index.*{message}")


def test_another_model_of_the_same_size(parts, rows, tmp_path):
    from lightgbm import LGBMRegressor

    members, manifest = parts
    name = next(name for name in members if name.startswith("models/"))
    other = LGBMRegressor(n_estimators=6, num_leaves=5, verbose=-1, random_state=3).fit(
        rows["numbers"].iloc[::-1] ** 2, rows["y"]
    )
    text = other.booster_.model_to_string().encode()
    refuses(put_together(tmp_path / "m.ibug", {**members, name: text}, manifest), "does not match its index")


def test_a_missing_library(saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingDependencyError, match="pip install lightgbm"):
        ibug.load(saved)
    assert inspect(saved)["needs"] == ["lightgbm"]


def test_an_older_library(parts, tmp_path, wrapped, rows):
    members, manifest = parts
    manifest["written_by"]["lightgbm"] = "99.1.0rc1"
    path = put_together(tmp_path / "model.ibug", members, manifest)
    with pytest.warns(OlderLibraryWarning, match=r"lightgbm 99\.1\.0rc1"):
        v = ibug.load(path)
    assert_same(wrapped, v, rows["numbers"])


def test_without_verifying_sizes_are_still_checked(saved, tmp_path, wrapped, rows):
    assert_same(wrapped, ibug.load(saved, verify=False), rows["numbers"])
    data = saved.read_bytes()
    path = tmp_path / "model.ibug"
    path.write_bytes(data[:1000] + data[1064:])
    refuses(path, ".", verify=False)


def test_the_manifest_can_be_checked_by_hand(saved):
    members = take_apart(saved)
    digest, name = members["manifest.json.sha256"].decode().split()
    assert name == "manifest.json"
    assert digest == hashlib.sha256(members["manifest.json"]).hexdigest()


def test_no_pickle_inside(saved):
    for name, data in take_apart(saved).items():
        assert not name.endswith((".pkl", ".joblib"))
        assert not data.startswith(b"\x80\x04")


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_an_unreadable_file_is_an_error_of_the_system(saved, tmp_path):
    with pytest.raises(IsADirectoryError):
        ibug.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [2.0]}, "sum to 1"),
        ({"weights": [float("nan")]}, "at least zero"),
        ({"weights": [1.0], "drop": True}, "as many weights"),
        ({"bandwidth": -1.0}, "bandwidths"),
        ({"k": 10**4}, "more neighbours than it has"),
        ({"k": 10**9}, "k of at least 1"),
    ],
)
def test_forged_stacks(change, message, wrapped, parts, tmp_path):
    assert wrapped.distribution_ == "stack"
    members, manifest = parts
    stack = manifest["estimator"]["learned"]["parts"][0]["stack"]
    if "k" in change:
        stack["experts"]["targets"][-1][0] = change["k"]
        change = {"weights": [1 / 2], "last": 1 / 2}
    if "weights" in change:
        weights = np.zeros(len(wrapped.stack_["weight"]))
        weights[0] = change["weights"][0]
        weights[len(weights) - 1 - len(stack["experts"]["residuals"])] += change.get("last", 0.0)
        changed, name, facts = replaced(members, "stack/weights", weights[: -1 if "drop" in change else None])
        manifest["members"][name].update(facts)
        members = changed
    else:
        stack.update(change)
    refuses(put_together(tmp_path / "model.ibug", members, manifest), message)


def test_a_stack_that_asks_for_residuals_of_training_rows(rows, tmp_path):
    from lightgbm import LGBMRegressor

    from ibug import IBUGRegressor

    X, y = rows["numbers"], rows["y"]
    model = LGBMRegressor(n_estimators=6, num_leaves=5, verbose=-1, n_jobs=1)
    IBUGRegressor(model, random_state=0).fit(X, y).save(tmp_path / "trained.ibug", compress=False)
    members = take_apart(tmp_path / "trained.ibug")
    manifest = manifest_of(members)
    assert put_together(tmp_path / "model.ibug", members, manifest)
    ibug.load(tmp_path / "model.ibug")
    del members[next(name for name in members if "residuals" in name and name in manifest["members"])]
    manifest["estimator"]["learned"]["residuals"] = None
    manifest["members"] = {name: facts for name, facts in manifest["members"].items() if name in members}
    refuses(put_together(tmp_path / "model.ibug", members, manifest), "neighbours than it has|residuals")
