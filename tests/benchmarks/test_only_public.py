"""Benchmarks use ibug as its users do: no private module, and no private attribute of another object."""

import ast

import pytest

from tests.benchmarks.started import FOLDER

FILES = sorted(FOLDER.rglob("*.py"))
OWN = ("self", "cls")


def private(name):
    return name.startswith("_") and not name.endswith("__")


def offences(source):
    """Return the lines that import a private module or name, or touch a private attribute of another object."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Attribute) and private(node.attr):
            names = [] if isinstance(node.value, ast.Name) and node.value.id in OWN else [node.attr]
        else:
            continue
        if any(private(part) for name in names for part in name.split(".")):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_only_public_names_are_used(path):
    assert offences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import ibug._progress",
        "from ibug._progress import Progress",
        "from ibug.neighbors import _kernel",
        "from benchmarks.study.methods._base import Split",
        "u._rule.needs",
        "u.rule_._needs",
        "self.model._search(X)",
        "ibug.neighbors._index.instruction_sets()",
        "outcome._replace(status=1)",
    ],
)
def test_what_is_private_is_found(source):
    assert len(offences(source)) == 1


@pytest.mark.parametrize(
    "source", ["from __future__ import annotations", "self._own", "u.k_", "__file__", "super().__init__()", "_own()"]
)
def test_what_is_public_is_not(source):
    assert offences(source) == []


def test_imports_name_the_whole_way():
    scripts = {path.stem for path in FOLDER.glob("[!_]*")} - {"treeffuser"}  # which is also another package's name
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                assert getattr(node, "level", 0) == 0, path
                assert (name or "").split(".")[0] not in scripts, path
