"""The methods of the study, one small file each."""

from __future__ import annotations

from benchmarks.study.methods.bart import BART
from benchmarks.study.methods.base import GRIDS, SCORINGS, Fitted, Floats, Method, Moments, Split, importable
from benchmarks.study.methods.cbu import CBU
from benchmarks.study.methods.cqr import CQR
from benchmarks.study.methods.default import DefaultCatBoost, DefaultLightGBM
from benchmarks.study.methods.ibug import IBUGCatBoost, IBUGExactXGBoost, IBUGHist, IBUGLightGBM, IBUGXGBoost
from benchmarks.study.methods.ibug_cbu import IBUGCBU
from benchmarks.study.methods.knn import KNN, UnscaledKNN
from benchmarks.study.methods.knn_catboost import KNNCatBoost
from benchmarks.study.methods.ngboost import NGBoost, NGBoostCRPS
from benchmarks.study.methods.pgbm import PGBM
from benchmarks.study.methods.quantile_forest import QuantileForest

# In the order in which they are run: those that share a trained model stand apart, so that two that run at the same
# time do not both train it.
METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        IBUGCatBoost,
        CBU,
        IBUGLightGBM,
        IBUGXGBoost,
        IBUGHist,
        DefaultLightGBM,
        KNN,
        IBUGCBU,
        NGBoost,
        KNNCatBoost,
        CQR,
        UnscaledKNN,
        QuantileForest,
        PGBM,
        DefaultCatBoost,
        BART,
        IBUGExactXGBoost,
        NGBoostCRPS,
    )
}

__all__ = ["GRIDS", "METHODS", "SCORINGS", "Fitted", "Floats", "Method", "Moments", "Split", "importable"]
