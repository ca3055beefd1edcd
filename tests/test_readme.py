"""The README's Python runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


# LightGBM before 4.7 warns of the names that it gave to an array's columns itself.
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_examples_run():
    pytest.importorskip("lightgbm")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(block.replace("LGBMRegressor()", "LGBMRegressor(verbose=-1)"), names)
    assert len(names["d"]) == len(names["y_test"])
