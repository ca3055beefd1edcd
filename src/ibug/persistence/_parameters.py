"""The parameters of an estimator: those that fitting alone needs may be left out, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ibug.exceptions import NotStorableError, NotStoredWarning
from ibug.persistence._values import Encoder, NotStored, describe


def encode_parameters(parameters: Mapping[str, Any], encoder: Encoder, where: str) -> dict[str, Any]:
    """Return the parameters as JSON; what cannot be saved, a function say, is left out with a warning."""
    return {name: _encode(value, encoder, f"{where}/{name}") for name, value in parameters.items()}


def _encode(value: Any, encoder: Encoder, where: str) -> Any:
    try:
        return encoder.encode(value, where)
    except NotStorableError:
        warnings.warn(
            f"The parameter {where.rpartition('/')[2]!r} is {describe(value)}, which cannot be saved without pickle. "
            "Predictions do not need it; to fit the loaded estimator anew, set it again with set_params.",
            NotStoredWarning,
            stacklevel=2,
        )
        return encoder.encode(NotStored(describe(value)), where)
