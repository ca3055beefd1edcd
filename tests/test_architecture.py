"""What holds for the whole tree of files."""

import re
from collections import Counter
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings the same under its older name
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
TESTS = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path.name not in ("__init__.py", "conftest.py")]


def refuse(found):
    """Fail where there is something, and say it all."""
    lines = "\n".join(map(str, found))
    if lines:
        pytest.fail(lines, pytrace=False)


def test_every_package_has_its_place_among_the_layers():
    (contract,) = SETTINGS["importlinter"]["contracts"]
    assert contract["type"] == "layers"
    assert contract["containers"] == ["ibug"]
    assert contract["exhaustive"]


def test_what_the_oldest_versions_leave_out_is_there():
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    names = " ".join(re.findall(r"^OLDEST_WITHOUT \+?= (.*)$", text, re.MULTILINE)).split()
    assert "docs" in names
    refuse(name for name in names if not (ROOT / "tests" / name).exists())


def test_no_two_test_files_have_one_name():
    times = Counter(path.name for path in TESTS)
    refuse(path for path in TESTS if times[path.name] > 1)


def test_tests_are_imported_by_their_whole_names():
    """No folder is put on the path: ``tests`` and ``benchmarks`` are packages beside the root's conftest.py."""
    assert (ROOT / "conftest.py").exists()
    assert "pythonpath" not in SETTINGS["pytest"]["ini_options"]
    folders = {path.parent for path in TESTS}
    refuse(folder for folder in sorted(folders) if not (folder / "__init__.py").exists())
