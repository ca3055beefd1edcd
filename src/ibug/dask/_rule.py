"""The learned rule without the index: the local estimator, answering from neighbours that have been found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.calibration import conformal_calibrator
from ibug.distributions import Distribution
from ibug.evidence import Batch
from ibug.exceptions import InvalidInputError
from ibug.learning import Plan
from ibug.posterior import Posterior
from ibug.regressor import IBUGRegressor
from ibug.selection import Statistics, collect
from ibug.targets import TargetFacts


@dataclass(frozen=True)
class Found:
    """Some rows, with their predictions and neighbours.

    Parameters
    ----------
    mean : ndarray of shape (n_rows,)
        The model's predictions.
    affinities, rows : ndarray of shape (n_rows, k)
        The nearest training rows; k = 0 where none was asked for.
    neighbors
        Their values by quantity, (n_rows, k); k may differ.
    """

    mean: Floats
    affinities: NDArray[np.int32]
    rows: NDArray[np.int64]
    neighbors: dict[str, Floats]

    def __len__(self) -> int:
        return len(self.mean)

    def batch(self) -> Batch:
        """Return all rows as one batch."""
        return Batch(slice(0, len(self)), self.affinities, self.neighbors)


@dataclass(frozen=True)
class FoundTuningRows:
    """Validation rows whose neighbours have been found, in the shape that `collect` reads."""

    found: Found
    y: Floats

    @property
    def mean(self) -> Floats:
        """The model's predictions, (n_rows,)."""
        return self.found.mean

    def batches(self, needs: Any) -> Iterator[Batch]:
        """Yield all rows at once; they are those of one partition."""
        yield self.found.batch()


@dataclass(frozen=True)
class IndexSize:
    """What the rule knows of the index."""

    n_rows: int
    n_trees: int


class FoundSearch:
    """Stands in for the search: what is asked for has been found."""

    def chunks(self, X: Found, k: int, **options: Any) -> Iterator[tuple[slice, Any, Any]]:
        """Yield the k nearest rows of all rows at once."""
        yield slice(0, len(X)), X.affinities[:, :k], X.rows[:, :k]


class Rule(IBUGRegressor):
    """IBUGRegressor without index and targets; its methods take what has been found of the rows in place of the rows.

    So everything that follows from neighbours is the very code of the local estimator.
    """

    _facts: TargetFacts
    _prepared: tuple[list[Posterior], dict[str, str]]

    @classmethod
    def of(cls, parameters: dict[str, Any], size: IndexSize, facts: TargetFacts) -> Rule:
        """Return a rule that has learned nothing yet."""
        rule = cls(**{**parameters, "estimator": None, "n_jobs": None, "verbose": 0})
        stand_in: Any = size  # its two numbers are all that is asked of an index
        search: Any = FoundSearch()
        rule.index_, rule._search = stand_in, search
        rule._facts = facts
        rule.residuals_, rule._residual_index = None, None
        return rule

    @property
    def _target_facts(self) -> TargetFacts:
        return self._facts

    def _posteriors(self, distribution: Any) -> tuple[list[Posterior], dict[str, str]]:
        return self._prepared

    def _check_rows(self, X: Any) -> Any:
        return X

    def _batches(self, X: Any, predictions: Floats | None = None) -> Iterable[Batch]:
        if predictions is not None:
            predictions[:] = X.mean
        return [X.batch()]


def as_targets(y: Any) -> Floats:
    """Return the targets of one partition, which have been checked, (n_rows,)."""
    return np.asarray(y, np.float64).ravel()


def statistics_of(found: Found, y: Any, plan: Plan) -> Statistics | None:
    """Return what the neighbours of one partition's validation rows say; None of an empty partition."""
    if not len(found):
        return None
    rows: Any = FoundTuningRows(found, as_targets(y))
    return collect(rows, plan.quantities, plan.every_k, plan.keep_values)


def tuned(rule: Rule, plan: Plan, parts: list[Statistics | None]) -> Rule:
    """Let the rule choose spread, k and family."""
    rule._choose(plan, Statistics.join([part for part in parts if part is not None]), rule.index_.n_trees)
    rule.conformal_ = None
    return rule


def made_sure(rule: Rule, laws: list[Any], y: list[Any]) -> Rule:
    """Let the rule make its coverage sure on the laws of held-out rows."""
    rule.conformal_ = conformal_calibrator(rule.conformal)
    rule.conformal_.fit(joined(laws), np.concatenate([as_targets(part) for part in y]))
    return rule


def joined(laws: list[Distribution | None]) -> Distribution:
    """Return the laws of all partitions as one batch; those of empty partitions are None."""
    some = [law for law in laws if law is not None]
    if not some:
        raise InvalidInputError("There are no rows: every partition is empty.")
    return type(some[0]).concatenate(some)


def answer(rule: Rule, found: Found, method: str, arguments: dict[str, Any]) -> Any:
    """Return what one of the estimator's methods says of rows whose neighbours have been found."""
    return getattr(rule, method)(found, **arguments)


def law_of(rule: Rule, found: Found, method: str) -> Distribution | None:
    """Return the laws of one partition; None of an empty one, as no family is fitted to no rows."""
    law: Distribution | None = getattr(rule, method)(found) if len(found) else None
    return law


def floored(rule: Rule, found: Found) -> Rule:
    """Let the rule take k as it is given, and the floor of the variance of some training rows."""
    rule._take_floor_of([found.batch()])
    return rule
