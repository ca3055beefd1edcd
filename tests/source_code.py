"""Private names across the packages of ibug, found in the source code without running it.

A package is a folder of ``src/ibug`` with everything in it; the modules beside ``__init__.py`` are one package, the
root. The modules of one package share what is private among them. A private module of the root, as ``ibug._typing``,
is private to ibug, and all packages share it. What is private to another package must not be used:

- no private module or name is imported from it;
- no private attribute that one of its classes defines is read or set, unless on ``self`` or ``cls``, which may inherit
  it, or where the own package defines an attribute of that name.

Private attributes that no class of ibug defines belong to other libraries.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Calls that name an attribute by a text.
_BY_TEXT = {"getattr", "hasattr", "setattr", "delattr"}
#: The public methods of named tuples.
_NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}


@dataclass(frozen=True)
class Module:
    """A module of ibug: its dotted name, and what it says."""

    name: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package that it belongs to: ``leaves`` for ``ibug.leaves._base``, ``ibug`` for ``ibug.regressor``."""
        root, *names = self.name.split(".")
        return names[0] if len(names) > 1 else root

    @property
    def dotted(self) -> str:
        """The name that it is imported by."""
        return self.name.removesuffix(".__init__")


def modules(root: Path) -> list[Module]:
    """Return all modules of the package in a folder, one after another in the order of their names."""
    found = []
    for path in sorted(root.rglob("*.py")):
        names = [root.name, *path.relative_to(root).with_suffix("").parts]
        if names[-1] == "__init__":  # a name like no other tells that it belongs to its folder
            names[-1] = "__init__" if len(names) > 2 else ""
        found.append(Module(".".join(names).rstrip("."), ast.parse(path.read_text(encoding="utf-8"))))
    return found


def private_uses(ibug: list[Module]) -> list[str]:
    """Return where a module uses what is private to another package, and what that is."""
    owners = defaultdict(set)
    for module in ibug:
        for name in _attributes(module.tree):
            owners[name].add(module.package)
    names_of_modules = {module.dotted for module in ibug}
    uses = []
    for module in ibug:
        imported = list(_imported(module.tree, module.name))
        whole_names = [(line, whole) for line, whole, _ in imported]
        by_alias = {alias: whole for _, whole, alias in imported if whole in names_of_modules}
        for line, owner, name in _touched(module.tree):
            if owner in by_alias:
                whole_names.append((line, f"{by_alias[owner]}.{name}"))
            elif owners[name] and module.package not in owners[name]:
                uses.append(f"{module.name}:{line} uses {name} of {', '.join(sorted(owners[name]))}")
        uses += [
            f"{module.name}:{line} uses {name}" for line, name in whole_names if _is_foreign(module, name.split("."))
        ]
    return uses


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in _NAMED_TUPLE


def _attributes(tree: ast.Module) -> Iterator[str]:
    """Yield the private attributes of classes and of their objects that are defined here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                yield from filter(is_private, _bound(statement))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            yield from filter(is_private, [node.attr])


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a class defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in filter(None, targets):
        yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _touched(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield line, owner and name of each private attribute of something else than ``self`` and ``cls``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner, name = node.value, node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BY_TEXT:
            owner, name = node.args[0], getattr(node.args[1], "value", None)
        else:
            continue
        if isinstance(name, str) and is_private(name) and not _is_own(owner):
            yield node.lineno, ast.unparse(owner), name


def _is_own(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _imported(tree: ast.Module, importer: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, whole name and name in this module of everything imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, alias.asname or alias.name
        elif isinstance(node, ast.ImportFrom):
            parent = importer.split(".")[: -node.level] if node.level else []
            source = ".".join([*parent, *filter(None, [node.module])])
            for alias in node.names:
                yield node.lineno, f"{source}.{alias.name}", alias.asname or alias.name


def _is_foreign(module: Module, names: list[str]) -> bool:
    """Tell whether a whole name is private to another package of ibug."""
    root, *rest = names
    if root != "ibug" or not any(map(is_private, rest)):
        return False
    if is_private(rest[0]):  # a module of the root; what is private in it stays there
        return module.package != "ibug" and any(map(is_private, rest[1:]))
    return rest[0] != module.package
