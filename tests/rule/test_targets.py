"""What is known of all targets does not depend on how they are divided."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibug.exceptions import InvalidInputError
from ibug.targets import PartFacts, TargetFacts, check_support, mean_of, squares

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


def divided(parts):
    facts = [PartFacts.of(part) for part in parts]
    return TargetFacts.join(facts, [squares(part, mean_of(facts)) for part in parts])


@settings(deadline=None)
@given(st.lists(finite, min_size=1, max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_any_division_tells_the_same(values, cuts):
    y = np.array(values)
    whole = TargetFacts.of(y)
    parts = divided(np.split(y, sorted(cuts)))
    assert (parts.n, parts.lowest, parts.highest, parts.variance) == (
        whole.n,
        whole.lowest,
        whole.highest,
        whole.variance,
    )


@settings(deadline=None)
@given(st.lists(finite, min_size=1, max_size=40))
def test_the_sum_is_exact(values):
    exact = sum(map(Fraction, values)) / len(values)
    expected = float(exact) if abs(exact) <= Fraction(np.finfo(float).max) else math.inf
    assert mean_of([PartFacts.of(np.array(values))]) == expected


def test_the_variance_is_numpys_but_for_rounding():
    y = np.random.default_rng(0).lognormal(3, 2, 5000)
    assert TargetFacts.of(y).variance == pytest.approx(np.var(y), rel=1e-14)
    assert TargetFacts.of(np.full(7, 0.1)).variance == 0
    assert TargetFacts.of(np.full(7, 0.1)).tiny_unit == 1
    assert TargetFacts.of(np.array([5e-324, 5e-324])).highest == 5e-324


def test_support_holds_all_targets():
    facts = TargetFacts.of(np.array([1.0, 4.0]))
    assert check_support((0, 4), facts) == (0.0, 4.0)
    assert check_support(None, facts) is None
    with pytest.raises(InvalidInputError, match="from 1 to 4"):
        check_support((2, 5), facts)
