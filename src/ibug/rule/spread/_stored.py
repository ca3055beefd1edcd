"""A spread from its stored state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ibug.exceptions import InvalidInputError
from ibug.rule.spread._base import Spread
from ibug.rule.spread._combined import CombinedSpread
from ibug.rule.spread._single import SingleSpread

_KINDS: dict[str, type[Spread]] = {kind.kind: kind for kind in (SingleSpread, CombinedSpread)}


def spread_from_state(state: Mapping[str, Any]) -> Spread:
    """Return the spread whose `state` this is."""
    if state.get("kind") not in _KINDS:
        raise InvalidInputError(f"A spread of kind {state.get('kind')!r} is not known; known are {sorted(_KINDS)}.")
    return _KINDS[state["kind"]].from_state(state)
