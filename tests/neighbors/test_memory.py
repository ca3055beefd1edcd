"""Memory beyond index and output is bounded, however many rows, trees and neighbours there are."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from ibug.leaves import LeafReader
from ibug.neighbors import LocalSource, Sampling

pytestmark = pytest.mark.once

MOST_BYTES = 150e6


class ManyTrees(LeafReader):
    """A model with many trees: the leaf numbers of all rows together would need gigabytes."""

    n_trees = 2000

    def library_leaves(self, X):
        return np.repeat(X[:, :1].astype(np.int32), self.n_trees, axis=1)

    def predict(self, X):
        return X[:, 0].astype(np.float64)


class FewTrees(ManyTrees):
    n_trees = 3


def peak(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("reader", "k", "tree_fraction"), [(ManyTrees, 5, 1.0), (ManyTrees, 5, 0.01), (FewTrees, 700, 1.0)]
)
def test_search_in_chunks(reader, k, tree_fraction):
    X = np.random.default_rng(0).integers(0, 7, (50_000, 1))  # 400 MB of leaf numbers, or of neighbours
    source = build(reader(None), X[:1000], tree_fraction)
    assert peak(lambda: [None for _ in source.nearest(X, k, n_jobs=1)]) < MOST_BYTES
    assert peak(lambda: [None for _ in source.batches(X, {"targets": k}, n_jobs=1)]) < MOST_BYTES


def build(reader, X, tree_fraction=1.0):
    return LocalSource.build(None, reader, X, np.zeros(len(X)), Sampling(tree_fraction), np.random.RandomState(0))


def test_index_is_built_in_chunks():
    X = np.random.default_rng(0).integers(0, 7, (40_000, 1))
    assert peak(lambda: build(ManyTrees(None), X)) < MOST_BYTES + X.size * ManyTrees.n_trees


# A process of its own, in which nothing else has touched the memory. `getrusage` of a child begins with what its parent
# had, so that the system's own account is asked where there is one.
FIT = """
import pathlib, re, resource, sys
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from ibug import IBUGRegressor

def peak():
    status = pathlib.Path("/proc/self/status")
    found = re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text()) if status.exists() else None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * int(found[1]) if found else used * (1 if sys.platform == "darwin" else 1024)

n = int(sys.argv[1])
X = np.random.default_rng(0).normal(size=(n, 3))
y = X.sum(axis=1)
model = HistGradientBoostingRegressor(max_iter=200, early_stopping=False).fit(X[:2000], y[:2000])
fit = IBUGRegressor(model, prefit=True).fit
fit(X[:3000], y[:3000], X_val=X[:200], y_val=y[:200])  # loads whatever is loaded once
before = peak()
index = fit(X, y, X_val=X[:200], y_val=y[:200]).source_.index
print(peak() - before, index.nbytes)
"""


def test_fitting_needs_little_more_than_the_index():
    pytest.importorskip("resource")
    grown = []
    for n_rows in (50_000, 450_000):
        command = [sys.executable, "-c", FIT, str(n_rows)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        grown.append([int(number) for number in printed.split()])
    (few, index_of_few), (many, index_of_many) = grown
    assert index_of_many > 80e6  # so that a second copy of it would show
    assert many - few < 1.5 * (index_of_many - index_of_few)
    assert few < 1.5 * index_of_few + 100e6
