"""The rule about private names finds what it must find, and nothing else."""

import ast

import pytest

from tests.source_code import Module, modules, private_uses

pytestmark = pytest.mark.once

OWNER = """
_LIMIT = 3
def _limited(): ...
class Index:
    _kind = "leaf"
    def __init__(self):
        self._codes, self.rows = 1, 2
    def _widen(self): ...
"""


def uses(code, name="ibug.rule._rule", beside=()):
    owner = [Module("ibug.neighbors._index", ast.parse(OWNER)), Module("ibug.neighbors.__init__", ast.parse(""))]
    others = [Module(each, ast.parse(text)) for each, text in beside]
    return private_uses([*owner, *others, Module(name, ast.parse(code))])


@pytest.mark.parametrize(
    "code",
    [
        "from ibug.neighbors._index import Index",
        "from ibug.neighbors import _index",
        "from ..neighbors._index import Index",
        "import ibug.neighbors._index as index",
        "from ibug.neighbors import Index\nIndex()._codes",
        "def widen(index): index._widen()",
        "class Rule:\n    def predict(self): return self.index._codes",
        "def kind(index): return getattr(index, '_kind', None)",
        "def forget(index): index._codes = None",
        "import ibug.neighbors._index as index; index._LIMIT",
        "from ibug import neighbors\nneighbors._LIMIT",
        "def _codes(): ...\ndef codes(index): return index._codes",
        "from ibug._typing import _Hidden",
    ],
)
def test_what_is_private_elsewhere_is_found(code):
    assert uses(code)


@pytest.mark.parametrize(
    "code",
    [
        "from ibug.neighbors import Index\nIndex().rows",
        "from ibug.rule._spread import Spread",
        "from . import _spread",
        "from ibug._typing import Floats",
        "import sklearn\nfrom sklearn.utils import _safe_indexing\nsklearn._config",
        "def of_lightgbm(model): return model._Booster, model._replace(a=1), model.__dict__",
        "class Mine(Index):\n    def codes(self): return self._codes, super()._widen()",
        "class Mine:\n    def __init__(self): self._codes = 3\n    def same(self, other): return other._codes == 3",
    ],
)
def test_what_is_public_or_ones_own_is_not(code):
    assert uses(code) == []


def test_modules_of_one_package_share_what_is_private():
    code = "from ibug.neighbors._index import Index\nIndex()._widen()"
    assert uses(code, "ibug.neighbors._search") == []
    assert uses(code, "ibug.neighbors.walk._order") == []
    assert uses(code, "ibug.neighbors.__init__") == []
    assert len(uses(code, "ibug.regressor")) == 2
    root = [("ibug._estimator", "class Estimator:\n    def __init__(self): self._rule = 1\ndef _own(): ...")]
    code = "from ibug._estimator import Estimator, _own\nEstimator()._rule"
    assert uses(code, "ibug.regressor", root) == []
    assert len(uses(code, "ibug.dask._regressor", root)) == 2


def test_modules_have_their_dotted_names(tmp_path):
    for path in ("__init__.py", "regressor.py", "leaves/__init__.py", "leaves/walk/_trees.py"):
        file = tmp_path / "ibug" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = {module.name: module.package for module in modules(tmp_path / "ibug")}
    leaves = {"ibug.leaves.__init__": "leaves", "ibug.leaves.walk._trees": "leaves"}
    assert found == {"ibug": "ibug", "ibug.regressor": "ibug"} | leaves
