"""Split conformal calibration: intervals whose coverage is guaranteed for finitely many held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_features, _num_samples, check_is_fitted

from ibug._read_only import keeps_read_only
from ibug._typing import Floats, LeavesOf
from ibug._validation import check_weights
from ibug.calibration._likelihood_ratio import LikelihoodRatio
from ibug.calibration._recalibrated import Recalibrated
from ibug.calibration._score_map import LARGEST_KNOT, ScoreMap
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError, NotStorableError

_USUAL = 0.9  # the coverage at which the widest group is determined
_ROUNDING = 1e-10  # of a value that is computed from its score, relative to the value


@keeps_read_only
class ConformalCalibrator(BaseEstimator):
    """What the conformal calibrators share: scores of held-out rows, and groups of rows (Mondrian).

    The guarantee: if held-out rows and new rows are exchangeable, and the distributions were made without the held-out
    rows' targets, ``interval(p)`` holds a new target with probability p at least; with groups, in each group.
    With `n_bins` that is an approximation: the bins' edges are learned on the same rows, which moves the coverage of a
    bin by about one over its number of rows.

    Parameters
    ----------
    n_bins : int, default=None
        Calibrate rows of small, middle and large spread each by themselves: the number of bins of the predicted σ.
    groups : str, int or function of X, default=None
        In ``IBUGRegressor(conformal=...)``: calibrate each group of rows by itself. The name or the number of a column,
        or a function that returns labels, (n,), or for groups that overlap a matrix of bool, (n, n_groups). Then a row
        has the widest of the intervals of its groups, so that coverage holds in each (Barber et al., 2021). Rows of
        groups that were not seen get the calibration of all rows; ``predict_dist(X).n_unseen`` counts them.
    ratio : function of X or LikelihoodRatio, default=None
        In ``IBUGRegressor(conformal=...)``: the likelihood ratio of rows, the density of rows to be predicted over that
        of validation rows, up to one factor. Coverage then holds for the rows to be predicted if only covariates have
        changed, and the ratio is right (Tibshirani et al., 2019). `LikelihoodRatio.estimate` makes it.
    """

    def __init__(self, *, n_bins: int | None = None, groups: Any = None, ratio: Any = None) -> None:
        self.n_bins, self.groups, self.ratio = n_bins, groups, ratio

    def row_context(self, X: Any, leaves: LeavesOf | None = None) -> dict[str, NDArray[Any]]:
        """Return what `fit` and `transform` need of rows besides their distributions: ``groups`` and ``ratio``.

        Parameters
        ----------
        X : array-like or data frame
            The rows.
        leaves : function of X, optional
            Returns their leaves in chunks, for a `LikelihoodRatio`.
        """
        _check_sources(self.groups, self.ratio)
        found = {} if self.groups is None else {"groups": _groups_of(self.groups, X)}
        return found if self.ratio is None else {**found, "ratio": _ratios_of(self.ratio, X, leaves)}

    def fit(
        self,
        distribution: Distribution,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from held-out rows.

        Parameters
        ----------
        distribution
            The distributions predicted for n held-out rows.
        y : array-like of shape (n,)
            Their observed values.
        groups : array-like of shape (n,), optional
            A label per row, a column of the data, say: each group is calibrated by itself.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. With weights that do not depend on the data, the guarantee is that of Barber et al.
            (2023): coverage falls short by at most the weighted mean of the total variation distances to the new row.
            With likelihood ratios of covariates, see `transform`.
        """
        if not isinstance(distribution, Distribution):
            raise InvalidInputError(
                f"A batch of distributions is expected, as predict_dist returns it; got {type(distribution).__name__}."
            )
        values = np.asarray(y, np.float64)
        if values.shape != distribution.shape or values.ndim != 1 or not values.size:
            raise InvalidInputError(
                f"y and the distribution must have the same shape (n,), n of at least 1; got {values.shape} and "
                f"{distribution.shape}."
            )
        if not np.all(np.isfinite(values)):
            raise InvalidInputError("y contains NaN or infinity.")
        _check_sources(self.groups, self.ratio)
        if self.groups is not None and groups is None:
            raise InvalidInputError("This calibrator takes groups from rows, which only IBUGRegressor gives it.")
        distribution = distribution.censored()  # so that values at a bound have a probability
        scores = distribution.middle_score(values)  # on whole numbers narrower than the normal score, and as sure
        scores = _infinite_out_of_reach(distribution, values, scores)
        self._learn_groups(distribution, groups)
        weights = None if sample_weight is None else check_weights(sample_weight, len(values), any_size=True)
        counts = np.ones(len(values), bool) if weights is None else weights > 0

        def map_of(rows: NDArray[np.bool_]) -> ScoreMap:
            return self._map(scores[rows], None if weights is None else weights[rows])

        # The last map, of all rows, is for groups that were not seen, and for bins that tied spreads leave empty.
        pooled = map_of(counts)
        groups_of_rows = (counts & rows for rows in self._members(distribution, groups)[:, :-1].T)
        self.maps_ = [*(map_of(rows) if rows.any() else pooled for rows in groups_of_rows), pooled]
        return self

    def transform(
        self, distribution: Distribution, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Recalibrated:
        """Return the calibrated distributions of new rows.

        Parameters
        ----------
        distribution
            The distributions predicted for the new rows.
        groups : array-like of shape (n,), optional
            Their labels, if `fit` was given labels. A label that was not seen there gets the calibration of all rows.
        sample_weight : array-like of shape (n,), optional
            Their weights, where those of the held-out rows are likelihood ratios of covariates: the density of new rows
            over that of held-out rows, up to one factor. Then intervals hold with probability p at least if only the
            covariates have changed and the ratios are right (Tibshirani et al., 2019). By default a new row has the
            largest weight of the held-out ones.
        """
        check_is_fitted(self)
        distribution = distribution.censored()
        own = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        if own is not None and (own.shape != distribution.shape or not np.all(np.isfinite(own) & (own >= 0))):
            raise InvalidInputError(
                f"Likelihood ratios of new rows must be finite numbers of at least 0, one per row; got {own!r:.100}."
            )
        members = self._members(distribution, groups)
        unseen = members[:, -1] if len(self.groups_) else None
        if not self.overlapping_:
            return Recalibrated(distribution, self.maps_, members.argmax(axis=1), own, unseen=unseen)
        # Densities are those of the group whose intervals are the widest.
        widths = np.array([np.subtract(*one.interval(_USUAL)[::-1]) for one in self.maps_])
        widest = np.where(members, widths, -np.inf).argmax(axis=1)
        return Recalibrated(distribution, self.maps_, widest, own, members, unseen)

    def has_rows_for(self, coverage: float) -> bool:
        """Whether every group had held-out rows enough for intervals of this coverage to have finite ends.

        Parameters
        ----------
        coverage : float
            The coverage of the intervals.
        """
        return all(one.has_rows_for(coverage) for one in self.maps_)

    @property
    def n_impossible(self) -> int:
        """The number of held-out rows whose distribution gives their target no probability: their score is infinite."""
        return int(np.sum(np.isinf(self.maps_[-1].scores)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "maps_")

    def _map(self, scores: Floats, weights: Floats | None) -> ScoreMap:
        raise NotImplementedError("Use ScaleConformal or DistributionConformal.")

    def _learn_groups(self, distribution: Distribution, groups: ArrayLike | None) -> None:
        self.groups_: NDArray[Any] = np.empty(0)
        self.edges_: Floats | None = None
        self.overlapping_ = False
        if groups is not None and self.n_bins is not None:
            raise InvalidInputError("Group either by n_bins of the spread or by labels, not by both.")
        if groups is not None and np.ndim(groups) == 2:
            self.overlapping_, self.groups_ = True, np.arange(np.shape(groups)[1])
        elif groups is not None:
            self.groups_ = np.unique(_as_labels(groups, len(distribution)))
        elif self.n_bins is not None:
            if isinstance(self.n_bins, bool) or not isinstance(self.n_bins, (int, np.integer)) or self.n_bins < 1:
                raise InvalidInputError(f"n_bins must be an integer of at least 1; got {self.n_bins!r}.")
            inner = np.linspace(0, 1, self.n_bins + 1)[1:-1]
            self.edges_ = np.unique(np.quantile(distribution.std(), inner))
            self.groups_ = np.arange(len(self.edges_) + 1)

    def _members(self, distribution: Distribution, groups: ArrayLike | None) -> NDArray[np.bool_]:
        """Return which maps of ``maps_`` count for each row, (n, n_groups + 1): the last one where no other does."""
        if not self.overlapping_:
            return np.eye(len(self.groups_) + 1, dtype=bool)[self._codes(distribution, groups)]
        given = np.empty((0, 0), bool) if groups is None else np.asarray(groups)
        if given.shape != (len(distribution), len(self.groups_)) or given.dtype != bool:
            raise InvalidInputError(
                f"This calibrator was fitted with {len(self.groups_)} groups that overlap: a matrix of bool of shape "
                f"{(len(distribution), len(self.groups_))} is expected; got {given.dtype} of shape {given.shape}."
            )
        return np.column_stack([given, ~given.any(axis=1)])

    def _codes(self, distribution: Distribution, groups: ArrayLike | None) -> NDArray[np.intp]:
        """Return for each row the place of its map in ``maps_``."""
        if self.edges_ is not None:
            return np.asarray(np.searchsorted(self.edges_, distribution.std(), side="right"))
        if not len(self.groups_):
            if groups is not None:
                raise InvalidInputError("This calibrator was fitted without groups.")
            return np.zeros(len(distribution), np.intp)
        if groups is None:
            raise InvalidInputError("This calibrator was fitted with groups: give the groups of these rows, too.")
        labels = _as_labels(groups, len(distribution))
        place = np.minimum(np.searchsorted(self.groups_, labels), len(self.groups_) - 1)
        known = self.groups_[place] == labels
        if labels.size and not known.any() and self.groups is None:
            raise InvalidInputError(
                f"None of the groups is known: given were {labels[:3].tolist()}, fitted {self.groups_[:3].tolist()}."
                " Labels are compared as text: give them in the same type."
            )
        return np.where(known, place, len(self.groups_))


class ScaleConformal(ConformalCalibrator):
    """Normalised split conformal: intervals keep their centre, their width is what held-out rows needed.

    The score is ``|y − μ|/σ`` for a normal distribution, ``|Φ⁻¹(F(y))|`` for any other: the distance from the median in
    units of the distribution's own spread.

    Parameters
    ----------
    n_bins, groups, ratio
        As in `ConformalCalibrator`, all None by default.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug.calibration import ScaleConformal
    >>> from ibug.distributions import Normal
    >>> rng = np.random.default_rng(0)
    >>> d, y = Normal(np.zeros(999), np.ones(999)), 3 * rng.normal(size=999)  # σ is said to be 1, and is 3
    >>> lower, upper = ScaleConformal().fit(d, y).transform(d[:1]).interval(0.9)
    >>> upper.round(1)
    array([4.7])
    """

    def _map(self, scores: Floats, weights: Floats | None) -> ScoreMap:
        return ScoreMap.of_absolute_scores(scores, weights)


class DistributionConformal(ConformalCalibrator):
    """Conformalised distributions: quantiles of every level are calibrated, lower and upper side each by itself.

    The score is Φ⁻¹ of the probability integral transform F(y), which orders rows as F(y) does. An interval of coverage
    p needs 2/(1 − p) − 1 held-out rows to be finite: 19 for 90 %, 199 for 99 %.

    Parameters
    ----------
    n_bins, groups, ratio
        As in `ConformalCalibrator`, all None by default.
    """

    def _map(self, scores: Floats, weights: Floats | None) -> ScoreMap:
        return ScoreMap.of_scores(scores, weights)


def _infinite_out_of_reach(distribution: Distribution, y: Floats, scores: Floats) -> Floats:
    """Return the scores, infinite where the value that has the score is not as far out as y.

    Scores end somewhere (at 1e150, say), where a spread is far too small. All values beyond have the same score: only
    an interval without an end holds them.

    Shapes: y, scores (n_rows,).
    """
    far = np.flatnonzero((np.abs(scores) > LARGEST_KNOT) & np.isfinite(scores))
    if not len(far):
        return scores
    sign, value = np.sign(scores[far]), distribution[far].from_normal_score(scores[far])
    short = sign * (y[far] - value) > _ROUNDING * np.abs(y[far])
    scores = scores.copy()
    scores[far[short]] = sign[short] * np.inf
    return scores


def _as_labels(groups: ArrayLike, n_rows: int) -> NDArray[Any]:
    labels = np.asarray(groups)
    if labels.shape != (n_rows,):
        raise InvalidInputError(f"groups must have one label per row, shape ({n_rows},); got {labels.shape}.")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InvalidInputError("groups contains NaN: give rows without a group a label of their own.")
    return labels.astype(str)


def _groups_of(groups: Any, X: Any) -> NDArray[Any]:
    """Return labels of rows, (n,), or which groups each row is in, (n, n_groups) of bool."""
    found = groups(X) if callable(groups) else _column(groups, X)
    labels = np.asarray(found)
    n = _num_samples(X)
    if labels.ndim == 2 and labels.dtype == bool and len(labels) == n and labels.shape[1]:
        return labels
    if labels.shape != (n,):
        raise InvalidInputError(
            f"groups must give one label for each of the {n} rows, or a matrix of True and False with a column for "
            f"each group; got {labels.dtype} of shape {labels.shape}."
        )
    return labels


def _ratios_of(ratio: Any, X: Any, leaves: LeavesOf | None) -> Floats:
    """Return the likelihood ratios of rows, (n,)."""
    if isinstance(ratio, LikelihoodRatio):
        if leaves is None:
            raise InvalidInputError(
                "A likelihood ratio that was estimated from leaves belongs to one trained model. Train and fit first, "
                "then u.set_params(conformal=ScaleConformal(ratio=LikelihoodRatio.estimate(u, X_val, X_new))) and "
                "u.recalibrate(X_val, y_val)."
            )
        return ratio.of_chunks(leaves(X))
    values = np.asarray(ratio(X), np.float64)
    if values.shape != (_num_samples(X),) or not np.all(np.isfinite(values) & (values >= 0)):
        raise InvalidInputError(
            f"ratio must return a finite number of at least 0 for each of the {_num_samples(X)} rows; got "
            f"{values.dtype} of shape {values.shape}."
        )
    return values


def _check_sources(groups: Any, ratio: Any) -> None:
    """Raise InvalidInputError for parameters that cannot be groups or a ratio."""
    named = isinstance(groups, (str, int, np.integer)) and not isinstance(groups, bool)
    if groups is not None and not named and not callable(groups):
        raise InvalidInputError(
            f"groups must be the name or the number of a column, or a function of X; got {type(groups).__name__}. "
            "Labels that X does not have: lambda X: labels.loc[X.index], say."
        )
    if ratio is not None and not callable(ratio) and not isinstance(ratio, LikelihoodRatio):
        raise InvalidInputError(
            "ratio must be a function of X that returns likelihood ratios, or what "
            f"LikelihoodRatio.estimate(u, X_val, X_new) returns; got {ratio!r:.100}."
        )


def _column(name: Any, X: Any) -> Any:
    known = [str(column) for column in X.columns] if hasattr(X, "columns") else None
    if isinstance(name, str) and (known is None or name not in known):
        has = "X has no column names" if known is None else f"X has the columns {known[:10]}"
        raise InvalidInputError(f"The groups are in the column {name!r}, which is not there: {has}.")
    if isinstance(name, str):
        return X[name]
    n_columns = _num_features(X)
    if not 0 <= name < n_columns:
        raise InvalidInputError(
            f"The groups are in column number {name}, which is not there: X has {n_columns} columns, 0 to "
            f"{n_columns - 1}."
        )
    return _safe_indexing(X, int(name), axis=1)


CALIBRATORS: dict[str, type[ConformalCalibrator]] = {"scale": ScaleConformal, "distribution": DistributionConformal}


def conformal_calibrator(conformal: Any) -> Any:
    """Return an unfitted calibrator for a name, a copy for a calibrator, None for None."""
    if conformal is None:
        return None
    if isinstance(conformal, ConformalCalibrator):
        return clone(conformal)
    if isinstance(conformal, str) and conformal in CALIBRATORS:
        return CALIBRATORS[conformal]()
    raise InvalidInputError(
        f"conformal must be None, one of {sorted(CALIBRATORS)} or a ConformalCalibrator; got {conformal!r}."
    )


class BoxCalibrator:
    """Split conformal boxes: each side is a central interval of its target, all of the same score.

    The score of a row is the largest ``|Φ⁻¹(F(y))|`` of its targets: how far the worst of them is from its median, in
    units of its own spread. If held-out rows and new rows are exchangeable, and the distributions were made without the
    held-out rows' targets, a box of coverage p holds all targets of a new row at once with probability p at least.

    Parameters
    ----------
    map_ : ScoreMap
        The scores of the held-out rows.
    """

    def __init__(self, map_: ScoreMap) -> None:
        self.map_ = map_

    @classmethod
    def fit(cls, marginals: Sequence[Distribution], y: Floats, weights: Floats | None = None) -> BoxCalibrator:
        """Learn from held-out rows.

        Parameters
        ----------
        marginals : sequence of Distribution
            The distributions of each target, predicted for n held-out rows.
        y : ndarray of shape (n, d)
            Their observed values.
        weights : ndarray of shape (n,) or None
            Of the rows.
        """
        if y.ndim != 2 or y.shape[1] != len(marginals) or not len(y):
            raise InvalidInputError(
                f"Boxes of {len(marginals)} targets need observed values of shape (n, {len(marginals)}), n of at least "
                f"1; got {y.shape}."
            )
        scores = np.max([np.abs(one.middle_score(y[:, j])) for j, one in enumerate(marginals)], axis=0)
        return cls(ScoreMap.of_absolute_scores(scores, weights))

    @property
    def n_rows(self) -> int:
        """The number of held-out rows."""
        return len(self.map_.scores)

    def box(self, marginals: Sequence[Distribution], coverage: Any) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of boxes, (n, d) each, or (n, d, m) for m coverages.

        Parameters
        ----------
        marginals : sequence of Distribution
            The distributions of each target, predicted for n rows.
        coverage : float or array-like of shape (m,)
            The probability that a box shall hold all targets at once; or several.
        """
        boxes = (Recalibrated(one, [self.map_], np.zeros(one.shape, np.intp)) for one in marginals)
        ends = [box.interval(coverage) for box in boxes]
        lower, upper = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
        return lower, upper

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return self.map_.state()

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> BoxCalibrator:
        """Return the calibrator that has this state."""
        return cls(ScoreMap.from_state(state))


def calibrator_state(calibrator: ConformalCalibrator | None) -> dict[str, Any] | None:
    """Return what `calibrator_from_state` needs, of a fitted or an unfitted one: strings, numbers and arrays."""
    if calibrator is None:
        return None
    kinds = [name for name, kind in CALIBRATORS.items() if type(calibrator) is kind]
    if not kinds:
        raise NotStorableError(
            f"The conformal calibrator is of the class {type(calibrator).__name__}, which is not ibug's own and cannot "
            "be saved without pickle."
        )
    if callable(calibrator.groups) or callable(calibrator.ratio):
        raise NotStorableError(
            "The conformal calibrator takes groups or likelihood ratios from a function, which cannot be saved without "
            "pickle. Groups in a column can, groups='region', say, and what "
            "LikelihoodRatio.estimate(u, X_val, X_new) returns."
        )
    state: dict[str, Any] = {"kind": kinds[0], "n_bins": calibrator.n_bins, "by": calibrator.groups}
    if isinstance(calibrator.ratio, LikelihoodRatio):
        state["ratio"] = calibrator.ratio.state()
    if not hasattr(calibrator, "maps_"):
        return state
    return {
        **state,
        "groups": calibrator.groups_,
        "overlapping": calibrator.overlapping_,
        "edges": calibrator.edges_,
        "maps": [one.state() for one in calibrator.maps_],
    }


def calibrator_from_state(state: Mapping[str, Any] | None) -> ConformalCalibrator | None:
    """Return the calibrator whose state `calibrator_state` has returned."""
    if state is None:
        return None
    if state.get("kind") not in CALIBRATORS:
        raise InvalidInputError(f"A calibrator of kind {state.get('kind')!r:.100} is not known.")
    ratio = None if state.get("ratio") is None else LikelihoodRatio.from_state(state["ratio"])
    calibrator = CALIBRATORS[state["kind"]](n_bins=state["n_bins"], groups=state.get("by"), ratio=ratio)
    if "maps" in state:
        calibrator.groups_, calibrator.edges_ = np.asarray(state["groups"]), state["edges"]
        calibrator.overlapping_ = bool(state.get("overlapping", False))
        calibrator.maps_ = [ScoreMap.from_state(one) for one in state["maps"]]
        if len(calibrator.maps_) != len(calibrator.groups_) + 1:
            raise InvalidInputError("A calibrator has one map for each group, and one for all.")
        if calibrator.edges_ is not None and len(calibrator.edges_) + 1 != len(calibrator.groups_):
            raise InvalidInputError("A calibrator has one group more than there are edges between them.")
    return calibrator
