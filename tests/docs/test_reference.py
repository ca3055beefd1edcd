"""Every public name is in the API reference, and its docstring has its parameters. Sphinx is not needed for this."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_origin

import pytest

import ibug

pytestmark = pytest.mark.once

REFERENCE = Path(__file__).parents[2] / "docs" / "api"
PACKAGE = Path(ibug.__file__).parent
# What a module needs beyond ibug itself; where it is absent, the module's names are read from its source.
OPTIONAL = {"ibug.dask": "distributed", "ibug.skpro": "skpro", "ibug.mlflow": "mlflow"}
# Packages whose names are all for users; of the others the reference lists what is.
PUBLIC = [
    "ibug",
    "ibug.exceptions",
    "ibug.metrics",
    "ibug.plotting",
    "ibug.dask",
    "ibug.skpro",
    "ibug.mlflow",
]


def section(doc: str | None, title: str) -> str | None:
    """Return the text of one section, or None where the docstring has no such section."""
    text = inspect.cleandoc(doc or "")
    found = re.search(
        rf"^{title}\n-{{{len(title)}}}\n(.*?)(?=^[A-Z][\w ]+\n-{{3,}}\n|\Z)", text, re.MULTILINE | re.DOTALL
    )
    return None if found is None else found[1]


def documented(doc: str | None, title: str = "Parameters") -> list[str]:
    """Return the names of a section, in its order: ``a, b : int`` are two, ``**options`` is ``options``."""
    lines = (section(doc, title) or "").splitlines()
    heads = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def expected(function: Any, *, bound: bool = False) -> list[str]:
    """Return the parameters of a function or a class, or those of a method without its first one."""
    names = [name for name in inspect.signature(function).parameters if not name.startswith("_")]
    return names[1:] if bound else names


def public_names(module: str) -> list[str]:
    """Return the names of ``__all__``, without importing the module."""
    path = PACKAGE.parent / module.replace(".", "/")
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
    return re.findall(r'"(\w+)"', re.search(r"__all__ = \[(.*?)\]", source, re.DOTALL)[1])


def listed() -> dict[str, set[str]]:
    """Return the names that the reference's pages list, by the module that stands above them."""
    found: dict[str, set[str]] = {}
    for page in REFERENCE.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```\{eval-rst\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            module = ""
            for line in block.splitlines():
                if current := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
                    module = current[1]
                elif name := re.fullmatch(r"(?:   |\.\. py:data:: )(\w+)", line):
                    found.setdefault(module, set()).add(name[1])
    return found


def objects() -> list[tuple[str, Any]]:
    """Return the objects of the reference whose modules can be imported here, each once, under its first name."""
    found: dict[int, tuple[str, Any]] = {}
    for module, names in sorted(listed().items()):
        if find_spec(OPTIONAL.get(module, "ibug")) is None:
            continue
        for name in sorted(names):
            thing = getattr(importlib.import_module(module), name)
            if callable(thing) and get_origin(thing) is None:  # not the alias of a type
                found.setdefault(id(thing), (f"{module}.{name}", thing))
    return list(found.values())


def own_methods(cls: type) -> dict[str, list[str]]:
    """Return the public methods that ibug defines, and their parameters, without those of other libraries."""
    methods = {}
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        function = getattr(found, "__func__", found)  # of a class method
        if not name.startswith("_") and inspect.isfunction(function) and function.__module__.startswith("ibug"):
            methods[name] = expected(function, bound=not isinstance(found, staticmethod))
    return methods


def docs_of(cls: type, name: str) -> list[str | None]:
    """Return the docstrings of a method along the classes that define it: it has the parameters of its base's."""
    classes = [*cls.__mro__, *constructor_home(cls).__mro__]
    return [getattr(vars(one)[name], "__doc__", None) for one in classes if name in vars(one)]


def constructor_home(cls: type) -> type:
    """Return the class that defines the constructor: a base, or the class that it was taken from by assignment."""
    definer = next(base for base in cls.__mro__ if "__init__" in vars(base))
    function = vars(definer)["__init__"]
    if not inspect.isfunction(function):
        return definer
    home = getattr(sys.modules[function.__module__], function.__qualname__.partition(".")[0], None)
    return home if isinstance(home, type) else definer


def constructor_names(cls: type) -> list[str]:
    """Return the parameters that the class documents which defines the constructor; itself, if that one is private."""
    definer = cls if constructor_home(cls).__name__.startswith("_") else constructor_home(cls)
    if hasattr(definer, "__dataclass_fields__") and not documented(definer.__doc__):
        attributes = documented(definer.__doc__, "Attributes")  # a dataclass has its fields there
        return [name for name in attributes if not name.endswith("_")]
    return documented(definer.__doc__)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module):
    missing = set(public_names(module)) - {"__version__"} - listed().get(module, set())
    if module not in {"ibug", *OPTIONAL}:  # what ibug itself shows is listed there
        here = importlib.import_module(module)
        missing -= {name for name in ibug.__all__ if getattr(here, name, None) is getattr(ibug, name)}
    assert not missing, f"docs/api has not: {sorted(missing)}"


@pytest.mark.parametrize("module", sorted(listed()))
def test_the_reference_has_no_other_names(module):
    assert not listed()[module] - set(public_names(module))


def test_names_are_read_as_python_has_them():
    assert public_names("ibug") == ibug.__all__
    from ibug import metrics

    assert public_names("ibug.metrics") == metrics.__all__


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*pair, id=pair[0]) for pair in objects()])
def test_docstrings_have_the_parameters(name, thing):
    summary = inspect.cleandoc(thing.__doc__ or "").partition("\n")[0]
    assert summary.endswith((".", ":")), f"{name} has no summary."
    if isinstance(thing, type) and issubclass(thing, (BaseException, type(None))):
        return
    if not isinstance(thing, type):
        if inspect.isfunction(thing):
            assert documented(thing.__doc__) == expected(thing)
        return
    is_protocol = getattr(thing, "_is_protocol", False)  # nobody makes one
    if thing.__init__ is not object.__init__ and not is_protocol:
        assert constructor_names(thing) == expected(thing)
    for method, parameters in own_methods(thing).items():
        docs = docs_of(thing, method)
        assert any(docs), f"{name}.{method} has no docstring."
        sections = [documented(doc) for doc in docs if documented(doc)]
        # One parameter can be told in the summary; several cannot.
        if sections or len(parameters) > 1:
            assert parameters in sections, f"{name}.{method}: {parameters} expected; {sections} documented."
