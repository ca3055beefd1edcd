"""Experts, their statistics and their weights against spelled-out sums."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from ibug.distributions import Stack
from ibug.exceptions import InvalidInputError
from ibug.rule._experts import BANDWIDTHS, Evidence, Experts, ExpertStatistics, Nearest, Pooled, pool, resolution
from ibug.rule._stack import StackRule, _with_least, fit, normal_stack_rule

pytestmark = [pytest.mark.once, pytest.mark.kernel]

EXPERTS = Experts((Nearest(2), Nearest(5), Nearest(5, 7.0)), (Nearest(3, 4.0),))


def rows(n=6, k=5, seed=0, whole=False):
    rng = np.random.default_rng(seed)
    mean, scale = rng.normal(0, 3, n), rng.gamma(2.0, 1.0, n)
    targets = mean[:, None] + 1.5 * rng.normal(size=(n, k))
    if whole:
        targets = np.round(targets)
    shares = -np.sort(-rng.random((n, k)), axis=1)
    y = targets[:, 0] if whole else mean + scale * rng.normal(size=n)
    return Evidence(mean, scale, targets, shares, rng.normal(size=(n, k))), y


def discrete(experts, pooled, evidence, row):
    """Return values and weights of each discrete expert of a row."""
    mean, scale = evidence.mean[row], evidence.scale[row]
    parts = [(mean + scale * pooled.errors, np.full(len(pooled.errors), 1 / len(pooled.errors)))]
    sources = ((experts.targets, evidence.targets[row]), (experts.residuals, mean + evidence.residuals[row]))
    for each, values in sources:
        for expert in each:
            k = min(expert.k, len(values))
            weights = np.exp(expert.sharpness * (evidence.shares[row, :k] - evidence.shares[row, 0]))
            parts.append((values[:k], weights / weights.sum()))
    return [(np.clip(values, *pooled.support), weights) for values, weights in parts]


def large(mean, scale, support, n=400_001):
    """Return a normal distribution as many equally likely points."""
    points = mean + scale * stats.norm.ppf((np.arange(n) + 0.5) / n)
    return np.clip(points, *support)


@pytest.mark.parametrize("support", [(-np.inf, np.inf), (-2.0, np.inf), (-1.0, 3.0)])
def test_distances_are_mean_distances(support):
    evidence, y = rows()
    pooled = pool(evidence.mean, evidence.scale, y, support=support)
    found = ExpertStatistics.of(EXPERTS, pooled, evidence, y)
    assert found.to_target.shape == (6, 6)
    lower = list(zip(*np.tril_indices(6), strict=True))
    for row in range(6):
        points = large(evidence.mean[row], evidence.scale[row], support)
        parts = discrete(EXPERTS, pooled, evidence, row)
        expected = [np.abs(points - y[row]).mean(), *(w @ np.abs(v - y[row]) for v, w in parts)]
        np.testing.assert_allclose(found.to_target[row], expected, rtol=1e-4)
        for (j, k), value in zip(lower, found.to_each_other[row], strict=True):
            if j == 0:
                ordered = np.sort(points)
                n = len(ordered)
                mean_distance = 2 * ((2 * np.arange(n) - n + 1) @ ordered) / n**2
            elif k == 0:
                v, w = parts[j - 1]
                mean_distance = sum(b * np.abs(points - a).mean() for a, b in zip(v, w, strict=True))
            else:
                (v, w), (u, q) = parts[j - 1], parts[k - 1]
                mean_distance = w @ np.abs(v[:, None] - u) @ q
            assert value == pytest.approx(mean_distance, rel=1e-4, abs=1e-9)


def test_log_densities_are_those_of_kernels():
    evidence, y = rows()
    pooled = pool(evidence.mean, evidence.scale, y, resolution=0.9)
    found = ExpertStatistics.of(EXPERTS, pooled, evidence, y).log_density
    least = 0.9 / np.sqrt(2 * np.pi)
    for row in range(6):
        scale, parts = evidence.scale[row], discrete(EXPERTS, pooled, evidence, row)
        for b, bandwidth in enumerate(BANDWIDTHS):
            expected = [stats.norm.pdf(y[row], evidence.mean[row], scale)]
            for j, (v, w) in enumerate(parts):
                width = max(scale * (pooled.error_bandwidth if j == 0 else bandwidth), least)
                kernel = stats.t(2, v, width) if j == 0 else stats.norm(v, width)  # errors have tails
                expected.append(w @ kernel.pdf(y[row]))
            np.testing.assert_allclose(np.exp(found[row, b]), expected, rtol=1e-10)


def score_of(stacked, evidence, y):
    d = stacked.distribution(evidence)
    return d.crps(y).mean() if stacked.scoring == "crps" else -d.logpdf(y).mean()


@pytest.mark.parametrize("scoring", ["crps", "nll"])
@pytest.mark.parametrize("support", [(-np.inf, np.inf), (-3.0, 8.0)])
@pytest.mark.parametrize("whole", [False, True])
def test_the_score_is_that_of_the_distributions(scoring, support, whole):
    evidence, y = rows(80, 9, whole=whole)
    evidence = Evidence(
        evidence.mean, evidence.scale, np.clip(evidence.targets, -3, 8), evidence.shares, evidence.residuals
    )
    y = np.clip(y, -3, 8)
    pooled = pool(evidence.mean, evidence.scale, y, support=support, resolution=resolution(y))
    stacked = fit(EXPERTS, pooled, ExpertStatistics.of(EXPERTS, pooled, evidence, y), scoring)
    assert stacked.reason == ""
    assert stacked.score <= stacked.scores[0]
    assert score_of(stacked, evidence, y) == pytest.approx(stacked.score, rel=1e-6, abs=1e-6)
    assert stacked.weights[0] >= 1 / 81
    # The scores of single experts are those of stacks with one expert.
    for j in range(len(EXPERTS)):
        alone = StackRule(EXPERTS, np.eye(6)[j], stacked.scores, 0.0, scoring, pooled, stacked.bandwidth)
        if np.isfinite(stacked.scores[j]):
            assert score_of(alone, evidence, y) == pytest.approx(stacked.scores[j], rel=1e-6)


@pytest.mark.parametrize("scoring", ["crps", "nll"])
@pytest.mark.parametrize("seed", range(6))
def test_never_worse_than_the_normal_expert(scoring, seed):
    rng = np.random.default_rng(seed)
    evidence, y = rows(10 + 7 * seed, 70, seed)
    if seed % 2:  # neighbours that know nothing
        evidence = Evidence(evidence.mean, evidence.scale, 100 * rng.normal(size=(len(y), 70)), evidence.shares)
    experts = Experts().without_residuals()
    pooled = pool(evidence.mean, evidence.scale, y)
    stacked = fit(experts, pooled, ExpertStatistics.of(experts, pooled, evidence, y), scoring)
    normal = StackRule(experts, np.eye(len(experts))[0], stacked.scores, 0.0, scoring, pooled, 0.25)
    assert score_of(stacked, evidence, y) <= score_of(normal, evidence, y) + 1e-12


def test_shrinkage_pulls_to_the_normal_expert():
    evidence, y = rows(40, 9, whole=True)
    pooled = pool(evidence.mean, evidence.scale, y)
    statistics = ExpertStatistics.of(EXPERTS, pooled, evidence, y)
    for scoring in ("crps", "nll"):
        shares = [fit(EXPERTS, pooled, statistics, scoring, strength).weights[0] for strength in (0.01, 2.0, 1e6)]
        assert shares[0] <= shares[1] <= shares[2]
        assert shares[2] > 0.97  # the errors keep 1/41


@pytest.mark.parametrize("scoring", ["crps", "nll"])
def test_the_normal_expert_and_the_errors_keep_a_weight(scoring):
    for seed in range(8):
        evidence, y = rows(25, 9, seed, whole=True)
        pooled = pool(evidence.mean, evidence.scale, y)
        statistics = ExpertStatistics.of(EXPERTS, pooled, evidence, y)
        weights = fit(EXPERTS, pooled, statistics, scoring, 0.01).weights
        assert (weights[:2] >= 1 / 26 - 1e-15).all() or weights[0] == 1.0
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("kept", [1, 2])
def test_kept_weights_are_weights(kept):
    rng = np.random.default_rng(0)
    for n in (1.0, 1.2, 1.9, 3.0, 100.0):
        for concentration in (0.01, 0.1, 1.0):
            given = rng.dirichlet(np.full(5, concentration))
            weights = _with_least(given, n, kept)
            assert weights.sum() == pytest.approx(1.0, abs=1e-12)
            assert (weights >= 0).all()
            assert (weights[:kept] >= 1 / (n + 1) - 1e-9).all()
            others = given[kept:] > 1e-12
            if n > 1 and others.sum() > 1:  # they share the rest as before
                shares = weights[kept:][others] / given[kept:][others]
                np.testing.assert_allclose(shares, shares[0], rtol=1e-9)


@pytest.mark.parametrize("support", [(-np.inf, np.inf), (0.0, np.inf), (-1.0, 50.0)])
def test_far_from_all_validation_errors_the_density_is_small_and_not_absurd(support):
    rng = np.random.default_rng(0)
    mean = rng.uniform(1, 2, 300)
    y = np.clip(mean + 0.3 * rng.standard_t(3, 300), *support)
    evidence = Evidence(mean, np.full(300, 0.3), y[rng.integers(300, size=(300, 9))], np.ones((300, 9)))
    experts = Experts((Nearest(9),), ())
    pooled = pool(mean, evidence.scale, y, support=support)
    stacked = fit(experts, pooled, ExpertStatistics.of(experts, pooled, evidence, y))
    d = stacked.distribution(evidence)
    assert not stacked.reason
    assert (d.logpdf(mean + 40.0) > -30).all()  # 130 scales away; a normal distribution says −8,900
    edges = np.maximum(support[0], -4000.0), np.minimum(support[1], 4000.0)
    grid = np.unique(np.append(np.linspace(*edges, 50_001), np.linspace(max(support[0], -20), 30, 100_001)))
    assert trapezoid(d[0].pdf(grid), grid) == pytest.approx(1.0, abs=1e-4)


def test_each_row_is_by_itself_bit_for_bit():
    evidence, y = rows(30, 9)
    pooled = pool(evidence.mean, evidence.scale, y)
    whole = ExpertStatistics.of(EXPERTS, pooled, evidence, y)

    def part(rows):
        own = Evidence(*(getattr(evidence, name)[rows] for name in ("mean", "scale", "targets", "shares", "residuals")))
        return ExpertStatistics.of(EXPERTS, pooled, own, y[rows])

    parts = [part(slice(0, 7)), part(slice(7, 8)), part(slice(8, 30))]
    for name in ("to_target", "to_each_other", "log_density"):
        joined = np.concatenate([getattr(one, name) for one in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
    one = fit(EXPERTS, pooled, whole)
    batch = one.distribution(evidence)
    assert isinstance(batch, Stack)
    alone = one.distribution(
        Evidence(*(getattr(evidence, n)[3:4] for n in ("mean", "scale", "targets", "shares", "residuals")))
    )
    np.testing.assert_array_equal(batch.ppf([[0.05, 0.95]])[3:4], alone.ppf([[0.05, 0.95]]))


def test_a_stack_has_the_atoms_of_its_experts():
    evidence, y = rows()
    pooled = pool(evidence.mean, evidence.scale, y)
    weights = np.array([0.1, 0.2, 0.3, 0.0, 0.15, 0.25])
    d = StackRule(EXPERTS, weights, weights, 0.0, "crps", pooled, 0.25).distribution(evidence)
    for row in range(6):
        parts = discrete(EXPERTS, pooled, evidence, row)
        for x in np.concatenate([evidence.targets[row], evidence.mean[row] + evidence.residuals[row]]):
            expected = 0.1 * stats.norm.cdf(x, evidence.mean[row], evidence.scale[row])
            expected += sum(a * (w @ (v <= x)) for a, (v, w) in zip(weights[1:], parts, strict=True))
            assert d[row].cdf(x) == pytest.approx(expected, abs=1e-7)
    assert set(d.atoms[0]) <= {*evidence.targets[0], *(evidence.mean[0] + evidence.residuals[0])}


def test_needs_are_those_of_experts_with_a_weight():
    assert Experts().needs == {"targets": 63, "residuals": 21}
    assert Experts().without_residuals().needs == {"targets": 63, "residuals": 0}
    evidence, y = rows()
    pooled = pool(evidence.mean, evidence.scale, y)
    weights = np.array([0.4, 0.2, 0.4, 0.0, 0.0, 0.0])
    stacked = StackRule(EXPERTS, weights, weights, 0.0, "crps", pooled, 0.25)
    assert stacked.needs == {"targets": 2, "residuals": 0}
    assert stacked.distribution(evidence).atoms.shape == (6, 2)
    normal = normal_stack_rule(EXPERTS, pooled, "crps", "why not")
    assert normal.needs == {"targets": 0, "residuals": 0}
    np.testing.assert_allclose(normal.distribution(evidence).mean(), evidence.mean)
    fewer = Evidence(evidence.mean, evidence.scale, evidence.targets[:, :1], evidence.shares[:, :1])
    assert stacked.distribution(fewer).atoms.shape == (6, 1)


def test_names_and_table():
    assert Experts().names[:3] == ("normal", "errors", "targets of 3")
    assert Experts().names[-2:] == ("targets of 63, by affinity (50)", "residuals of 21, by affinity (5)")
    evidence, y = rows(20, 9)
    pooled = pool(evidence.mean, evidence.scale, y)
    table = fit(EXPERTS, pooled, ExpertStatistics.of(EXPERTS, pooled, evidence, y)).table()
    assert list(table) == ["expert", "k", "weight", "score"]
    assert {len(column) for column in table.values()} == {6}
    assert table["k"].tolist() == [0, 0, 2, 5, 5, 3]


@pytest.mark.parametrize("n", [0, 5])
def test_too_few_rows_leave_the_normal_expert(n):
    evidence, y = rows(max(n, 1))
    pooled = pool(evidence.mean, evidence.scale, y)
    statistics = ExpertStatistics.of(EXPERTS, pooled, evidence, y) if n else None
    stacked = fit(EXPERTS, pooled, statistics)
    assert stacked.weights.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert ("no validation rows" if n == 0 else "5 validation rows") in stacked.reason


@pytest.mark.parametrize("scoring", ["crps", "nll"])
def test_state_brings_a_stack_back(scoring):
    evidence, y = rows(30, 9)
    pooled = pool(evidence.mean, evidence.scale, y, support=(-50.0, np.inf), resolution=0.1)
    stacked = fit(EXPERTS, pooled, ExpertStatistics.of(EXPERTS, pooled, evidence, y), scoring)
    again = StackRule.from_state(stacked.state())
    np.testing.assert_array_equal(again.distribution(evidence).logpdf(y), stacked.distribution(evidence).logpdf(y))
    assert again.table()["expert"].tolist() == stacked.table()["expert"].tolist()
    assert again.needs == stacked.needs
    for change in ({"weights": [1.0]}, {"weights": [2.0, 0, 0, 0, 0, 0]}, {"bandwidth": -1.0}):
        with pytest.raises(InvalidInputError):
            StackRule.from_state(stacked.state() | change)


def test_pooled_errors():
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(size=1000), rng.gamma(2.0, 1.0, 1000)
    y = mean + scale * rng.standard_t(4, 1000)
    pooled = pool(mean, scale, y)
    assert len(pooled.errors) == 127
    np.testing.assert_allclose(pooled.errors, np.quantile((y - mean) / scale, (np.arange(127) + 0.5) / 127))
    assert 0.1 < pooled.error_bandwidth < 0.4
    np.testing.assert_allclose(pool(mean[:9], scale[:9], y[:9]).errors, np.sort(((y - mean) / scale)[:9]))
    assert pool(mean[:3], scale[:3], mean[:3]).error_bandwidth == 0.05
    assert len(pool(mean[:0], scale[:0], y[:0]).errors) == 0
    with pytest.raises(InvalidInputError, match="finite"):
        pool(mean, scale, np.full(1000, np.nan))


def test_what_cannot_be_is_refused():
    evidence, y = rows(12)
    pooled = pool(evidence.mean, evidence.scale, y)
    bare = Evidence(evidence.mean, evidence.scale, evidence.targets, evidence.shares)
    with pytest.raises(InvalidInputError, match="residuals"):
        ExpertStatistics.of(EXPERTS, pooled, bare, y)
    with pytest.raises(InvalidInputError, match="pooled errors"):
        ExpertStatistics.of(EXPERTS, Pooled(np.empty(0)), evidence, y)
    with pytest.raises(InvalidInputError, match="finite"):
        ExpertStatistics.of(EXPERTS, pooled, evidence, np.full(12, np.nan))
    with pytest.raises(InvalidInputError, match="finite"):
        ExpertStatistics.of(
            EXPERTS, pooled, Evidence(y, y**2 + 1, np.full((12, 5), np.inf), evidence.shares, evidence.residuals), y
        )
    with pytest.raises(InvalidInputError, match="scores"):
        fit(EXPERTS, pooled, ExpertStatistics.of(EXPERTS, pooled, evidence, y), "mse")
    with pytest.raises(InvalidInputError, match="at least 1"):
        Nearest(0)
    with pytest.raises(InvalidInputError, match="sharpness"):
        Nearest(3, -1.0)


def test_without_pooled_errors():
    evidence, y = rows(30, 9)
    experts = Experts((Nearest(5),), (), errors=False)
    pooled = pool(evidence.mean, evidence.scale, y)
    stacked = fit(experts, pooled, ExpertStatistics.of(experts, pooled, evidence, y))
    assert experts.names == ("normal", "targets of 5")
    assert score_of(stacked, evidence, y) == pytest.approx(stacked.score, rel=1e-6)


def test_each_expert_at_its_best():
    # Rows whose neighbours are near-duplicates: experts on the nearest get the weight.
    rng = np.random.default_rng(3)
    n, k = 300, 70
    y = rng.normal(0, 10, n)
    targets = np.column_stack([y + 0.01 * rng.normal(size=n), rng.normal(0, 10, (n, k - 1))])
    shares = np.column_stack([np.full(n, 0.95), np.full((n, k - 1), 0.1)])
    evidence = Evidence(y + rng.normal(0, 3, n), np.full(n, 3.0), targets, shares)
    experts = Experts().without_residuals()
    pooled = pool(evidence.mean, evidence.scale, y)
    weights = fit(experts, pooled, ExpertStatistics.of(experts, pooled, evidence, y)).weights
    assert weights[-2:].sum() > 0.9
    # Neighbours that know nothing: the model's view.
    blind = Evidence(evidence.mean, evidence.scale, 10 * rng.permutation(targets.ravel()).reshape(n, k), shares)
    weights = fit(experts, pooled, ExpertStatistics.of(experts, pooled, blind, y)).weights
    assert weights[0] + weights[1] > 0.97
