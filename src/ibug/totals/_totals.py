"""Totals of the rows that a fitted regressor predicts, and joint samples of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import t as student_t
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug._warnings import warn_user
from ibug.exceptions import IndependentRowsWarning, InvalidInputError
from ibug.rule import Rule
from ibug.totals._blocks import Codes, Labels, coded, coded_together, column_names, label_columns
from ibug.totals._dependence import Dependence, learn_dependence, normal_scores
from ibug.totals._distribution import TotalDistribution
from ibug.totals._sums import Plan, Sums

# The number of consecutive rows from which on a test tells whether their errors are correlated, and by how much.
_SUSPICIOUS = 0.05
# The number of groups whose totals an interval is calibrated on, at least.
_FEWEST_BLOCKS = 10


def dependence_of(rule: Rule, batches: Any, X: Any, y: Floats, blocks: Labels) -> Dependence:
    """Return what rows of a block have in common, from validation rows. Shapes: y (n_rows,) or (n_rows, n_targets)."""
    labels = label_columns(blocks, X, "blocks")
    found = [rule.marginals(rule.distribution(batch)) for batch in batches]
    joined = [type(parts[0]).concatenate(parts) for parts in zip(*found, strict=True)]
    targets = y.reshape(len(y), -1).T
    scores = [normal_scores(values, one) for values, one in zip(targets, joined, strict=True)]
    return learn_dependence(scores, labels, column_names(blocks))


def groups_of(by: Labels | None, X: Any) -> tuple[NDArray[Any], Codes]:
    """Return the labels of groups, ascending, and the number of each row's group; one group of all rows for None.

    Groups by several columns have a tuple as a label.
    """
    if by is None:
        return np.array(["all"]), np.zeros(_num_samples(X), np.intp)
    columns = [coded(one) for one in label_columns(by, X, "by").values()]
    if len(columns) == 1:
        return columns[0]
    codes, combinations = coded_together([own for _, own in columns])
    labels = np.empty(len(combinations), object)
    labels[:] = [tuple(found[i] for (found, _), i in zip(columns, row, strict=True)) for row in combinations]
    return labels, codes


def check_total_weights(weights: Any, n_rows: int) -> Floats:
    """Return finite weights of rows in totals, (n_rows,); ones for None."""
    if weights is None:
        return np.ones(n_rows)
    array = np.asarray(weights, np.float64)
    if array.shape != (n_rows,) or not np.all(np.isfinite(array)):
        raise InvalidInputError(
            f"weights must have a finite number for each of the {n_rows} rows, what the row counts for in its total; "
            f"got shape {array.shape} with {int(np.sum(~np.isfinite(array)))} that are not finite."
        )
    return array


def group_sums(values: Any, by: Labels | None = None, X: Any = None, weights: Any = None) -> Floats:
    """Return the sums of observed values by group, in the order of the groups of `total_dist`.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        The observed values.
    by : str, list of str, array-like of shape (n_rows,) or function of X, default=None
        The groups, as in `IBUGRegressor.total_dist`; None: one group.
    X : data frame, default=None
        The rows, where `by` names columns.
    weights : array-like of shape (n_rows,), default=None
        What each row counts for; None: 1.

    Returns
    -------
    ndarray of shape (n_groups,)

    Examples
    --------
    >>> from ibug.totals import group_sums
    >>> group_sums([1.0, 2.0, 4.0], by=["mon", "tue", "mon"])
    array([5., 2.])
    """
    array = np.asarray(values, np.float64)
    rows = array[:, None] if X is None else X
    labels, codes = groups_of(by, rows)
    sums = np.bincount(codes, array * check_total_weights(weights, len(array)), minlength=len(labels))
    return np.asarray(sums, np.float64)


def blocks_of(dependence: Dependence | None, blocks: Any, X: Any, rule: Rule) -> list[Codes]:
    """Return the number of each row's block of each kind; none where rows are taken as independent."""
    n_rows = _num_samples(X)
    if blocks is False:
        return []
    if dependence is None:
        if blocks is not None:
            raise InvalidInputError(
                "This model has not learned what rows of a block have in common: give the blocks of rows with observed "
                "values first, fit(..., blocks_val=...) or recalibrate(X, y, blocks=...)."
            )
        if n_rows > 1:
            warn_user(_independence(rule), IndependentRowsWarning)
        return []
    if blocks is None:
        there = {str(one) for one in getattr(X, "columns", ())}
        if dependence.columns is None or not there.issuperset(dependence.columns):
            raise InvalidInputError(
                f"This model has learned what rows of {', '.join(map(repr, dependence.names))} have in common: say to "
                "which blocks these rows belong, blocks=…, or blocks=False to take rows as independent."
            )
        blocks = list(dependence.columns)
    labels = label_columns(blocks, X, "blocks")
    if len(labels) != len(dependence.names):
        raise InvalidInputError(
            f"blocks must be of the {len(dependence.names)} kinds that were learned "
            f"({', '.join(map(repr, dependence.names))}); got {len(labels)}."
        )
    return [coded(one)[1] for one in labels.values()]


def _independence(rule: Rule) -> str:
    found = rule.reference.order
    text = "Rows are taken as independent of each other, since this model does not know which belong together: totals "
    if np.isfinite(found) and found > _SUSPICIOUS:
        text += f"are too narrow. Errors of neighbouring validation rows have a correlation of {found:.2f}. "
    else:
        text += "are too narrow if rows share what the model does not know, the weather of a day say. "
    return (
        f"{text}Give the blocks that validation rows belong to, fit(..., blocks_val=...) or recalibrate(X, y, "
        "blocks=...), or say blocks=False."
    )


def total_distributions(
    rule: Rule,
    batches: Any,
    X: Any,
    by: Any,
    weights: Any,
    blocks: list[Codes],
    dependence: Dependence | None,
    n_jobs: int | None = None,
) -> list[TotalDistribution]:
    """Return the distributions of totals by group, one for each target."""
    n_rows = _num_samples(X)
    groups, counts = groups_of(by, X), check_total_weights(weights, n_rows)
    known = dependence if blocks else None
    several = rule.coupling is not None
    each = [known.of_target(j) if several and known else known for j in range(len(rule.parts))]
    sums = [Sums(Plan.of(groups, counts, blocks, one), n_jobs) for one in each]
    for batch in batches:
        for own, distribution in zip(sums, rule.marginals(rule.distribution(batch)), strict=True):
            own.add(batch.where, distribution)
    return [own.distribution() for own in sums]


def sampled_paths(
    rule: Rule, batches: Any, n_rows: int, size: int, blocks: list[Codes], dependence: Dependence | None, seed: Any
) -> Floats:
    """Return joint samples of all rows, (size, n_rows), or (size, n_rows, n_targets) of several targets."""
    rng = check_random_state(seed)
    d = len(rule.parts)
    known = dependence if blocks else None
    correlation = np.zeros((0, d)) if known is None else known.correlation.reshape(len(known.names), d)
    root = np.linalg.cholesky(np.eye(d) if rule.coupling is None else rule.coupling.copula)
    factors = []
    for kind, codes in enumerate(blocks if known is not None else ()):
        assert known is not None, "there are blocks"
        n = known.n_blocks[kind]
        widened = student_t(max(n - 1, 2)).rvs((size, int(codes.max()) + 1, d), random_state=rng)
        factors.append(np.sqrt(correlation[kind]) * np.sqrt(1.0 + 1.0 / n) * (widened @ root.T))
    found = np.empty((size, n_rows, d))
    for batch in batches:
        own = rng.standard_normal((size, batch.n_rows, d)) @ root.T
        score = np.sqrt(np.maximum(1.0 - correlation.sum(axis=0), 0.0)) * own
        for codes, factor in zip(blocks, factors, strict=False):
            score += factor[:, codes[batch.where]]
        for j, distribution in enumerate(rule.marginals(rule.distribution(batch))):
            probability = np.clip(ndtr(score[:, :, j].T), 1e-12, 1 - 1e-12)
            found[:, batch.where, j] = np.asarray(distribution.ppf(probability)).T
    return found[:, :, 0] if rule.coupling is None else found


class ConformalTotals:
    """Intervals of totals with a guarantee: of new groups, at least the given share is covered.

    Split conformal prediction on whole groups, which are exchangeable where rows are not: the scores of the groups of
    labelled rows, distances of observed totals to the median in units of the predicted spread, widen or narrow the
    intervals of new groups.

    Parameters
    ----------
    regressor : fitted IBUGRegressor
        Its model and its rule have seen none of the rows that are given to `fit`.

    Attributes
    ----------
    scores_ : ndarray of shape (n_groups,)
        The scores, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug import IBUGRegressor
    >>> from ibug.totals import ConformalTotals
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, day = rng.normal(size=(2000, 2)), np.arange(2000) // 20
    >>> y = X[:, 0] + rng.normal(size=100)[day] + rng.normal(size=2000)
    >>> model = GradientBoostingRegressor(random_state=0).fit(X[:600], y[:600])
    >>> u = IBUGRegressor(model, prefit=True)
    >>> u = u.fit(X[:600], y[:600], X_val=X[600:1000], y_val=y[600:1000], blocks_val=day[600:1000])
    >>> totals = ConformalTotals(u).fit(X[1000:1800], y[1000:1800], by=day[1000:1800], blocks=day[1000:1800])
    >>> totals.predict_interval(X[1800:], by=day[1800:], blocks=day[1800:], coverage=0.9).shape
    (10, 2)
    """

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: Any, y: Any, by: Labels, *, weights: Any = None, blocks: Any = None) -> ConformalTotals:
        """Learn from groups of labelled rows.

        Parameters
        ----------
        X, y : array-like or data frame of shape (n_rows, n_features), array-like of shape (n_rows,)
            Rows that neither the model nor its calibration has seen, and their observed values.
        by, weights, blocks
            As in `IBUGRegressor.total_dist`. Groups must be whole, and like those to come.
        """
        distribution = self.regressor.total_dist(X, by, weights=weights, blocks=blocks)
        if isinstance(distribution, list):
            raise InvalidInputError("ConformalTotals takes models of one target.")
        if len(distribution) < _FEWEST_BLOCKS:
            raise InvalidInputError(
                f"Totals are calibrated on {_FEWEST_BLOCKS} groups at least; these rows are in {len(distribution)}."
            )
        observed = group_sums(y, by, X, weights)
        self.scores_ = np.sort(np.abs(observed - distribution.median()) / distribution.std())
        return self

    def predict_interval(
        self, X: Any, by: Labels, *, weights: Any = None, blocks: Any = None, coverage: float = 0.9
    ) -> Floats:
        """Return intervals of the totals of new groups, (n_groups, 2); infinite where there are too few groups.

        Parameters
        ----------
        X, by, weights, blocks
            As in `fit`.
        coverage : float, default=0.9
            The share of new groups that is covered, at least.
        """
        distribution = self.regressor.total_dist(X, by, weights=weights, blocks=blocks)
        n = len(self.scores_)
        rank = int(np.ceil((n + 1) * coverage - 1e-9))
        score = self.scores_[rank - 1] if rank <= n else np.inf
        middle, half = distribution.median(), score * distribution.std()
        ends = np.stack([middle - half, middle + half], axis=1)
        return np.asarray(np.clip(ends, distribution.lower[:, None], distribution.upper[:, None]))
