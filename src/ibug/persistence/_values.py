"""Python values as JSON and back: numbers bit for bit, arrays as members, and nothing that could run code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.exceptions import NotStorableError

#: A dictionary whose only key is one of these stands for a value that JSON does not know.
_FLOAT, _TUPLE, _ARRAY, _MISSING, _PAIRS, _RANDOM = (
    "$float",
    "$tuple",
    "$array",
    "$not_stored",
    "$dict",
    "$random_state",
)
_RANDOM_KEYS, _MOST_RANDOM_PLACE = 624, 624  # of the Mersenne twister
_DEEPEST = 40


class NotStored:
    """Stands for a parameter that could not be saved: a function, say, that only fitting needs.

    Whoever uses it is told what to set in its place.

    Parameters
    ----------
    what : str
        What could not be saved, for the message.
    """

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
    """Makes JSON of values.

    Parameters
    ----------
    add_array
        Stores an array under a name, and returns the member's name.
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
            return float(value) if math.isfinite(value) else {_FLOAT: str(float(value))}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, Mapping):
            return self._mapping(value, where)
        if isinstance(value, (list, tuple)):
            items = [self.encode(item, f"{where}/{i}") for i, item in enumerate(value)]
            return {_TUPLE: items} if isinstance(value, tuple) else items
        if isinstance(value, NotStored):
            return {_MISSING: value.what}
        if isinstance(value, np.random.RandomState):
            return {_RANDOM: self.encode(_random_state(value, where), where)}
        raise NotStorableError(
            f"{where!r} is {describe(value)}, which cannot be saved without pickle, and ibug's files hold none. Pickle "
            "and joblib take it, for those who trust the file."
        )

    def _array(self, array: NDArray[Any], where: str) -> Any:
        if array.dtype.hasobject:  # names of columns, say
            return {_ARRAY: None, "items": self.encode(array.tolist(), where), "dtype": "O"}
        return {_ARRAY: self._add_array(where, array)}

    def _mapping(self, value: Mapping[Any, Any], where: str) -> Any:
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: self.encode(item, f"{where}/{key}") for key, item in value.items()}
        pairs = enumerate(value.items())
        return {_PAIRS: [[self.encode(k, where), self.encode(v, f"{where}/{i}")] for i, (k, v) in pairs]}


class Decoder:
    """Makes values of JSON.

    Parameters
    ----------
    get_array
        Returns the array of a member.
    """

    def __init__(self, get_array: Callable[[str], NDArray[Any]]) -> None:
        self._get_array = get_array

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Return the value. ValueError, KeyError or TypeError tell of what no `Encoder` has made."""
        if depth > _DEEPEST:
            raise ValueError("values are nested too deeply")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        for key, make in _SPECIAL.items():
            if key in value:
                return make(self, value, depth + 1)
        return {key: self.decode(item, depth + 1) for key, item in value.items()}

    def _float(self, value: dict[str, Any], depth: int) -> float:
        if value[_FLOAT] not in ("nan", "inf", "-inf"):
            raise ValueError(f"{value[_FLOAT]!r} is no special number")
        return float(value[_FLOAT])

    def _tuple(self, value: dict[str, Any], depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(item, depth) for item in _list(value[_TUPLE]))

    def _objects(self, value: dict[str, Any], depth: int) -> NDArray[Any]:
        if value[_ARRAY] is not None:
            return self._get_array(_text(value[_ARRAY]))
        items = self.decode(_list(value["items"]), depth)
        array = np.empty(len(items), object)
        array[:] = items
        return array

    def _missing(self, value: dict[str, Any], depth: int) -> NotStored:
        return NotStored(_text(value[_MISSING]))

    def _pairs(self, value: dict[str, Any], depth: int) -> dict[Any, Any]:
        return {self.decode(key, depth): self.decode(item, depth) for key, item in _list(value[_PAIRS])}

    def _random(self, value: dict[str, Any], depth: int) -> np.random.RandomState:
        state = self.decode(value[_RANDOM], depth)
        keys, place = np.asarray(state["keys"]), int(state["place"])
        # NumPy does not check the place, and would read beyond its keys.
        if keys.shape != (_RANDOM_KEYS,) or keys.dtype != np.uint32 or not 0 <= place <= _MOST_RANDOM_PLACE:
            raise ValueError("the state of a random number generator is impossible")
        random_state = np.random.RandomState()
        random_state.set_state(("MT19937", keys, place, int(bool(state["has_gauss"])), float(state["gauss"])))
        return random_state


_SPECIAL: dict[str, Callable[[Decoder, dict[str, Any], int], Any]] = {
    _FLOAT: Decoder._float,
    _TUPLE: Decoder._tuple,
    _ARRAY: Decoder._objects,
    _MISSING: Decoder._missing,
    _PAIRS: Decoder._pairs,
    _RANDOM: Decoder._random,
}


def describe(value: Any) -> str:
    """Return in words what cannot be saved."""
    if callable(value) and hasattr(value, "__qualname__"):
        kind = "the class" if isinstance(value, type) else "the function"
        return f"{kind} {getattr(value, '__module__', '?')}.{value.__qualname__}"
    return f"an object of the class {type(value).__module__}.{type(value).__qualname__}"


def _random_state(value: np.random.RandomState, where: str) -> dict[str, Any]:
    kind, keys, place, has_gauss, gauss = value.get_state(legacy=True)
    if kind != "MT19937":
        raise NotStorableError(f"{where!r} is a random number generator of the kind {kind}: give a seed instead.")
    return {"keys": np.asarray(keys, np.uint32), "place": place, "has_gauss": has_gauss, "gauss": gauss}


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, not {value!r:.100}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {value!r:.100}")
    return value
