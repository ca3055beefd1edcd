"""Validation rows that are training rows are found by values, whatever the container; duplicates are no alarm."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from ibug.training._diagnostics import row_hashes, seen_share

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
X[::9, 1] = np.nan
Y = X[:, 0] + rng.normal(size=300)


def frame(values):
    return pd.DataFrame(values, columns=list("abc")).assign(letter=pd.Categorical(np.where(values[:, 0] > 0, "u", "v")))


CONTAINERS = {
    "array": lambda values: values,
    "single": lambda values: values.astype(np.float32),
    "pandas": frame,
    "texts": lambda values: frame(values).astype({"letter": object}),
    "polars": lambda values: pl.from_pandas(frame(values).astype({"letter": str})),
    "sparse": lambda values: csr_matrix(np.nan_to_num(values)),
}


def by_brute_force(train, new):
    """The share of the new rows that are in the list of training rows."""
    rows = {tuple(np.nan_to_num(row, nan=1e99)) for row in np.column_stack(train)}
    return np.mean([tuple(np.nan_to_num(row, nan=1e99)) in rows for row in np.column_stack(new)])


@pytest.mark.parametrize("make", list(CONTAINERS.values()), ids=list(CONTAINERS))
def test_the_same_values_are_found_in_every_container(make):
    train, new = (make(X[:200]), Y[:200]), (make(X[100:]), Y[100:])
    assert seen_share(train, new) == pytest.approx(by_brute_force((X[:200], Y[:200]), (X[100:], Y[100:])))
    assert seen_share(train, (make(X[200:]), Y[200:])) == 0


def test_the_same_object():
    assert seen_share((X, Y), (X, Y)) == 1


def test_the_same_rows_with_other_targets_are_others():
    assert seen_share((X, Y), (X, Y + 1)) == 0


def test_order_and_form_do_not_matter():
    order = rng.permutation(300)
    assert seen_share((X, Y), (X[order], Y[order])) == 1
    train = frame(X[:250])
    other = train.assign(letter=train["letter"].cat.set_categories(["w", "v", "u"]))  # other codes
    assert seen_share((train, Y[:250]), (other.iloc[::2].reset_index(drop=True), Y[:250:2])) == 1


@pytest.mark.parametrize("seed", range(5))
def test_data_with_duplicates_is_no_alarm(seed):
    """A random split of data in which most rows have twins."""
    random = np.random.default_rng(seed)
    values, y = random.integers(0, 3, (600, 2)).astype(float), random.integers(0, 3, 600).astype(float)
    assert seen_share((values[:400], y[:400]), (values[400:], y[400:])) == 0
    some = np.repeat(rng.normal(size=(300, 2)), 2, axis=0)[random.permutation(600)]  # every row twice
    assert seen_share((some[:400], some[:400, 0]), (some[400:], some[400:, 0])) == 0


def test_a_tenth_is_no_alarm_a_fifth_is():
    fresh = rng.normal(size=(1000, 3))
    for n_seen, found in ((10, 0), (50, 0.05), (200, 0.2)):
        rows = np.vstack([X[:n_seen], fresh[: 1000 - n_seen]])
        y = np.concatenate([Y[:n_seen], fresh[: 1000 - n_seen, 0]])
        assert seen_share((X, Y), (rows, y)) == (found if found > 0.1 else 0)


def test_what_cannot_be_hashed_counts_as_new():
    lists = np.empty((20, 1), object)
    lists[:, 0] = [[1]] * 20
    assert row_hashes(lists, np.zeros(20)) is None
    assert seen_share((lists, np.zeros(20)), (lists.copy(), np.zeros(20))) == 0


def test_hashes_differ_where_rows_differ():
    """Small whole numbers, whose bits are mostly the same."""
    grid = np.stack(np.meshgrid(*[np.arange(-12.0, 12)] * 3), axis=-1).reshape(-1, 3)
    hashes = row_hashes(grid, np.zeros(len(grid)))
    assert len(np.unique(hashes)) == len(grid)
    assert row_hashes(np.array([[0.0, -0.0]]), np.zeros(1)) == row_hashes(np.array([[-0.0, 0.0]]), np.zeros(1))
