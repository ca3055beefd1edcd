"""What `fit` was given, and the steps that every way to learn is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, _check_sample_weight

from ibug._inputs import check_feature_names, check_size_of_weights
from ibug._options import Options, is_weight
from ibug._typing import Floats, Rows
from ibug.exceptions import InvalidInputError
from ibug.leaves import (
    RenamingReader,
    names_taken,
    read_leaves_of,
    renamed,
    renamed_parameters,
    weighted_outputs,
)
from ibug.neighbors import LeafNumbers, LocalSource, Residuals
from ibug.rule import Facts, facts_of
from ibug.training._clones import fresh, trainable
from ibug.training._cross_fit import DEFAULT_FOLDS, CrossFit, cross_fit, make_folds
from ibug.training._fewer_trees import TREE_SHARES
from ibug.training._own_residuals import own_residuals
from ibug.training.several import check_outputs


@dataclass(frozen=True, eq=False)
class Job:
    """What `fit` was given, checked.

    Parameters
    ----------
    model
        The estimator: trained already, or to be trained.
    columns : ndarray of shape (n_features,) or None
        The names of the columns of X.
    X, y
        The training rows.
    facts
        Their targets, and the families that can take these.
    validation
        X_val and y_val, if they were given.
    fit_params
        For the estimator's own `fit`, weights among them.
    options
        The parameters.
    rng
        Draws splits, folds, trees and rows.
    renames
        Whether the columns have other names than the user's.
    validation_weight : ndarray of shape (n_validation,) or None
        The weights of the validation rows.
    target_names : sequence of str
        Those of several targets.
    """

    model: Any
    columns: Any
    X: Any
    y: Floats
    facts: Facts
    validation: Rows | None
    fit_params: dict[str, Any]
    options: Options
    rng: np.random.RandomState
    renames: bool = False
    validation_weight: Floats | None = None
    target_names: Sequence[str] = ()

    def as_model_takes_names(self) -> Job:
        """Return the same with other names of the columns, where the model's library would not be trained with these.

        The validation rows keep theirs: what reads rows renames them.
        """
        if self.options.prefit or self.columns is None:
            return self
        taken = names_taken(self.model, self.columns)
        if taken is None:
            return self
        fit_params = renamed_parameters(self.fit_params, self.columns, taken)
        return replace(self, columns=taken, X=renamed(self.X, taken), fit_params=fit_params, renames=True)

    @property
    def sample_weight(self) -> Floats | None:
        """The weights of the training rows, (n_train,), if they were given."""
        found = [value for name, value in self.fit_params.items() if is_weight(name) and value is not None]
        if not found:
            return None
        weights = np.asarray(_check_sample_weight(found[0], self.y, dtype=np.float64, copy=True))
        check_size_of_weights(weights, "sample_weight", smallest=False)
        return weights

    @property
    def neighbor_weight(self) -> Floats | None:
        """What the training rows count for as neighbours, (n_train,); None where they count alike."""
        if not self.options.weight_neighbors:
            return None
        weights = self.sample_weight
        if weights is None or not np.all(np.isfinite(weights) & (weights > 0)):
            given = "none" if weights is None else f"{int(np.sum(~(weights > 0)))} that are not"
            raise InvalidInputError(
                f"weight_neighbors=True needs sample_weight in fit, one above zero for each training row; got {given}. "
                "Leave rows of weight 0 out."
            )
        check_size_of_weights(weights, "sample_weight")
        return weights

    def trained(self) -> Any:
        """Return a copy of the model, trained on all rows."""
        return fresh(self.model).fit(self.X, self.y, **self.fit_params)

    def source(self, model: Any, residuals: Floats | None = None, *, own: bool = False) -> LocalSource:
        """Return the source of neighbours of a trained model: its training rows, indexed.

        Shapes: residuals (n_train,).
        """
        options, reader = self.options, read_leaves_of(model)
        reader = RenamingReader(reader, self.columns) if self.renames else reader
        given = None if self.columns is None else [reader.written_as(str(name)) for name in self.columns]
        check_outputs(reader, self.y)
        plain, reader = reader, weighted_outputs(reader, options.output_weights)
        check_feature_names(reader.feature_names, given, self.columns)
        work: dict[str, Any] = {"n_jobs": options.n_jobs, "verbose": options.verbose}
        honest = None if residuals is None else Residuals(residuals, "clones")
        source = LocalSource.build(model, reader, self.X, self.y, options.sampling, self.rng, honest=honest, **work)
        source = replace(source, weights=self.neighbor_weight)
        if not own:
            return source
        index = source.index
        if source.rows is not None or source.leaves.trees is not None:  # residuals need all rows in all trees
            index = LeafNumbers(reader, source.leaves.n_model_trees).index_of(
                self.X, title="reading all leaves", **work
            )
        found = own_residuals(plain, index, self.y, self.sample_weight, X=self.X, **work)
        return source.with_training_residuals(found)

    def cross_fit(self, rows: Any = None, k: int = 0) -> CrossFit:
        """Predict each row by a clone that has not seen it, and find the k neighbours of some rows.

        Shapes: rows (n_tuned,).
        """
        options = self.options
        return cross_fit(
            trainable(self.model),
            self.X,
            self.y,
            make_folds(DEFAULT_FOLDS if options.cv is None else options.cv, len(self.y), self.y, self.rng),
            self.fit_params,
            rows=np.empty(0, np.intp) if rows is None else rows,
            k=k,
            sampling=options.sampling,
            n_jobs=options.n_jobs,
            rng=self.rng,
            verbose=options.verbose,
            output_weights=options.output_weights,
            shares=TREE_SHARES if options.sampling.tunes_trees else (),
            curve=options.scales_errors,
        )

    def part(self, train: Any, held_out: Any) -> Job:
        """Return the same with a part of the rows to train on, and the others as validation rows."""
        y = self.y[train]
        return replace(
            self,
            X=_safe_indexing(self.X, train),
            y=y,
            facts=facts_of(y, self.options).bounded(self.facts.supports),  # the rows held out are training rows, too
            validation=(_safe_indexing(self.X, held_out), self.y[held_out]),
            fit_params=_check_method_params(self.X, self.fit_params, indices=train),
            validation_weight=None if self.sample_weight is None else self.sample_weight[held_out],
        )
