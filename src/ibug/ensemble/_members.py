"""The members of an ensemble."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ibug.exceptions import InvalidInputError

Members = list[tuple[str, Any]]  # names and regressors


def check_members(estimators: Any) -> Members:
    """Return all members; raise unless each has a name and predicts distributions, and one at least is not dropped."""
    pairs = isinstance(estimators, (list, tuple)) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str) for pair in estimators
    )
    if not pairs or not estimators:
        raise InvalidInputError(
            f"estimators must be a list of (name, regressor), one at least; got {estimators!r}: write "
            '[("ibug", IBUGRegressor(model)), ("cbu", CBURegressor(model))], say.'
        )
    for name, member in estimators:
        if not is_dropped(member) and (isinstance(member, type) or not _predicts_distributions(member)):
            raise InvalidInputError(
                f"The member {name!r} has no predict_dist, as IBUGRegressor and CBURegressor have it; got {member!r}."
            )
    if all(is_dropped(member) for _, member in estimators):
        raise InvalidInputError("All members are dropped: keep one at least.")
    return [(name, member) for name, member in estimators]


def is_dropped(member: Any) -> bool:
    """Return whether a member takes no part, as in scikit-learn's ensembles."""
    return isinstance(member, str) and member == "drop"


def is_trained(member: Any) -> bool:
    """Return whether `fit` leaves the model of a member as it is."""
    inner = getattr(member, "estimator", None)
    return (
        isinstance(member, FrozenEstimator)
        or isinstance(inner, FrozenEstimator)
        or bool(getattr(member, "prefit", False))
    )


def seeded(member: Any, seed: int | None) -> Any:
    """Return the member, with the seed if it has none of its own."""
    if seed is not None and hasattr(member, "get_params"):
        parameters = member.get_params(deep=False)
        if "random_state" in parameters and parameters["random_state"] is None:
            member.set_params(random_state=seed)
    return member


def _predicts_distributions(member: Any) -> bool:
    while isinstance(member, Pipeline):
        member = member.steps[-1][1]
    return hasattr(member, "predict_dist")
