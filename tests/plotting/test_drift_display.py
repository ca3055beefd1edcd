"""Rows beside the validation rows."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from ibug.exceptions import InvalidInputError
from ibug.plotting import DriftDisplay

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")


def test_the_line_marks_the_largest_distance(u, data):
    X, y = data["test"]
    for kind in ("similarity", "prediction", "pit"):
        display = DriftDisplay.from_estimator(u, X, y, kind=kind)
        low, high = sorted(display.gap_.get_ydata())
        found = ks_2samp(display.values, display.before)
        assert high - low == pytest.approx(found.statistic)
        assert display.p_value == pytest.approx(found.pvalue)
    np.testing.assert_array_equal(
        DriftDisplay.from_estimator(u, X, kind="similarity").values, np.sort(u.affinity_score(X))
    )


def test_wrong_input(u, data):
    X, _ = data["test"]
    with pytest.raises(InvalidInputError, match="needs observed values"):
        DriftDisplay.from_estimator(u, X, kind="pit")
    with pytest.raises(InvalidInputError, match="kind must be one of"):
        DriftDisplay.from_estimator(u, X, kind="mean")
