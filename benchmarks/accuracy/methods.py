"""What is compared: named variants of IBUGRegressor, two ways to fit them, ensembles with CBU, and other packages.

A new variant is one line in `VARIANTS`. Where a comparison with it should be printed, add it to `PAIRS` of report.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sklearn.model_selection import train_test_split

from benchmarks.accuracy.models import Models
from ibug import CBURegressor, IBUGRegressor, ProbabilisticEnsemble, Sampling

BASES = ("lightgbm", "catboost", "xgboost")
USUAL_BASES = BASES[:2]
SCORINGS = ("crps", "nll")

#: The arguments of IBUGRegressor, by the name of the variant.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "targets-only": {"residuals": "none"},
    "own": {"residuals": "model"},
    "normal": {"distribution": "normal"},
    "normal-targets": {"distribution": "normal", "residuals": "none"},
    "paper": {"distribution": "normal", "spread": "targets"},
    "paper-continuous": {"distribution": "normal", "spread": "targets", "calibrate": "continuous"},
    "residuals": {"distribution": "normal", "spread": "residuals"},
    "conformal": {"conformal": "distribution"},
    "half-gain": {"sampling": Sampling(tree_fraction=0.5, tree_order="gain")},
    "half-first": {"sampling": Sampling(tree_fraction=0.5)},
    "half-random": {"sampling": Sampling(tree_fraction=0.5, tree_order="random")},
}

#: Averages of a variant and CBU, both normal.
ENSEMBLES = {f"{name}+cbu": (name, "cbu") for name in ("normal", "paper")}

#: Other ways to predict a distribution, which need no base model: the name of each in the study, or CBU.
PEERS = ("cbu", "ngboost", "pgbm", "quantile-forest", "cqr")

METHODS = (*VARIANTS, *ENSEMBLES, *PEERS)
USUAL = ("default", "normal", "paper", "conformal", *PEERS)

#: Ways in which a variant is not fitted: the guarantee is for the way "prefit"; there, the model itself has always made
#: the residuals of the default.
_LEFT_OUT = {"conformal": ("trained", "few"), "own": ("prefit",)}

FEW = 60  # validation rows of the way with this name


@dataclass(frozen=True)
class Setting:
    """What is fitted: a method on a base model, in one of the ways, tuned for one of the scores.

    A peer has neither a base model nor a way: both are empty.
    """

    method: str
    base: str
    way: str
    scoring: str


def settings(methods: list[str], bases: list[str], ways: list[str]) -> list[Setting]:
    """Return everything that is to be measured on a fold."""
    peers = [Setting(method, "", "", scoring) for method in methods if method in PEERS for scoring in SCORINGS]
    return peers + [
        Setting(method, base, way, scoring)
        for base in bases
        for way in ways
        for method in methods
        if method not in PEERS and way not in _LEFT_OUT.get(method, ())
        for scoring in SCORINGS
    ]


def fit_prefit(models: Models, base: str, **options: Any) -> Any:
    """Wrap a trained model: tuned on validation rows, nothing is trained."""
    fold = models.fold
    u = IBUGRegressor(models.of_part(base), prefit=True, random_state=0, **options)
    return u.fit(fold.X_part, fold.y_part, X_val=fold.X_val, y_val=fold.y_val)


def fit_trained(models: Models, base: str, **options: Any) -> Any:
    """Train here, on all training rows: tuned on out-of-fold predictions of clones, or on a part that is held out."""
    u = IBUGRegressor(models.estimator(base), random_state=0, **options)
    return u.fit(models.fold.X_train, models.fold.y_train)


def fit_few(models: Models, base: str, **options: Any) -> Any:
    """Hold out a few rows, which nothing is trained on, to tune."""
    rows = train_test_split(models.fold.X_train, models.fold.y_train, test_size=FEW, random_state=0)
    X, X_val, y, y_val = rows
    return IBUGRegressor(models.estimator(base), random_state=0, **options).fit(X, y, X_val=X_val, y_val=y_val)


#: How a variant is fitted.
WAYS: dict[str, Callable[..., Any]] = {"prefit": fit_prefit, "trained": fit_trained, "few": fit_few}


def fit(setting: Setting, models: Models, member: Callable[[Setting], Any]) -> Any:
    """Return a fitted regressor of ibug.

    Parameters
    ----------
    setting
        Which one.
    models
        The base models.
    member : function of a Setting
        Returns a fitted member of an ensemble.
    """
    if setting.method == "cbu":
        u = CBURegressor(models.estimator("cbu", setting.scoring), scoring=setting.scoring, random_state=0)
        return u.fit(models.fold.X_train, models.fold.y_train)
    if setting.method in ENSEMBLES:
        variant, peer = ENSEMBLES[setting.method]
        members = [
            (variant, member(replace(setting, method=variant))),
            (peer, member(Setting(peer, "", "", setting.scoring))),
        ]
        return ProbabilisticEnsemble(members, prefit=True).fit(models.fold.X_train, models.fold.y_train)
    options = {**VARIANTS[setting.method], "scoring": setting.scoring}
    return WAYS[setting.way](models, setting.base, **options)
