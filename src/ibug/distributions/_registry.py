"""The families by name."""

from __future__ import annotations

from typing import Any

from ibug.distributions._base import Distribution
from ibug.distributions._empirical import Empirical
from ibug.distributions._kde import KDE
from ibug.distributions._location_scale import Gumbel, Laplace, Logistic, Normal
from ibug.distributions._shifted import Lognormal
from ibug.distributions._skew_normal import SkewNormal
from ibug.distributions._student_t import StudentT
from ibug.distributions._weibull import Weibull
from ibug.exceptions import InvalidInputError

_FAMILIES: dict[str, type[Distribution]] = {
    "normal": Normal,
    "skewnormal": SkewNormal,
    "lognormal": Lognormal,
    "laplace": Laplace,
    "student_t": StudentT,
    "logistic": Logistic,
    "gumbel": Gumbel,
    "weibull": Weibull,
    "kde": KDE,
    "empirical": Empirical,
}


def families() -> tuple[str, ...]:
    """Return the names of all families, those that were registered last."""
    return tuple(_FAMILIES)


def register(name: str, family: type[Distribution]) -> None:
    """Make a family of one's own known by a name, for ``IBUGRegressor(distribution=name)``.

    Parameters
    ----------
    name
        Not yet taken by another family.
    family : subclass of Distribution
        With ``fit``, ``prepare`` if it needs it, and the methods of a distribution.
    """
    _check_class(family)
    if not isinstance(name, str) or not name or name == "tune" or _FAMILIES.get(name, family) is not family:
        raise InvalidInputError(f"A family needs a name that is not taken; got {name!r}. Taken are {families()}.")
    _FAMILIES[name] = family


def resolve_family(family: Any) -> tuple[str, type[Distribution]]:
    """Return name and class of a family, for its name or its class.

    Parameters
    ----------
    family : str or subclass of Distribution
        One of :func:`families`, or a class of one's own.
    """
    if isinstance(family, type):
        _check_class(family)
        names = [name for name, known in _FAMILIES.items() if known is family]
        return (names[0] if names else family.__name__), family
    if not isinstance(family, str) or family not in _FAMILIES:
        raise InvalidInputError(
            f"distribution must be one of {families()}, a subclass of Distribution, 'tune' or 'auto'; got {family!r}."
        )
    return family, _FAMILIES[family]


def _check_class(family: Any) -> None:
    if not isinstance(family, type) or not issubclass(family, Distribution):
        raise InvalidInputError(f"A family is a subclass of ibug.distributions.Distribution; got {family!r}.")


def learns_from_targets(family: type[Distribution]) -> bool:
    """Return whether a family looks at all training targets before it is fitted to neighbours.

    Parameters
    ----------
    family : subclass of Distribution
        The family's class.
    """
    return next(cls for cls in family.__mro__ if "prepare" in vars(cls)) is not Distribution
