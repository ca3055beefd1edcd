"""The weights of joint experts: the quadratic programme of the energy score on validation rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from ibug._typing import Floats
from ibug._weights import effective_rows, mean
from ibug.distributions.joint import mean_distances, normal_points
from ibug.exceptions import InvalidInputError
from ibug.rule.joint._joint_stacked import JointStacked
from ibug.rule.joint._masses import masses_of
from ibug.rule.stack import (
    FEWEST_ROWS,
    USUAL_BANDWIDTH,
    Evidence,
    Experts,
    ExpertStatistics,
    Pooled,
    best_bandwidth,
    from_distances,
    pool,
    resolution,
    too_few,
)

# Rows whose points and masses are held at a time.
_ROWS_PER_CHUNK = 128
# The number of rows whose targets tell how fine a target is.
_ROWS_FOR_RESOLUTION = 5000


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

    def of_target(self, target: int) -> Evidence:
        """Return what the experts of one target look at."""
        residuals = None if self.residuals is None else self.residuals[:, :, target]
        return Evidence(self.mean[:, target], self.scale[:, target], self.targets[:, :, target], self.shares, residuals)


def fit_joint(
    experts: Experts, evidence: JointEvidence, y: Floats, unit: Floats, weights: Floats | None = None
) -> JointStacked:
    r"""Find the weights of joint experts that have the best energy score on validation rows.

    With a and B the mean Euclidean distances of the experts to the targets and to each other, of targets in units of
    their deviations, they minimise :math:`w \cdot a - \frac12 w^T B w + \frac{\lambda}{n} |w - w_0|^2`, the programme
    of the one-target stack. Distances of neighbours' vectors and of error vectors are exact. The normal expert is
    represented by 128 fixed points with exactly its mean and covariance.

    Parameters
    ----------
    experts : Experts
        The experts, J of them.
    evidence : JointEvidence
        What they look at, for n validation rows.
    y : ndarray of shape (n, d)
        Their targets.
    unit : ndarray of shape (d,)
        What distances are measured in.
    weights : ndarray of shape (n,) or None
        Of the rows.
    """
    n, d = y.shape
    pooled = tuple(_pooled(evidence, y, j, weights) for j in range(d))
    errors, correlation = pooled_vectors(evidence, y, pooled, weights)
    start = JointStacked(
        experts,
        np.eye(len(experts))[0],
        np.full(len(experts), np.nan),
        np.nan,
        pooled,
        errors,
        correlation,
        (USUAL_BANDWIDTH,) * d,
        unit,
        too_few(n) if n < FEWEST_ROWS else "",
    )
    if n < FEWEST_ROWS or len(experts) == 1:
        return start
    if experts.residuals and evidence.residuals is None:
        raise InvalidInputError("Experts on residuals need the neighbours' residuals.")
    to_target, to_each_other = expert_distances(start, evidence, y, weights)
    found, score, scores = from_distances(to_target, to_each_other, effective_rows(weights, n))
    if not score <= scores[0]:
        reason = "No mixture had a better energy score on the validation rows."
        return replace(start, scores=scores, score=float(scores[0]), reason=reason)
    bandwidths = tuple(_bandwidth(experts, pooled[j], evidence.of_target(j), y[:, j], found, weights) for j in range(d))
    return replace(start, weights=found, scores=scores, score=score, bandwidths=bandwidths)


def expert_distances(
    stacked: JointStacked, evidence: JointEvidence, y: Floats, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return the mean distances of the experts to the targets, (J,), and to each other, (J, J).

    Parameters
    ----------
    stacked : JointStacked
        The experts, error vectors and correlations; its weights do not matter.
    evidence : JointEvidence
        What the experts look at.
    y : ndarray of shape (n, d)
        The targets.
    weights : ndarray of shape (n,) or None
        Of the rows.
    """
    found = [
        mean_distances(points, masses, y[rows] / stacked.unit)
        for rows, points, masses in _points_of_experts(stacked, evidence)
    ]
    to_target, to_each_other = (np.concatenate(part) for part in zip(*found, strict=True))
    return np.asarray(mean(to_target, weights)), np.asarray(mean(to_each_other, weights))


def _points_of_experts(stacked: JointStacked, evidence: JointEvidence) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield chunks of rows with the points of all experts in units, (n, m, d), and their masses, (n, J, m)."""
    experts, needs = stacked.experts, stacked.experts.needs
    fixed = [normal_points(stacked.correlation), *([stacked.errors] if experts.errors else [])]
    sizes = [*(len(points) for points in fixed), needs["targets"], needs["residuals"]]
    first = np.concatenate([[0], np.cumsum(sizes)])
    n_fixed = len(fixed)
    for start in range(0, len(evidence.mean), _ROWS_PER_CHUNK):
        rows = slice(start, min(start + _ROWS_PER_CHUNK, len(evidence.mean)))
        loc, scale, shares = evidence.mean[rows], evidence.scale[rows], evidence.shares[rows]
        parts = [loc[:, None] + scale[:, None] * points for points in fixed]
        parts.append(evidence.targets[rows, : needs["targets"]])
        if evidence.residuals is not None and needs["residuals"]:
            parts.append(loc[:, None] + evidence.residuals[rows, : needs["residuals"]])
        masses = np.zeros((len(loc), len(experts), first[-1]))
        for j, points in enumerate(fixed):
            masses[:, j, first[j] : first[j + 1]] = 1 / len(points)
        number = n_fixed
        for place, some in ((n_fixed, experts.targets), (n_fixed + 1, experts.residuals)):
            for one in some:
                masses[:, number, first[place] : first[place] + one.k] = masses_of(one, shares)
                number += 1
        yield rows, np.concatenate(parts, axis=1) / stacked.unit, masses


def pooled_vectors(
    evidence: JointEvidence, y: Floats, pooled: tuple[Pooled, ...], weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return error vectors that represent those of all validation rows, (n_errors, d), and correlations, (d, d).

    There are as many as each target has pooled errors, and these are their columns. Beyond 127 rows they are quantiles
    of all errors; which of them belong together is said by the ranks of 127 rows, drawn evenly along the first
    principal axis of the errors.

    Parameters
    ----------
    evidence : JointEvidence
        Predictions and scales of the validation rows.
    y : ndarray of shape (n, d)
        Their targets.
    pooled : tuple of Pooled
        The pooled errors of each target.
    weights : ndarray of shape (n,) or None
        Of the rows.
    """
    errors = (y - evidence.mean) / evidence.scale
    n = len(errors)
    scores = ndtri(rankdata(errors, axis=0) / (n + 1))
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


def _pooled(evidence: JointEvidence, y: Floats, target: int, weights: Floats | None) -> Pooled:
    some = slice(_ROWS_FOR_RESOLUTION)
    finest = resolution(np.concatenate([evidence.targets[some, :, target].ravel(), y[some, target]]))
    return pool(evidence.mean[:, target], evidence.scale[:, target], y[:, target], weights, resolution=finest)


def _bandwidth(
    experts: Experts, pooled: Pooled, evidence: Evidence, y: Floats, found: Floats, weights: Floats | None
) -> float:
    seen = replace(ExpertStatistics.of(experts, pooled, evidence, y), weights=weights)
    return best_bandwidth(seen, found)
