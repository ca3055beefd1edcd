"""Python values as JSON and back: numbers bit for bit, arrays as members, and nothing that could run code."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.exceptions import NotStorableError, NotStoredWarning

_RANDOM_KEYS, _MAX_RANDOM_PLACE = 624, 624  # of the Mersenne twister
_MAX_DEPTH = 40


class NotStored:
    """Takes the place of a parameter that could not be saved: a function, say, that only fitting needs."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"<not stored: {self.what}>"

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Raise NotStorableError: what would be called here is not known."""
        raise NotStorableError(
            f"This parameter was {self.what}, which a file saved by ibug cannot hold: give it again with set_params."
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NotStored) and other.what == self.what

    def __hash__(self) -> int:
        return hash(self.what)


class Encoder:
    """Makes JSON of values; `add_array` stores an array under a name, and returns the member's name.

    What JSON does not know becomes a dictionary whose first key begins with ``$``.
    """

    def __init__(self, add_array: Callable[[str, NDArray[Any]], str]) -> None:
        self._add_array = add_array

    def encode(self, value: Any, where: str) -> Any:
        """Return what `Decoder.decode` makes the same value of; `where` names it in errors and members."""
        if value is None or isinstance(value, (bool, str)):
            return str(value) if isinstance(value, str) else value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:  # names of columns, say
                return {"$array": None, "items": self.encode(value.tolist(), where), "dtype": "O"}
            return {"$array": self._add_array(where, value)}
        if isinstance(value, Mapping):
            return self._mapping(value, where)
        if isinstance(value, (list, tuple)):
            items = [self.encode(item, f"{where}/{i}") for i, item in enumerate(value)]
            return {"$tuple": items} if isinstance(value, tuple) else items
        if isinstance(value, NotStored):
            return {"$not_stored": value.what}
        if isinstance(value, np.random.RandomState):
            kind, keys, place, has_gauss, gauss = value.get_state(legacy=True)
            if kind != "MT19937":
                raise NotStorableError(
                    f"{where!r} is a random number generator of the kind {kind}: give a seed instead."
                )
            state = {"keys": np.asarray(keys, np.uint32), "place": place, "has_gauss": has_gauss, "gauss": gauss}
            return {"$random_state": self.encode(state, where)}
        raise NotStorableError(
            f"{where!r} is {_in_words(value)}, which cannot be saved without pickle, and ibug's files hold none. "
            "Pickle and joblib take it, for those who trust the file."
        )

    def encode_parameters(self, parameters: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the parameters of an estimator; what cannot be saved, a function say, is left out with a warning."""
        encoded = {}
        for name, value in parameters.items():
            try:
                encoded[name] = self.encode(value, f"{where}/{name}")
            except NotStorableError:
                warnings.warn(
                    f"The parameter {name!r} is {_in_words(value)}, which cannot be saved without pickle. "
                    "Predictions do not need it; to fit the loaded estimator anew, set it again with set_params.",
                    NotStoredWarning,
                    stacklevel=2,
                )
                encoded[name] = {"$not_stored": _in_words(value)}
        return encoded

    def _mapping(self, value: Mapping[Any, Any], where: str) -> Any:
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: self.encode(item, f"{where}/{key}") for key, item in value.items()}
        pairs = enumerate(value.items())
        return {"$dict": [[self.encode(k, where), self.encode(v, f"{where}/{i}")] for i, (k, v) in pairs]}


class Decoder:
    """Makes values of JSON; `get_array` returns the array of a member."""

    def __init__(self, get_array: Callable[[str], NDArray[Any]]) -> None:
        self._get_array = get_array

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Return the value, or raise ValueError, KeyError or TypeError for what no `Encoder` has made."""
        if depth > _MAX_DEPTH:
            raise ValueError("values are nested too deeply")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        if any(key.startswith("$") for key in value):
            return self._special(value, depth + 1)
        return {key: self.decode(item, depth + 1) for key, item in value.items()}

    def _special(self, value: dict[str, Any], depth: int) -> Any:
        match value:
            case {"$float": "nan" | "inf" | "-inf" as text}:
                return float(text)
            case {"$tuple": list(items)}:
                return tuple(self.decode(item, depth) for item in items)
            case {"$array": str(name)}:
                return self._get_array(name)
            case {"$array": None, "items": list(items)}:
                array = np.empty(len(items), object)
                array[:] = self.decode(items, depth)
                return array
            case {"$not_stored": str(what)}:
                return NotStored(what)
            case {"$dict": list(pairs)}:
                return {self.decode(key, depth): self.decode(item, depth) for key, item in pairs}
            case {"$random_state": state}:
                return _random_state(self.decode(state, depth))
        raise ValueError(f"{value!r:.100} is no value that ibug has written")


def _random_state(state: Any) -> np.random.RandomState:
    keys, place = np.asarray(state["keys"]), int(state["place"])
    # NumPy does not check the place, and would read beyond its keys.
    if keys.shape != (_RANDOM_KEYS,) or keys.dtype != np.uint32 or not 0 <= place <= _MAX_RANDOM_PLACE:
        raise ValueError("the state of a random number generator is impossible")
    random_state = np.random.RandomState()
    random_state.set_state(("MT19937", keys, place, int(bool(state["has_gauss"])), float(state["gauss"])))
    return random_state


def _in_words(value: Any) -> str:
    """Return in words what cannot be saved."""
    if callable(value) and hasattr(value, "__qualname__"):
        kind = "the class" if isinstance(value, type) else "the function"
        return f"{kind} {getattr(value, '__module__', '?')}.{value.__qualname__}"
    return f"an object of the class {type(value).__module__}.{type(value).__qualname__}"
