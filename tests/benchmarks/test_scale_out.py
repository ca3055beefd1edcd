"""The sharded index on a small cluster."""

import pytest

from tests.benchmarks.started import run


def test_scale_out(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("distributed")
    printed = run("scale_out.py", "--quick", "--rows", "2000", "--trees", "10", "--cache", str(tmp_path))
    assert "Parallel efficiency on two workers" in printed
    assert "A billion rows and 10 trees" in printed
