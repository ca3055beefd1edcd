"""The boosters that methods build on: how each is made, stopped early and cut, and the search over its grid.

With ``--grid quick`` one small configuration is trained with early stopping on the validation rows. With ``--grid
full`` it is one of up to 2,000 trees, with the learning rate, depth and so on that the paper selected for the dataset;
where the paper has no such model, those of the one most like it. With ``--grid paper`` every configuration of the
paper's section B.2 is trained with the largest number of trees, and the number of trees, one of its candidates, is
chosen along with the rest by the RMSE on the validation rows: predictions of the first T trees are the predictions of a
model with T trees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from benchmarks.common.early_stopping import fit_catboost, fit_lightgbm
from benchmarks.study import facts
from benchmarks.study.methods.base import Floats, Split

TREES = (10, 25, 50, 100, 250, 500, 1000, 2000)
RATES = (0.01, 0.1)
LEAVES = (15, 31, 61, 91)
LEAST_ROWS = (1, 20)
DEPTHS = (2, 3, 5, 7, None)

QUICK_RATE = 0.1
QUICK_TREES, FULL_TREES = 300, 2000
PATIENCE, FULL_PATIENCE = 20, 100
FEWEST_TREES = 10
LIMITS = {"quick": (QUICK_TREES, PATIENCE), "full": (FULL_TREES, FULL_PATIENCE)}
OWN_DEPTH = 6  # of CatBoost and XGBoost, where the paper has -1


@dataclass
class Tuned:
    """A chosen configuration, the model of it that has not seen the validation rows, and the one that has."""

    parameters: dict[str, Any]
    part: Any
    full: Any


class Booster(ABC):
    """A library's regressor."""

    name: ClassVar[str]
    package: ClassVar[str]
    shared: ClassVar[bool] = False  # by several methods
    quick: ClassVar[dict[str, Any]] = {}
    like: ClassVar[str]  # the paper's name of the model whose selected hyperparameters are taken

    @abstractmethod
    def selected(self, paper: dict[str, float]) -> dict[str, Any]:
        """Return the configuration, but for rate and trees, that the paper selected for `like`; see facts.selected."""

    @abstractmethod
    def grid(self) -> Iterator[dict[str, Any]]:
        """Yield the configurations of the paper, but for the number of trees."""

    @abstractmethod
    def make(self, parameters: dict[str, Any], seed: int) -> Any:
        """Return an estimator, untrained; `parameters` has ``trees``, ``rate`` and the library's own."""

    @abstractmethod
    def fit_stopped(self, model: Any, split: Split, patience: int) -> tuple[Any, int]:
        """Train on the part until the validation rows gain no more; return the model, cut, and its number of trees."""

    @abstractmethod
    def predict_first(self, model: Any, X: Floats, trees: int) -> Floats:
        """Return the point predictions of the first trees, (n_rows,)."""

    def loss(self, y: Floats, predicted: Floats) -> float:
        """Return what the best configuration is lowest in."""
        return float(np.mean(np.square(y - predicted)))

    def tune(self, split: Split) -> Tuned:
        """Return the best configuration of the grid, trained on the part and on all training rows."""
        if not self.shared:
            return self._tuned(split)
        limits = LIMITS.get(split.grid, ())
        key = (self.name, split.grid, split.seed, version(self.package), self.configuration(split), limits)
        return split.memory.recall(key, lambda: self._tuned(split))

    def tune_part(self, split: Split) -> tuple[dict[str, Any], Any]:
        """Return the best configuration of the grid, and its model of the part."""
        return self._searched(split) if split.grid == "paper" else self._stopped(split, *LIMITS[split.grid])

    def configuration(self, split: Split) -> dict[str, Any]:
        """Return the one configuration of a grid that is not searched, but for the number of trees."""
        paper = facts.selected().get((split.dataset, self.like)) if split.grid == "full" else None
        if paper is None:
            return {"rate": QUICK_RATE, **self.quick}
        return {"rate": paper["eta"], **self.selected(paper), **self.quick}

    def _tuned(self, split: Split) -> Tuned:
        parameters, part = self.tune_part(split)
        return Tuned(parameters, part, self.make(parameters, split.seed).fit(split.X_train, split.y_train))

    def _stopped(self, split: Split, most: int, patience: int) -> tuple[dict[str, Any], Any]:
        parameters = {"trees": most, **self.configuration(split)}
        part, trees = self.fit_stopped(self.make(parameters, split.seed), split, patience)
        if trees < FEWEST_TREES:  # an ensemble of hardly any trees knows no neighbours
            trees = FEWEST_TREES
            part = self.make({**parameters, "trees": trees}, split.seed).fit(split.X_part, split.y_part)
        return {**parameters, "trees": trees}, part

    def _searched(self, split: Split) -> tuple[dict[str, Any], Any]:
        best, lowest = None, np.inf
        chosen: dict[str, Any] = {}
        for parameters in self.grid():
            parameters = {**parameters, "trees": TREES[-1]}
            model = self.make(parameters, split.seed).fit(split.X_part, split.y_part)
            for trees in TREES:
                error = self.loss(split.y_val, self.predict_first(model, split.X_val, trees))
                if error < lowest:
                    best, lowest, chosen = model, error, {**parameters, "trees": trees}
        if chosen["trees"] != TREES[-1]:
            best = self.make(chosen, split.seed).fit(split.X_part, split.y_part)
        return chosen, best


def _depth(paper: dict[str, float]) -> int:
    return OWN_DEPTH if paper["d"] < 0 else int(paper["d"])


def _own(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that have the library's own names."""
    return {name: value for name, value in parameters.items() if name not in ("trees", "rate")}


class CatBoost(Booster):
    """CatBoost with symmetric trees; -1 for the depth is the library's own, 6."""

    name, package, shared, like = "catboost", "catboost", True, "CatBoost"
    options: ClassVar[dict[str, Any]] = {}

    def selected(self, paper: dict[str, float]) -> dict[str, Any]:
        return {"depth": _depth(paper), "min_data_in_leaf": int(paper["min_leaf"])}

    def grid(self) -> Iterator[dict[str, Any]]:
        for rate, depth, least in product(RATES, DEPTHS, LEAST_ROWS):
            yield {"rate": rate, "depth": depth, "min_data_in_leaf": least}

    def make(self, parameters: dict[str, Any], seed: int) -> Any:
        from catboost import CatBoostRegressor

        return CatBoostRegressor(
            iterations=parameters["trees"],
            learning_rate=parameters["rate"],
            random_seed=seed,
            thread_count=1,
            verbose=0,
            allow_writing_files=False,
            **_own(parameters),
            **self.options,
        )

    def fit_stopped(self, model: Any, split: Split, patience: int) -> tuple[Any, int]:
        trees = fit_catboost(model, split.X_part, split.y_part, split.X_val, split.y_val, patience)
        return model, trees

    def predict_first(self, model: Any, X: Floats, trees: int) -> Floats:
        return np.asarray(model.predict(X, ntree_end=trees, thread_count=1))


class UncertainCatBoost(CatBoost):
    """CatBoost for the likelihood of a normal distribution, with posterior sampling: what CBU builds on.

    Its likelihood on validation rows is best with far fewer trees than its mean, and calibration makes up for the
    variance. So the number of trees is that of the best mean, as in the paper, which tunes CBU by a point score.
    """

    name, like = "catboost with uncertainty", "CBU"
    options: ClassVar[dict[str, Any]] = {"loss_function": "RMSEWithUncertainty", "posterior_sampling": True}
    steps: ClassVar[int] = 30  # numbers of trees that are tried

    def fit_stopped(self, model: Any, split: Split, patience: int) -> tuple[Any, int]:
        model.fit(split.X_part, split.y_part)
        grown = model.tree_count_
        step = max(grown // self.steps, 1)
        errors = {
            trees: self.loss(split.y_val, self.predict_first(model, split.X_val, trees))
            for trees in (*range(step, grown, step), grown)
        }
        best = min(errors, key=errors.__getitem__)
        if best < grown:  # not cut: posterior sampling shrinks early trees as later ones come
            model = clone(model).set_params(iterations=best).fit(split.X_part, split.y_part)
        return model, best

    def predict_first(self, model: Any, X: Floats, trees: int) -> Floats:
        found = model.predict(X, prediction_type="RMSEWithUncertainty", ntree_end=trees, thread_count=1)
        return np.asarray(found)[:, 0]


class LightGBM(Booster):
    """LightGBM."""

    name = package = "lightgbm"
    like = "PGBM"
    options: ClassVar[dict[str, Any]] = {}

    def selected(self, paper: dict[str, float]) -> dict[str, Any]:
        return {"num_leaves": int(paper["h"]), "min_child_samples": int(paper["min_leaf"])}

    def grid(self) -> Iterator[dict[str, Any]]:
        for rate, leaves, least in product(RATES, LEAVES, LEAST_ROWS):
            yield {"rate": rate, "num_leaves": leaves, "min_child_samples": least}

    def make(self, parameters: dict[str, Any], seed: int) -> Any:
        from lightgbm import LGBMRegressor

        return LGBMRegressor(
            n_estimators=parameters["trees"],
            learning_rate=parameters["rate"],
            random_state=seed,
            n_jobs=1,
            verbose=-1,
            **_own(parameters),
            **self.options,
        )

    def fit_stopped(self, model: Any, split: Split, patience: int) -> tuple[Any, int]:
        trees = fit_lightgbm(model, split.X_part, split.y_part, split.X_val, split.y_val, patience)
        return model, trees

    def predict_first(self, model: Any, X: Floats, trees: int) -> Floats:
        return np.asarray(model.predict(X, num_iteration=trees))


class XGBoost(Booster):
    """XGBoost with the histogram method, its default since version 2."""

    name = package = "xgboost"
    like = "CatBoost"
    tree_method: ClassVar[str] = "hist"

    def selected(self, paper: dict[str, float]) -> dict[str, Any]:
        return {"max_depth": _depth(paper), "min_child_weight": int(paper["min_leaf"])}

    def grid(self) -> Iterator[dict[str, Any]]:
        for rate, depth, least in product(RATES, DEPTHS, LEAST_ROWS):
            yield {"rate": rate, "max_depth": OWN_DEPTH if depth is None else depth, "min_child_weight": least}

    def make(self, parameters: dict[str, Any], seed: int) -> Any:
        from xgboost import XGBRegressor

        return XGBRegressor(
            n_estimators=parameters["trees"],
            learning_rate=parameters["rate"],
            random_state=seed,
            n_jobs=1,
            tree_method=self.tree_method,
            **_own(parameters),
        )

    def fit_stopped(self, model: Any, split: Split, patience: int) -> tuple[Any, int]:
        model.set_params(early_stopping_rounds=patience)
        model.fit(split.X_part, split.y_part, eval_set=[(split.X_val, split.y_val)], verbose=False)
        return model, model.best_iteration + 1

    def predict_first(self, model: Any, X: Floats, trees: int) -> Floats:
        return np.asarray(model.predict(X, iteration_range=(0, trees)), np.float64)


class ExactXGBoost(XGBoost):
    """XGBoost that tries every split: the default for data of this size before version 2, and so the paper's."""

    name, tree_method = "xgboost-exact", "exact"


class HistGradientBoosting(Booster):
    """scikit-learn's HistGradientBoostingRegressor. It cannot be stopped on given rows, so it is grown bit by bit."""

    name, package, like = "hist", "sklearn", "PGBM"
    bit: ClassVar[int] = 50

    def selected(self, paper: dict[str, float]) -> dict[str, Any]:
        return {"max_leaf_nodes": int(paper["h"]), "min_samples_leaf": int(paper["min_leaf"])}

    @staticmethod
    def regressor() -> type[Any]:
        """Return the class."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor

    def grid(self) -> Iterator[dict[str, Any]]:
        for rate, leaves, least in product(RATES, LEAVES, LEAST_ROWS):
            yield {"rate": rate, "max_leaf_nodes": leaves, "min_samples_leaf": least}

    def make(self, parameters: dict[str, Any], seed: int) -> Any:
        return self.regressor()(
            max_iter=parameters["trees"],
            learning_rate=parameters["rate"],
            early_stopping=False,
            random_state=seed,
            **_own(parameters),
        )

    def fit_stopped(self, model: Any, split: Split, patience: int) -> tuple[Any, int]:
        most, grown, best = model.get_params()["max_iter"], 0, 0
        while grown < most and grown - best <= patience:
            grown = min(grown + self.bit, most)
            model.set_params(max_iter=grown, warm_start=True).fit(split.X_part, split.y_part)
            errors = [self.loss(split.y_val, mean) for mean in model.staged_predict(split.X_val)]
            best = int(np.argmin(errors)) + 1
        if best < grown:
            model.set_params(max_iter=best, warm_start=False).fit(split.X_part, split.y_part)
        return model, best

    def predict_first(self, model: Any, X: Floats, trees: int) -> Floats:
        for number, mean in enumerate(model.staged_predict(X), start=1):
            if number == trees:
                return np.asarray(mean)
        raise ValueError(f"The model has fewer than {trees} trees.")
