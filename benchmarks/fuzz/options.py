"""Models with random options, trained on random targets: `draw` makes a case of a seed, `Case.fit` the regressor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.multioutput import MultiOutputRegressor
from xgboost import XGBRegressor

from ibug import IBUGRegressor, Sampling
from ibug.calibration import DistributionConformal, LikelihoodRatio, ScaleConformal
from ibug.distributions import families
from ibug.explain import plain_neighbors

#: The number of rows that nothing has been learned from.
N_NEW = 60
GROUP = 2  # the column that conformal calibration may group by


def median_loss(y, distribution):
    """Score one's own way: by the absolute error of the median, and the width of an interval."""
    lower, median, upper = distribution.ppf([[0.25, 0.5, 0.75]]).T
    return float(np.mean(np.abs(y - median) + 0.1 * (upper - lower)))


KINDS = {
    "continuous": lambda s, w, r: s + w * r.normal(size=s.shape),
    "skewed": lambda s, w, r: np.exp(0.5 * s + w * r.normal(size=s.shape)),
    "heavy": lambda s, w, r: s + w * r.standard_t(2, size=s.shape),
    "counts": lambda s, w, r: r.poisson(np.exp(0.5 * s)).astype(float),
    "grades": lambda s, w, r: np.clip(np.round(3.5 + s + w * r.normal(size=s.shape)), 1, 6),
    "shares": lambda s, w, r: 1 / (1 + np.exp(-s - w * r.normal(size=s.shape))),
    "full shares": lambda s, w, r: np.clip(0.5 + 0.3 * s + 0.3 * w * r.normal(size=s.shape), 0, 1),
    "few at the bound": lambda s, w, r: _censored(s + w * r.normal(size=s.shape), 0.02, r),
    "many at the bound": lambda s, w, r: _censored(s + w * r.normal(size=s.shape), 0.3, r),
    "zeros and amounts": lambda s, w, r: np.where(r.random(s.shape) < 0.4, 0.0, np.exp(s + w * r.normal(size=s.shape))),
    "yes or no": lambda s, w, r: (s + w * r.normal(size=s.shape) > 0.5).astype(float),
    "without noise": lambda s, w, r: s,
    "constant": lambda s, w, r: np.full(s.shape, 2.5),
}
#: Kinds with few equal values: only there is coverage bounded from above, too.
SMOOTH = ("continuous", "skewed", "heavy", "shares", "without noise")


def _censored(y, share, rng):
    bounds = np.quantile(y, [share, 1 - share])
    which = rng.integers(3)
    return np.clip(y, bounds[0] if which != 0 else None, bounds[1] if which != 1 else None)


def _lightgbm(loss, seed):
    options = {"n_estimators": 8, "num_leaves": 6, "min_child_samples": 3, "min_sum_hessian_in_leaf": 0}
    return LGBMRegressor(objective=loss, **options, n_jobs=1, verbose=-1, random_state=seed)


def _xgboost(loss, seed):
    return XGBRegressor(n_estimators=8, max_depth=3, objective=loss, n_jobs=1, random_state=seed)


def _catboost(loss, seed):
    options = {"thread_count": 1, "verbose": False, "allow_writing_files": False, "random_seed": seed}
    return CatBoostRegressor(iterations=8, depth=3, loss_function=loss, **options)


#: Of each model the losses for every target, those for targets from 0 on, and whether features may be NaN.
MODELS = {
    "gradient boosting": (
        lambda loss, seed: GradientBoostingRegressor(n_estimators=8, max_depth=3, loss=loss, random_state=seed),
        ("squared_error", "squared_error", "absolute_error", "huber"), (), False,
    ),
    "histogram": (
        lambda loss, seed: HistGradientBoostingRegressor(
            max_iter=8, max_leaf_nodes=6, min_samples_leaf=3, loss=loss, early_stopping=False, random_state=seed
        ),
        ("squared_error", "squared_error", "absolute_error"), ("poisson",), True,
    ),
    "forest": (
        lambda loss, seed: RandomForestRegressor(8, max_leaf_nodes=8, criterion=loss, random_state=seed),
        ("squared_error",), (), True,
    ),
    "extra trees": (
        lambda loss, seed: ExtraTreesRegressor(8, max_leaf_nodes=8, criterion=loss, random_state=seed),
        ("squared_error",), (), False,
    ),
    "lightgbm": (_lightgbm, ("regression", "regression", "regression_l1", "huber"), ("poisson", "tweedie"), True),
    "xgboost": (_xgboost, ("reg:squarederror", "reg:squarederror"), ("count:poisson", "reg:tweedie"), True),
    "catboost": (_catboost, ("RMSE", "RMSE", "MAE"), ("Poisson", "Tweedie:variance_power=1.5"), True),
}  # fmt: skip
JOINT_MODELS = {
    "forest": MODELS["forest"][0],
    "one for each": lambda loss, seed: MultiOutputRegressor(
        GradientBoostingRegressor(n_estimators=5, max_depth=2, loss=loss, random_state=seed)
    ),
    "xgboost": lambda _, seed: XGBRegressor(n_estimators=5, max_depth=2, n_jobs=1, random_state=seed),
    "catboost": lambda _, seed: _catboost("MultiRMSE", seed),
}
#: What may happen to a regressor after `fit`.
LATER = ("update", "recalibrate", "uncalibrated", "likelihood ratio", "another distribution")


@dataclass(frozen=True)
class Case:
    """What is trained and asked; `str` shows everything that was drawn.

    Parameters
    ----------
    seed
        What the case was made of.
    kind, n_targets, factor, shift
        The kind of target, their number; values are multiplied and moved.
    n_train, n_val, n_features, missing
        The numbers of rows and columns, the share of NaN in most columns.
    model, loss
        Which model, and what it minimises.
    weighted, weighted_val
        Whether training and validation rows have weights.
    later
        What happens to the regressor after `fit`; nothing if empty.
    parameters
        Of the regressor.
    """

    seed: int
    kind: str
    n_targets: int
    factor: float
    shift: float
    n_train: int
    n_val: int
    n_features: int
    missing: float
    model: str
    loss: str
    weighted: bool
    weighted_val: bool
    later: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)

    @cached_property
    def rows(self):
        """Features and targets: of training rows, of validation rows, and of new rows."""
        n, rng = self.n_train + self.n_val + N_NEW, np.random.default_rng([self.seed, 1])
        X = rng.normal(size=(n, self.n_features))
        X[:, GROUP] = rng.integers(0, 3, n)
        signal, width = X[:, 0] + 0.5 * np.abs(X[:, 1]), 0.3 + 0.3 * (X[:, GROUP] > 0)
        if self.n_targets > 1:
            signal = np.stack([signal, *(X[:, 1] * i for i in range(1, self.n_targets))], axis=1)
            width = width[:, None] * np.ones(self.n_targets)
        y = self.shift + self.factor * KINDS[self.kind](signal, width, rng)
        holes = rng.random(X.shape) < self.missing
        holes[:, GROUP] = False
        X[holes] = np.nan
        ends = self.n_train, self.n_train + self.n_val
        return tuple(zip(np.split(X, ends), np.split(y, ends), strict=True))

    def estimator(self):
        """Return the model, not trained."""
        make = MODELS[self.model][0] if self.n_targets == 1 else JOINT_MODELS[self.model]
        return make(self.loss, self.seed % 1000)

    def fit(self, **other):
        """Return the fitted regressor; `other` parameters take the place of those drawn."""
        (X, y), (X_val, y_val), (X_new, y_new) = self.rows
        rng, weights = np.random.default_rng([self.seed, 2]), {}
        row_weights = rng.integers(1, 4, self.n_train).astype(float)
        parameters = {**self.parameters, "random_state": 0, **other}
        if self.weighted:
            weights["sample_weight"] = row_weights
        estimator = self.estimator()
        if parameters["prefit"]:
            estimator.fit(X, y, **weights)
            if not parameters["sampling"].weight_neighbors:
                weights = {}
        if self.n_val:
            weights |= {"X_val": X_val, "y_val": y_val}
            if self.weighted_val:
                weights["sample_weight_val"] = rng.integers(1, 4, self.n_val).astype(float)
        u = IBUGRegressor(estimator, **parameters).fit(X, y, **weights)
        some = slice(0, N_NEW // 2)
        if self.later == "update":
            u.update(X_new[some], y_new[some])
        if self.later == "recalibrate":
            u.recalibrate(X_new[some], y_new[some])
        if self.later == "uncalibrated":
            u = plain_neighbors(u)
        if self.later == "another distribution":
            u.recalibrate(X_new[some], y_new[some], distribution=["normal", "laplace", "logistic"])
        if self.later == "likelihood ratio":
            ratio = LikelihoodRatio.estimate(u, X_val if self.n_val else X, X_new)
            u.set_params(conformal=ScaleConformal(ratio=ratio)).recalibrate(X_new[some], y_new[some])
        return u

    @property
    def guarantees(self):
        """Whether coverage of new rows is guaranteed: by rows of their own, exchangeable with new ones."""
        own = self.parameters["prefit"] or not self.parameters["refit"]
        grouped = getattr(self.parameters["conformal"], "ratio", None) is not None
        plain = self.parameters["conformal"] is not None and not (self.weighted_val or self.later or grouped)
        return plain and own and self.n_val >= 200 and self.n_targets == 1


def draw(seed):
    """Return the case of a seed."""
    rng = np.random.default_rng([seed, 0])

    def one_of(*values, p=None):
        return values[rng.choice(len(values), p=p)]

    def sometimes(share):
        return bool(rng.random() < share)

    kind = one_of(*KINDS)
    n_targets = int(one_of(1, 2, 3, p=(0.88, 0.09, 0.03)))
    model = one_of(*(MODELS if n_targets == 1 else JOINT_MODELS))
    if (kind, model) == ("constant", "catboost"):
        model = "forest"  # CatBoost refuses it
    _, losses, positive, nans = MODELS[model] if n_targets == 1 else (None, ("squared_error",), (), False)
    factor, shift = one_of((1.0, 0.0), (1e-9, 0.0), (1e9, 0.0), (1.0, 1e5), p=(0.8, 0.06, 0.06, 0.08))
    if model in ("gradient boosting", "forest") and sometimes(0.05):
        factor, shift = one_of(1e-100, 1e100), 0.0  # where trees are of double precision
    n_val = int(rng.integers(*one_of((0, 1), (2, 30), (30, 120), (200, 260), p=(0.3, 0.1, 0.3, 0.3))))
    from_zero_on = kind in ("counts", "zeros and amounts", "skewed") and shift == 0
    case = Case(
        seed=seed,
        kind=kind,
        n_targets=n_targets,
        factor=factor,
        shift=shift,
        n_train=int(np.exp(rng.uniform(np.log(12), np.log(160)))),
        n_val=n_val,
        n_features=int(rng.integers(4, 7)),
        missing=one_of(0.0, 0.2, p=(0.8, 0.2)) if nans else 0.0,
        model=model,
        loss=one_of(*losses, *(2 * positive if from_zero_on and 1e-8 < factor < 1e8 else ())),
        weighted=sometimes(0.2),
        weighted_val=sometimes(0.2) and n_val > 0,
        later=one_of("", *LATER, p=(0.75, *(5 * (0.05,)))),
    )  # fmt: skip
    return replace(case, parameters=_parameters(case, one_of, sometimes, rng))


def _parameters(case, one_of, sometimes, rng):
    """Draw the parameters of a regressor; most of them must not contradict each other."""
    named = list(families())
    prefit = sometimes(0.6)
    validated = case.n_val > 0
    k = "tune" if sometimes(0.7) and (validated or not prefit) else int(rng.integers(2, max(3, case.n_train // 2)))
    several = rng.choice(named, 2, replace=False).tolist() if sometimes(0.9) else "tune"
    distribution = one_of("auto", one_of(*named), several, p=(0.4, 0.55, 0.05))
    residuals = one_of("auto", "model", "none", p=(0.8, 0.1, 0.1))
    conformal = one_of(
        None, "scale", "distribution", ScaleConformal(n_bins=2), DistributionConformal(n_bins=2),
        ScaleConformal(groups=GROUP), DistributionConformal(groups=GROUP),
        p=(0.4, 0.2, 0.2, 0.05, 0.05, 0.05, 0.05),
    )  # fmt: skip
    spread = one_of("auto", "targets", "residuals", p=(0.6, 0.25, 0.15))
    cv = one_of(None, 2, 3, p=(0.8, 0.1, 0.1)) if residuals != "model" else None
    if prefit and not validated and cv is None:
        conformal, distribution, k = None, one_of("auto", one_of(*named)), k if isinstance(k, int) else 5
        spread = "targets" if spread == "residuals" else spread
    fraction = one_of(1.0, 0.5, 0.7, p=(0.8, 0.1, 0.1))
    gain = ("gain",) if case.n_targets == 1 else ()
    weighs = case.weighted and case.n_targets == 1 and distribution == "auto" and sometimes(0.5)
    parameters = {
        "prefit": prefit,
        "k": k,
        "distribution": distribution,
        "location": one_of("model", "neighbors", p=(0.85, 0.15)),
        "support": _support(case, one_of),
        "spread": spread,
        "residuals": residuals,
        "scoring": one_of("crps", "nll", "crps" if case.weighted_val else median_loss, p=(0.6, 0.3, 0.1)),
        "calibrate": one_of(True, False, "grid", "continuous", p=(0.7, 0.1, 0.1, 0.1)),
        "conformal": conformal,
        "sampling": Sampling(
            tree_fraction=fraction,
            tree_order=one_of("first", "last", "random", *gain),
            row_fraction=one_of(1.0, 0.6, p=(0.9, 0.1)),
            weight_neighbors=weighs,
        ),
        "cv": cv,
        "refit": sometimes(0.8),
    }
    if case.n_targets > 1:  # which have no families of their own
        parameters |= {"distribution": "auto", "location": "model", "scoring": "crps", "support": one_of("auto", None)}
        parameters |= {} if conformal is None or isinstance(conformal, str) else {"conformal": "scale"}
    return parameters


def _support(case, one_of):
    """Return bounds which all targets are inside, some of them at the bounds."""
    if case.n_targets > 1:
        return "auto"
    y = np.concatenate([targets for _, targets in case.rows])
    low, high = float(y.min()), float(y.max())
    room = high - low or 1.0
    bounds = [(low, np.inf), (-np.inf, high), (low - room, high + room), (low - 1e-3 * room, np.inf)]
    bounds += [(low, high)] if low < high else []
    bounds += [(0.0, np.inf)] if low >= 0 else []
    return one_of("auto", None, one_of(*bounds), p=(0.4, 0.1, 0.5))
