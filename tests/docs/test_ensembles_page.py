"""The page about ensembles: its code runs, and says what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.once

PAGE = Path(__file__).parents[2] / "docs" / "ensembles.md"


def test_examples_run():
    pytest.importorskip("catboost")
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(block, names)
    u, X = names["u"], names["X"]
    distributions = [member.predict_dist(X) for member in u.estimators_]
    np.testing.assert_allclose(u.predict_dist(X).std(), (distributions[0].std() + distributions[1].std()) / 2)
    # a tuple of columns can be cloned, as the page says
    from sklearn.base import clone

    assert clone(names["CatBoostRegressor"](cat_features=("colour",))).get_params()["cat_features"] == ("colour",)
