"""How the model of IBUGRegressor comes to be, and on which rows the rest is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from ibug._inputs import fresh, split
from ibug.checks import InputChecks
from ibug.crossfit import DEFAULT_FOLDS, CrossFit, cross_fit, make_folds, tuning_rows
from ibug.evidence import CrossFittedRows
from ibug.exceptions import InvalidInputError, UnsupportedModelError
from ibug.learning import Floats, Rows
from ibug.tuning import K_CANDIDATES


class ModelFitter(InputChecks):
    """The half of IBUGRegressor that trains models."""

    def _fit_prefit(
        self, model: Any, X: Any, y: Floats, validation: Rows | None, fit_params: dict[str, Any], rng: Any
    ) -> None:
        """Use a trained model as it is; clones are trained only if `cv` says so."""
        if self.cv is not None and validation is None and self._needs_validation:
            rows = self._cross_fitted_rows(model, X, y, fit_params, rng)
            self._learn_and_index(rows, model, X, y, rng)
            return
        residuals = None
        if self.cv is not None and self.spread != "targets":
            residuals = y - self._cross_fit(model, X, y, fit_params, rng).mean
        self._index(model, X, rng)
        self._know(y, residuals)
        self._learn(X, validation, rng)

    def _fit_given_validation(
        self, model: Any, X: Any, y: Floats, validation: Rows | None, fit_params: dict[str, Any], rng: Any
    ) -> None:
        """Train on X alone, and tune on the given rows, if any."""
        wanted = self.spread == "residuals" or (self.spread == "auto" and validation is not None)
        residuals = y - self._cross_fit(model, X, y, fit_params, rng).mean if wanted else None
        self._index(fresh(model).fit(X, y, **fit_params), X, rng)
        self._know(y, residuals)
        self._learn(X, validation, rng)

    def _fit_cross_fitted(self, model: Any, X: Any, y: Floats, fit_params: dict[str, Any], rng: Any) -> None:
        """Tune on out-of-fold predictions of all rows, then train on everything."""
        rows = self._cross_fitted_rows(model, X, y, fit_params, rng)
        self._learn_and_index(rows, fresh(model).fit(X, y, **fit_params), X, y, rng)

    def _fit_with_split(self, model: Any, X: Any, y: Floats, fit_params: dict[str, Any], rng: Any) -> None:
        """Tune on a part that is held out, then train on everything (paper, section 5.1)."""
        train, held_out = split(len(y), self.validation_fraction, rng)
        X_train, y_train = _safe_indexing(X, train), y[train]
        some = _check_method_params(X, fit_params, indices=train)
        self._fit_given_validation(model, X_train, y_train, (_safe_indexing(X, held_out), y[held_out]), some, rng)
        if self.refit:
            self._index(fresh(model).fit(X, y, **fit_params), X, rng)
            self._know(y, None)
            self._restore_k()

    @property
    def _cross_fits(self) -> bool:
        """Whether it tunes on out-of-fold predictions where no validation rows are given."""
        return self.refit and (self.cv is not None or self.spread != "targets")

    def _learn(self, X: Any, validation: Rows | None, rng: Any) -> None:
        if validation is None:
            self._learn_without_validation(X)
        else:
            self._learn_from(validation, self.distribution, rng)

    def _cross_fit(
        self, model: Any, X: Any, y: Floats, fit_params: dict[str, Any], rng: Any, rows: Any = None, k: int = 0
    ) -> CrossFit:
        """Predict each row by a clone that has not seen it; find the neighbours of some rows, if so ordered."""
        return cross_fit(
            trainable(model),
            X,
            y,
            make_folds(DEFAULT_FOLDS if self.cv is None else self.cv, len(y), y, rng),
            fit_params,
            rows=np.empty(0, np.intp) if rows is None else rows,
            k=k,
            sampling={
                "tree_fraction": self.tree_fraction,
                "tree_order": self.tree_order,
                "row_fraction": self.row_fraction,
            },
            n_jobs=self.n_jobs,
            rng=rng,
            verbose=bool(self.verbose),
        )

    def _cross_fitted_rows(
        self, model: Any, X: Any, y: Floats, fit_params: dict[str, Any], rng: Any
    ) -> CrossFittedRows:
        k = K_CANDIDATES[-1] if self.k == "tune" else int(self.k)
        result = self._cross_fit(model, X, y, fit_params, rng, tuning_rows(len(y), rng), k)
        mean, rows = result.mean, result.rows
        return CrossFittedRows(mean[rows], y[rows], result.affinities, result.neighbors, y, y - mean)

    def _learn_and_index(self, rows: CrossFittedRows, model: Any, X: Any, y: Floats, rng: Any) -> None:
        self._index(model, X, rng)
        self._know(y, rows.residuals)
        self._learn_cross_fitted(rows, rng)
        self._restore_k()


def trainable(model: Any) -> Any:
    """Return the model to clone: what a FrozenEstimator holds; refuse one that a clone would not train anew."""
    if isinstance(model, FrozenEstimator):
        model = model.estimator
    if not hasattr(model, "fit"):
        raise UnsupportedModelError(
            f"cv trains clones, and a {type(model).__name__} cannot be trained: give the library's scikit-learn "
            "estimator (LGBMRegressor, XGBRegressor, say), or leave cv out and pass X_val and y_val."
        )
    last = model
    while isinstance(last, Pipeline) or hasattr(last, "regressor"):
        last = last.steps[-1][1] if isinstance(last, Pipeline) else last.regressor
    if isinstance(last, FrozenEstimator):
        raise InvalidInputError(
            f"The {type(model).__name__} holds a FrozenEstimator, whose clones are not trained anew: their residuals "
            'on training rows would be too small. Take the estimator out of it, or choose spread="targets".'
        )
    return model
