"""The weights of joint experts: the quadratic programme of the energy score on validation rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from ibug._typing import Floats
from ibug._weights import effective_rows, mean
from ibug.distributions import Stack
from ibug.distributions.joint import (
    copula_points,
    local_copulas,
    log_densities,
    mean_distances,
    normal_points,
    points_of_copulas,
    predicted_plus,
)
from ibug.exceptions import InvalidInputError
from ibug.rule._experts import Experts, Pooled
from ibug.rule._stack import FEWEST_ROWS, from_distances, least_weight, too_few
from ibug.rule.joint._joint_stacked import JointStacked
from ibug.rule.joint._masses import expert_masses

# Rows whose points and masses are held at a time.
_ROWS_PER_CHUNK = 128
# Numbers of neighbours that the copula of all rows may count for, and the least gain by copulas of rows, in its errors.
_PSEUDO_ROWS = (10.0, 30.0, 100.0, 300.0)
_LEAST_GAIN = 3.0


@dataclass(frozen=True, eq=False)
class JointEvidence:
    """What joint experts look at: the model's view of rows, and the neighbours', nearest first.

    Parameters
    ----------
    mean, scale : ndarray of shape (n, d)
        Predictions, and the standard deviations of the normal expert.
    targets : ndarray of shape (n, k, d)
        The neighbours' target vectors.
    shares : ndarray of shape (n, k)
        Their affinities, as shares of the trees.
    residuals : ndarray of shape (n, k, d) or None
        Their honest residuals; None where there are none.
    """

    mean: Floats
    scale: Floats
    targets: Floats
    shares: Floats
    residuals: Floats | None = None


def fit_joint(
    experts: Experts,
    evidence: JointEvidence,
    own: tuple[Stack, ...],
    pooled: tuple[Pooled, ...],
    y: Floats,
    unit: Floats,
    weights: Floats | None = None,
) -> JointStacked:
    r"""Find the weights of joint experts that have the best energy score on validation rows.

    The first expert is each target's own distribution, coupled by a Gaussian copula: what one would do without joint
    experts. With a and B the mean Euclidean distances of the experts to the targets and to each other, of targets in
    units of their deviations, weights minimise
    :math:`w \cdot a - \frac12 w^T B w + \frac{\lambda}{n} |w - w_0|^2`, the programme of the one-target stack, with the
    pull to that first expert. Distances of neighbours' vectors and of error vectors are exact. The two continuous
    experts are represented by 128 fixed points each.

    Shapes: y (n, d); unit (d,); weights (n,).
    """
    n = len(y)
    errors, correlation = pooled_vectors(evidence, y, pooled, weights)
    ranks = [one.middle_score(column) for one, column in zip(own, y.T, strict=True)]
    scores = _normal_scores(np.stack(ranks, axis=1))
    copula = _correlation(scores, weights)
    start = normal_only_joint(experts, pooled, errors, correlation, copula, unit)
    if n < FEWEST_ROWS:
        return replace(start, reason=too_few(n))
    if len(experts) == 1:
        return start
    if experts.residuals and evidence.residuals is None:
        raise InvalidInputError("Experts on residuals need the neighbours' residuals.")
    if experts.residuals and evidence.residuals is not None:
        start = replace(start, pseudo_rows=pseudo_rows(copula, evidence.residuals, scores, weights))
    distances = expert_distances(start, evidence, own, y, weights)
    found, score, alone = from_distances(*distances, effective_rows(weights, n))
    if found[0] <= least_weight(effective_rows(weights, n)) * (1 + 1e-9):  # copulas count for next to nothing
        start = replace(start, pseudo_rows=None)
    return replace(start, weights=found, scores=alone, score=score)


def pseudo_rows(copula: Floats, residuals: Floats, scores: Floats, weights: Floats | None) -> float | None:
    """Return for how many neighbours the copula of all rows counts, or None if each row should have just that one.

    The best of a few numbers, by the likelihood of the validation rows' normal scores; and only if rows gain by it for
    certain, that is by more than three standard errors, as several numbers are tried.

    Shapes: copula (d, d); residuals (n, k, d); scores (n, d); weights (n,).
    """
    before = log_densities(np.broadcast_to(copula, (len(scores), *copula.shape)), scores)
    best, most = None, 0.0
    for count in _PSEUDO_ROWS:
        gain = log_densities(local_copulas(copula, residuals, count), scores) - before
        middle = float(mean(gain, weights))
        error = np.sqrt(float(mean(np.square(gain - middle), weights)) / effective_rows(weights, len(gain)))
        if middle > max(most, _LEAST_GAIN * error):
            best, most = count, middle
    return best


def normal_only_joint(
    experts: Experts, pooled: tuple[Pooled, ...], errors: Floats, correlation: Floats, copula: Floats, unit: Floats
) -> JointStacked:
    """Return the joint stack in which the normal expert has all the weight.

    Shapes: errors (n_errors, d); correlation, copula (d, d); unit (d,).
    """
    weights, unknown = np.eye(1 + len(experts))[1], np.full(1 + len(experts), np.nan)
    return JointStacked(experts, weights, unknown, np.nan, pooled, errors, correlation, copula, unit)


def expert_distances(
    stacked: JointStacked, evidence: JointEvidence, own: tuple[Stack, ...], y: Floats, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return the mean distances of the experts to the targets, (1 + J,), and to each other, (1 + J, 1 + J).

    Shapes: y (n, d); weights (n,).
    """
    found = [
        mean_distances(points, masses, y[rows] / stacked.unit)
        for rows, points, masses in _points_of_experts(stacked, evidence, own)
    ]
    to_target, to_each_other = (np.concatenate(part) for part in zip(*found, strict=True))
    return np.asarray(mean(to_target, weights)), np.asarray(mean(to_each_other, weights))


def _points_of_experts(
    stacked: JointStacked, evidence: JointEvidence, own: tuple[Stack, ...]
) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield chunks of rows with the points of all experts in units, (n, m, d), and their masses, (n, 1 + J, m)."""
    experts, needs = stacked.experts, stacked.experts.needs
    shared = copula_points(stacked.copula)
    fixed = [normal_points(stacked.correlation), *([stacked.errors] if experts.errors else [])]
    even = [len(shared), *(len(points) for points in fixed)]  # experts whose points have the same mass
    first = np.concatenate([[0], np.cumsum([*even, needs["targets"], needs["residuals"]])])
    for start in range(0, len(evidence.mean), _ROWS_PER_CHUNK):
        rows = slice(start, min(start + _ROWS_PER_CHUNK, len(evidence.mean)))
        loc, scale, shares = evidence.mean[rows], evidence.scale[rows], evidence.shares[rows]
        probabilities = shared[None]
        if stacked.pseudo_rows is not None and evidence.residuals is not None:
            nearest = evidence.residuals[rows, : stacked.n_local]
            probabilities = points_of_copulas(local_copulas(stacked.copula, nearest, stacked.pseudo_rows))
        parts = [np.stack([one[rows].ppf(probabilities[:, :, j]) for j, one in enumerate(own)], axis=2)]
        parts += [loc[:, None] + scale[:, None] * points for points in fixed]
        parts.append(evidence.targets[rows, : needs["targets"]])
        if evidence.residuals is not None and needs["residuals"]:
            near = evidence.residuals[rows, : needs["residuals"]]
            parts.append(predicted_plus(loc, near, stacked.grids))
        masses = np.zeros((len(loc), 1 + len(experts), first[-1]))
        for j, size in enumerate(even):
            masses[:, j, first[j] : first[j + 1]] = 1 / size
        number = len(even)
        for place, some in ((len(even), experts.targets), (len(even) + 1, experts.residuals)):
            for one in some:
                masses[:, number, first[place] : first[place] + one.k] = expert_masses(one, shares)
                number += 1
        yield rows, np.concatenate(parts, axis=1) / stacked.unit, masses


def pooled_vectors(
    evidence: JointEvidence, y: Floats, pooled: tuple[Pooled, ...], weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return error vectors that represent those of all validation rows, (n_errors, d), and correlations, (d, d).

    There are as many as each target has pooled errors, and these are their columns. Beyond 127 rows they are quantiles
    of all errors; which of them belong together is said by the ranks of 127 rows, drawn evenly along the first
    principal axis of the errors.

    Shapes: y (n, d); weights (n,).
    """
    errors = (y - evidence.mean) / evidence.scale
    n = len(errors)
    scores = _normal_scores(errors)
    correlation = _correlation(scores, weights)
    m = len(pooled[0].errors)
    if m == n and weights is None:
        return errors, correlation
    axis = np.linalg.eigh(correlation)[1][:, -1]
    order = np.argsort(scores @ axis, kind="stable")
    total = np.cumsum(np.ones(n) if weights is None else weights[order])
    drawn = errors[order[np.searchsorted(total, (np.arange(m) + 0.5) / m * total[-1])]]
    ranks = np.argsort(np.argsort(drawn, axis=0, kind="stable"), axis=0)
    return np.stack([one.errors[ranks[:, j]] for j, one in enumerate(pooled)], axis=1), correlation


def _correlation(scores: Floats, weights: Floats | None) -> Floats:
    """Return the correlations of normal scores, drawn a little to 0: as if d + 1 rows more had none."""
    n, d = effective_rows(weights, len(scores)), scores.shape[1]
    centered = scores - mean(scores, weights)
    cov = np.asarray(mean(centered[:, :, None] * centered[:, None, :], weights))
    deviation = np.sqrt(np.diag(cov))
    size = np.outer(deviation, deviation)
    found = np.asarray(cov / np.where(size > 0, size, 1.0) * (n / (n + d + 1)))
    np.fill_diagonal(found, 1.0)
    return found


def _normal_scores(values: Floats) -> Floats:
    """Return the normal scores of the ranks in each column, (n, d)."""
    return np.asarray(ndtri(rankdata(values, axis=0) / (len(values) + 1)))
