"""Means and variances of the nearest rows' targets, for many numbers of neighbours at once."""

from __future__ import annotations

import numpy as np

from benchmarks.study.methods.base import K_CANDIDATES, Floats, Moments
from ibug.distributions import Normal
from ibug.metrics import crps, nll

SCORES = {"crps": crps, "nll": nll}


class Neighbors:
    """Euclidean distance, after standard scaling or as the columns are.

    Parameters
    ----------
    X, y
        The rows that can be neighbours, and their targets.
    scaled
        Whether the columns are scaled.
    """

    def __init__(self, X: Floats, y: Floats, *, scaled: bool = True) -> None:
        from sklearn.neighbors import NearestNeighbors
        from sklearn.preprocessing import StandardScaler

        self._scaler = StandardScaler(with_mean=scaled, with_std=scaled).fit(X)
        self._search = NearestNeighbors(n_jobs=1).fit(self._scaler.transform(X))
        self._y = y

    def moments(self, X: Floats, ks: tuple[int, ...]) -> dict[int, Moments]:
        """Return for each k the means and variances of the k nearest rows' targets; k is at most their number."""
        counts = np.minimum(np.array(ks), len(self._y))
        found = self._search.kneighbors(self._scaler.transform(X), n_neighbors=int(counts.max()), return_distance=False)
        centre = float(np.mean(self._y))  # so that the difference of the sums below loses no digits
        values = self._y[found] - centre
        sums, squares = np.cumsum(values, axis=1), np.cumsum(np.square(values), axis=1)
        result = {}
        for k, count in zip(ks, counts, strict=True):
            mean = sums[:, count - 1] / count
            variance = np.maximum(squares[:, count - 1] / count - np.square(mean), 0.0)
            result[k] = Moments(mean + centre, variance)
        return result


def candidates(n_rows: int) -> tuple[int, ...]:
    """Return the numbers of neighbours to choose from."""
    return tuple(k for k in K_CANDIDATES if k <= n_rows) or (n_rows,)


def floor_of(variance: Floats, tiny: float) -> float:
    """Return ρ: the smallest variance above zero (paper, section 3.2)."""
    positive = variance[variance > tiny]
    return float(positive.min()) if len(positive) else tiny


def best_k(y: Floats, mean: Floats, moments: dict[int, Moments], scoring: str, tiny: float) -> tuple[int, float]:
    """Return the k whose variance around the given means scores best, and that score."""
    scores = {}
    for k, (_, variance) in moments.items():
        normal = Normal(mean, np.sqrt(np.maximum(variance, floor_of(variance, tiny))))
        scores[k] = float(SCORES[scoring](y, normal))
    best = min(scores, key=scores.__getitem__)
    return best, scores[best]
