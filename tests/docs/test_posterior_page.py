"""The page about posteriors: its code runs, and says what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

from ibug.distributions import _registry

pytestmark = pytest.mark.once

PAGE = Path(__file__).parents[2] / "docs" / "posterior.md"


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(_registry, "_FAMILIES", dict(_registry._FAMILIES))


@pytest.mark.usefixtures("registry")
def test_examples_run():
    opening, first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(opening, names)
    assert names["u"].distribution_ == "student_t"
    exec(first, names)
    assert names["u"].distribution_ in ("normal", "laplace", "kde")
    assert np.all(names["distribution"].rvs(20, random_state=0) >= 0)
    assert len(names["distribution"]) == 100
    exec(second, names)
    assert names["u"].distribution_ == "uniform"
    distribution = names["u"].predict_dist(names["X_test"])
    np.testing.assert_allclose(distribution.mean(), names["model"].predict(names["X_test"]))
    assert "uniform" in _registry.families()


def test_the_page_has_a_place_for_every_table():
    page = PAGE.read_text(encoding="utf-8")
    for script in ("posterior.py", "posterior_choice.py", "posterior_spike.py"):
        assert (PAGE.parents[1] / "benchmarks" / script).exists()
        assert page.count(f"<!-- benchmarks/{script} writes from here -->") == 1
    assert page.count("<!-- to here -->") == 3
