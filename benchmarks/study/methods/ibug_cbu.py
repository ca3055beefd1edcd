"""The paper's IBUG+CBU: the means of both averaged, and their standard deviations, each calibrated by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split, moments_of
from benchmarks.study.methods.boosters import CatBoost, UncertainCatBoost
from benchmarks.study.methods.cbu import FittedCBU
from benchmarks.study.methods.ibug import FittedIBUG
from ibug import ProbabilisticEnsemble, VarianceCalibrator
from ibug.distributions import Normal


class IBUGCBU(Method):
    """IBUG on CatBoost and CBU, averaged."""

    name, title, package = "ibug+cbu", "IBUG+CBU", "catboost"

    def fit(self, split: Split) -> Fitted:
        members = {
            "ibug": FittedIBUG(CatBoost().tune(split), split),
            "cbu": FittedCBU(UncertainCatBoost().tune(split), split),
        }
        return FittedAverage(members, split)


class Member:
    """A fitted method for one score, as ProbabilisticEnsemble takes it."""

    def __init__(self, fitted: Fitted, scoring: str, calibrator: VarianceCalibrator | None) -> None:
        self.fitted, self.scoring, self.calibrator = fitted, scoring, calibrator

    def fit(self, X: Floats, y: Floats) -> Member:
        """Do nothing: it is fitted already."""
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the means."""
        return self.predict_dist(X).mean()

    def predict_dist(self, X: Floats) -> Normal:
        """Return the distributions, calibrated."""
        mean, variance = self.fitted.predict(X, self.scoring)
        return Normal(mean, np.sqrt(variance if self.calibrator is None else self.calibrator.transform(variance)))


class FittedAverage(Fitted):
    """Members are calibrated, not their average, as in the paper."""

    def __init__(self, members: dict[str, Fitted], split: Split) -> None:
        self.held_out, self.parameters, self._ensembles = {}, {}, {}
        for scoring in SCORINGS:
            held_out = [member.held_out[scoring] for member in members.values()]
            spread = np.mean([np.sqrt(each.variance) for each in held_out], axis=0)
            self.held_out[scoring] = Moments(np.mean([each.mean for each in held_out], axis=0), np.square(spread))
            self.parameters[scoring] = {name: member.parameters[scoring] for name, member in members.items()}
            for calibrated in (False, True):
                self._ensembles[scoring, calibrated] = self._ensemble(members, scoring, calibrated, split)

    def _ensemble(self, members: dict[str, Fitted], scoring: str, calibrated: bool, split: Split) -> Any:
        pairs = []
        for name, member in members.items():
            calibrator = VarianceCalibrator(scoring=scoring).fit(*member.held_out[scoring], split.y_val)
            pairs.append((name, Member(member, scoring, calibrator if calibrated else None)))
        return ProbabilisticEnsemble(pairs, prefit=True).fit(split.X_train, split.y_train)

    def predict(self, X: Floats, scoring: str) -> Moments:
        return self._moments(X, scoring, False)

    def calibrated(self, X: Floats, scoring: str) -> Moments | None:
        return self._moments(X, scoring, True)

    def _moments(self, X: Floats, scoring: str, calibrated: bool) -> Moments:
        return moments_of(self._ensembles[scoring, calibrated].predict_dist(X))
