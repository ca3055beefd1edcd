"""The weights of joint experts against a brute-force minimum, and the parts that they are made of."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from ibug.distributions.joint import local_copulas, log_densities
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch
from ibug.rule._coupling import (
    Coupling,
    combined_masses,
    expert_distances,
    expert_masses,
    fit_coupling,
    pooled_vectors,
    pseudo_rows,
)
from ibug.rule._experts import Evidence, Experts, ExpertStatistics, Nearest, pool
from ibug.rule._stack import SHRINKAGE, StackRule, fit

pytestmark = pytest.mark.once

EXPERTS = Experts((Nearest(2), Nearest(7, 3.0)), (Nearest(4, 1.0),))
UNIT = np.array([1.0, 3.0])


def evidence_of(n=60, seed=0):
    rng = np.random.default_rng(seed)
    mean, scale = rng.normal(size=(n, 2)), 0.5 + rng.random((n, 2))
    noise = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=n)
    y = mean + scale * noise
    near = y[:, None] + rng.normal(size=(n, 7, 2)) * np.linspace(0.5, 2, 7)[:, None]
    shares = np.sort(rng.random((n, 7)), axis=1)[:, ::-1].copy()
    return Evidence(mean, scale, near, shares, rng.normal(size=(n, 7, 2))), y


def own_of(evidence, y, values=(None, None)):
    """Return stacks of each target by itself, and its pooled errors."""
    own, pooled = [], []
    for j in range(2):
        one = Evidence(
            evidence.mean[:, j],
            evidence.scale[:, j],
            evidence.targets[:, :, j],
            evidence.shares,
            evidence.residuals[:, :, j],
        )
        errors = pool(one.mean, one.scale, y[:, j], values=values[j], resolution=1.0 if values[j] is not None else 0.0)
        stacked = fit(EXPERTS, errors, ExpertStatistics.of(EXPERTS, errors, one, y[:, j]))
        own.append(stacked.distribution(one))
        pooled.append(errors)
    return tuple(own), tuple(pooled)


def fitted(evidence, y, weights=None, experts=EXPERTS, values=(None, None)):
    own, pooled = own_of(evidence, y, values)
    return fit_coupling(experts, evidence, own, pooled, y, UNIT, weights), own


def test_masses():
    shares = np.array([[0.9, 0.5, 0.4], [1.0, 1.0, 0.0]])
    expected = np.exp(2 * shares[:, :2]) / np.exp(2 * shares[:, :2]).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(expert_masses(Nearest(2, 2.0), shares), expected)
    experts = Experts((Nearest(3), Nearest(2, 2.0)), (Nearest(1),))
    both = combined_masses(experts, [np.array([0.3, 0.2]), np.array([0.1])], shares)
    targets = 0.3 / 3 + 0.2 * np.column_stack([expected, [0, 0]])
    np.testing.assert_allclose(both, np.column_stack([targets, [0.1, 0.1]]) / 0.6, rtol=1e-6)
    assert combined_masses(Experts((), ()), [np.empty(0), np.empty(0)], shares).shape == (2, 0)


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_minimise_the_energy_score(weighted):
    evidence, y = evidence_of()
    rows = np.random.default_rng(1).random(len(y)) if weighted else None
    found, own = fitted(evidence, y, rows)
    a, b = expert_distances(found, evidence, own, y, rows)
    center = np.eye(6) - 1 / 6
    assert np.linalg.eigvalsh(center @ -b @ center)[0] > -1e-9  # convex on the simplex
    n = len(y) if rows is None else rows.sum() ** 2 / np.square(rows).sum()
    unit = a[0] - 0.5 * b[0, 0]

    def loss(w):
        start = np.eye(6)[0]
        return (w @ a - 0.5 * w @ b @ w) / unit + SHRINKAGE / n * np.square(w - start).sum()

    best = min(
        (
            minimize(loss, start, bounds=[(0, 1)] * 6, constraints={"type": "eq", "fun": lambda w: w.sum() - 1})
            for start in (*np.eye(6), np.full(6, 1 / 6))
        ),
        key=lambda result: result.fun,
    )
    assert loss(found.weights) <= best.fun + 1e-6
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1)
    assert found.score <= found.scores[0]
    np.testing.assert_allclose(found.scores, a - 0.5 * np.diag(b))


def batch_of(evidence):
    """Return the evidence as a batch whose training rows are all neighbours of all rows, each once."""
    n, k, _ = evidence.targets.shape
    tables = {"targets": evidence.targets.reshape(n * k, 2), "residuals": evidence.residuals.reshape(n * k, 2)}
    rows = np.arange(n * k).reshape(n, k)
    return Batch(slice(0, n), evidence.mean, evidence.shares, rows, {}, 1, tables=tables)


def test_the_score_is_that_of_its_distributions():
    evidence, y = evidence_of()
    found, own = fitted(evidence, y)
    distribution = found.distribution(batch_of(evidence), own)
    assert distribution.energy_score(y).mean() == pytest.approx(found.score, rel=1e-6)


def test_predictions_plus_residuals_become_values_that_occur():
    evidence, y = evidence_of()
    whole = np.arange(-8.0, 9.0)
    y[:, 1] = np.clip(np.round(y[:, 1]), -8, 8)
    near = (y - evidence.mean)[:, None] + 0.3 * np.random.default_rng(1).normal(size=(60, 7, 2))
    evidence = replace(evidence, residuals=near)
    experts = Experts((), (Nearest(7),), errors=False)
    found, own = fitted(evidence, y, experts=experts, values=(None, whole))
    assert len(found.grids[0]) == 0
    assert found.weights[-1] > 0
    distribution = found.distribution(batch_of(evidence), own)
    vectors = distribution.neighbors.atoms(distribution.loc)
    plain = evidence.mean[:, None] + evidence.residuals
    np.testing.assert_array_equal(vectors[..., 0], plain[..., 0])
    np.testing.assert_array_equal(vectors[..., 1], whole[np.abs(plain[..., 1, None] - whole).argmin(axis=-1)])
    np.testing.assert_array_equal(distribution.neighbors.atoms(distribution.loc, 1), vectors[..., 1])
    assert distribution.energy_score(y).mean() == pytest.approx(found.score, rel=1e-6)
    again = Coupling.from_state(found.state()).distribution(batch_of(evidence), own)
    np.testing.assert_array_equal(again.energy_score(y), distribution.energy_score(y))
    some = distribution[5:9]
    np.testing.assert_array_equal(some.neighbors.atoms(some.loc), vectors[5:9])


def test_joint_experts_of_one_target_are_those_of_its_stack():
    """With the weights of a one-target stack, and none for the own part, the marginal is that stack."""
    evidence, y = evidence_of(300)
    found, own = fitted(evidence, y)
    weights = np.array([0.2, 0.1, 0.3, 0.25, 0.15])
    joint = replace(found, weights=np.r_[0.0, weights]).distribution(batch_of(evidence), own)
    for j in range(2):
        one = Evidence(
            evidence.mean[:, j],
            evidence.scale[:, j],
            evidence.targets[:, :, j],
            evidence.shares,
            evidence.residuals[:, :, j],
        )
        np.testing.assert_array_equal(np.sort(found.errors[:, j]), found.pooled[j].errors)
        stacked = StackRule(
            EXPERTS, weights, np.full(5, np.nan), np.nan, "crps", found.pooled[j], own[j].mixture.bandwidth
        )
        expected, marginal = stacked.distribution(one), joint.marginal(j)
        values = np.linspace(-2, 2, 300)
        np.testing.assert_allclose(marginal.cdf(values), expected.cdf(values), atol=1e-6)
        np.testing.assert_allclose(marginal.crps(y[:, j]), expected.crps(y[:, j]), rtol=1e-5)
        np.testing.assert_allclose(marginal.logpdf(y[:, j]), expected.logpdf(y[:, j]), rtol=1e-4, atol=1e-4)


def test_error_vectors():
    evidence, y = evidence_of(40)
    pooled = tuple(pool(evidence.mean[:, j], evidence.scale[:, j], y[:, j]) for j in range(2))
    errors, correlation = pooled_vectors(evidence, y, pooled, None)
    np.testing.assert_array_equal(errors, (y - evidence.mean) / evidence.scale)  # few of them: all, as they are
    assert 0.5 < correlation[0, 1] < 0.9
    evidence, y = evidence_of(5000)
    pooled = tuple(pool(evidence.mean[:, j], evidence.scale[:, j], y[:, j]) for j in range(2))
    errors, correlation = pooled_vectors(evidence, y, pooled, None)
    assert errors.shape == (127, 2)
    for j in range(2):
        np.testing.assert_array_equal(np.sort(errors[:, j]), pooled[j].errors)
    assert np.corrcoef(errors.T)[0, 1] == pytest.approx(0.8, abs=0.06)
    assert correlation[0, 1] == pytest.approx(0.8, abs=0.03)


def test_state():
    evidence, y = evidence_of()
    found, own = fitted(evidence, y)
    back = Coupling.from_state(found.state())
    scores = [one.distribution(batch_of(evidence), own).energy_score(y) for one in (found, back)]
    np.testing.assert_array_equal(*scores)
    assert back.table().keys() == {"expert", "k", "weight", "score"}
    for change in (
        {"weights": np.array([2.0, -1, 0, 0, 0, 0])},
        {"weights": np.ones(3)},
        {"correlation": np.ones((3, 3))},
    ):
        with pytest.raises(ValueError, match="stack"):
            Coupling.from_state({**found.state(), **change})


def test_too_few_rows():
    evidence, y = evidence_of(9)
    found, _ = fitted(evidence, y)
    assert found.weights.tolist() == [0, 1, 0, 0, 0, 0]
    assert "9 validation rows" in found.reason


def test_residuals_are_needed():
    evidence, y = evidence_of()
    without = Evidence(evidence.mean, evidence.scale, evidence.targets, evidence.shares)
    own, pooled = own_of(evidence, y)
    with pytest.raises(ValueError, match="residuals"):
        fit_coupling(EXPERTS, without, own, pooled, y, UNIT)


def turning(n=800, k=40, seed=0, turns=True):
    """Return a copula, residuals of neighbours, and scores of rows whose correlation goes from −0.9 to 0.9."""
    rng = np.random.default_rng(seed)
    rho = np.linspace(-0.9, 0.9, n) if turns else np.zeros(n)

    def drawn(*shape):
        z, r = rng.normal(size=(n, *shape, 2)), rho.reshape(n, *(1 for _ in shape))
        return np.stack([z[..., 0], r * z[..., 0] + np.sqrt(1 - r**2) * z[..., 1]], axis=-1)

    return np.eye(2), drawn(k) * [1.0, 7.0], drawn()


def test_rows_have_copulas_where_correlations_turn():
    count = pseudo_rows(*turning(), None)
    assert count in (10.0, 30.0)
    assert pseudo_rows(*turning(turns=False), None) is None
    weights = np.where(np.arange(800) < 400, 1.0, 1e-9)  # one half turns as well
    assert pseudo_rows(*turning(), weights) is not None
    copula, residuals, scores = turning()
    gains = {
        one: np.mean(log_densities(local_copulas(copula, residuals, one), scores)) for one in (10.0, 30.0, 100.0, 300.0)
    }
    assert count == max(gains, key=gains.get)


def test_copulas_of_rows_are_stored(monkeypatch):
    evidence, y = evidence_of()
    monkeypatch.setattr("ibug.rule._coupling.pseudo_rows", lambda *known: 30.0)
    stacked, own = fitted(evidence, y)
    assert stacked.pseudo_rows == 30.0
    assert stacked.needs["residuals"] == stacked.n_local == 7
    targets, residuals = np.arange(80.0).reshape(40, 2), np.random.default_rng(1).normal(size=(40, 2))
    rows = np.array([np.random.default_rng(i).choice(40, 7, replace=False) for i in range(60)])
    tables = {"targets": targets, "residuals": residuals}
    near = np.full((60, 7), 5, np.int32)
    batch = Batch(slice(0, 60), evidence.mean, near, rows, {}, n_trees=10, tables=tables)
    found = stacked.distribution(batch, own)
    np.testing.assert_allclose(found.copulas, local_copulas(stacked.copula, residuals[rows], 30.0))
    back = Coupling.from_state(stacked.state())
    np.testing.assert_array_equal(back.distribution(batch, own).copulas, found.copulas)
    for wrong in (0.0, -1.0, np.inf):
        with pytest.raises(InvalidInputError, match="pseudo-rows"):
            Coupling.from_state({**stacked.state(), "pseudo_rows": wrong})
