"""The type stub of the kernel tells what the kernel has."""

import ast
import re
from pathlib import Path

import pytest

import ibug.neighbors
from ibug.neighbors import _kernel

STUB = ast.parse((Path(ibug.neighbors.__file__).parent / "_kernel.pyi").read_text())
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
VALUES = {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign) if not node.target.id.startswith("_")}


def test_names():
    assert {name for name in dir(_kernel) if not name.startswith("_")} == FUNCTIONS.keys() | VALUES


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments(name):
    # nanobind's signatures are no Python inside the brackets of array types.
    overloads = [re.sub(r"\[[^][]*\]", "", signature) for signature, *_ in getattr(_kernel, name).__nb_signature__]
    found = {tuple(re.findall(r"[(,]\s*(\w+):", signature)) for signature in overloads}
    assert found == {tuple(argument.arg for argument in FUNCTIONS[name].args.args)}
