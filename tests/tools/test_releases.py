"""A release is told the same everywhere, and what the workflows name is there."""

import re
from pathlib import Path

import pytest
from packaging.version import Version

import conftest
from tools import compatibility, rehearsal
from tools.release_notes import notes

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"


@pytest.fixture
def release(tmp_path):
    """A repository that is ready for version 1.2.0."""
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.0 (2026-05-04)\n\n- New.\n\n## 1.1.0 (2026-01-02)\n\n- Old.\n"
    )
    return tmp_path


def test_the_notes_of_a_release_are_its_part_of_the_changelog(release):
    assert notes("v1.2.0", release) == "- New."


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("pyproject.toml", "1.2.0", "1.3.0", "pyproject.toml tells version 1.3.0"),
        ("CITATION.cff", "\nversion: 1.2.0", "\nversion: 1.1.0", "CITATION.cff tells version 1.1.0"),
        ("CHANGELOG.md", "2026-05-04", "unreleased", "must have the heading '## 1.2.0 .YYYY-MM-DD.'"),
        ("CHANGELOG.md", "## 1.2.0", "## 1.2.1", "must have the heading"),
    ],
)
def test_a_tag_that_does_not_fit_is_refused(release, file, before, after, message):
    path = release / file
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(SystemExit, match=message):
        notes("v1.2.0", release)


def test_the_citation_tells_the_version_of_the_package():
    versions = [
        re.search(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE)[1]
        for file, pattern in [("pyproject.toml", '^version = "(.+)"'), ("CITATION.cff", "^version: (.+)")]
    ]
    assert versions[0] == versions[1]
    assert f"## {versions[0]} (" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_table_of_versions_tells_what_the_package_asks_for():
    page = compatibility.PAGE.read_text("utf-8")
    rows = dict(re.findall(r"^\| ([\w-]+) \| [^|]+ \| ([\d.]+) \|", page, re.MULTILINE))
    assert rows == {name: oldest for name, (oldest, _) in compatibility.supported().items()}


def test_the_oldest_versions_that_are_tested_are_the_oldest_that_are_supported():
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "tests" / "oldest.txt").read_text(), re.MULTILINE))
    supported = compatibility.supported()
    tested = {name: Version(pins[name]) for name in pins.keys() & supported.keys()}
    assert tested == {name: Version(supported[name][0]) for name in tested}
    assert {"numpy", "scipy", "scikit-learn", "lightgbm", "xgboost", "catboost", "pandas", "dask"} <= tested.keys()


def test_the_table_has_the_versions_of_environments(tmp_path):
    found = tmp_path / "lib" / "python3.11" / "site-packages" / "numpy-9.8.7.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 9.8.7\n")
    lines = compatibility.table([tmp_path]).splitlines()
    assert any(re.fullmatch(r"\| numpy \| always \| [\d.]+ \| 9\.8\.7 \|", line) for line in lines)
    assert any(re.fullmatch(r"\| lightgbm \| `lightgbm` \| [\d.]+ \| – \|", line) for line in lines)


@pytest.mark.skipif(not WORKFLOWS.is_dir(), reason="the source distribution has no workflows")
def test_the_tests_that_workflows_and_the_rehearsal_name_are_there():
    texts = "\n".join(path.read_text("utf-8") for path in WORKFLOWS.glob("*.yml"))
    named = {*re.findall(r"\btests/[\w/.]+", texts), *rehearsal.TESTS, *conftest.collected_with}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.skipif(not WORKFLOWS.is_dir(), reason="the source distribution has no workflows")
def test_workflows_are_valid():
    yaml = pytest.importorskip("yaml")
    for path in WORKFLOWS.glob("*.yml"):
        workflow = yaml.safe_load(path.read_text("utf-8"))
        assert {"name", "permissions", "jobs"} <= workflow.keys(), path.name
