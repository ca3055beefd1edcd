"""Families of distributions: the speed of their fits, a spike, and the choice among them."""

import numpy as np
import pytest

from tests.benchmarks.started import marked, run, written

pytestmark = pytest.mark.newest


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


def test_the_families_of_the_papers_section_on_counts(tmp_path):
    pytest.importorskip("lightgbm")
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from benchmarks.posterior import meps

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 2))
    visits = rng.poisson(6 * X[:, 0] ** 2)
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "target": visits}).to_parquet(tmp_path / "counts.parquet")
    page = marked(tmp_path, "posterior_meps.py")
    options = ["--dataset", "counts", "--folds", "1", "--booster", "lightgbm", "--report", str(page)]
    printed = run("posterior_meps.py", *options, "--data", str(tmp_path))
    command, table = written(page, "posterior_meps.py").split("\n\n", 1)
    assert command.startswith("$ python posterior_meps.py")
    assert table == printed.strip()
    lines = table.splitlines()[3:]
    scores = {line[:18].strip(): [float(part) for part in line[18:].split()[:3]] for line in lines}
    assert list(scores) == list(meps.METHODS)
    assert scores["default"][2] < scores["normal"][2]  # counts are not normal
    assert all(0 < crps < 3 for _, _, crps in scores.values())


def test_a_cell_that_is_called_impossible_counts_as_the_least():
    pytest.importorskip("pandas")
    from benchmarks.posterior import choice
    from ibug.distributions import Normal

    found = Normal(np.zeros(2), np.full(2, 1e-3))
    y, known = np.array([0.0, 5.0]), np.array([0.0, 1.0, 5.0])
    cells = np.array([1.0, 4.0])  # from -0.5 to 0.5, and from 3 to 7
    expected = np.mean(np.log(cells) - np.log([1.0, 0.01]))
    assert choice.rounded_nll(y, found, known, least=0.01) == pytest.approx(expected)
