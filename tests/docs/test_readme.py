"""The README's Python runs as it stands."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

README = Path(__file__).parents[2] / "README.md"


def test_examples_run(capfd):
    pytest.importorskip("lightgbm")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 3
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert capfd.readouterr() == ("", "")  # no line of a library's before the first result
    assert len(names["d"]) == len(names["y_test"])
