"""The type stub of the kernel tells what the kernel has."""

import ast
import re
from pathlib import Path

import pytest

import ibug.neighbors
from ibug.neighbors import _kernel

STUB = ast.parse((Path(ibug.neighbors.__file__).parent / "_kernel.pyi").read_text())
VALUES = {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign) if not node.target.id.startswith("_")}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def functions(body):
    """Return {name: the arguments of each overload}."""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            arguments = tuple(argument.arg for argument in node.args.args if argument.arg != "self")
            found.setdefault(node.name, set()).add(arguments)
    return found


FUNCTIONS = functions(STUB.body)
METHODS = {(name, method): found for name, node in CLASSES.items() for method, found in functions(node.body).items()}


def overloads(function):
    # nanobind's signatures are no Python inside the brackets of array types.
    signatures = [re.sub(r"\[[^][]*\]", "", signature) for signature, *_ in function.__nb_signature__]
    return {tuple(re.findall(r"[(,]\s*(\w+):", signature)) for signature in signatures}


def test_names():
    assert {name for name in dir(_kernel) if not name.startswith("_")} == {*FUNCTIONS, *VALUES, *CLASSES}


@pytest.mark.parametrize("name", CLASSES)
def test_methods(name):
    found = {method for method in dir(getattr(_kernel, name)) if not method.startswith("_")}
    assert found | {"__init__"} == {method for cls, method in METHODS if cls == name}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments(name):
    assert overloads(getattr(_kernel, name)) == FUNCTIONS[name]


@pytest.mark.parametrize(("cls", "method"), METHODS)
def test_arguments_of_methods(cls, method):
    assert overloads(getattr(getattr(_kernel, cls), method)) == METHODS[cls, method]
