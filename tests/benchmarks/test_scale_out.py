"""The sharded index on a small cluster."""

from dataclasses import replace

import pytest

from tests.benchmarks.started import run

pytestmark = pytest.mark.newest


def test_scale_out(tmp_path, monkeypatch):
    """One cluster of two workers is measured, and its figures stand for the other two: clusters take long to start."""
    pytest.importorskip("lightgbm")
    pytest.importorskip("distributed")
    from benchmarks.scale_out import command, measure

    measured = {}

    def once(model, setting, n_workers):
        if not measured:
            measured[2] = measure.measure(model, setting, 2)
        return replace(measured[2], n_workers=n_workers, n_rows=setting.n_rows)

    monkeypatch.setattr(command, "measure", once)
    printed = run("scale_out.py", "--quick", "--rows", "2000", "--trees", "10", "--cache", str(tmp_path))
    assert "| 1 | 2,000 |" in printed
    assert "| 2 | 500 |" in printed
    assert "Parallel efficiency on two workers: 50%" in printed
    assert "A billion rows and 10 trees" in printed
    figures = measured[2]
    assert len(figures.shares) == len(figures.work_seconds) == 2
    assert min(figures.shares) > 0
    assert figures.bytes_per_query > 0
