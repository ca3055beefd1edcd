"""What holds for the whole tree of files."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

import ibug
from tests.source_code import modules, private_uses

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
TESTS = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path.name not in ("__init__.py", "conftest.py")]


def refuse(found):
    """Fail where there is something, and say it all."""
    lines = "\n".join(map(str, found))
    if lines:
        pytest.fail(lines, pytrace=False)


def test_no_two_test_files_have_one_name():
    times = Counter(path.name for path in TESTS)
    refuse(path for path in TESTS if times[path.name] > 1)


def test_tests_mirror_the_package():
    """A folder of tests is named after a package or module of ibug, or after a folder of the checkout."""
    package, study = ROOT / "src" / "ibug", ROOT / "tests" / "study"
    for folder in sorted({path.parent for path in TESTS} - {ROOT / "tests", study}):
        name = folder.relative_to(ROOT / "tests")
        subjects = (package / name, (package / name).with_suffix(".py"), ROOT / name)
        refuse([] if any(subject.exists() for subject in subjects) else [folder])


def test_tests_are_imported_by_their_whole_names():
    """No folder is put on the path: ``tests`` and ``benchmarks`` are packages beside the root's conftest.py."""
    assert (ROOT / "conftest.py").exists()
    assert "pythonpath" not in SETTINGS["pytest"]["ini_options"]
    folders = {path.parent for path in TESTS}
    refuse(folder for folder in sorted(folders) if not (folder / "__init__.py").exists())


def test_estimators_are_composed_not_inherited():
    for estimator in (ibug.IBUGRegressor, ibug.CBURegressor, ibug.ProbabilisticEnsemble):
        ours = [cls for cls in estimator.__mro__ if cls.__module__.startswith("ibug")]
        assert len(ours) <= 2, ours


def test_no_package_uses_what_is_private_to_another():
    refuse(private_uses(modules(ROOT / "src" / "ibug")))
