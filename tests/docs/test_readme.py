"""The README's Python runs as it stands, and prints what stands below it."""

import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.once

README = Path(__file__).parents[2] / "README.md"


def test_the_example_prints_what_the_readme_says(capfd):
    pytest.importorskip("lightgbm")
    ((code, said),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    names: dict = {}
    exec(code, names)
    printed, errors = capfd.readouterr()
    assert errors == ""  # no line of a library's
    here, there = (np.array(re.findall(r"\d+", text), dtype=float).reshape(3, 2) for text in (printed, said))
    np.testing.assert_allclose(here, there, rtol=0.2, atol=5)  # libraries differ a little between versions


def test_the_calls_it_lists_are_there():
    """Each call in the table works on the example's model and rows."""
    pytest.importorskip("lightgbm")
    text = README.read_text("utf-8")
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    exec("import ibug.explain, ibug.metrics\nX_test, y_test = X[350:], y[350:]", names)
    calls = re.findall(r"`((?:u|ibug)\.[\w.]+\(.*?\)(?:\.\w+\(\d+\))?)`", text)
    calls = [call for call in calls if ".save(" not in call]
    assert len(calls) >= 7
    for call in calls:
        assert eval(call, names) is not None, call
