"""What rows of a block have in common, learned from validation rows: a Gaussian copula with a factor for each block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import ndtri
from scipy.stats import norm

from ibug._typing import Floats
from ibug._validation import require
from ibug.exceptions import InvalidInputError
from ibug.totals._blocks import Codes, coded, coded_together

# Probabilities are kept away from 0 and 1: one value that no distribution expected is not to decide alone.
_LEAST_TAIL = 5e-4
# A distribution function that rises by more from one number to the next has a jump.
_LEAST_JUMP = 1e-8
# Groups of blocks that are left out one after the other, for standard errors.
_GROUPS = 20
# The most that factors may share of the variance of normal scores.
_MOST = 0.95


@dataclass(frozen=True, eq=False)
class Dependence:
    """How normal scores of rows are correlated: by a factor for each block, which all of its rows share.

    With z = Φ⁻¹(F(y)) of a row, z = Σ √ρ g + √(1 − Σρ) ε: one g for each block that the row is in, one ε of its own.

    Parameters
    ----------
    names : tuple of str
        The names of the kinds of blocks, ``("store", "day")`` say.
    correlation : ndarray of shape (n_kinds,) or (n_kinds, n_targets)
        The correlations ρ that totals use: estimates, shrunk to 0 by as much as they may be chance.
    estimate, standard_error : ndarray of the same shape
        The estimates, which are not below 0, and their standard errors.
    n_blocks : tuple of int
        The number of blocks that they were learned from.
    columns : tuple of str or None
        The columns of X that name the blocks, where they are columns.
    """

    names: tuple[str, ...]
    correlation: Floats
    estimate: Floats
    standard_error: Floats
    n_blocks: tuple[int, ...]
    columns: tuple[str, ...] | None = None

    def of_target(self, target: int) -> Dependence:
        """Return the dependence of one of several targets."""
        correlation, estimate, error = (
            self.correlation[:, target],
            self.estimate[:, target],
            self.standard_error[:, target],
        )
        return Dependence(self.names, correlation, estimate, error, self.n_blocks, self.columns)

    def __str__(self) -> str:
        lines = []
        for i, name in enumerate(self.names):
            values = zip(np.atleast_1d(self.estimate[i]), np.atleast_1d(self.standard_error[i]), strict=True)
            found = ", ".join(f"{value:.3f} ± {error:.3f}" for value, error in values)
            lines.append(f"{name}: correlation {found}, from {self.n_blocks[i]} blocks")
        return "; ".join(lines)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return {
            "names": list(self.names),
            "correlation": self.correlation,
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "n_blocks": list(self.n_blocks),
            "columns": None if self.columns is None else list(self.columns),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Dependence:
        """Return the dependence that has this state; impossible values are refused."""
        names, n_blocks, columns = state["names"], state["n_blocks"], state["columns"]
        arrays = [np.asarray(state[name], np.float64) for name in ("correlation", "estimate", "standard_error")]
        texts = [*names, *(columns or [])]
        possible = len(names) > 0 and len(n_blocks) == len(names) and len(texts) in (len(names), 2 * len(names))
        possible = possible and all(isinstance(one, str) for one in texts)
        possible = possible and all(type(one) is int and one > 1 for one in n_blocks)
        require(possible, "its blocks are impossible")
        possible = all(one.ndim in (1, 2) and len(one) == len(names) for one in arrays)
        possible = possible and len({one.shape for one in arrays}) == 1
        possible = possible and all(np.all(np.isfinite(one) & (one >= 0)) for one in arrays)
        require(
            possible and np.all(arrays[0].sum(axis=0) <= _MOST + 1e-9), "the correlations of its blocks are impossible"
        )
        known = None if columns is None else tuple(columns)
        return cls(tuple(names), arrays[0], arrays[1], arrays[2], tuple(n_blocks), known)


class Scores(NamedTuple):
    """Normal scores of observed values."""

    values: Floats  # (n_rows,) with mean 0; where a distribution function jumps at the value, the mean over the jump
    share: float  # what jumps leave of their variance, up to 1
    size: Floats  # (n_rows,) the standard deviations of the distributions: what a score counts for in a total

    def of(self, some: NDArray[np.bool_]) -> Scores:
        """Return those of some of the rows."""
        return Scores(self.values[some], self.share, self.size[some])


def normal_scores(y: Floats, distribution: Any) -> Scores:
    """Return the normal scores of observed values. Shapes: y (n_rows,)."""
    before, at = (
        np.clip(distribution.cdf(value), _LEAST_TAIL, 1 - _LEAST_TAIL) for value in (np.nextafter(y, -np.inf), y)
    )
    jumps = at - before > _LEAST_JUMP
    low, high = ndtri(before), ndtri(at)
    size = np.where(jumps, at - before, 1.0)
    inside = (norm.pdf(low) - norm.pdf(high)) / size
    square = 1.0 + (low * norm.pdf(low) - high * norm.pdf(high)) / size
    score = np.where(jumps, inside, high)
    squares = np.where(jumps, square, np.square(high))
    std = np.asarray(distribution.std())
    usual = np.median(std[np.isfinite(std)]) if np.isfinite(std).any() else 1.0
    size = np.where(np.isfinite(std) & (std > 0), std, usual)
    centred = score - np.average(score, weights=size)
    scale = np.sqrt(np.average(squares, weights=np.square(size)))
    share = np.average(np.square(score), weights=np.square(size)) / scale**2
    return Scores(centred / scale, float(np.clip(share, 0.05, 1.0)), size)


def learn_dependence(
    scores: Sequence[Scores],
    blocks: Mapping[str, Any],
    columns: Sequence[str] | None = None,
) -> Dependence:
    """Return how scores of validation rows are correlated within blocks.

    Scores are those of `normal_scores`, for each target. Blocks are labels of the rows, (n_rows,), by name.
    """
    labels = [coded(one) for one in blocks.values()]
    counts = tuple(len(found) for found, _ in labels)
    for name, count in zip(blocks, counts, strict=True):
        if count < 2:
            raise InvalidInputError(
                f"All validation rows are in one block of {name!r}: what blocks have in common cannot be learned from "
                "one. Give rows of several blocks, 30 or more at best."
            )
    codes = [one for _, one in labels]
    if all(count == len(codes[0]) for count in counts):
        raise InvalidInputError(
            f"Each validation row is a block of its own ({', '.join(map(repr, blocks))}): what rows of a block have in "
            "common cannot be learned. Give labels that several rows share, days of hourly rows say."
        )
    found = [_estimated(one, codes) for one in scores]
    estimate, error = (np.stack(each, axis=-1) for each in zip(*found, strict=True))
    known = estimate > error
    kept = np.where(known, 1.0 - np.square(error / np.where(known, estimate, 1.0)), 0.0)
    correlation = estimate * kept
    correlation = correlation * np.minimum(1.0, _MOST / np.maximum(correlation.sum(axis=0), _MOST))
    if len(scores) == 1:
        correlation, estimate, error = correlation[:, 0], estimate[:, 0], error[:, 0]
    return Dependence(tuple(blocks), correlation, estimate, error, counts, None if columns is None else tuple(columns))


def _estimated(scores: Scores, codes: Sequence[Codes]) -> tuple[Floats, Floats]:
    """Return the correlations by least squares on all pairs of rows that share a block, and their standard errors.

    The errors are those of leaving out a part of the blocks at a time (jackknife).
    """
    whole = _correlations(scores, codes)
    variance = np.zeros(len(codes))
    for own in codes:
        n_groups = min(_GROUPS, int(own.max()) + 1)
        group = np.random.RandomState(0).permutation(int(own.max()) + 1)[own] % n_groups
        fewer = [_correlations(scores.of(group != i), [one[group != i] for one in codes]) for i in range(n_groups)]
        spread = np.sum(np.square(np.array(fewer) - np.mean(fewer, axis=0)), axis=0)
        variance = np.maximum(variance, (n_groups - 1) / n_groups * spread)
    return np.clip(whole, 0.0, _MOST), np.sqrt(variance)


def _correlations(scores: Scores, codes: Sequence[Codes]) -> Floats:
    """Return the correlations of several kinds of blocks that explain the products of pairs best, none below 0.

    A pair counts for the product of its rows' standard deviations, as it does in the variance of a total. The matrix
    has the pairs that share blocks of both kinds; the vector, their products of normal scores.
    """
    n, weight = len(codes), scores.size / scores.size.mean()
    matrix, vector = np.empty((n, n)), np.empty(n)

    def over_pairs(values: Floats, own: Codes) -> float:
        return float(np.sum(np.square(np.bincount(own, values))) - np.sum(np.square(values))) / 2

    for i in range(n):
        for j in range(i, n):
            both = codes[i] if i == j else coded_together([codes[i], codes[j]])[0]
            matrix[i, j] = matrix[j, i] = max(over_pairs(weight, both), 0.0)
        vector[i] = over_pairs(weight * scores.values, codes[i])
    if not np.all(np.diag(matrix) > 1e-9):
        return np.zeros(n)
    values, vectors = np.linalg.eigh(matrix)
    root = np.sqrt(np.maximum(values, values.max() * 1e-12))
    return np.asarray(nnls(vectors.T * root[:, None], vectors.T @ vector / root)[0] / scores.share**2)
