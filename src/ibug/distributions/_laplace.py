"""The Laplace distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ibug._compiled import likelihood
from ibug._typing import Floats
from ibug.distributions._location_scale import LocationScale, center_and_spread
from ibug.distributions._rows import per_row

if TYPE_CHECKING:
    from typing import Self  # in typing from Python 3.11 on

_LOG_2 = np.log(2.0)


class Laplace(LocationScale):
    """Laplace distributions, density exp(−|z|)/2: sharper in the middle and heavier in the tails than normal."""

    symmetric: ClassVar[bool] = True

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(-np.abs(z) - _LOG_2)

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        tail = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0, tail, 1 - tail)

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # the quantiles of 0 and 1 are infinite
            return np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))

    @classmethod
    def _log_cdf(cls, z: Floats, *shape: Floats) -> Floats:
        return np.asarray(z - _LOG_2)  # below the middle, as all far tails are

    @classmethod
    def _from_log_cdf(cls, log_p: Floats, *shape: Floats) -> Floats:
        return np.asarray(log_p + _LOG_2)

    @staticmethod
    def _mean(*shape: Floats) -> float:
        return 0.0

    @staticmethod
    def _var(*shape: Floats) -> float:
        return 2.0

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        distance = np.abs(z)  # Jordan et al., 2019
        return np.asarray(distance + np.exp(-distance) - 0.75)

    @classmethod
    def _fit_moment(cls, values: Floats, mean: Floats | None, std: Floats | None) -> tuple[Floats, Floats]:
        if mean is None:
            assert std is not None
            return per_row(likelihood.median_deviation, values)[0], std
        deviation = np.abs(values - mean[:, None]).mean(axis=1)
        if not np.all(deviation > 0):
            deviation = np.where(deviation > 0, deviation, center_and_spread(values)[1])
        return mean, np.sqrt(2) * deviation

    @classmethod
    def _fit_all(cls, values: Floats) -> Self:
        median, deviation = per_row(likelihood.median_deviation, values)
        if not np.all(deviation > 0):
            deviation = np.where(deviation > 0, deviation, center_and_spread(values)[1])
        return cls(median, deviation)
