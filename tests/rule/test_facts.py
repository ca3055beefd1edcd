"""What a rule knows about all targets does not depend on how they are divided."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibug import IBUGRegressor
from ibug._options import Options
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.rule import TargetRange, TargetSummary

pytestmark = pytest.mark.once

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


def options(**parameters):
    return Options.of(IBUGRegressor(**parameters).get_params(deep=False))


@settings(deadline=None)
@given(st.lists(finite, min_size=1, max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_any_division_tells_the_same(values, cuts):
    y = np.array(values)
    parts = [TargetRange.of(part) for part in np.split(y, sorted(cuts))]
    assert TargetRange.join(parts) == TargetRange.of(y)
    ordered = sorted(values)
    assert TargetRange.of(y) == TargetRange(len(y), tuple(ordered[:10]), tuple(ordered[:-11:-1]))
    assert (TargetRange.of(y).lowest, TargetRange.of(y).highest) == (min(values), max(values))


@settings(deadline=None)
@given(st.lists(finite, min_size=1, max_size=40))
def test_what_stands_for_no_variance_is_above_zero_and_finite(values):
    tiny = TargetRange.of(np.array(values)).tiny_variance
    assert np.isfinite(tiny)
    assert tiny >= 0


def test_what_stands_for_no_variance_has_the_unit_of_the_targets():
    y = np.random.default_rng(0).lognormal(3, 2, 5000)
    tiny = TargetRange.of(y).tiny_variance
    assert 0 < tiny < 1e-10 * np.var(y)
    assert TargetRange.of(8 * y).tiny_variance == 64 * tiny
    assert TargetRange.of(np.full(7, 0.1)).tiny_variance == 1e-15
    assert TargetRange.of(np.array([-1e308, 1e308])).tiny_variance > 1e290


def test_support_holds_all_targets():
    y = np.array([1.0, 4.0])
    assert TargetSummary.of(y, options(support=(0, 4))).families[0].support == (0.0, 4.0)
    assert TargetSummary.of(y, options()).families[0].support is None
    with pytest.raises(InvalidInputError, match="from 1 to 4"):
        TargetSummary.of(y, options(support=(2, 5)))


def test_a_family_that_cannot_take_the_targets_is_refused_with_its_reason():
    class Positive(Normal):
        @classmethod
        def prepare(cls, targets):
            raise InvalidInputError("targets must be above zero")

    facts = TargetSummary.of(np.array([-1.0, 4.0]), options(distribution=["normal", Positive]))
    assert [family.name for family in facts.families] == ["normal"]
    assert facts.refused == {"Positive": "targets must be above zero"}
    with pytest.raises(InvalidInputError, match="above zero"):
        TargetSummary.of(np.array([-1.0, 4.0]), options(distribution=Positive))
    with pytest.raises(InvalidInputError, match="No family can take these targets"):
        TargetSummary.of(np.array([-1.0, 4.0]), options(distribution=[Positive]))
