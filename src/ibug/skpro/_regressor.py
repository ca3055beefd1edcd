"""The estimator in skpro's interface."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from skpro.regression.base import BaseProbaRegressor

import ibug.regressor
from ibug.skpro._distributions import to_skpro


class IBUGRegressor(BaseProbaRegressor):
    """``ibug.IBUGRegressor`` as a probabilistic regressor of skpro.

    ``predict_proba`` returns skpro's distributions; ``predict_interval``, ``predict_quantiles`` and ``predict_var``
    return its frames. Point predictions are the model's own, and intervals those of ibug, with their guarantee where
    `conformal` is given. With several columns of targets, the distributions are joint.

    Parameters
    ----------
    estimator, prefit, distribution, scoring, conformal, support, k, spread, residuals, calibrate, location, sampling, \
cv, refit, n_jobs, random_state, verbose
        As in ``ibug.IBUGRegressor``. skpro's `fit` takes no validation rows. So k and calibration come from
        cross-fitting or a held-out part of X; with `prefit` and no `cv`, nothing is calibrated and k must be a number.

    Attributes
    ----------
    regressor_ : ibug.IBUGRegressor
        The fitted regressor: `kneighbors`, `predict_dist`, `save` and so on.

    Examples
    --------
    >>> from ibug.skpro import IBUGRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> u = IBUGRegressor(random_state=0).fit(X[:300], y[:300].to_frame())
    >>> u.predict_proba(X[300:302])
    BatchedDistribution(...)
    >>> u.predict_interval(X[300:302], coverage=0.9).shape
    (2, 2)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["The ibug developers"],
        "capability:multioutput": True,
        "capability:missing": True,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(
        self,
        estimator: Any = None,
        prefit: bool = False,
        distribution: Any = "auto",
        scoring: Any = "crps",
        conformal: Any = None,
        support: Any = "auto",
        k: Any = "tune",
        spread: str = "auto",
        residuals: str = "auto",
        calibrate: Any = True,
        location: str = "model",
        sampling: Any = None,
        cv: Any = None,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.prefit = prefit
        self.distribution = distribution
        self.scoring = scoring
        self.conformal = conformal
        self.support = support
        self.k = k
        self.spread = spread
        self.residuals = residuals
        self.calibrate = calibrate
        self.location = location
        self.sampling = sampling
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> IBUGRegressor:
        self.regressor_ = ibug.regressor.IBUGRegressor(**self.get_params(deep=False))
        targets = y.to_numpy(np.float64)
        self.regressor_.fit(_named(X), targets[:, 0] if targets.shape[1] == 1 else targets)
        return self

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(self.regressor_.predict(_named(X)), index=X.index, columns=self._get_columns("predict"))

    def _predict_proba(self, X: pd.DataFrame) -> Any:
        return to_skpro(self.regressor_.predict_dist(_named(X)), index=X.index, columns=self._get_columns("predict"))

    def _predict_interval(self, X: pd.DataFrame, coverage: list[float]) -> pd.DataFrame:
        # skpro would take quantiles, but the guarantee of conformal calibration is for the ends of intervals.
        ends = self.regressor_.predict_interval(_named(X), coverage)  # (n, 2, m), or (n, d, 2, m)
        lines = np.swapaxes(ends, -1, -2).reshape(len(X), -1)
        return pd.DataFrame(lines, index=X.index, columns=self._get_columns("predict_interval", coverage=coverage))

    def _predict_quantiles(self, X: pd.DataFrame, alpha: list[float]) -> pd.DataFrame:
        quantiles = self.regressor_.predict_quantiles(_named(X), alpha).reshape(len(X), -1)
        return pd.DataFrame(quantiles, index=X.index, columns=self._get_columns("predict_quantiles", alpha=alpha))

    def _predict_var(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            self.regressor_.predict_var(_named(X)), index=X.index, columns=self._get_columns("predict_var")
        )

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for skpro's own tests."""
        small = GradientBoostingRegressor(n_estimators=10, random_state=0)
        return [
            {"estimator": small, "cv": 2, "random_state": 0},
            {"estimator": small, "k": 5, "distribution": "kde", "spread": "targets", "random_state": 0},
            {"estimator": small, "k": 10, "distribution": "student_t", "conformal": "scale", "random_state": 0},
        ]


def _named(X: pd.DataFrame) -> pd.DataFrame:
    """Return rows whose column names are all texts if some are: scikit-learn refuses a mixture."""
    texts = [isinstance(name, str) for name in X.columns]
    return X.set_axis([str(name) for name in X.columns], axis=1) if any(texts) and not all(texts) else X
