"""What rows of a block have in common is found where it is known."""

import numpy as np
import pytest

from ibug.distributions import MixtureParams, Normal, Stack
from ibug.exceptions import InvalidInputError
from ibug.totals import Dependence, learn_dependence, normal_scores

pytestmark = pytest.mark.once

SEEDS = range(8)


def rows(seed, correlations, blocks):
    """Return observed values with these correlations, and their own distributions."""
    rng = np.random.default_rng(seed)
    n = len(blocks[0])
    score = np.sqrt(1 - sum(correlations)) * rng.standard_normal(n)
    for rho, codes in zip(correlations, blocks, strict=True):
        score += np.sqrt(rho) * rng.standard_normal(codes.max() + 1)[codes]
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return loc + scale * score, Normal(loc, scale)


def learned(seed, correlations, blocks):
    names = dict(zip("ab", blocks, strict=False))
    return learn_dependence([normal_scores(*rows(seed, correlations, blocks))], names)


def within_two_errors(found, expected):
    """Return how many of the estimates are within two standard errors. Shapes: expected (n_kinds,)."""
    return sum(np.all(np.abs(one.estimate - expected) < 2 * one.standard_error + 1e-3) for one in found)


@pytest.mark.parametrize("rho", [0.05, 0.2, 0.5])
def test_one_factor(rho):
    day = np.arange(4000) // 20
    found = [learned(seed, [rho], [day]) for seed in SEEDS]
    assert within_two_errors(found, [rho]) >= 6
    assert abs(np.mean([one.estimate for one in found]) - rho) < 0.3 * rho
    for one in found:
        assert one.n_blocks == (200,)
        assert np.all(one.correlation <= one.estimate)


def test_two_nested_factors():
    hour = np.arange(9600) // 8
    week = hour // 12
    found = [learned(seed, [0.1, 0.2], [week, hour]) for seed in SEEDS]
    assert within_two_errors(found, [0.1, 0.2]) >= 6
    np.testing.assert_allclose(np.mean([one.estimate for one in found], axis=0), [0.1, 0.2], atol=0.02)


def test_two_crossed_factors():
    store, day = np.arange(6000) % 60, np.arange(6000) // 60
    found = [learned(seed, [0.15, 0.1], [store, day]) for seed in SEEDS]
    np.testing.assert_allclose(np.mean([one.estimate for one in found], axis=0), [0.15, 0.1], atol=0.03)


def test_independent_rows():
    day = np.arange(4000) // 20
    found = np.array([learned(seed, [0.0], [day]).correlation for seed in range(20)])
    assert np.median(found) == 0
    assert found.max() < 0.02


def test_second_kind_without_a_factor():
    store, day = np.arange(6000) % 60, np.arange(6000) // 60
    found = np.array([learned(seed, [0.0, 0.2], [store, day]).correlation for seed in SEEDS])
    assert found[:, 0].max() < 0.01
    assert found[:, 1].min() > 0.1


def test_counts_with_jumps():
    """Values of a few numbers hide a part of the score: the correlation is that of the scores behind them."""
    found = []
    for seed in SEEDS:
        day = np.arange(6000) // 20
        rng = np.random.default_rng(seed)
        score = np.sqrt(0.8) * rng.standard_normal(6000) + np.sqrt(0.2) * rng.standard_normal(300)[day]
        y = np.searchsorted([0.0, 0.8, 1.5], score).astype(float)
        masses = np.diff([0, 0.5, 0.788145, 0.933193, 1])
        counts = Stack(
            np.zeros(6000), np.ones(6000), np.tile(np.arange(4.0), (6000, 1)), np.tile(masses, (6000, 1)),
            MixtureParams([0.0, 0.0, 1.0]),
        )  # fmt: skip
        found.append(learn_dependence([normal_scores(y, counts)], {"day": day}))
    assert within_two_errors(found, [0.2]) >= 6
    assert abs(np.mean([one.estimate for one in found]) - 0.2) < 0.03


def test_several_targets():
    day = np.arange(4000) // 20
    scores = [normal_scores(*rows(seed, [rho], [day])) for seed, rho in ((0, 0.3), (1, 0.0))]
    found = learn_dependence(scores, {"day": day})
    assert found.correlation.shape == (1, 2)
    assert found.of_target(0).correlation.shape == (1,)
    assert found.correlation[0, 0] > 0.2
    assert found.correlation[0, 1] < 0.02
    assert str(found).count("±") == 2


def test_words():
    text = str(learned(0, [0.2], [np.arange(4000) // 20]))
    assert text.startswith("a: correlation 0.")
    assert text.endswith("from 200 blocks")


def test_few_blocks_are_uncertain():
    few, many = (learned(0, [0.2], [np.arange(20 * n) // 20]) for n in (10, 400))
    assert few.standard_error > 2 * many.standard_error


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (np.zeros(50, int), r"All validation rows are in one block of 'a'.*30 or more"),
        (np.arange(50), r"Each validation row is a block of its own \('a'\).*several rows share"),
    ],
)
def test_blocks_that_teach_nothing(blocks, message):
    scores = normal_scores(*rows(0, [0.0], [np.zeros(50, int)]))
    with pytest.raises(InvalidInputError, match=message):
        learn_dependence([scores], {"a": blocks})


def test_state():
    found = learned(0, [0.2], [np.arange(4000) // 20])
    again = Dependence.from_state(found.state())
    assert again.state() == found.state()
    assert again.columns is None


FORGED = {
    "names": [[1], ["a", "b"], []],
    "columns": [[1]],
    "n_blocks": [[1], [2.5], [3, 4], [True]],
    "correlation": [[-0.1], [1.5], [np.nan], [[0.1]], []],
    "estimate": [[np.nan], [-1.0], [0.1, 0.2]],
    "standard_error": [[np.inf], [-1.0]],
}


@pytest.mark.parametrize(("name", "value"), [(name, one) for name, values in FORGED.items() for one in values])
def test_impossible_states_are_refused(name, value):
    state = learned(0, [0.2], [np.arange(4000) // 20]).state()
    with pytest.raises(InvalidInputError, match="impossible"):
        Dependence.from_state({**state, name: value})
