"""The distribution of one target of a joint stack once values of other targets are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from ibug._typing import Floats
from ibug.distributions._normal_scores import FARTHEST, HALF_LOG_2PI, standardised
from ibug.distributions._stack import Stack

if TYPE_CHECKING:
    from ibug.distributions.joint._params import JointMixtureParams
    from ibug.distributions.joint._stack import JointStack

# Normal scores that stand for a normal distribution, and their probabilities: tails reach to 4 deviations.
_SCORES = (np.arange(128) - 63.5) / 16
_PROBABILITIES = np.exp(-0.5 * np.square(_SCORES)) / np.exp(-0.5 * np.square(_SCORES)).sum()
#: The share of the normal part and the errors, which alone have tails without end.
TAIL = 0.01
# The copula is learned from ranks of validation rows, which have no normal scores beyond it.
_LARGEST_SCORE = 4.0
# Kernels relative to the rule of thumb, the widest first: with an infinite width all points count by their masses.
_FACTORS = (np.inf, 4.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25)
# By how much a kernel must be better than the one before to be chosen.
_LEAST_GAIN = 0.002
# Beyond five widths all points are equally far, so that far away from all of them they count by their masses.
_FAR = 12.5
_TINY = float(np.finfo(float).tiny)
# Of the kernels that smooth points to a density, relative to the scale: points that stand for a part are 1/16 apart.
_LEAST_BANDWIDTH = 0.25
_LEAST_WIDTH = 1e-3  # of a kernel, relative to the scale of the row
_LEAST_VARIANCE = 1e-6  # of a standardised target given others, or of a combination of the given ones


def conditional_stack(joint: JointStack, target: int, columns: list[int], y: Floats, factor: float) -> Stack:
    """Return the distributions of one target, given others. Shapes: y (n, p)."""
    mixture, own = joint.mixture, joint.mixture.own[target]
    normal = _Conditioned.of(mixture.correlation, target, columns)
    z = standardised(y, joint.loc[:, columns], joint.scale[:, columns])
    loc = joint.loc[:, target] + joint.scale[:, target] * normal.middle(z)
    scale = joint.scale[:, target] * normal.deviation
    if mixture.weights[1] == 1:
        nothing = np.empty((len(loc), 0))
        return Stack(loc, scale, nothing, nothing, replace(own, weights=np.array([1.0, 0.0, 0.0])))
    apart, around, errors, neighbors = mixture.weights
    parts: list[_Component] = []
    if apart > 0:
        parts.append(_own(joint, target, columns, y))
    if around > 0:
        density = normal.log_density(z) - np.log(joint.scale[:, columns]).sum(axis=1)
        parts.append(_Component(density, loc[:, None] + scale[:, None] * _SCORES, _even(len(loc))))
    kernels = _Kernels.of(joint, target, columns, y, factor)
    if errors > 0:
        points = joint.loc[:, None] + joint.scale[:, None] * mixture.errors
        masses = np.full(points.shape[:2], 1 / len(mixture.errors))
        widths = [mixture.own[j].error_bandwidth for j in columns]
        parts.append(kernels.component(points, masses, widths, tailed=True))
    if neighbors > 0:
        masses = joint.neighbors.masses / joint.neighbors.masses.sum(axis=1, keepdims=True, dtype=np.float64)
        points = joint.neighbors.atoms(joint.loc)
        widths = [mixture.own[j].bandwidth for j in columns]
        parts.append(kernels.component(points, masses, widths, tailed=False))
    shares = _posterior(mixture.weights[mixture.weights > 0], np.stack([part.density for part in parts], axis=1))
    atoms = np.concatenate([part.points for part in parts], axis=1)
    masses = np.concatenate([part.masses * share[:, None] for part, share in zip(parts, shares.T, strict=True)], axis=1)
    # A hundredth of the probability must not follow a value that is far from everything.
    near = np.clip(z, -_LARGEST_SCORE, _LARGEST_SCORE)
    loc = joint.loc[:, target] + joint.scale[:, target] * normal.middle(near)
    tails = [TAIL / 2, TAIL / 2] if len(own.errors) else [TAIL, 0.0]  # the density of errors has long ones
    weights, bandwidth = np.array([*tails, 1 - TAIL]), max(own.bandwidth, _LEAST_BANDWIDTH)
    return Stack(loc, scale, atoms, masses, replace(own, weights=weights, bandwidth=bandwidth))


def kernel_factor(mixture: JointMixtureParams, target: int, columns: list[int]) -> float:
    """Return the `best_factor` of the error vectors of a mixture, remembered; infinite where no vector has a weight."""
    if mixture.weights[2] == mixture.weights[3] == 0:
        return np.inf
    key = target, tuple(columns)
    if key not in mixture.kernel_factors:
        mixture.kernel_factors[key] = best_factor(mixture.errors, target, columns)
    return mixture.kernel_factors[key]


def best_factor(errors: Floats, target: int, columns: list[int]) -> float:
    """Return the width of kernels, relative to the rule of thumb, under which errors predict each other's targets best.

    For each error vector the others are weighed by their kernels in the given targets; the factor has the best CRPS of
    their values of the wanted target. Where the given targets do not predict it, the factor is infinite.

    Shapes: errors (n_errors, d).
    """
    m = len(errors)
    if m < 3:
        return np.inf
    others = (1 - np.eye(m)) / (m - 1)
    given = errors[:, columns]
    points = np.broadcast_to(given, (m, *given.shape))
    square = _half_squares(points, given, _rule_of_thumb(points, others))
    apart = np.abs(errors[:, None, target] - errors[None, :, target])
    best, least = np.inf, np.inf
    for factor in _FACTORS:
        weights = _weighed(others, square, factor)
        score = float(np.mean(np.sum(weights * apart, axis=1) - 0.5 * np.sum((weights @ apart) * weights, axis=1)))
        if score < least * (1 - _LEAST_GAIN):
            best, least = factor, score
    return best


@dataclass(frozen=True, eq=False)
class _Component:
    """A component: the log density of the given values, (n,), and points of the target with masses, (n, m)."""

    density: Floats
    points: Floats
    masses: Floats


@dataclass(frozen=True, eq=False)
class _Conditioned:
    """Standard normal targets, given others: slopes along them, (m, p), and the deviation that is left, (m,).

    There is one for each of n rows, or one for all: m is n or 1.
    """

    slopes: Floats
    deviation: Floats
    white: Floats  # makes the given ones independent, with deviations of 1, (m, p, p)
    log_volume: Floats

    @classmethod
    def of(cls, correlation: Floats, target: int, columns: list[int]) -> _Conditioned:
        matrices = correlation.reshape(-1, *correlation.shape[-2:])
        values, vectors = np.linalg.eigh(matrices[:, columns][:, :, columns])
        values = np.maximum(values, _LEAST_VARIANCE)
        white = vectors / np.sqrt(values)[:, None, :]
        coupled = (matrices[:, None, target, columns] @ white)[:, 0]
        left = np.maximum(1 - np.square(coupled).sum(axis=1), _LEAST_VARIANCE)
        slopes = (white @ coupled[:, :, None])[:, :, 0]
        return cls(slopes, np.sqrt(left), white, 0.5 * np.log(values).sum(axis=1))

    def middle(self, z: Floats) -> Floats:
        """Return the means of the targets, (n,), given standardised values, (n, p)."""
        return np.asarray((z * self.slopes).sum(axis=1))

    def log_density(self, z: Floats) -> Floats:
        """Return the log densities of the given values, (n,)."""
        away = (z[:, None, :] @ self.white)[:, 0]
        return np.asarray(-0.5 * np.square(away).sum(axis=1) - self.log_volume - z.shape[1] * HALF_LOG_2PI)


def _even(n: int) -> Floats:
    """Return the probabilities of the points that stand for a normal distribution, (n, n_points)."""
    return np.broadcast_to(_PROBABILITIES, (n, len(_PROBABILITIES)))


def _own(joint: JointStack, target: int, columns: list[int], y: Floats) -> _Component:
    """Return the target's own distribution, after the copula has moved its normal scores."""
    pairs = [(joint.own[j], column) for j, column in zip(columns, y.T, strict=True)]
    scores = np.stack([one.middle_score(column) for one, column in pairs], axis=1)
    scores = np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)
    copula = _Conditioned.of(joint.mixture.copula if joint.copulas is None else joint.copulas, target, columns)
    density = sum(one.logpdf(column) for one, column in pairs)
    density = density + copula.log_density(scores) + (0.5 * np.square(scores) + HALF_LOG_2PI).sum(axis=1)
    moved = copula.middle(scores)[:, None] + copula.deviation[:, None] * _SCORES
    return _Component(density, joint.own[target].from_normal_score(moved), _even(len(y)))


@dataclass(frozen=True, eq=False)
class _Kernels:
    """Components from vectors: those near the given values count more."""

    target: int
    columns: list[int]
    y: Floats  # (n, p), the given values
    scale: Floats  # (n, p), of the rows
    least: Floats  # (p,), the narrowest kernels
    factor: float

    @classmethod
    def of(cls, joint: JointStack, target: int, columns: list[int], y: Floats, factor: float) -> _Kernels:
        least = np.array([joint.mixture.own[j].least_bandwidth for j in columns])
        return cls(target, columns, y, joint.scale[:, columns], least, factor)

    def component(self, points: Floats, masses: Floats, bandwidths: list[float], *, tailed: bool) -> _Component:
        """Return the component of vectors, (n, m, d), with masses, (n, m), that sum to 1.

        The density of the given values is smoothed as in ``Stack.pdf``, by kernels with long tails for errors, so that
        components are compared by it; the density of the target has kernels of its own.
        """
        given = points[:, :, self.columns]
        width = np.maximum(np.array(bandwidths) * self.scale, self.least)
        square = np.square(_away(given, self.y, width))
        kernels = -1.5 * np.log(2 + square) if tailed else -0.5 * square - HALF_LOG_2PI
        with np.errstate(divide="ignore"):
            total = logsumexp(np.log(masses) + kernels.sum(axis=2), axis=1)
        density = total - np.log(width).sum(axis=1)
        least = np.maximum(_LEAST_WIDTH * self.scale, self.least)
        square = _half_squares(given, self.y, np.maximum(_rule_of_thumb(given, masses), least))
        return _Component(density, points[:, :, self.target], _weighed(masses, square, self.factor))


def _rule_of_thumb(points: Floats, masses: Floats) -> Floats:
    """Return widths of kernels, (n, p): the normal rule for as many points, (n, m, p), as their masses are worth."""
    p = points.shape[2]
    mean = np.einsum("nm,nmp->np", masses, points)
    deviation = np.sqrt(np.einsum("nm,nmp->np", masses, np.square(points - mean[:, None])))
    worth = 1 / np.square(masses).sum(axis=1, keepdims=True)
    return np.asarray(deviation * (4 / ((p + 2) * worth)) ** (1 / (p + 4)))


def _half_squares(points: Floats, y: Floats, width: Floats) -> Floats:
    """Return half the squared distances of points, (n, m, p), to y, (n, p), in widths of kernels, (n, p): (n, m)."""
    return np.asarray(0.5 * np.square(_away(points, y, width)).sum(axis=2))


def _away(points: Floats, y: Floats, width: Floats) -> Floats:
    """Return points, (n, m, p), relative to y, (n, p), in widths of kernels, (n, p): (n, m, p)."""
    return np.clip((points - y[:, None]) / np.maximum(width, _TINY)[:, None], -FARTHEST, FARTHEST)


def _weighed(masses: Floats, square: Floats, factor: float) -> Floats:
    """Return the masses of points after kernels have weighed them, (n, m); those of a row sum to 1."""
    if factor == np.inf:
        return masses
    weights = masses * np.exp(-np.minimum(square / factor**2, _FAR))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _posterior(weights: Floats, density: Floats) -> Floats:
    """Return the shares of experts, (n, J), by Bayes; as they were where no expert has thought of such values."""
    with np.errstate(invalid="ignore"):
        shares = weights * np.exp(density - density.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
    known = np.isfinite(shares).all(axis=1, keepdims=True)
    return np.asarray(np.where(known, shares, weights / weights.sum()))
