"""How files are written: whole or not at all, small, mappable; and what cannot be saved."""

import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import ibug
from ibug import IBUGRegressor
from ibug.distributions import Normal, register
from ibug.exceptions import (
    FileFormatError,
    InvalidInputError,
    MissingDependencyError,
    NotStorableError,
    NotStoredWarning,
)
from ibug.persistence import NotStored, inspect
from ibug.persistence._atomic import replacing
from tests.persistence.forge import manifest_of, put_together, take_apart
from tests.persistence.same import assert_same


def mean_crps(y, distribution):
    return float(np.mean(distribution.crps(y)))


class OwnLaw(Normal):
    pass


def small(**options):
    return IBUGRegressor(LGBMRegressor(n_estimators=4, num_leaves=5, verbose=-1), k=10, random_state=0, **options)


def test_an_unfitted_one_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        IBUGRegressor().save(tmp_path / "model.ibug")
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_whole_when_writing_fails(wrapped, rows, tmp_path, monkeypatch):
    path = tmp_path / "model.ibug"
    wrapped.save(path)
    before = path.read_bytes()

    def full_disk(*args):
        raise OSError(28, "No space left on device")

    for target in ("os.fsync", "os.replace", "ibug.persistence._container.ContainerWriter.finish"):
        with monkeypatch.context() as patch:
            patch.setattr(target, full_disk)
            with pytest.raises(OSError, match="No space"):
                wrapped.save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = (
        "import os, sys; from ibug.persistence._atomic import replacing\n"
        "with replacing(sys.argv[1]) as file:\n    file.write(b'new'); file.flush(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 9
    assert path.read_bytes() == b"old"


@pytest.mark.skipif(os.name != "posix", reason="links and permissions are POSIX's")
def test_links_and_permissions_are_kept(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_folder_that_is_not_there(wrapped, tmp_path):
    with pytest.raises(FileNotFoundError):
        wrapped.save(tmp_path / "no" / "model.ibug")


@pytest.fixture(scope="module")
def large():
    """An index that is worth mapping."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    y = X[:, 0] + rng.normal(size=len(X))
    model = LGBMRegressor(n_estimators=20, verbose=-1).fit(X, y)
    return IBUGRegressor(model, prefit=True, k=20, calibrate=False).fit(X, y), X


def base_of(array):
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_arrays_are_mapped_where_they_are_not_compressed(large, tmp_path):
    import mmap

    u, X = large
    path = tmp_path / "model.ibug"
    u.save(path, compress=False)
    v, copied = ibug.load(path), ibug.load(path, mmap=False)
    tiles = v.source_.index.arrays()["tiles"]
    assert isinstance(base_of(tiles), mmap.mmap)
    assert tiles.ctypes.data % 64 == 0
    assert not tiles.flags.writeable
    assert isinstance(base_of(v.training_targets_), mmap.mmap)
    assert not isinstance(base_of(copied.source_.index.arrays()["tiles"]), mmap.mmap)
    for one in (v, copied):
        assert_same(u, one, X[:50])
    u.save(path)  # a new file in its place: the mapped one is still there
    assert_same(u, v, X[:50])
    assert not isinstance(base_of(ibug.load(path).source_.index.arrays()["tiles"]), mmap.mmap)


def test_compressed_files_are_small(large, tmp_path):
    import pickle

    u, _ = large
    for name, compress in (("small", True), ("mappable", False)):
        u.save(tmp_path / name, compress=compress)
    compressed = (tmp_path / "small").stat().st_size
    assert compressed < (tmp_path / "mappable").stat().st_size < 1.02 * len(pickle.dumps(u))
    raw = sum(facts["stored"] for facts in inspect(tmp_path / "small")["members"].values())
    assert compressed < raw + 20_000  # the manifest and the container itself are next to nothing


def test_arrays_are_plain_npy_files(wrapped, tmp_path):
    wrapped.save(tmp_path / "model.ibug")
    with zipfile.ZipFile(tmp_path / "model.ibug") as archive:
        assert archive.testzip() is None
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        arrays = {name: np.load(io.BytesIO(archive.read(name)), allow_pickle=False) for name in names}
        model = next(name for name in archive.namelist() if name.startswith("models/"))
        assert archive.read(model).startswith(b"tree\n")
    assert np.array_equal(arrays["arrays/learned/targets.npy"], wrapped.training_targets_)


def test_the_manifest_describes_the_content(wrapped, tmp_path):
    wrapped.save(tmp_path / "model.ibug")
    manifest = inspect(tmp_path / "model.ibug")
    assert manifest["format_version"] == 1
    assert {"ibug", "numpy", "scikit-learn", "lightgbm", "python"} <= set(manifest["written_by"])
    learned = manifest["estimator"]["learned"]
    assert learned["parts"][0]["k"] == wrapped.k_
    assert learned["parts"][0]["gamma"] == wrapped.rule_.gamma
    assert learned["feature_types_"][0] == {"name": "age", "dtype": "float64"}
    json.dumps(manifest, allow_nan=False)


def test_categories_are_feature_types(rows):
    u = small(calibrate=False).fit(rows["categories"], rows["y"])
    assert u.feature_types_[-1] == {"name": "letter", "dtype": "category", "categories": ["high", "low", "middle"]}
    assert small(calibrate=False).fit(rows["array"], rows["y"]).feature_types_[0] == {"name": None, "dtype": "float64"}


def test_a_function_that_only_fitting_needs_is_left_out(rows, tmp_path):
    X, y = rows["numbers"], rows["y"]
    u = small(scoring=mean_crps, cv=KFold(3)).fit(X, y)
    with pytest.warns(NotStoredWarning) as warned:
        u.save(tmp_path / "model.ibug")
    assert {"scoring", "cv"} == {str(one.message).split("'")[1] for one in warned}
    v = ibug.load(tmp_path / "model.ibug")
    assert_same(u, v, X)
    assert isinstance(v.scoring, NotStored)
    assert "mean_crps" in repr(v.scoring)
    with pytest.raises(NotStorableError, match="set_params"):
        v.recalibrate(X, y, distribution="tune")
    v.save(tmp_path / "again.ibug")
    assert ibug.load(tmp_path / "again.ibug").scoring == v.scoring
    assert v.set_params(scoring="crps").recalibrate(X, y, distribution="tune").k_ > 0


def test_distributions_of_ones_own_need_a_name(rows, tmp_path, monkeypatch):
    X, y = rows["numbers"], rows["y"]
    u = small(distribution=OwnLaw).fit(X, y)
    with pytest.raises(NotStorableError, match="register"):
        u.save(tmp_path / "model.ibug")
    assert list(tmp_path.iterdir()) == []
    families = {}
    monkeypatch.setattr("ibug.distributions._registry._FAMILIES", families)
    families.update(normal=Normal)
    register("own", OwnLaw)
    u = small(distribution="own").fit(X, y)
    u.save(tmp_path / "model.ibug")
    assert_same(u, ibug.load(tmp_path / "model.ibug"), X)
    del families["own"]
    with pytest.raises(FileFormatError, match="register"):
        ibug.load(tmp_path / "model.ibug")


class OwnRegressor(IBUGRegressor):
    pass


class OwnModel(LGBMRegressor):
    pass


@pytest.mark.parametrize(
    "u", [OwnRegressor(LGBMRegressor(n_estimators=3, verbose=-1), k=9), IBUGRegressor(OwnModel(n_estimators=3), k=9)]
)
def test_classes_of_ones_own_are_refused(u, rows, tmp_path):
    u.set_params(estimator__verbose=-1).fit(rows["numbers"], rows["y"])
    with pytest.raises(NotStorableError, match="Own"):
        u.save(tmp_path / "model.ibug")


def test_a_missing_folder_is_named(wrapped, tmp_path):
    with pytest.raises(FileNotFoundError, match="folder to save into does not exist") as caught:
        wrapped.save(tmp_path / "models" / "new" / "model.ibug")
    assert caught.value.filename == str(tmp_path / "models" / "new")


def test_trusted_is_a_list_of_names(wrapped, tmp_path):
    with pytest.raises(InvalidInputError, match="list"):
        wrapped.save(tmp_path / "model.ibug", trusted="module.name")
    wrapped.save(tmp_path / "model.ibug", trusted=["module.name"])
    with pytest.raises(InvalidInputError, match="list"):
        ibug.load(tmp_path / "model.ibug", trusted="module.name")


@pytest.mark.parametrize(
    "model", [GradientBoostingRegressor(n_estimators=3), HistGradientBoostingRegressor(max_iter=3)]
)
def test_forged_trees_of_scikit_learn(model, rows, tmp_path):
    """A tree that leads out of its arrays would let scikit-learn read foreign memory."""
    u = IBUGRegressor(model, k=9, calibrate=False).fit(rows["array"], rows["y"])
    path = tmp_path / "model.ibug"
    u.save(path)
    members = take_apart(path)
    name = next(name for name in members if name.endswith(".skops") and name.startswith("models/1"))
    forged = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(members[name])) as old, zipfile.ZipFile(forged, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith(".npy"):
                array = np.load(io.BytesIO(data))
                fields = array.dtype.names or ()
                if "left_child" in fields or "left" in fields:
                    array["left_child" if "left_child" in fields else "left"][0] = 10**6
                    file = io.BytesIO()
                    np.save(file, array)
                    data = file.getvalue()
            new.writestr(info.filename, data)
    manifest = manifest_of(members)
    put_together(path, {**members, name: forged.getvalue()}, manifest)
    with pytest.raises(FileFormatError, match="leads out of its own arrays"):
        ibug.load(path)


def test_without_skops(rows, tmp_path, monkeypatch):
    X, y = rows["numbers"], rows["y"]
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=3), k=9, random_state=0).fit(X, y)
    u.save(tmp_path / "model.ibug")
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for action in (lambda: u.save(tmp_path / "other.ibug"), lambda: ibug.load(tmp_path / "model.ibug")):
        with pytest.raises(MissingDependencyError, match=r"ibug-learn\[skops\]"):
            action()
    small().fit(X, y).save(tmp_path / "lightgbm.ibug")  # needs none


def test_processes_share_a_mapped_file(large, tmp_path):
    """Two processes that map the same file predict the same."""
    u, X = large
    path = tmp_path / "model.ibug"
    u.save(path, compress=False)
    np.save(tmp_path / "X.npy", X[:20])
    code = (
        "import sys, numpy as np, ibug; u = ibug.load(sys.argv[1]);"
        "sys.stdout.buffer.write(u.predict_interval(np.load(sys.argv[2])).tobytes())"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code, path, tmp_path / "X.npy"], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for run in runs:
        out, _ = run.communicate(timeout=120)
        assert out == u.predict_interval(X[:20]).tobytes()
