"""Families of distributions: the speed of their fits, a spike, and the choice among them."""

import numpy as np
import pytest

from tests.benchmarks.started import marked, run, written


def test_speed_of_fits_writes_its_report(tmp_path):
    page = marked(tmp_path, "posterior.py")
    printed = run("posterior.py", "--rows", "12", "--k", "10", "--report", str(page))
    assert written(page, "posterior.py") == printed.strip()
    assert [line.split()[0] for line in printed.splitlines()[3:11]][:3] == ["normal", "skewnormal", "lognormal"]


def test_a_spike_lowers_the_nll_and_nothing_else(tmp_path):
    pytest.importorskip("pandas")
    page = marked(tmp_path, "posterior_spike.py")
    printed = run("posterior_spike.py", "--report", str(page))
    table = written(page, "posterior_spike.py")
    assert table == printed.strip()
    scores = np.array([[float(cell) for cell in line.split()[-3:]] for line in table.splitlines()[-6:]])
    assert np.all(np.diff(scores[:, 0]) < 0)
    assert scores[-1, 0] < -5
    assert np.all(np.diff(scores[2:, 1:], axis=0) > 0)


def test_choice_of_a_family_writes_its_report(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    page = marked(tmp_path, "posterior_choice.py")
    printed = run("posterior_choice.py", "--folds", "1", "--booster", "lightgbm", "--report", str(page))
    assert [line.rstrip() for line in printed.splitlines()] == written(page, "posterior_choice.py").splitlines()
    assert printed.splitlines()[1].startswith("diabetes")
