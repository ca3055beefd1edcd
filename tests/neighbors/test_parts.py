"""Batches that are divided among threads."""

import threading

import numpy as np
import pytest

from ibug.neighbors import Batch, map_batches
from ibug.neighbors import _source as source

pytestmark = [pytest.mark.once, pytest.mark.kernel]


def batch_of(n, first=0):
    rng = np.random.default_rng(n)
    rows = rng.integers(0, 99, (n, 3))
    row_context = {"groups": rng.integers(0, 2, n)}
    return Batch(slice(first, first + n), rng.normal(size=n), rows + 1, rows, {"targets": rows * 0.5}, 7, row_context)


@pytest.mark.parametrize(("n", "n_parts"), [(1, 1), (1, 3), (2, 3), (7, 3), (9, 3)])
def test_parts_are_the_rows_one_after_the_other(n, n_parts):
    batch = batch_of(n, first=40)
    divided = batch.divided(n_parts)
    assert len(divided) == min(n, n_parts)
    assert [row for part in divided for row in range(part.where.start, part.where.stop)] == list(range(40, 40 + n))
    assert all(part.n_rows == part.where.stop - part.where.start and part.n_trees == 7 for part in divided)
    for name in ("mean", "affinities", "rows"):
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in divided]), getattr(batch, name))
    for field, name in (("values", "targets"), ("row_context", "groups")):
        found = np.concatenate([getattr(part, field)[name] for part in divided])
        np.testing.assert_array_equal(found, getattr(batch, field)[name])


@pytest.mark.parametrize(("n_jobs", "n_threads"), [(None, 1), (1, 1), (3, 3)])
def test_large_batches_are_divided_and_small_ones_are_not(monkeypatch, n_jobs, n_threads):
    monkeypatch.setattr(source, "_ROWS_PER_THREAD", 10)
    seen = []

    def function(batch):
        seen.append((batch.n_rows, threading.get_ident()))
        return batch.mean * 2

    batches = [batch_of(31), batch_of(19, first=31)]
    found = list(map_batches(iter(batches), function, n_jobs))
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate([batch.mean * 2 for batch in batches]))
    assert len(found) == (2 if n_threads == 1 else n_threads + 1)
    assert {ident for rows, ident in seen if rows in (19, 31)} <= {threading.get_ident()}
