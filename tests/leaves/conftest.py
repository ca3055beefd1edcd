"""Rows on which missing values, categories, ties and unseen values all matter, and checks for every reader."""

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug import IBUGRegressor
from ibug.leaves import reader_of
from ibug.neighbors import _leaf_numbers, _search, instruction_sets
from tests.oracles import nearest_rows


@dataclass(frozen=True)
class Rows:
    """Training rows, their targets, and rows to predict."""

    X: Any
    y: Any
    queries: Any


@pytest.fixture(scope="session")
def rows():
    """640 training rows with missing values, the last 40 of them copies, so that affinities tie; and 40 queries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(665, 5))
    X[:, 3] = np.round(X[:, 3])
    X[rng.random(X.shape) < [0.1, 0.3, 0.1, 0.0, 0.0]] = np.nan
    missing = np.isnan(X[:, 1])
    y = 3 * np.nan_to_num(X[:, 0]) + 2 * missing + X[:, 3] ** 2 + np.sin(3 * X[:, 4]) + 0.3 * rng.normal(size=665)
    X[600:640] = X[:40]
    queries = np.vstack([X[640:], X[:13], np.full((1, 5), np.nan), np.full((1, 5), 1e6)])
    return Rows(X[:640], y[:640], queries)


@pytest.fixture(scope="session")
def full_rows(rows):
    """Return the same without missing values, for models that do not take them."""
    return Rows(np.nan_to_num(rows.X, nan=-4), rows.y, np.nan_to_num(rows.queries, nan=-4))


@pytest.fixture(scope="session")
def frame_rows():
    """Return pandas frames with categories: few and many of them, missing ones, and one that no training row has."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    number, color, city = rng.normal(size=340), rng.integers(0, 3, 340), rng.integers(0, 30, 340)
    effect = rng.normal(size=30)
    y = number + 2 * (color == 1) + 3 * effect[city] + 0.1 * rng.normal(size=340)
    color[rng.random(340) < 0.15] = -1  # pandas' code of a missing category
    color[320:326], city[326:330] = 3, 30  # queries with the categories that no training row has
    number[rng.random(340) < 0.1] = np.nan
    frame = pandas.DataFrame(
        {
            "number": number,
            "color": pandas.Categorical.from_codes(color, ["red", "green", "blue", "unseen"]),
            "city": pandas.Categorical.from_codes(city, [f"city {i}" for i in range(31)]),
        }
    )
    return Rows(frame[:300], y[:300], frame[300:].reset_index(drop=True))


@pytest.fixture(scope="session")
def polars_rows(rows):
    """Return the rows as polars frames, with nulls for missing values."""
    polars = pytest.importorskip("polars")

    def frame(X):
        return polars.DataFrame(X, schema=list("abcde")).fill_nan(None)

    return Rows(frame(rows.X), rows.y, frame(rows.queries))


@pytest.fixture(scope="session")
def polars_frame_rows(frame_rows):
    """Return the frames with categories as polars frames, the categories as Enum."""
    polars = pytest.importorskip("polars")

    def frame(X):
        columns = {"number": polars.Series(X["number"].to_numpy()).fill_nan(None)}
        for name in ("color", "city"):
            values = [None if isinstance(value, float) else str(value) for value in X[name]]
            columns[name] = polars.Series(values, dtype=polars.Enum([str(c) for c in X[name].cat.categories]))
        return polars.DataFrame(columns)

    return Rows(frame(frame_rows.X), frame_rows.y, frame(frame_rows.queries))


@pytest.fixture(scope="session")
def check_leaf_numbers():
    """Return a check that a row's leaves do not depend on the rows beside it, and that no axis is ever dropped."""

    def check(model, X, n_trees):
        reader = reader_of(model)
        leaves = reader.library_leaves(X)
        assert leaves.dtype == np.int32
        assert leaves.shape == (_num_samples(X), n_trees)
        assert leaves.min() >= 0
        for subset in ([0], [17, 3, 3, 11]):
            assert_array_equal(reader.library_leaves(_safe_indexing(X, subset)), leaves[subset])

    return check


@pytest.fixture(scope="session")
def check_neighbors():
    """Return a check that all that is predicted is what the oracle and the formulas say, however it is computed."""

    def check(model, rows):
        reader = reader_of(model)
        n_rows = _num_samples(rows.X)
        affinities, neighbors = nearest_rows(reader.library_leaves(rows.X), reader.library_leaves(rows.queries), n_rows)
        regressor = IBUGRegressor(model, prefit=True, k=7, calibrate=False).fit(rows.X, rows.y)
        for k in (None, 1, n_rows):
            found = regressor.kneighbors(rows.queries, n_neighbors=k)
            assert_array_equal(found[0], affinities[:, : k or 7])
            assert_array_equal(found[1], neighbors[:, : k or 7])
        assert_array_equal(regressor.predict(rows.queries), reader.predict(rows.queries))
        variance = np.maximum(rows.y[neighbors[:, :7]].var(axis=1), regressor.rule_.min_variance)
        np.testing.assert_allclose(regressor.predict_var(rows.queries), variance, rtol=1e-9)
        shuffled = np.random.default_rng(0).permutation(_num_samples(rows.queries))
        small = (
            patch.object(_leaf_numbers, "_NUMBERS_PER_CHUNK", 500),
            patch.object(_search, "COMPARISONS_PER_TASK", 100),
        )
        with small[0], small[1]:  # many chunks, and threads for each
            found = regressor.set_params(n_jobs=3).kneighbors(_safe_indexing(rows.queries, shuffled))
        assert_array_equal(found[1], neighbors[shuffled, :7])
        for instruction_set in instruction_sets():
            found = regressor.source_.index.query(
                reader.library_leaves(rows.queries), 7, instruction_set=instruction_set
            )
            assert_array_equal(found[1], neighbors[:, :7])
        return regressor.set_params(n_jobs=None)

    return check
