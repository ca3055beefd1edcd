"""A stranger's file is tried in a process of its own first."""

import os
import sys

import numpy as np
import pytest

import ibug
from ibug.exceptions import FileFormatError, InvalidInputError, MissingDependencyError
from ibug.persistence import _isolated
from tests.persistence.forge import manifest_of, put_together, take_apart
from tests.persistence.same import assert_same

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def saved(wrapped, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.ibug"
    wrapped.save(path)
    return path


def test_a_file_that_was_saved(saved, wrapped, rows):
    assert_same(wrapped, ibug.load(saved, isolate=True), rows["numbers"])


def test_what_the_child_finds_wrong_is_an_error(saved, tmp_path):
    members = take_apart(saved)
    manifest = manifest_of(members)
    name = next(name for name in members if name.startswith("models/"))
    members[name] = members[name].replace(b"num_leaves=5", b"num_leaves=999999999", 1)
    path = put_together(tmp_path / "model.ibug", members, manifest)
    with pytest.raises(FileFormatError, match="cannot be loaded"):
        ibug.load(path, isolate=True)


def test_what_is_loaded_must_be_what_was_tried(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("ibug.persistence._estimators.try_in_child", lambda *arguments: "0" * 64)
    with pytest.raises(FileFormatError, match="tried first"):
        ibug.load(saved, isolate=True)
    with pytest.raises(InvalidInputError, match="verify=True"):
        ibug.load(saved, isolate=True, verify=False)


def ends(saved, monkeypatch, code, **limits):
    monkeypatch.setattr(_isolated, "_CODE", code)
    for name, value in limits.items():
        monkeypatch.setattr(_isolated, name, value)
    with pytest.raises((FileFormatError, MissingDependencyError)) as caught:
        ibug.load(saved, isolate=True)
    return str(caught.value)


def test_a_library_that_crashes(saved, monkeypatch):
    said = ends(saved, monkeypatch, "import os; os.abort()")
    assert "has died" in said
    assert "Nothing of it was read here" in said
    assert os.name != "posix" or "SIGABRT" in said


def test_a_library_that_hangs(saved, monkeypatch):
    said = ends(saved, monkeypatch, "import time; print('{}', flush=True); time.sleep(60)", LEAST_SECONDS=1.0)
    assert "longer than 1 s" in said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are Linux's")
def test_a_library_that_takes_all_memory(saved, monkeypatch):
    code = "import ibug; from ibug.persistence import _isolated; _isolated._ask = lambda u: bytearray(2**34); "
    said = ends(saved, monkeypatch, code + "_isolated.child()")
    assert "more than 2.0 GiB of memory" in said


def test_a_missing_library_is_named(saved, monkeypatch):
    code = "import sys; sys.modules['lightgbm'] = None; " + _isolated._CODE
    assert "pip install" in ends(saved, monkeypatch, code)


def test_output_of_libraries_does_not_disturb():
    assert _isolated._last_line(b'hello\n{"a": 1}\n{"checksum": "x"}\n') == {"checksum": "x"}
    assert _isolated._last_line(b"") == _isolated._last_line(b"hello") == _isolated._last_line(b"[1]") == {}


def test_no_python_to_start(saved, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(np.inf))
    with pytest.raises(InvalidInputError, match="needs to start"):
        ibug.load(saved, isolate=True)
