"""Stacks against slow, obvious formulas: every expert and every term of them matters."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad, trapezoid

from ibug.distributions import MixtureParams, Normal, Stack
from ibug.exceptions import InvalidInputError

pytestmark = [pytest.mark.once, pytest.mark.kernel]

RNG = np.random.default_rng(0)
ERRORS = np.sort(RNG.standard_t(3, 11))
LOC, SCALE = np.array([0.0, 5.0, -3.0, 100.0]), np.array([1.0, 0.5, 4.0, 1e-3])
ATOMS = np.sort(LOC[:, None] + SCALE[:, None] * RNG.normal(0.5, 2.0, (4, 9)), axis=1)
ATOMS[1] = [4, 4, 4, 5, 5, 5, 5, 6, 7]
MASSES = RNG.random((4, 9)).astype(np.float32)
MASSES[2, 3:6] = 0.0
WEIGHTS = [0.3, 0.25, 0.45]
PROBABILITIES = np.array([1e-9, 0.01, 0.05, 0.3, 0.5, 0.7, 0.95, 0.999])


def stack(weights=WEIGHTS, **options):
    return Stack(LOC, SCALE, ATOMS, MASSES, MixtureParams(weights, ERRORS, **options))


class Truth:
    """One row of a stack, spelled out: a normal part and a list of points."""

    def __init__(self, d, row):
        self.weight, error, atom = d.mixture.weights
        self.normal = stats.norm(d.loc[row], d.scale[row])
        masses = d.masses[row].astype(float)
        self.points = np.concatenate([d.loc[row] + d.scale[row] * d.mixture.errors, d.atoms[row]])
        each = np.full(len(d.mixture.errors), error / max(len(d.mixture.errors), 1))
        self.masses = np.concatenate([each, atom * masses / masses.sum()])
        self.low, self.high = d.mixture.support

    def cdf(self, x):
        if x < self.low or x >= self.high:
            return float(x >= self.high)
        return self.weight * self.normal.cdf(x) + self.masses[self.points <= x].sum()

    def sf(self, x):
        if x < self.low or x >= self.high:
            return float(x < self.low)
        return self.weight * self.normal.sf(x) + self.masses[self.points > x].sum()

    def sample(self, n=400_001):
        """Return values and their masses: quantiles of the normal part, and the points."""
        p = (np.arange(n) + 0.5) / n
        values = np.concatenate([self.normal.ppf(p), self.points])
        return np.clip(values, self.low, self.high), np.concatenate([np.full(n, self.weight / n), self.masses])

    def crps(self, y):
        def square(x):
            return (self.cdf(x) if x < y else self.sf(x)) ** 2

        spread = 12 * self.normal.std()
        edges = [*self.points, y, self.normal.mean() - spread, self.normal.mean(), self.normal.mean() + spread]
        edges = np.unique(np.clip(edges, self.low, self.high))
        total = sum(quad(square, a, b, epsabs=1e-13, epsrel=1e-11)[0] for a, b in pairwise(edges))
        return total + max(self.low - y, 0) + max(y - self.high, 0)


MIXTURES = {
    "all": {},
    "normal only": {"weights": [1, 0, 0]},
    "errors only": {"weights": [0, 1, 0]},
    "atoms only": {"weights": [0, 0, 1]},
    "no atoms": {"weights": [0.5, 0.5, 0]},
    "bounded": {"support": (-1.0, 100.0005)},
    "above": {"support": (0.0, np.inf)},
}
EACH = pytest.mark.parametrize("case", MIXTURES)


@EACH
def test_probabilities_are_sums_over_the_parts(case):
    d = stack(**MIXTURES[case])
    x = np.concatenate([ATOMS, LOC[:, None] + SCALE[:, None] * np.array([-3.0, 0.1, 2.0]), ATOMS + 1e-9], axis=1)
    for row in range(4):
        truth = Truth(d, row)
        np.testing.assert_allclose(d.cdf(x)[row], [truth.cdf(v) for v in x[row]], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(d.sf(x)[row], [truth.sf(v) for v in x[row]], rtol=1e-12, atol=1e-15)


@EACH
def test_quantiles_are_the_least_values_with_enough_probability(case):
    d = stack(**MIXTURES[case])
    y = d.ppf(PROBABILITIES[None])
    assert (np.diff(y, axis=1) >= 0).all()
    for row in range(4):
        truth, unit = Truth(d, row), SCALE[row]
        for p, value in zip(PROBABILITIES, y[row], strict=True):
            assert truth.cdf(value) >= p - 1e-11  # 1e-11 is the spacing of numbers near 100, in scales
            before = value - 1e-9 * unit
            assert truth.cdf(before) <= p + 1e-9 or value == truth.low


def test_extreme_probabilities():
    assert (stack().ppf(0.0) == -np.inf).all()
    assert (stack().ppf(1.0) == np.inf).all()
    assert np.isnan(stack().ppf(np.nan)).all()
    d = Stack(0.0, 1.0, [1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 1.0, 0.0], MixtureParams([0, 0, 1]))
    np.testing.assert_array_equal(d.ppf([0.0, 0.5, 0.50001, 1.0]), [2.0, 2.0, 3.0, 3.0])
    np.testing.assert_array_equal(stack(support=(-1.0, 6.0)).ppf([[0.0, 1.0]])[0], [-1.0, 6.0])


def test_quantiles_and_samples_of_atoms_are_values_that_occur():
    d = Stack([5.2], [0.4], [[4, 5, 5, 6]], [[1, 1, 1, 1]], MixtureParams([0.0, 0.0, 1.0]))
    assert set(d.rvs(300, random_state=0).ravel()) == {4.0, 5.0, 6.0}
    mixed = Stack([5.2], [0.4], [[4, 5, 5, 6]], [[1, 1, 1, 1]], MixtureParams([0.2, 0.0, 0.8]))
    drawn = mixed.rvs(20_000, random_state=0).ravel()
    assert np.mean(np.isin(drawn, [4, 5, 6])) == pytest.approx(0.8, abs=0.01)


@EACH
def test_moments_are_those_of_a_large_sample(case):
    d = stack(**MIXTURES[case])
    for row in range(4):
        values, masses = Truth(d, row).sample()
        mean = masses @ values
        assert d.mean()[row] == pytest.approx(mean, abs=1e-6 * SCALE[row])
        assert d.std()[row] == pytest.approx(np.sqrt(masses @ (values - mean) ** 2), rel=1e-5)
    np.testing.assert_allclose(d.var(), d.std() ** 2)


@EACH
def test_crps_is_its_integral(case):
    d = stack(**MIXTURES[case])
    y = LOC[:, None] + SCALE[:, None] * np.array([-7.0, -1.0, 0.0, 0.3, 2.0, 15.0])
    y[:, 2] = ATOMS[:, 4]
    scores = d.crps(y)
    for row in range(4):
        truth = Truth(d, row)
        np.testing.assert_allclose(scores[row], [truth.crps(v) for v in y[row]], rtol=2e-7, atol=1e-9 * SCALE[row])


def test_crps_of_the_normal_part_is_that_of_the_normal_distribution():
    y = LOC + SCALE * [-9.0, 0.0, 1.0, 50.0]
    np.testing.assert_allclose(stack([1, 0, 0]).crps(y), Normal(LOC, SCALE).crps(y), rtol=1e-12)
    assert (stack().crps(np.inf) == np.inf).all()
    assert np.isnan(stack().crps(np.nan)).all()


@pytest.mark.parametrize("case", ["all", "normal only", "no atoms", "bounded", "above"])
def test_density_integrates_to_one(case):
    d = stack(bandwidth=0.3, error_bandwidth=0.2, **MIXTURES[case])
    lower, upper = d.mixture.support
    for row in range(4):
        grid = np.linspace(max(lower, LOC[row] - 60 * SCALE[row]), min(upper, LOC[row] + 60 * SCALE[row]), 50_001)
        if grid[0] >= grid[-1]:
            continue
        assert trapezoid(d[row].pdf(grid), grid) == pytest.approx(1.0, abs=1e-5)


def test_density_is_the_sum_of_kernels():
    d = stack(bandwidth=0.3, error_bandwidth=0.2, resolution=0.7)
    y = LOC[:, None] + SCALE[:, None] * np.array([-2.0, 0.4, 30.0])
    for row in range(4):
        truth = Truth(d, row)
        n = len(ERRORS)
        widths = np.maximum(SCALE[row] * np.repeat([0.2, 0.3], [n, 9]), 0.7 / np.sqrt(2 * np.pi))
        errors, atoms = stats.t(2, truth.points[:n], widths[:n]), stats.norm(truth.points[n:], widths[n:])
        expected = [
            WEIGHTS[0] * truth.normal.pdf(v) + truth.masses @ np.append(errors.pdf(v), atoms.pdf(v)) for v in y[row]
        ]
        np.testing.assert_allclose(d.pdf(y)[row], expected, rtol=1e-10, atol=1e-300)
    assert np.isfinite(d.logpdf(LOC + 1e4 * SCALE)).all()
    assert (d.logpdf([[-np.inf, np.inf]]) == -np.inf).all()
    assert (stack(support=(0.0, 10.0)).logpdf([[-1.0, 10.5]]) == -np.inf).all()


def test_density_on_whole_numbers_is_the_probability_of_each():
    d = Stack([5.2], [0.01], [[4, 5, 5, 6]], [[1, 1, 1, 1]], MixtureParams([0.0, 0.0, 1.0], resolution=1.0))
    np.testing.assert_allclose(d.pdf([[4, 5, 6]])[0], [0.25, 0.5, 0.25], atol=0.03)


def test_normal_scores_are_exact_far_away():
    scores = np.array([[-300.0, -36.5, -8.0, 9.0, 37.0, 200.0]])
    d = stack()
    y = d.from_normal_score(scores)
    np.testing.assert_allclose(d.normal_score(y), np.tile(scores, (4, 1)), rtol=1e-8)
    np.testing.assert_array_equal(d.normal_score([[-np.inf, np.inf]])[0], [-np.inf, np.inf])
    inner = np.array([[-1.0, 0.2, 1.4]])
    np.testing.assert_allclose(d.from_normal_score(inner), d.ppf(stats.norm.cdf(inner)))
    at = LOC[:, None] + SCALE[:, None] * inner
    np.testing.assert_allclose(d.normal_score(at), stats.norm.ppf(d.cdf(at)), rtol=1e-9)


def test_middle_scores_are_in_the_middle_of_a_jump():
    d = stack()
    before = d.cdf(np.nextafter(ATOMS, -np.inf))
    np.testing.assert_allclose(stats.norm.cdf(d.middle_score(ATOMS)), (before + d.cdf(ATOMS)) / 2, rtol=1e-9)
    between = LOC + 0.1234 * SCALE
    np.testing.assert_allclose(d.middle_score(between), d.normal_score(between), rtol=1e-9)
    # What has a middle score between two scores is between their values.
    for score in (-1.0, 0.0, 0.7):
        assert (d.from_normal_score(score)[:, None] <= ATOMS)[d.middle_score(ATOMS) >= score].all()
        assert (d.from_normal_score(score)[:, None] >= ATOMS)[d.middle_score(ATOMS) <= score].all()
    np.testing.assert_allclose(Normal(LOC, SCALE).middle_score(between), Normal(LOC, SCALE).normal_score(between))


def test_samples_follow_the_distribution():
    d = stack([0.9, 0.1, 0.0])
    drawn = d[2].rvs(4000, random_state=1)
    assert drawn.mean() == pytest.approx(float(d[2].mean()), abs=0.2)
    assert np.mean(drawn <= -3.0) == pytest.approx(float(d[2].cdf(-3.0)), abs=0.03)
    assert d.rvs(random_state=np.random.default_rng(0)).shape == (4,)


def test_stacks_are_gathered_as_they_are_joined():
    d = stack(support=(-10.0, 200.0))
    whole = Stack.gather(iter([d[:1], d[1:3], d[3:]]), 4)
    for name in Stack.parameters:
        one, other = getattr(whole, name), getattr(d, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    np.testing.assert_array_equal(whole.crps(1.0), d.crps(1.0))
    fewer = Stack(LOC, SCALE, ATOMS[:, :3], MASSES[:, :3], d.mixture)
    for parts in ([d[:1], stack()[1:]], [d[:1], fewer[1:]], [d[:1], d], [d[:1], d[1:3]], []):
        with pytest.raises(InvalidInputError):
            Stack.gather(iter(parts), 4)


def test_shapes_slices_and_joins():
    d = stack(support=(-10.0, 200.0))
    assert len(d) == 4
    assert d.ppf(0.5).shape == (4,)
    assert d.ppf([[0.1, 0.9]]).shape == (4, 2)
    assert d[0].cdf([[1.0, 2.0, 3.0]]).shape == (1, 3)
    assert d[0].mean().shape == ()
    for one, whole in ((d[2], d.ppf(0.3)[2]), (d[1:3][1], d.ppf(0.3)[2]), (d[np.array([0, 2])][1], d.ppf(0.3)[2])):
        assert float(one.ppf(0.3)) == whole
    joined = Stack.concatenate([d[:1], d[1:]])
    for method in ("mean", "var", "median"):
        np.testing.assert_array_equal(getattr(joined, method)(), getattr(d, method)())
    np.testing.assert_array_equal(joined.crps(1.0), d.crps(1.0))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(d)).ppf(0.9), d.ppf(0.9))
    np.testing.assert_array_equal(d.median(), d.ppf(0.5))
    low, high = d.interval(0.9)
    np.testing.assert_array_equal(np.stack([low, high], 1), d.ppf([[0.05, 0.95]]))
    assert "4 rows, 9 atoms" in repr(d)
    assert "one row" in repr(d[0])
    with pytest.raises(InvalidInputError, match="cannot be joined"):
        Stack.concatenate([d, stack()])
    with pytest.raises(InvalidInputError, match="numbers of atoms"):
        Stack.concatenate([d, Stack([0.0], [1.0], [[1.0]], [[1.0]], d.mixture)])
    with pytest.raises(InvalidInputError, match="does not fit"):
        d.cdf([1.0, 2.0])
    with pytest.raises(InvalidInputError, match="probability"):
        d.ppf(1.5)
    with pytest.raises(TypeError, match="single row"):
        d[0][0]


def test_atoms_are_sorted_with_their_masses():
    d = Stack([0.0], [1.0], [[3.0, 1.0, 2.0]], [[3.0, 1.0, 2.0]], MixtureParams([0, 0, 1]))
    np.testing.assert_array_equal(d.atoms, [[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(d.cdf([[1.0, 2.0, 3.0]]), [[1 / 6, 1 / 2, 1]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loc": np.nan}, "finite locations"),
        ({"scale": 0.0}, "scales above zero"),
        ({"atoms": [[np.nan]]}, "atoms of a stack must be finite"),
        ({"masses": [[-1.0]]}, "masses of a stack"),
        ({"masses": [[0.0]]}, "masses of a stack"),
        ({"masses": [[1.0, 1.0]]}, "shape"),
        ({"loc": [[0.0]]}, "shape"),
    ],
)
def test_bad_rows_are_refused(change, message):
    given = {"loc": [0.0], "scale": [1.0], "atoms": [[1.0]], "masses": [[1.0]], "mixture": MixtureParams([0.5, 0, 0.5])}
    with pytest.raises(InvalidInputError, match=message):
        Stack(**(given | change))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [1, 2]}, "three weights"),
        ({"weights": [-1, 1, 1]}, "three weights"),
        ({"weights": [0, 0, 0]}, "three weights"),
        ({"weights": [0.5, 0.5, 0]}, "needs errors"),
        ({"weights": [1, 0, 0], "errors": [np.nan]}, "finite"),
        ({"weights": [1, 0, 0], "bandwidth": 0.0}, "bandwidths"),
        ({"weights": [1, 0, 0], "resolution": -1.0}, "resolution"),
        ({"weights": [1, 0, 0], "support": (1, 1)}, "support"),
    ],
)
def test_bad_mixtures_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        MixtureParams(**options)


@pytest.mark.parametrize("factor", [1e-200, 1e-12, 1e12, 1e200])
def test_units_do_not_matter(factor):
    d = stack()
    scaled = Stack(factor * LOC, factor * SCALE, factor * ATOMS, MASSES, d.mixture)
    y = LOC + 0.3 * SCALE
    np.testing.assert_allclose(scaled.ppf([[0.1, 0.8]]), factor * d.ppf([[0.1, 0.8]]), rtol=1e-12)
    np.testing.assert_allclose(scaled.crps(factor * y), factor * d.crps(y), rtol=1e-9)
    np.testing.assert_allclose(scaled.std(), factor * d.std(), rtol=1e-12)
    np.testing.assert_allclose(scaled.cdf(factor * y), d.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(scaled.logpdf(factor * y), d.logpdf(y) - np.log(factor), rtol=1e-9)


def test_one_atom_and_no_variance():
    d = Stack([1.0], [1e-9], [[1.0]], [[1.0]], MixtureParams([0.5, 0.0, 0.5]))
    assert float(d.crps(1.0)[0]) == pytest.approx(0.0, abs=1e-9)
    assert d.mean()[0] == 1.0
    assert d.ppf(0.5)[0] == 1.0


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 12),
    n_errors=st.integers(1, 6),
    whole=st.booleans(),
    bounded=st.booleans(),
)
def test_any_stack_keeps_its_promises(seed, k, n_errors, whole, bounded):
    rng = np.random.default_rng(seed)
    loc, scale = rng.normal(0, 5, 3), rng.gamma(1.0, 2.0, 3) + 0.01
    atoms = rng.normal(0, 5, (3, k))
    atoms = np.round(atoms) if whole else atoms
    masses = rng.random((3, k)) * (rng.random((3, k)) < 0.7)
    masses[:, 0] += 0.1
    support = (-4.0, 6.0) if bounded else (-np.inf, np.inf)
    d = Stack(
        loc, scale, atoms, masses, MixtureParams(rng.dirichlet(np.ones(3)), rng.normal(size=n_errors), support=support)
    )
    p = np.sort(rng.random((3, 7)), axis=1)
    y = d.ppf(p)
    assert (d.cdf(y) >= p - 1e-12).all()
    assert (np.diff(y, axis=1) >= 0).all()
    np.testing.assert_allclose(d.cdf(y) + d.sf(y), 1.0, rtol=1e-12)
    assert ((y >= support[0]) & (y <= support[1])).all()
    values = rng.normal(0, 6, (3, 4))
    for row in range(3):
        truth = Truth(d, row)
        np.testing.assert_allclose(d.crps(values)[row], [truth.crps(v) for v in values[row]], rtol=1e-6, atol=1e-8)


def test_ranges_write_their_own_rows_only():
    from ibug._compiled import stack as kernel

    d = stack()
    batch = kernel.Mixtures(
        LOC, SCALE, ATOMS, d.masses, d.mixture.errors, d.mixture.weights, np.array([-np.inf, np.inf])
    )
    out = np.full((4, 1), np.nan)
    p = np.full((4, 1), 0.3)
    batch.quantiles(p, 1 - p, 1, 3, out)
    np.testing.assert_array_equal(np.isnan(out[:, 0]), [True, False, False, True])
    np.testing.assert_array_equal(out[1:3, 0], d.ppf(0.3)[1:3])
    for bad in ((3, 2), (0, 5)):
        with pytest.raises(ValueError, match="range"):
            batch.quantiles(p, 1 - p, *bad, out)


def test_at_most_a_kilobyte_a_row():
    k = 84
    d = Stack(
        np.zeros(10), np.ones(10), np.tile(np.arange(k), (10, 1)), np.ones((10, k)), MixtureParams([0.5, 0.0, 0.5])
    )
    assert sum(getattr(d, name).nbytes for name in d.parameters) <= 1024 * len(d)
