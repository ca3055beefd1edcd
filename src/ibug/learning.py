"""What IBUGRegressor learns from training and validation rows: index, k, family, floor, calibration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug.affinity import AffinitySearch
from ibug.calibration import VarianceCalibrator, conformal_calibrator
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError
from ibug.leaves import LeafReader, read_leaves_of
from ibug.metrics import Scoring
from ibug.neighbors import LeafIndex
from ibug.posterior import Posterior, check_support, prepare
from ibug.spread import prefix_means, prefix_variances, variance
from ibug.tuning import TINY_VARIANCE, candidates_up_to, smallest_nonzero, tune

Floats = NDArray[np.float64]
Rows = tuple[Any, Floats]  # X and y

# Half as many rows as are divided between tuning and conformal calibration: below, a guarantee would say little.
_LEAST_CONFORMAL_ROWS = 100
# The share of validation rows below the threshold of the affinity score.
_SHARE_CALLED_UNFAMILIAR = 0.01
_TUNING_COLUMNS: dict[str, Any] = {"distribution": str, "k": np.int64, "score": np.float64, "reason": str}
# So many training rows tell the smallest variance where there are no validation rows.
_ROWS_FOR_MIN_VARIANCE = 1000


class NeighborLearner:
    """The private half of IBUGRegressor. It reads the parameters and sets the learned attributes."""

    # Parameters, set by the constructor of IBUGRegressor.
    k: Any
    distribution: Any
    location: str
    support: Any
    scoring: Any
    calibrate: bool
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
    tuning_: dict[str, NDArray[Any]]
    _search: AffinitySearch
    _posterior: Posterior
    _targets: Floats

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

    def _learn(
        self, X: Any, y: Floats, validation: Rows | None, score: Scoring, random_state: np.random.RandomState
    ) -> None:
        """Choose k and the family, then the floor of the variance, then the calibration; conformal comes last."""
        self._targets = y
        if validation is not None:
            self._learn_from(validation, self.distribution, score, random_state)
            return
        ks = self._candidates()
        every = slice(None, None, -(-len(y) // _ROWS_FOR_MIN_VARIANCE))
        variances, _, _ = self._prefixes(_safe_indexing(X, every), ks)
        posteriors, _ = self._posteriors(self.distribution)
        self._posterior, self.distribution_ = posteriors[0], posteriors[0].name
        self.k_, self.min_variance_ = ks[0], smallest_nonzero(variances, TINY_VARIANCE * self._unit())
        self.gamma_, self.delta_, self.conformal_, self.affinity_threshold_ = 1.0, 0.0, None, np.nan
        self.tuning_ = {name: np.array([], kind) for name, kind in _TUNING_COLUMNS.items()}

    def _learn_from(
        self, validation: Rows, distribution: Any, score: Scoring, random_state: np.random.RandomState
    ) -> None:
        tuned_on, held_out = self._divide(validation, random_state)
        X_val, y_val = tuned_on
        self._tune(X_val, y_val, distribution, score)
        self.conformal_ = conformal_calibrator(self.conformal)
        if self.conformal_ is not None:
            X_held_out, y_held_out = held_out
            self.conformal_.fit(self._law(X_held_out), y_held_out)

    def _tune(self, X_val: Any, y_val: Floats, distribution: Any, score: Scoring) -> None:
        ks = self._candidates()
        posteriors, refused = self._posteriors(distribution)
        mean = np.empty(len(y_val))
        keep_values = any(p.needs_neighbors for p in posteriors)
        variances, affinities, values = self._prefixes(X_val, ks, keep_values, predictions=mean)
        tuning = tune(mean, variances, values, y_val, ks, posteriors, score, TINY_VARIANCE * self._unit())
        self.k_, self.min_variance_ = tuning.k, tuning.min_variance
        self._posterior, self.distribution_ = tuning.posterior, tuning.posterior.name
        n = len(refused)
        rest: dict[str, list[Any]] = {"distribution": list(refused), "reason": list(refused.values())}
        rest |= {"k": [0] * n, "score": [np.nan] * n}
        self.tuning_ = {name: np.array([*column, *rest[name]]) for name, column in tuning.table.items()}
        familiar = affinities[:, list(ks).index(tuning.k)] / self.index_.n_trees
        self.affinity_threshold_ = float(np.quantile(familiar, _SHARE_CALLED_UNFAMILIAR))
        self.gamma_, self.delta_ = 1.0, 0.0
        if self.calibrate:
            calibrator = VarianceCalibrator(scoring=self.scoring).fit(mean, tuning.variance, y_val)
            self.gamma_, self.delta_ = calibrator.gamma_, calibrator.delta_

    def _candidates(self) -> tuple[int, ...]:
        """Return the numbers of neighbours to choose from; while some rows are held out there may be fewer than k."""
        n_rows = self.index_.n_rows
        return candidates_up_to(n_rows) if self.k == "tune" else (min(int(self.k), n_rows),)

    def _posteriors(self, distribution: Any) -> tuple[list[Posterior], dict[str, str]]:
        return prepare(distribution, self._targets, self.location, check_support(self.support, self._targets))

    def _divide(self, validation: Rows, random_state: np.random.RandomState) -> tuple[Rows, Rows]:
        """Return the validation rows to tune on, and those to make coverage sure on: other ones if there are enough."""
        X_val, y_val = validation
        if self.conformal is None or len(y_val) < 2 * _LEAST_CONFORMAL_ROWS:
            return validation, validation
        half = random_state.permutation(len(y_val)) < len(y_val) // 2
        first, second = np.flatnonzero(half), np.flatnonzero(~half)
        return (_safe_indexing(X_val, first), y_val[first]), (_safe_indexing(X_val, second), y_val[second])

    def _prefixes(
        self, X: Any, ks: Sequence[int], keep_values: bool = False, predictions: Floats | None = None
    ) -> tuple[Floats, Floats, Floats | None]:
        """Return variance and mean affinity of each row's first k neighbours for each k, (n_rows, len(ks)) each.

        And, if asked for, their targets, (n_rows, max(ks)). An array for predictions, (n_rows,), is filled.
        """
        parts = []
        for _, affinities, rows in self._chunks(X, max(ks), predictions):
            values = self._targets[rows]
            parts.append(
                (prefix_variances(values, ks), prefix_means(affinities, ks), values[:, : max(ks) * keep_values])
            )
        variances, means, kept = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return variances, means, kept if keep_values else None

    def _unit(self) -> float:
        """Return the variance of the targets, so that what is tiny does not depend on their unit."""
        return float(np.var(self._targets)) or 1.0

    def _law(self, X: Any) -> Distribution:
        """Return the laws before conformal calibration."""
        mean = np.empty(_num_samples(X))
        if not self._posterior.needs_neighbors:
            return self._posterior.law(mean, self._variance(X, predictions=mean), None)
        laws = []
        for where, _, rows in self._chunks(X, self.k_, mean):
            values = self._targets[rows]
            laws.append(self._posterior.fit(mean[where], self._calibrated(variance(values)), values))
        return self._posterior.inside_support(type(laws[0]).concatenate(laws))

    def _chunks(
        self, X: Any, k: int, predictions: Floats | None = None
    ) -> Iterator[tuple[slice, NDArray[np.int32], NDArray[np.int64]]]:
        return self._search.chunks(X, k, n_jobs=self.n_jobs, predictions=predictions, verbose=bool(self.verbose))

    def _variance(self, X: Any, predictions: Floats | None = None) -> Floats:
        raw = np.empty(_num_samples(X))
        for where, _, rows in self._chunks(X, self.k_, predictions):
            raw[where] = variance(self._targets[rows])
        return self._calibrated(raw)

    def _calibrated(self, raw: Floats) -> Floats:
        return self.gamma_ * np.maximum(raw, self.min_variance_) + self.delta_

    def _check_names(self, reader: LeafReader) -> None:
        """Compare the columns' names with the model's: some models take them in a wrong order without a word."""
        expected, given = reader.feature_names, getattr(self, "feature_names_in_", None)
        if expected is None or given is None or [reader.written_as(str(name)) for name in given] == expected:
            return
        order = "in another order" if sorted(map(str, given)) == sorted(expected) else "under other names"
        raise InvalidInputError(
            f"The model was trained on these columns {order}. It expects {expected}, X has {[str(n) for n in given]}."
        )
