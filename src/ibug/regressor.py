"""The estimator: it holds a source of neighbours and a rule, and asks one with what the other finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from ibug._estimator import ProbabilisticRegressorMixin, all_or_nothing, answers_coverage, view
from ibug._frames import check_output, neighbor_frames, side_by_side, totals_frame
from ibug._options import Options
from ibug._typing import Floats
from ibug._validation import as_weights, check_at_least_one, check_count, check_probabilities
from ibug.calibration import ConformalCalibrator
from ibug.distributions import Distribution, Stack
from ibug.exceptions import InvalidInputError
from ibug.metrics import Drift, Scoring, drift
from ibug.neighbors import Batch, LocalSource, Sampling, SearchPlan, map_batches, with_row_context
from ibug.online import monitored_values
from ibug.rule import Rule, joined, most_needed, one_target, ranges_of, summarize
from ibug.totals import Dependence, blocks_of, dependence_of, sampled_paths, total_distributions
from ibug.training import (
    FitRequest,
    check_same_targets,
    checked_model,
    fit_source_and_rule,
    for_targets,
    learn_from,
    target_names,
    updated_source,
    warn_of_old_rows,
    with_sample_weight,
)


class IBUGRegressor(ProbabilisticRegressorMixin, RegressorMixin, BaseEstimator):
    """Turn a gradient-boosted tree regressor into a probabilistic one.

    Point predictions are the model's own. Their distributions come from the training rows that share most leaves with
    the predicted row: from their targets (paper, Algorithms 1 to 3), or from the out-of-sample errors of the model or
    of clones. Validation rows choose and calibrate.

    Parameters
    ----------
    estimator : supported regressor or Booster, default=None
        ``None`` means scikit-learn's ``HistGradientBoostingRegressor``, of several targets one for each. It is cloned
        and fitted unless `prefit` is set.
    prefit : bool, default=False
        The estimator is trained already, and used as it is; so is a ``FrozenEstimator``.
    distribution : str, subclass of Distribution, or "tune", default="auto"
        ``"auto"``: a stack, the mixture of the model's view and the neighbours' view that validation rows find best; a
        normal distribution where ``tuning_`` says why. Or a family (``ibug.distributions.families()``), fitted to each
        row's neighbours; ``"tune"`` chooses it together with k, or the stack where that scores better.
    scoring : {"crps", "nll"} or function (y, distribution) -> float, default="crps"
        The score that chooses spread and k and calibrates; lower is better.
    conformal : {None, "scale", "distribution"} or ConformalCalibrator, default=None
        Guarantee the coverage of intervals. ``"scale"`` changes their width (normalised split conformal),
        ``"distribution"`` each side by itself, so that quantiles of every level are calibrated. From 200 validation
        rows on, a random half chooses and calibrates, the other half is for this. The guarantee is an approximation
        with fewer rows, with out-of-fold predictions in place of validation rows, and where `refit` trains anew.
    support : "auto", pair of float, or None, default="auto"
        Bounds of the target, ``(0, inf)`` say: no quantile or sample is outside. ``"auto"``: from 0 on, if the model's
        loss is for such targets (Poisson, gamma, Tweedie), or if no training target is below 0 and ten are within 2 %
        of the largest; from 0 to 1, if all are and ten are near 1. Targets outside that come later remove these bounds,
        with a warning. ``None``: no bounds.
    k : int or "tune", default="tune"
        The number of neighbours. ``"tune"`` chooses among the paper's candidates, 3 to 701, on validation rows.
    spread : {"auto", "targets", "residuals"}, default="auto"
        What the variance is made of. ``"targets"``: the variance of the k nearest rows' targets, as in the paper.
        ``"residuals"``: the mean square of their out-of-sample residuals. ``"auto"``: a combination of spreads at
        several numbers of neighbours, fitted on validation rows; the better of both where the paper's rule scores
        better. Where training rows have no such residuals, ``"residuals"`` takes those of the validation rows.
    residuals : {"auto", "model", "none"}, default="auto"
        How out-of-sample residuals of training rows are made. ``"auto"``: by clones (see `cv`), or else by the trained
        model, without the row in its leaves, at the level of validation errors. ``"model"``: never by clones.
        ``"none"``: not at all.
    calibrate : bool, "grid" or "continuous", default=True
        Calibrate the variance, γσ² + δ: on the paper's grid for targets, continuously for residuals. Combinations and
        stacks are calibrations of their own: ``False`` leaves them out.
    location : {"model", "neighbors"}, default="model"
        ``"model"`` keeps mean and variance, and a family gives the shape; ``"neighbors"``: the plain fit to neighbours.
    sampling : Sampling or None, default=None
        Which trees and which training rows make neighbours, and how much each counts. ``None``: all, equally.
    search : "auto", "exact" or int, default="auto"
        ``"exact"`` compares each row with all training rows. From 20,000 of these on, ``"auto"`` compares it with those
        in the most similar cells of a partition only: as few cells as raise the mean CRPS by at most 0.1 % and find
        nearly all neighbours, measured on up to 1,000 rows. An integer is the number of cells.
    cv : int, splitter, list of splits, float in (0, 1) or None, default=None
        The folds in which clones of the estimator are trained: each training row is predicted by one that has not seen
        it. They give out-of-sample residuals, and rows to tune on where `fit` is given none. Rows that no fold
        predicts, the first ones of ``TimeSeriesSplit``, are not tuned on; then residuals are not used. A float is the
        share of the rows that is held out to tune on in place of folds: no clones are trained. ``None``: five random
        folds if `spread` needs them and the estimator is trained here, which takes about five more trainings; else no
        clones, and a fifth is held out where `fit` is given no validation rows.
    refit : bool, default=True
        Fit the estimator anew on all rows in the end, as the paper does.
    n_jobs : int or None, default=None
        Threads for the search, and clones trained at a time, in joblib's convention. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        For the split or the folds, and for random trees and rows.
    verbose : int, default=0
        With 1, long work shows its progress on standard error.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model whose predictions these are.
    spread_, k_ : str, int
        What the variance is made of: ``"targets"``, ``"residuals"`` or ``"combination"``; and the number of neighbours
        that it, or the shape, is made of, the middle one for a combination.
    residuals_ : ndarray or None
        Out-of-sample residuals of the training rows, or of validation rows; ``source_.out_of_sample`` says whose.
    search_ : SearchPlan
        How neighbours are searched, how many of them are found, and what that costs; ``print`` says it in words.
    conformal_ : ConformalCalibrator or None
        The fitted conformal calibrator.
    affinity_threshold_ : float
        The `affinity_score` that all but 1 % of the validation rows exceed; NaN with fewer than 100 of these.
    distribution_, stack_ : str, dict of ndarray
        ``"stack"``, or the name of the family; and the experts of the stack as columns, ready for a DataFrame:
        ``expert``, ``k``, ``weight`` and ``score``.
    support_ : pair of float
        The bounds of the target, infinite where there is none; ``rule_.support_reason`` says how they were found.
    tuning_ : dict of ndarray
        The candidates as columns, ready for a DataFrame: ``spread``, ``distribution``, ``k``, ``score``, ``calibrated``
        (the score after calibration, of the best of each spread) and ``reason`` (why a family or the stack is out).
    training_targets_ : ndarray of shape (n_train,)
        The targets of the training rows, in the order of X.
    source_ : LocalSource
        Where neighbours come from: ``index``, the `LeafIndex` of the training rows; ``tree_fraction``, the share of the
        trees that count; ``walk``, how leaves are found, by ibug's compiled walk where it agrees with the library, or
        by the library; ``out_of_sample``, the residuals: their ``values``, their ``kind``, ``"clones"``,
        ``"leave-one-out"``, ``"out-of-bag"``, ``"validation"`` or ``"none"``, and the ``reason`` why there are none.
    rule_ : Rule
        What is made of neighbours: ``min_variance``, the floor ρ of the variance, ``gamma`` and ``delta``, its
        calibration, γ · max(variance, ρ) + δ; of several targets, arrays of shape (n_targets,).
    dependence_ : Dependence or None
        What rows of a block have in common, for totals: ``correlation`` with its ``standard_error``, and ``n_blocks``
        that it was learned from; ``print`` says it. None where no blocks were given.
    target_names_ : list of str or None
        The names of several targets.
    n_features_in_, feature_names_in_, feature_types_ : int, ndarray of str, list of dict
        The number of features, their names where X had names, and for each its ``name``, ``dtype`` and, where it has
        some, ``categories``.

    Examples
    --------
    >>> from ibug import IBUGRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(random_state=0).fit(X[:300], y[:300])  # trained already
    >>> u = IBUGRegressor(model, prefit=True).fit(X[:300], y[:300], X_val=X[300:400], y_val=y[300:400])
    >>> u.predict_interval(X[400:402], coverage=0.9).shape
    (2, 2)
    """

    # Learned; all that follows are views of these two.
    source_: LocalSource
    rule_: Rule
    dependence_: Dependence | None = None
    _takes_multioutput = True
    estimator_ = view("source_", "model")
    training_targets_ = view("source_", "targets")
    residuals_ = view("source_", "residuals")
    k_ = view("rule_", "k")
    spread_ = view("rule_", "spread_name")
    distribution_ = view("rule_", "distribution_name")
    stack_ = view("rule_", "experts")
    search_ = view("source_", "search")
    conformal_ = view("rule_", "conformal")
    affinity_threshold_ = view("rule_", "affinity_threshold")
    tuning_ = view("rule_", "tuning")
    support_ = view("rule_", "bounds")

    def __init__(
        self,
        estimator: Any = None,
        *,
        prefit: bool = False,
        distribution: str | type[Distribution] = "auto",
        scoring: str | Scoring = "crps",
        conformal: str | ConformalCalibrator | None = None,
        support: tuple[float, float] | str | None = "auto",
        k: int | str = "tune",
        spread: str = "auto",
        residuals: str = "auto",
        calibrate: bool | str = True,
        location: str = "model",
        sampling: Sampling | None = None,
        search: str | int = "auto",
        cv: Any = None,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator, self.prefit, self.distribution = estimator, prefit, distribution
        self.scoring, self.conformal, self.support = scoring, conformal, support
        self.k, self.spread, self.residuals, self.calibrate = k, spread, residuals, calibrate
        self.location, self.sampling, self.search, self.cv, self.refit = location, sampling, search, cv, refit
        self.n_jobs, self.random_state, self.verbose = n_jobs, random_state, verbose

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        blocks_val: Any = None,
        **fit_params: Any,
    ) -> IBUGRegressor:
        """Index the training rows, and let validation rows choose and calibrate; train before, unless `prefit` is set.

        Parameters
        ----------
        X, y : array-like or data frame of shape (n_rows, n_features), array-like of shape (n_rows,)
            The training rows and their targets, (n_rows, n_targets) of several. With `prefit`, those of the model.
        sample_weight : array-like of shape (n_rows,), optional
            For the `fit` of estimator and clones; with `prefit`, those of the model's own; see `sampling`.
        X_val, y_val : optional
            Validation rows, which the model has not been trained on. Without them, and without `prefit`, rows of X
            serve: predicted by clones that have not seen them, or held out (see `spread` and `cv`).
        sample_weight_val : array-like of shape (n_validation,), optional
            Weights of the validation rows, in tuning, stack, calibration and conformal calibration; only their ratios
            matter. Where rows of X serve, they have the weights of `sample_weight`.
        blocks_val : str, list of str, array-like of shape (n_validation,), or function of X_val, default=None
            Which validation rows belong together, the rows of a day say, for totals: a column of X_val, several, or
            labels of the rows. What rows of a block have in common is learned from them, see `predict_total`.
        **fit_params
            Passed on to the estimator's `fit`. Arrays with one entry per row of X are divided along with X.
        """
        options = Options.of(self.get_params(deep=False))
        rng = check_random_state(self.random_state)
        model = checked_model(self.estimator, options, rng)  # fails before anything is trained
        names = target_names(y)
        X, y = self._check_training_rows(X, y)
        validation = self._check_validation_rows(X_val, y_val, names if y.ndim > 1 else None)
        check_same_targets(y, validation)
        model = for_targets(model, self.estimator, y)
        if blocks_val is not None and validation is None:
            raise InvalidInputError("blocks_val are blocks of validation rows: pass X_val and y_val, too.")
        weights = as_weights(sample_weight_val, 0 if validation is None else len(validation[1]), "sample_weight_val")
        fit_params = with_sample_weight(model, fit_params, sample_weight)
        options.check(len(y), fit_params, has_validation=validation is not None)
        request = FitRequest.of(
            model,
            getattr(self, "feature_names_in_", None),
            (X, y),
            validation,
            fit_params,
            options,
            rng,
            target_names=names,
            validation_weight=weights,
        )
        self.source_, self.rule_, _ = fit_source_and_rule(request)
        self.target_names_ = names if y.ndim > 1 else None
        self.dependence_ = None if validation is None else self._dependence(*validation, blocks_val)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's own point predictions, unchanged, (n_rows,); (n_rows, n_targets) of several targets."""
        X = self._check_rows(X)
        return self.source_.leaves.reader.predict(X)

    def predict_dist(self, X: Any) -> Any:
        """Return the distributions, ``mean var … interval rvs crps``; joint ones, JointStack, of several targets."""
        batches = self.batches(X)  # which checks X
        found = map_batches(batches, self.rule_.distribution, self.n_jobs)
        first, n_rows = next(found), _num_samples(X)
        if isinstance(first, Stack) and len(first) < n_rows:  # much memory: never there twice
            return Stack.gather(chain([first], found), n_rows)
        return joined([first, *found])

    def total_dist(self, X: Any, by: Any = None, *, weights: ArrayLike | None = None, blocks: Any = None) -> Any:
        """Return the distributions of sums of rows, one for each group.

        Rows of a block share what the model does not know, the weather of a day say, so that their errors do not
        average out: see ``dependence_``. Without blocks, rows are taken as independent, with a warning.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The rows to predict and to add up.
        by : str, list of str, array-like of shape (n_rows,), or function of X, default=None
            The groups: a column of X, several, or labels of the rows. ``None``: all rows are one group.
        weights : array-like of shape (n_rows,), default=None
            What each row counts for, a price say, or 1/n for means; differences have weights below 0. ``None``: 1.
        blocks : str, list of str, array-like, function of X, or False, default=None
            Which rows belong together, as in `fit`. ``None``: the columns that `fit` was given. ``False``: none do.

        Returns
        -------
        TotalDistribution
            A batch of distributions, ``mean var … interval rvs crps``, with ``groups``, their labels, ascending. Of
            several targets, a list with one for each.
        """
        batches = self.batches(X)
        known, rule = self.dependence_, self.rule_
        codes = blocks_of(known, blocks, X, rule)
        found = total_distributions(rule, batches, X, by, weights, codes, known, self.n_jobs)
        return found[0] if rule.coupling is None else found

    @answers_coverage
    def predict_total(
        self,
        X: Any,
        by: Any = None,
        *,
        weights: ArrayLike | None = None,
        blocks: Any = None,
        coverage: ArrayLike = 0.9,
        output: str | None = None,
    ) -> Any:
        """Return the central intervals of sums of rows, one for each group; see `total_dist`.

        Parameters
        ----------
        X, by, weights, blocks
            As in `total_dist`.
        coverage : float or array-like of shape (n_coverages,), default=0.9
            The probability that the interval shall hold, between 0 and 1; or several.
        output : {None, "pandas", "polars"}, default=None
            ``None``: an array. Else a data frame with the columns ``group``, ``n_rows``, ``mean``, ``median`` and those
            of `predict_interval`; of several targets they begin with the target's name.

        Returns
        -------
        ndarray of shape (n_groups, 2) or (n_groups, 2, n_coverages), or data frame
            Groups are in ascending order of their labels. Of several targets an array has one axis more,
            (n_groups, n_targets, 2).
        """
        check_output(output)
        check_probabilities(coverage, "coverage")
        found = self.total_dist(X, by, weights=weights, blocks=blocks)
        each = [found] if self.rule_.coupling is None else found
        ends = [side_by_side(*one.interval(coverage)) for one in each]
        if output is None:
            return ends[0] if self.rule_.coupling is None else np.stack(ends, axis=1)
        return totals_frame(each, ends, coverage, self.target_names_, output)

    def sample_paths(self, X: Any, size: int = 1000, *, blocks: Any = None, random_state: Any = None) -> Floats:
        """Draw joint samples of all rows: their sums over any groups are samples of coherent totals.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The rows. Memory grows with their number times `size`: sums alone need `total_dist`.
        size : int, default=1000
            The number of samples.
        blocks : str, list of str, array-like, function of X, or False, default=None
            As in `total_dist`.
        random_state : int, RandomState or None, default=None
            What draws them.

        Returns
        -------
        ndarray of shape (size, n_rows), or (size, n_rows, n_targets) of several targets
        """
        check_at_least_one(size, "size")
        batches, rule, known = self.batches(X), self.rule_, self.dependence_
        codes = blocks_of(known, blocks, X, rule)
        return sampled_paths(rule, batches, _num_samples(X), size, codes, known, random_state)

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, *, exact: bool = False, output: str | None = None
    ) -> tuple[Any, Any]:
        """Find the training rows behind each prediction.

        Parameters
        ----------
        X, n_neighbors : rows, int or None
            The rows; how many training rows, ``None`` means ``k_``.
        exact : bool, default=False
            Search among all training rows, whatever ``search_`` says.
        output : {None, "pandas", "polars"}, default=None
            Arrays, or two data frames with the index of X.

        Returns
        -------
        affinities, indices : ndarray of shape (n_rows, n_neighbors), or data frame
            The number of trees in which the training row is in the same leaf, descending, and its row number in the X
            of `fit`; of equal affinities the smaller number comes first. Columns ``affinity_1``, … ``neighbor_1``, …
        """
        check_output(output)
        rows, k = self._check_rows(X), self._check_n_neighbors(n_neighbors)
        source = self.source_.searched(SearchPlan()) if exact else self.source_
        found = source.neighbors(rows, k, n_jobs=self.n_jobs, verbose=bool(self.verbose))
        return neighbor_frames(*found, output, X)

    def predict_with_neighbors(
        self, X: Any, n_neighbors: int | None = None, *, output: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Return what `predict_dist` and `kneighbors` return, by one search: distribution, affinities and indices.

        Parameters
        ----------
        X, n_neighbors, output
            As in `kneighbors`.
        """
        check_output(output)
        k, rule = self._check_n_neighbors(n_neighbors), self.rule_
        found = [
            (rule.distribution(batch), batch.affinities[:, :k], batch.rows[:, :k])
            for batch in self.batches(X, most_needed(rule.needs, {"targets": k}))
        ]
        distributions, affinities, rows = zip(*found, strict=True)
        near = np.concatenate(affinities), np.concatenate(rows)
        return joined(distributions), *neighbor_frames(*near, output, X)

    def batches(self, X: Any, needs: Mapping[str, int] | None = None, *, predict: bool = True) -> Iterator[Batch]:
        """Search, and yield batch after batch of rows with predictions and neighbours: what ``rule_`` takes.

        Parameters
        ----------
        X, needs, predict
            The rows; the number of neighbours by quantity, ``rule_.needs`` by default; whether predictions are needed.
        """
        X, needs = self._check_rows(X), self.rule_.needs if needs is None else needs
        row_context = self.rule_.row_context(X, self.source_.leaves_of)
        found = self.source_.batches(X, needs, predict=predict, n_jobs=self.n_jobs, verbose=bool(self.verbose))
        return with_row_context(found, row_context) if row_context else found

    @all_or_nothing
    def recalibrate(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        distribution: Any = None,
        blocks: Any = None,
    ) -> IBUGRegressor:
        """Let newer labelled rows choose and calibrate again, as the validation rows of `fit` did.

        Spread, k, family or weights of the stack, and the conformal calibration are learned anew, with the parameters
        that this estimator has. Model, index and training targets stay: nothing is trained.

        Parameters
        ----------
        X, y : array-like or data frame of shape (n_rows, n_features), array-like of shape (n_rows,)
            Rows that the model has not been trained on, the latest ones say. They must be enough to calibrate on: some
            hundreds. After `update`, a warning says if the model's errors on them differ from those on its latest rows.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows: larger for the latest, say. Only their ratios matter; rows of weight 0 do not count.
        distribution : str, subclass of Distribution, list of these, or None, default=None
            Another `distribution` to learn; ``"tune"`` chooses a family or the stack, a list a family. ``None``: that
            of the parameter.
        blocks : str, list of str, array-like of shape (n_rows,), or function of X, default=None
            Which rows belong together, for totals; see `blocks_val` of `fit`. ``None``: what is known of blocks stays.
        """
        check_is_fitted(self)
        if distribution is not None:
            one_target(self.rule_, "another distribution")
        validation = self._check_labelled_rows(X, y, "recalibrate needs rows and their targets, X and y.")
        check_same_targets(self.training_targets_, validation)
        weights = as_weights(sample_weight, len(validation[1]), "sample_weight")
        changed = {} if distribution is None else {"distribution": distribution}
        options, rng = Options.of({**self.get_params(deep=False), **changed}), check_random_state(self.random_state)
        options.check_indexed_k(self.source_.index.n_rows)
        if weights is None:
            warn_of_old_rows(self.source_, validation)
        targets = summarize(self.source_.targets, options)
        self.source_, self.rule_, _ = learn_from(self.source_, validation, options, targets, rng, weights)
        if blocks is not None:
            self.dependence_ = self._dependence(*validation, blocks)
        return self

    def update(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, keep: int | None = None
    ) -> IBUGRegressor:
        """Make newer labelled rows neighbours as well; the model stays, and so does the rule until `recalibrate`.

        Neighbours are then those of an index of all rows, bit for bit. Where training rows have out-of-sample
        residuals, the new rows have one too: the model has not been trained on them. Row numbers go on behind those of
        `fit`. A new index is made, which copies of this estimator do not get; 1 % more rows cost about 4 % of indexing
        all.

        Parameters
        ----------
        X, y : array-like or data frame of shape (n_rows, n_features), array-like of shape (n_rows,)
            Rows that the model has not been trained on, oldest first.
        sample_weight : array-like of shape (n_rows,), optional
            What they count for as neighbours, with ``Sampling(weight_neighbors=True)``; 1 by default.
        keep : int, optional
            Forget the oldest rows, so that this many are left at most; row numbers are then counted from the oldest
            one that is left.
        """
        rows = self._check_labelled_rows(X, y, "update needs rows and their targets, X and y.")
        check_same_targets(self.training_targets_, rows)
        options = Options.of(self.get_params(deep=False))
        source = updated_source(self.source_, self.rule_, rows, options, self.random_state, keep, sample_weight)
        rule = self.rule_.including(ranges_of(rows[1]), "new")
        self.source_, self.rule_ = source, replace(rule, reference=rule.reference.for_other_index())
        return self

    def monitor(self, X: Any, y: ArrayLike | None = None, *, coverage: float = 0.9, alpha: float = 0.01) -> Drift:
        """Test for data drift: compare new rows with the validation rows, each by a test of two samples.

        The tests compare predictions and affinity scores, the similarity to the training data. With observed values,
        they also compare where these are in their distributions (PIT), and whether too few are inside intervals.
        P-values are corrected for the number of comparisons (Holm).

        If `fit` has trained the model without validation rows, other models have predicted the training rows that it
        was calibrated on. Then affinity scores are not compared, and a difference counts from 0.03 on, as a share of
        the rows. After `update` the same holds for affinity scores, PIT and coverage, which change with the index.
        After `recalibrate` on rows that the model has not been trained on, all tests compare like with like.

        Parameters
        ----------
        X, y : array-like or data frame of shape (n_rows, n_features), array-like of shape (n_rows,), optional
            Rows that the model has not been trained on, and their observed values. Default of y: None.
        coverage : float, default=0.9
            The coverage of the intervals.
        alpha : float, default=0.01
            The probability of an alarm, ``result.drifted``, without data drift, at most. It is that of one call: of N
            calls together the probability is at most N times as large.

        Returns
        -------
        Drift
            The comparisons with their p-values. ``ibug.plotting.DriftDisplay`` draws it.
        """
        check_is_fitted(self)
        if y is not None:
            one_target(self.rule_, "monitor with y")
            X, y = self._check_labelled_rows(X, y, "monitor needs rows, X.")
        values, reference = monitored_values(self, X, y), self.rule_.reference
        return drift(values, reference.samples, tolerance=reference.tolerance, coverage=coverage, alpha=alpha)

    def affinity_score(self, X: Any) -> Floats:
        """Return the similarity of each row to the training data, (n_rows,): its neighbours' mean share of the trees.

        Below ``affinity_threshold_`` a row is dissimilar to the training rows.
        """
        X = self._check_rows(X)
        return self.source_.affinity_scores(X, self.k_, n_jobs=self.n_jobs, verbose=bool(self.verbose))

    def __sklearn_is_fitted__(self) -> bool:
        return "rule_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        model = HistGradientBoostingRegressor() if self.estimator is None else self.estimator
        if hasattr(model, "__sklearn_tags__"):  # a native Booster has none
            tags.input_tags = get_tags(model).input_tags
        return tags

    def _variances(self, X: Any) -> Floats:
        X, rule = self._check_rows(X), self.rule_
        batches = self.batches(X, rule.variance_needs, predict=not rule.keeps_variance)
        return np.concatenate([*map_batches(batches, rule.predicted_variance, self.n_jobs)])

    def _from_distributions(self, X: Any, function: Callable[[Any], Floats]) -> Floats:
        batches, rule = self.batches(X), self.rule_  # in this order: an estimator that is not fitted has no rule
        parts = [*map_batches(batches, lambda batch: function(rule.distribution(batch)), self.n_jobs)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _require_boxes(self) -> None:
        check_is_fitted(self)
        if self.rule_.coupling is None:
            super()._require_boxes()
        self.rule_.require_boxes()

    def _ends(self, X: Any, coverage: ArrayLike, joint: bool) -> Floats:
        return self._from_distributions(X, lambda found: self.rule_.ends(found, coverage, joint=joint))

    def _quantiles(self, X: Any, probabilities: Floats) -> Floats:
        return self._from_distributions(X, lambda found: self.rule_.quantiles(found, probabilities))

    def _dependence(self, X: Any, y: Floats, blocks: Any) -> Dependence | None:
        return None if blocks is None else dependence_of(self.rule_, self.batches(X), X, y, blocks)

    def _check_n_neighbors(self, n_neighbors: int | None) -> int:
        k = self.k_  # which raises NotFittedError before `fit`
        return k if n_neighbors is None else check_count(n_neighbors, 1, self.source_.index.n_rows, "n_neighbors")
