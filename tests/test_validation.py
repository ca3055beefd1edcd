"""Checks of what users hand in: one check of probabilities for every parameter that is one."""

import numpy as np
import pytest

from ibug._validation import check_probabilities, check_probability
from ibug.exceptions import InvalidInputError

pytestmark = pytest.mark.once


@pytest.mark.parametrize("values", [0.5, np.float32(0.5), [0.1, 0.9], (0.25,), np.array([0.1, 0.2])])
def test_probabilities_are_floats_of_the_same_shape(values):
    found = check_probabilities(values, "alpha")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("values", [0, 1, True, 1.5, -0.1, np.nan, None, "0.5", ["0.5"], [], [0.5, 1.0], [0.5, None]])
def test_what_is_no_probability(values):
    with pytest.raises(InvalidInputError, match="alpha must be between 0 and 1, both excluded; got"):
        check_probabilities(values, "alpha")


def test_too_many_dimensions():
    with pytest.raises(InvalidInputError, match="alpha must be one number, or several in a list"):
        check_probabilities([[0.5]], "alpha")


def test_one_probability():
    found = check_probability(np.float64(0.5), "coverage")
    assert type(found) is float
    assert found == 0.5
    with pytest.raises(InvalidInputError, match="coverage must be one number; got"):
        check_probability([0.5], "coverage")
