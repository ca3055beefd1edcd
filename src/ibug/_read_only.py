"""What is learned is kept in read-only arrays: changes of the inputs after `fit` must not change the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

Kept = TypeVar("Kept")


def keeps_read_only(cls: type[Kept]) -> type[Kept]:
    """Decorate an estimator to keep what it learns, attributes that end in an underscore, in read-only arrays.

    An array that becomes an attribute itself is copied: scikit-learn takes ``feature_names_in_`` from the user's frame.
    """

    def set_attribute(self: Any, name: str, value: Any) -> None:
        super(cls, self).__setattr__(name, _kept(value) if _is_learned(name) else value)

    def set_state(self: Any, state: Any) -> None:
        # Arrays that come back from a pickle or a deep copy can be written to.
        getattr(super(cls, self), "__setstate__", vars(self).update)(state)
        vars(self).update({name: _kept(value) for name, value in vars(self).items() if _is_learned(name)})

    for name, method in (("__setattr__", set_attribute), ("__setstate__", set_state)):
        setattr(cls, name, method)
    return cls


def read_only(learned: Kept) -> Kept:
    """Return what was learned after making all of its arrays read-only: those of ibug's own objects and containers.

    The objects of others are left alone: the user's model, above all, and what reads it.
    """
    known: set[int] = set()
    todo: list[Any] = [learned]
    while todo:
        one = todo.pop()
        if isinstance(one, np.ndarray):
            one.flags.writeable = False
        elif isinstance(one, (dict, MappingProxyType)):
            todo.extend(one.values())
        elif isinstance(one, (list, tuple)):
            todo.extend(one)
        elif id(one) not in known and _is_own(type(one)):
            known.add(id(one))
            todo.extend(vars(one).values())
    return learned


class read_only_property(cached_property[Kept]):  # noqa: N801 - a decorator
    """A cached property whose arrays are read-only, like those that it is computed from."""

    def __init__(self, method: Callable[[Any], Kept]) -> None:
        super().__init__(lambda owner: read_only(method(owner)))
        self.__doc__ = method.__doc__


def _kept(value: Any) -> Any:
    return read_only(value.copy() if isinstance(value, np.ndarray) else value)


def _is_learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _is_own(kind: type) -> bool:
    """Return whether objects of a class are ibug's, and hold arrays of its own in attributes."""
    modules = [base.__module__ for base in kind.__mro__]
    own = any(module.startswith("ibug.") for module in modules) and kind.__dictoffset__ != 0
    return own and not any(module.startswith("ibug.leaves.") for module in modules)
