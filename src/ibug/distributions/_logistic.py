"""The logistic distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from ibug._typing import Floats
from ibug.distributions._location_scale import LocationScale


class Logistic(LocationScale):
    """Logistic distributions: like normal ones with somewhat heavier tails."""

    compiled: ClassVar[str] = "logistic"
    symmetric: ClassVar[bool] = True

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        distance = np.abs(z)
        return np.asarray(-distance - 2 * np.log1p(np.exp(-distance)))

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(expit(z))

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        return np.asarray(logit(p))

    @classmethod
    def _log_cdf(cls, z: Floats, *shape: Floats) -> Floats:
        return np.asarray(z - np.log1p(np.exp(z)))  # below the middle, as all far tails are

    @classmethod
    def _from_log_cdf(cls, log_p: Floats, *shape: Floats) -> Floats:
        return np.asarray(log_p - np.log1p(-np.exp(log_p)))

    @staticmethod
    def _mean(*shape: Floats) -> float:
        return 0.0

    @staticmethod
    def _var(*shape: Floats) -> float:
        return float(np.pi**2 / 3)

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        distance = np.abs(z)  # Jordan et al., 2019
        return np.asarray(distance + 2 * np.log1p(np.exp(-distance)) - 1)
