"""What IBUGRegressor learns from training and validation rows: index, k, family, floor, calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from ibug._inputs import check_feature_names, halves
from ibug.affinity import AffinitySearch
from ibug.calibration import conformal_calibrator
from ibug.distributions import Distribution
from ibug.evidence import Batch, CrossFittedRows, Evidence, Found, HeldOutRows, ValidationRows
from ibug.exceptions import InvalidInputError
from ibug.leaves import LeafReader, read_leaves_of
from ibug.neighbors import LeafIndex
from ibug.posterior import Posterior, prepare
from ibug.selection import Settings, Statistics, clipped_scales, collect, select
from ibug.spread import QUANTITIES, SingleSpread, Spread
from ibug.targets import TargetFacts, check_support
from ibug.tuning import TINY_VARIANCE, candidates_up_to, smallest_nonzero

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

Floats = NDArray[np.float64]
Rows = tuple[Any, Floats]  # X and y

# The share of validation rows below the threshold of the affinity score.
_SHARE_CALLED_UNFAMILIAR = 0.01
_TUNING_COLUMNS: dict[str, Any] = {
    "spread": str,
    "distribution": str,
    "k": np.int64,
    "score": np.float64,
    "calibrated": np.float64,
    "reason": str,
}
# So many training rows tell the smallest variance where there are no validation rows.
ROWS_FOR_MIN_VARIANCE = 1000


@dataclass(frozen=True)
class Plan:
    """What is to be read of the validation rows' neighbours, and what is then chosen from."""

    quantities: tuple[str, ...]
    every_k: tuple[int, ...]
    settings: Settings
    refused: dict[str, str]  # families that cannot take the targets, and why

    @property
    def keep_values(self) -> bool:
        """Whether the neighbours' values themselves are needed: families are fitted to them."""
        return any(posterior.needs_neighbors for posterior in self.settings.posteriors)


class NeighborLearner:
    """The private half of IBUGRegressor. It reads the parameters and sets the learned attributes."""

    # Parameters, set by the constructor of IBUGRegressor.
    k: Any
    distribution: Any
    location: str
    support: Any
    spread: str
    scoring: Any
    calibrate: bool | str
    conformal: Any
    tree_fraction: float
    tree_order: str
    row_fraction: float
    n_jobs: int | None
    verbose: int

    # Learned.
    estimator_: Any
    index_: LeafIndex
    walk_: str
    k_: int
    min_variance_: float
    gamma_: float
    delta_: float
    conformal_: Any
    affinity_threshold_: float
    distribution_: str
    spread_: str
    residuals_: Floats | None
    tuning_: dict[str, NDArray[Any]]
    _search: AffinitySearch
    _posterior: Posterior
    _spread: Spread
    _targets: Floats
    _residual_index: LeafIndex | None

    def _index(self, model: Any, X: Any, random_state: np.random.RandomState) -> None:
        reader = read_leaves_of(model)
        self._check_names(reader)
        self.estimator_ = model
        self._search = AffinitySearch.build(
            reader,
            X,
            tree_fraction=self.tree_fraction,
            tree_order=self.tree_order,
            row_fraction=self.row_fraction,
            random_state=random_state,
            n_jobs=self.n_jobs,
            verbose=bool(self.verbose),
        )
        self.index_ = self._search.index
        self.walk_ = reader.how

    def uncalibrated(self) -> Self:
        """Return a copy that predicts what the neighbours say as it is, to see what calibration is worth.

        It shares model and index with this one, has γ = 1, δ = 0 and no conformal calibration. A combination of spreads
        is a calibration of its own: in its place comes the paper's rule, the variance of the neighbours' targets, with
        the k that scores best before calibration.

        Examples
        --------
        >>> from ibug import IBUGRegressor
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> u = IBUGRegressor(random_state=0).fit(X, y).uncalibrated()
        >>> u.gamma_, u.delta_
        (1.0, 0.0)
        """
        check_is_fitted(self)
        plain = copy(self)
        plain.gamma_, plain.delta_, plain.conformal_ = 1.0, 0.0, None
        if not isinstance(self._spread, SingleSpread):
            table = self.tuning_
            ours = np.flatnonzero((table["spread"] == "targets") & (table["distribution"] == self.distribution_))
            best = ours[np.argmin(np.nan_to_num(table["score"][ours], nan=np.inf))]
            plain.k_ = int(table["k"][best])
            plain._spread, plain.spread_ = SingleSpread("targets", plain.k_), "targets"
        return plain

    @property
    def _evidence(self) -> Evidence:
        return Evidence(self._search, self._targets, self.residuals_, self._residual_index)

    @property
    def _target_facts(self) -> TargetFacts:
        return TargetFacts.of(self._targets)

    def _know(self, y: Floats, residuals: Floats | None) -> None:
        """Take the targets of the training rows, and their honest residuals where there are any."""
        self._targets, self.residuals_, self._residual_index = y, residuals, None

    def _learn_without_validation(self, X: Any) -> None:
        """Take k as it is given; the floor of the variance is that of the training rows."""
        self._take_k_as_given()
        every = slice(None, None, -(-len(self._targets) // ROWS_FOR_MIN_VARIANCE))
        needs = self._spread.n_neighbors
        sample = self._evidence.batches(_safe_indexing(X, every), needs, n_jobs=self.n_jobs, verbose=bool(self.verbose))
        self._take_floor_of(sample)

    def _take_k_as_given(self) -> None:
        quantity = "targets" if self.spread == "auto" else self.spread
        self.k_ = self._candidates(self.index_.n_rows)[0]
        self._spread, self.spread_ = SingleSpread(quantity, self.k_), quantity

    def _take_floor_of(self, batches: Iterable[Batch]) -> None:
        """Take the smallest variance of some training rows as the floor, and calibrate nothing."""
        variances = np.concatenate([self._spread.variance(batch.neighbors) for batch in batches])
        posteriors, _ = self._posteriors(self.distribution)
        self._posterior, self.distribution_ = posteriors[0], posteriors[0].name
        self.min_variance_ = smallest_nonzero(variances, self._tiny)
        self.gamma_, self.delta_, self.conformal_, self.affinity_threshold_ = 1.0, 0.0, None, np.nan
        self.tuning_ = {name: np.array([], kind) for name, kind in _TUNING_COLUMNS.items()}

    def _learn_from(self, validation: Rows, distribution: Any, random_state: np.random.RandomState) -> None:
        """Choose spread, k and family, then the floor of the variance and the calibration; conformal comes last."""
        X_val, y_val = validation
        tuned_on, held_out = self._divide(len(y_val), random_state)
        divided = held_out is not tuned_on
        X_tune, y_tune = (_safe_indexing(X_val, tuned_on), y_val[tuned_on]) if divided else validation
        if self.spread == "residuals" and (self.residuals_ is None or self._residual_index is not None):
            self._index_residuals(X_tune, y_tune)
        rows = HeldOutRows(
            self._evidence, X_tune, y_tune, self.n_jobs, bool(self.verbose), self._residual_index is not None
        )
        self._tune(rows, distribution)
        if divided:  # these rows are in no index
            rows = HeldOutRows(
                self._evidence, _safe_indexing(X_val, held_out), y_val[held_out], self.n_jobs, bool(self.verbose)
            )
        self._make_coverage_sure(rows)

    def _learn_cross_fitted(self, rows: CrossFittedRows, random_state: np.random.RandomState) -> None:
        """Do the same on training rows, each with the neighbours that a model found which has not seen it."""
        tuned_on, held_out = self._divide(len(rows.y), random_state)
        self._tune(rows.take(tuned_on), self.distribution)
        self._make_coverage_sure(rows.take(held_out))

    def _make_coverage_sure(self, rows: ValidationRows) -> None:
        self.conformal_ = conformal_calibrator(self.conformal)
        if self.conformal_ is not None:
            self.conformal_.fit(self._laws(rows.mean, rows.batches(self._needs)), rows.y)

    def _index_residuals(self, X_val: Any, y_val: Floats) -> None:
        """Make validation rows the neighbours that have residuals: the model has not seen them, so these are honest."""
        self._check_residual_rows(len(y_val))
        self._residual_index = self._search.index_of(X_val, verbose=bool(self.verbose))
        self.residuals_ = y_val - np.asarray(self._search.reader.predict(X_val), np.float64)

    def _check_residual_rows(self, n_rows: int) -> None:
        least = 3 if self.k == "tune" else int(self.k) + 1
        if n_rows < least:
            raise InvalidInputError(
                f'spread="residuals" takes the residuals of validation rows here; {n_rows} of them are too few for '
                f"k={self.k!r}: at least {least} are needed. Give more, or let cv=5 train clones for residuals of "
                "all training rows."
            )

    def _tune(self, rows: ValidationRows, distribution: Any) -> None:
        plan = self._plan(rows.n_rows, distribution)
        self._choose(plan, collect(rows, plan.quantities, plan.every_k, plan.keep_values), rows.n_trees)

    def _plan(self, n_rows: Callable[[str], int], distribution: Any) -> Plan:
        """Say what is to be read of the validation rows' neighbours; `n_rows` tells how many have a quantity."""
        quantities = self._quantities()
        most = min(n_rows(quantity) for quantity in ("targets", *quantities))
        ks = self._candidates(most)
        scales = clipped_scales(most if self.k == "tune" else ks[0])
        posteriors, refused = self._posteriors(distribution)
        every_k = tuple(sorted({*ks, *scales})) if self.spread == "auto" else ks
        settings = Settings(ks, scales, posteriors, self.scoring, self.calibrate, self._tiny)
        return Plan(quantities, every_k, settings, refused)

    def _choose(self, plan: Plan, statistics: Statistics, n_trees: int) -> None:
        """Take the best spread, k and family; `n_trees` is the affinity of twins."""
        choice, table = select(self.spread, statistics, plan.settings)
        self._spread, self.spread_ = choice.spread, choice.spread.name
        self._posterior, self.distribution_ = choice.tuning.posterior, choice.tuning.posterior.name
        self.k_, self.min_variance_ = choice.tuning.k, choice.tuning.min_variance
        if not self._posterior.needs_neighbors:  # then it is the spread alone that looks at neighbours
            self.k_ = self._spread.usual_k
        self.gamma_, self.delta_ = choice.gamma, choice.delta
        n = len(plan.refused)
        rest: dict[str, list[Any]] = {"distribution": list(plan.refused), "reason": list(plan.refused.values())}
        rest |= {"spread": [""] * n, "k": [0] * n, "score": [np.nan] * n, "calibrated": [np.nan] * n}
        self.tuning_ = {name: np.array([*table[name], *rest[name]]) for name in _TUNING_COLUMNS}
        familiar = statistics.affinities[:, statistics.ks.index(self.k_)] / n_trees
        self.affinity_threshold_ = float(np.quantile(familiar, _SHARE_CALLED_UNFAMILIAR))

    def _quantities(self) -> tuple[str, ...]:
        """Return what neighbours are asked for; ``"auto"`` asks for residuals if training rows have them."""
        if self.spread != "auto":
            return (self.spread,)
        return ("targets",) if self.residuals_ is None or self._residual_index is not None else tuple(QUANTITIES)

    def _candidates(self, most: int) -> tuple[int, ...]:
        """Return the numbers of neighbours to choose from; while some rows are held out there may be fewer than k."""
        return candidates_up_to(most) if self.k == "tune" else (min(int(self.k), most),)

    def _restore_k(self) -> None:
        """Take k as it was given, once all rows can be neighbours."""
        if self.k == "tune":
            return
        self.k_ = int(self.k)
        if isinstance(self._spread, SingleSpread):
            self._spread = replace(self._spread, k=self.k_)

    def _posteriors(self, distribution: Any) -> tuple[list[Posterior], dict[str, str]]:
        facts = self._target_facts
        return prepare(distribution, facts, self.location, check_support(self.support, facts))

    def _divide(self, n_rows: int, random_state: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the validation rows to tune on, and those to make coverage sure on: other ones if there are enough."""
        every = np.arange(n_rows)
        return (every, every) if self.conformal is None else halves(n_rows, random_state)

    @property
    def _tiny(self) -> float:
        """What stands for a variance of zero, so that it does not depend on the unit of the targets."""
        return TINY_VARIANCE * self._target_facts.tiny_unit

    @property
    def _needs(self) -> dict[str, int]:
        """How many neighbours a law is made of, by quantity."""
        needs = dict(self._spread.n_neighbors)
        if self._posterior.needs_neighbors:
            shape = self._spread.shape
            needs[shape] = max(needs[shape], self.k_)
        return needs

    def _batches(self, X: Any, predictions: Floats | None = None) -> Iterable[Batch]:
        return self._evidence.batches(
            X, self._needs, n_jobs=self.n_jobs, verbose=bool(self.verbose), predictions=predictions
        )

    def _law(self, X: Any) -> Distribution:
        """Return the laws before conformal calibration."""
        mean = np.empty(_num_samples(X))  # filled batch by batch, by the same walk that finds the leaves
        return self._laws(mean, self._batches(X, predictions=mean))

    def _law_and_neighbors(self, X: Any, k: int) -> tuple[Distribution, Found]:
        """Return the laws before conformal calibration, and the k nearest training rows, by one search."""
        n_rows = _num_samples(X)
        mean, found = np.empty(n_rows), (np.empty((n_rows, k), np.int32), np.empty((n_rows, k), np.int64))
        batches = self._evidence.batches(
            X, self._needs, n_jobs=self.n_jobs, verbose=bool(self.verbose), predictions=mean, found=found
        )
        return self._laws(mean, batches), found

    def _laws(self, mean: Floats, batches: Iterable[Batch]) -> Distribution:
        if not self._posterior.needs_neighbors:
            return self._posterior.law(mean, self._variances(len(mean), batches), None)
        shape, laws = self._spread.shape, []
        for where, _, neighbors in batches:
            values = QUANTITIES[shape].around(neighbors[shape][:, : self.k_], mean[where])
            variance = self._calibrated(self._spread.variance(neighbors))
            laws.append(self._posterior.fit(mean[where], variance, values))
        return self._posterior.inside_support(type(laws[0]).concatenate(laws))

    def _variance(self, X: Any) -> Floats:
        return self._variances(_num_samples(X), self._batches(X))

    def _variances(self, n_rows: int, batches: Iterable[Batch]) -> Floats:
        raw = np.empty(n_rows)
        for where, _, neighbors in batches:
            raw[where] = self._spread.variance(neighbors)
        return self._calibrated(raw)

    def _calibrated(self, raw: Floats) -> Floats:
        return self.gamma_ * np.maximum(raw, self.min_variance_) + self.delta_

    def _check_names(self, reader: LeafReader) -> None:
        """Compare the columns' names with the model's: some models take them in a wrong order without a word."""
        columns = getattr(self, "feature_names_in_", None)
        given = None if columns is None else [reader.written_as(str(name)) for name in columns]
        check_feature_names(reader.feature_names, given, columns)
