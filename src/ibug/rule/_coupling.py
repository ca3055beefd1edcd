"""How several targets become one joint distribution: joint experts beside each target's own, by the energy score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from ibug._read_only import read_only_property
from ibug._typing import Floats
from ibug._weights import effective_rows, weighted_mean
from ibug.calibration import BoxCalibrator
from ibug.distributions import DiscreteSupport, Stack
from ibug.distributions.joint import (
    JointMixtureParams,
    JointStack,
    Neighborhood,
    copula_points,
    local_copulas,
    log_densities,
    mean_distances,
    normal_points,
    predicted_plus,
)
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch
from ibug.rule._experts import Evidence, Experts, Nearest, Pooled, checked_weights
from ibug.rule._stack import FEWEST_ROWS, from_distances, least_weight, normal_stack, too_few

#: What the first expert is called: each target as if it were the only one, and their dependence beside.
OWN = "own, by copula"

#: The experts where a joint normal distribution was asked for, or there is nothing to find weights from.
NORMAL_ONLY = Experts((), (), False)

# Rows whose points and masses are held at a time.
_ROWS_PER_CHUNK = 128
# Numbers of neighbours that the copula of all rows may count for, and the least gain by copulas of rows, in its errors.
_PSEUDO_ROWS = (10.0, 30.0, 100.0, 300.0)
_LEAST_GAIN = 3.0


@dataclass(frozen=True, eq=False)
class Coupling:
    """J joint experts on d targets with the weights that `fit_coupling` found on validation rows.

    The first weight is that of the targets' own distributions, coupled by a copula: what one would do without them.
    """

    experts: Experts  # the same as for one target, on vectors
    weights: Floats  # (1 + J,), which sum to 1
    scores: Floats  # (1 + J,) the energy score of each alone on the validation rows, NaN where there were none
    score: float  # the energy score of all together
    pooled: tuple[Pooled, ...]  # of each target
    errors: Floats  # (n_errors, d) the pooled error vectors, whose columns are the pooled errors in another order
    correlation: Floats  # (d, d) of the normal expert
    copula: Floats  # (d, d) the correlations of the copula
    unit: Floats  # (d,) the standard deviations of the training targets, in which distances are measured
    reason: str = ""  # why the normal expert has all the weight; empty where it has not
    # The number of neighbours that `copula` counts for where each row has a copula of its own, by the residuals of its
    # neighbours; None where one copula serves all rows.
    pseudo_rows: float | None = None
    boxes: BoxCalibrator | None = None  # of joint boxes, fitted; None where there were no validation rows

    @property
    def grids(self) -> tuple[DiscreteSupport, ...]:
        """The values that each target takes; empty if all take many."""
        grids = tuple(one.grid for one in self.pooled)
        return grids if any(len(grid) for grid in grids) else ()

    @read_only_property
    def _active(self) -> tuple[Experts, Floats, Floats]:
        return self.experts.active(self.weights[1:])

    @property
    def needs(self) -> dict[str, int]:
        """The number of neighbours whose targets and residuals make the distributions."""
        vectors = self._active[0].needs
        return {**vectors, "residuals": max(vectors["residuals"], self.n_local)}

    @property
    def n_local(self) -> int:
        """The number of neighbours whose residuals make the copula of a row; 0 where one serves all."""
        return 0 if self.pseudo_rows is None else max(self.experts.needs.values())

    def table(self) -> dict[str, NDArray[Any]]:
        """Return each expert with its weight and its own score as columns, ready for a DataFrame."""
        return {
            "expert": np.array([OWN, *self.experts.names]),
            "k": np.array([0, *self.experts.k]),
            "weight": self.weights,
            "score": self.scores,
        }

    def normal_only(self) -> Coupling:
        """Return the coupling in which the normal expert has all the weight."""
        return replace(self, weights=np.eye(len(self.weights))[1], pseudo_rows=None, boxes=None)

    def bounded(self, supports: Sequence[tuple[float, float]]) -> Coupling:
        """Return the same with other bounds of the targets."""
        pairs = zip(self.pooled, supports, strict=True)
        return replace(self, pooled=tuple(replace(one, support=support) for one, support in pairs))

    def with_more_neighbors(self, factor: float, most: int) -> Coupling:
        """Return the same of experts that ask this many times as many neighbours, `most` at most."""
        return replace(self, experts=self.experts.scaled(factor, most))

    def distribution(self, batch: Batch, own: tuple[Stack, ...]) -> JointStack:
        """Return the joint distributions of a batch of rows, for the targets' own distributions."""
        experts, *weights = self._active
        needs = experts.needs
        k = max(needs.values())
        targets = batch.tables.get("targets", np.empty((0, len(own))))
        residuals = batch.tables.get("residuals") if needs["residuals"] else None
        masses = combined_masses(experts, weights, batch.shares(k))
        # Row numbers need no more than four bytes each.
        near = Neighborhood(
            batch.rows[:, :k].astype(np.int32), masses, targets, residuals, needs["targets"], self.grids
        )
        copulas = None
        if self.pseudo_rows is not None:
            copulas = local_copulas(self.copula, batch.vectors("residuals", self.n_local), self.pseudo_rows)
        scale = np.stack([one.scale for one in own], axis=1)
        return JointStack(batch.mean, scale, near, own, self._mixture_params(own), copulas)

    def _mixture_params(self, own: tuple[Stack, ...]) -> JointMixtureParams:
        """Return what all rows of the distributions have in common."""
        first = 1 + self.experts.n_general
        errors, neighbors = self.weights[2] if self.experts.errors else 0.0, sum(self.weights[first:].tolist())
        weights = np.array([self.weights[0], self.weights[1], errors, neighbors])
        shared = self.errors, self.correlation, self.copula, self.unit
        return JointMixtureParams(weights, tuple(one.mixture for one in own), *shared)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays that `from_state` takes."""
        names = ("weights", "scores", "score", "errors", "correlation", "copula", "unit", "reason", "pseudo_rows")
        return {
            "experts": self.experts.state(),
            "pooled": [one.state() for one in self.pooled],
            "boxes": None if self.boxes is None else self.boxes.state(),
            **{name: getattr(self, name) for name in names},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Coupling:
        """Return the coupling that has this state; impossible values are refused."""
        experts, boxes, pseudo_rows = Experts.from_state(state["experts"]), state["boxes"], state["pseudo_rows"]
        is_number = isinstance(pseudo_rows, (int, float)) and not isinstance(pseudo_rows, bool)
        if pseudo_rows is not None and not (is_number and 0 < pseudo_rows < np.inf and experts.needs["residuals"]):
            raise InvalidInputError("Copulas of rows need residuals of neighbours, and a finite number of pseudo-rows.")
        weights, scores = checked_weights(state, 1 + len(experts))
        pooled = tuple(Pooled.from_state(one) for one in state["pooled"])
        arrays = ("errors", "correlation", "copula", "unit")
        rest: dict[str, Any] = {name: np.asarray(state[name], np.float64) for name in arrays}
        rest |= {"pseudo_rows": None if pseudo_rows is None else float(pseudo_rows), "reason": str(state["reason"])}
        rest |= {"boxes": None if boxes is None else BoxCalibrator.from_state(boxes)}
        coupling = cls(experts, weights, scores, float(state["score"]), pooled, **rest)
        nothing = np.empty(0)  # impossible values are refused now, not when a row is predicted
        coupling._mixture_params(tuple(normal_stack(nothing, nothing, one) for one in coupling.pooled))
        return coupling


def fit_coupling(
    experts: Experts,
    evidence: Evidence,
    own: tuple[Stack, ...],
    pooled: tuple[Pooled, ...],
    y: Floats,
    unit: Floats,
    weights: Floats | None = None,
) -> Coupling:
    r"""Find the weights of joint experts that have the best energy score on validation rows.

    With a and B the mean Euclidean distances of the experts to the targets and to each other, of targets in units of
    their deviations, weights minimise :math:`w \cdot a - \frac12 w^T B w + \frac{\lambda}{n} |w - w_0|^2`, the
    programme of the one-target stack, with the pull to the first expert. Distances of neighbours' vectors and of error
    vectors are exact. The two continuous experts are represented by 128 fixed points each.

    Shapes: y (n, d); unit (d,); weights (n,).
    """
    n = len(y)
    errors, correlation = pooled_vectors(evidence, y, pooled, weights)
    ranks = [one.middle_score(column) for one, column in zip(own, y.T, strict=True)]
    scores = _normal_scores(np.stack(ranks, axis=1))
    copula = _correlation(scores, weights)
    start = normal_coupling(experts, pooled, errors, correlation, copula, unit)
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


def normal_coupling(
    experts: Experts,
    pooled: tuple[Pooled, ...],
    errors: Floats,
    correlation: Floats,
    copula: Floats,
    unit: Floats,
    reason: str = "",
) -> Coupling:
    """Return the coupling in which the normal expert has all the weight, for a reason.

    Shapes: errors (n_errors, d); correlation, copula (d, d); unit (d,).
    """
    weights, unknown = np.eye(1 + len(experts))[1], np.full(1 + len(experts), np.nan)
    return Coupling(experts, weights, unknown, np.nan, pooled, errors, correlation, copula, unit, reason)


def correlation_within(neighborhoods: Sequence[Floats], unit: Floats) -> Floats:
    """Return the correlations of targets around the means of their neighbourhoods, (d, d).

    Shapes: neighborhoods (n_rows, k, d) each; unit (d,).
    """
    total = np.zeros((len(unit), len(unit)))
    for vectors in neighborhoods:
        away = vectors / unit
        away = away - away.mean(axis=1, keepdims=True)
        total += np.einsum("nki,nkj->ij", away, away)
    return _as_correlation(total)


def pseudo_rows(copula: Floats, residuals: Floats, scores: Floats, weights: Floats | None) -> float | None:
    """Return for how many neighbours the copula of all rows counts, or None if each row should have just that one.

    Shapes: copula (d, d); residuals (n, k, d); scores (n, d); weights (n,).
    """
    # The best of a few numbers, by the likelihood of the validation rows' normal scores; and only if the gain is more
    # than three standard errors, as several numbers are tried.
    before = log_densities(np.broadcast_to(copula, (len(scores), *copula.shape)), scores)
    best, most = None, 0.0
    for count in _PSEUDO_ROWS:
        gain = log_densities(local_copulas(copula, residuals, count), scores) - before
        middle = float(weighted_mean(gain, weights))
        error = np.sqrt(float(weighted_mean(np.square(gain - middle), weights)) / effective_rows(weights, len(gain)))
        if middle > max(most, _LEAST_GAIN * error):
            best, most = count, middle
    return best


def expert_distances(
    coupling: Coupling, evidence: Evidence, own: tuple[Stack, ...], y: Floats, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return the mean distances of the experts to the targets, (1 + J,), and to each other, (1 + J, 1 + J).

    Shapes: y (n, d); weights (n,).
    """
    found = [
        mean_distances(points, masses, y[rows] / coupling.unit)
        for rows, points, masses in _points_of_experts(coupling, evidence, own)
    ]
    to_target, to_each_other = (np.concatenate(part) for part in zip(*found, strict=True))
    return np.asarray(weighted_mean(to_target, weights)), np.asarray(weighted_mean(to_each_other, weights))


def _points_of_experts(
    coupling: Coupling, evidence: Evidence, own: tuple[Stack, ...]
) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield chunks of rows with the points of all experts in units, (n, m, d), and their masses, (n, 1 + J, m)."""
    experts, needs = coupling.experts, coupling.experts.needs
    shared = copula_points(coupling.copula)
    fixed = [normal_points(coupling.correlation), *([coupling.errors] if experts.errors else [])]
    even = [len(shared), *(len(points) for points in fixed)]  # experts whose points have the same mass
    first = np.concatenate([[0], np.cumsum([*even, needs["targets"], needs["residuals"]])])
    for start in range(0, len(evidence.mean), _ROWS_PER_CHUNK):
        rows = slice(start, min(start + _ROWS_PER_CHUNK, len(evidence.mean)))
        loc, scale, shares = evidence.mean[rows], evidence.scale[rows], evidence.shares[rows]
        probabilities = shared[None]
        if coupling.pseudo_rows is not None and evidence.residuals is not None:
            nearest = evidence.residuals[rows, : coupling.n_local]
            probabilities = copula_points(local_copulas(coupling.copula, nearest, coupling.pseudo_rows))
        parts = [np.stack([one[rows].ppf(probabilities[:, :, j]) for j, one in enumerate(own)], axis=2)]
        parts += [loc[:, None] + scale[:, None] * points for points in fixed]
        parts.append(evidence.targets[rows, : needs["targets"]])
        if evidence.residuals is not None and needs["residuals"]:
            near = evidence.residuals[rows, : needs["residuals"]]
            parts.append(predicted_plus(loc, near, coupling.grids))
        masses = np.zeros((len(loc), 1 + len(experts), first[-1]))
        for j, size in enumerate(even):
            masses[:, j, first[j] : first[j + 1]] = 1 / size
        number = len(even)
        for place, some in ((len(even), experts.targets), (len(even) + 1, experts.residuals)):
            for one in some:
                masses[:, number, first[place] : first[place] + one.k] = expert_masses(one, shares)
                number += 1
        yield rows, np.concatenate(parts, axis=1) / coupling.unit, masses


def expert_masses(expert: Nearest, shares: Floats) -> Floats:
    """Return the masses ∝ exp(sharpness · share) of the expert's k nearest neighbours, (n, k); they sum to 1.

    Shapes: shares (n, at least k).
    """
    # The compiled `combine` has this formula, too, in the loop that sorts the atoms of one target by value. Here masses
    # stay in the order of the neighbours, and in the precision of the shares, which is single for out-of-fold rows.
    near = shares[:, : expert.k]
    masses = np.exp(expert.sharpness * (near - near[:, :1]))
    return np.asarray(masses / masses.sum(axis=1, keepdims=True))


def combined_masses(experts: Experts, weights: Sequence[Floats], shares: Floats) -> NDArray[np.float32]:
    """Return the masses of all experts together, (n, k_targets + k_residuals); those of a row sum to 1.

    Weights are those of the experts on targets, and of those on residuals. Shapes: shares (n, k).
    """
    parts = []
    for some, own in zip((experts.targets, experts.residuals), weights, strict=True):
        total = np.zeros((len(shares), max((one.k for one in some), default=0)))
        for one, weight in zip(some, own.tolist(), strict=True):
            total[:, : one.k] += weight * expert_masses(one, shares)
        parts.append(total)
    found = np.concatenate(parts, axis=1)
    size = found.sum(axis=1, keepdims=True)
    return np.asarray(found / np.where(size > 0, size, 1.0), np.float32)


def pooled_vectors(
    evidence: Evidence, y: Floats, pooled: tuple[Pooled, ...], weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return error vectors that represent those of all validation rows, (n_errors, d), and correlations, (d, d).

    Shapes: y (n, d); weights (n,).
    """
    errors = (y - evidence.mean) / evidence.scale
    n = len(errors)
    scores = _normal_scores(errors)
    correlation = _correlation(scores, weights)
    m = len(pooled[0].errors)
    if m == n and weights is None:
        return errors, correlation
    # Columns are the pooled errors of each target, quantiles of all errors. Which of them belong together is given by
    # the ranks of as many rows, drawn evenly along the first principal axis of the errors.
    axis = np.linalg.eigh(correlation)[1][:, -1]
    order = np.argsort(scores @ axis, kind="stable")
    total = np.cumsum(np.ones(n) if weights is None else weights[order])
    drawn = errors[order[np.searchsorted(total, (np.arange(m) + 0.5) / m * total[-1])]]
    ranks = np.argsort(np.argsort(drawn, axis=0, kind="stable"), axis=0)
    return np.stack([one.errors[ranks[:, j]] for j, one in enumerate(pooled)], axis=1), correlation


def _correlation(scores: Floats, weights: Floats | None) -> Floats:
    """Return the correlations of normal scores, drawn a little to 0: as if d + 1 rows more had none."""
    n, d = effective_rows(weights, len(scores)), scores.shape[1]
    centered = scores - weighted_mean(scores, weights)
    cov = np.asarray(weighted_mean(centered[:, :, None] * centered[:, None, :], weights))
    return _as_correlation(cov, n / (n + d + 1))


def _as_correlation(cov: Floats, factor: float = 1.0) -> Floats:
    """Return the correlations of a matrix of covariances, times a factor; 1 on the diagonal."""
    deviation = np.sqrt(np.diag(cov))
    size = np.outer(deviation, deviation)
    found = np.asarray(cov / np.where(size > 0, size, 1.0) * factor)
    np.fill_diagonal(found, 1.0)
    return found


def _normal_scores(values: Floats) -> Floats:
    """Return the normal scores of the ranks in each column, (n, d)."""
    return np.asarray(ndtri(rankdata(values, axis=0) / (len(values) + 1)))
