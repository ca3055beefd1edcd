"""The examples run as a user starts them."""

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy.integrate import trapezoid

from ibug.distributions import Distribution

pytestmark = pytest.mark.once

FOLDER = Path(__file__).parents[2] / "examples"


def run(script):
    command = [sys.executable, "-W", "error", str(FOLDER / script)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def table_of(printed):
    """Return the demo's table of scores: name → coverage, coverage of the largest fifth, mean width, score."""
    found = re.findall(r"^  (\S.*?)  +(\d+)% +(\d+)% +(\S+) +(\S+)$", printed, re.MULTILINE)
    return {name: [float(value) for value in values] for name, *values in found}


def test_demo(monkeypatch, capsys, tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["demo.py"])
    runpy.run_path(str(FOLDER / "demo.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count(" of 150 ") == 5  # neighbours
    assert (tmp_path / "build" / "demo.png").stat().st_size > 10_000
    scores = table_of(printed)
    naive, ibug = scores["prediction ± 1.64 RMSE"], scores["ibug"]
    assert 85 <= ibug[0] <= 95
    assert naive[1] < 80 < ibug[1]
    assert ibug[2] < naive[2]
    assert ibug[3] == min(score for *_, score in scores.values())


def test_demo_on_california(monkeypatch, capsys, tmp_path):
    """The table that scikit-learn would download is in its cache, with made rows."""
    pytest.importorskip("lightgbm")
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    joblib.dump(rng.uniform(1, 5, size=(600, 9)), tmp_path / "cal_housing_py3.pkz")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["demo.py", "--california"])
    runpy.run_path(str(FOLDER / "demo.py"), run_name="__main__")
    assert len(table_of(capsys.readouterr().out)) == 3


def test_the_first_day(monkeypatch, capsys):
    """All commands in this process, to be quick; tests/cli/test_process.py runs some as a shell does."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from ibug.cli._app import app

    def in_process(arguments, folder):
        monkeypatch.chdir(folder)
        result = CliRunner().invoke(app, list(arguments))
        monkeypatch.chdir(FOLDER)  # the folder is about to be removed
        return result.exit_code, result.stdout, result.stderr

    spec = importlib.util.spec_from_file_location("first_day", FOLDER / "first_day.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "run", in_process)
    module.main()
    printed = capsys.readouterr().out
    for said in (
        "column 'order' has a different whole number in each of the 250 rows",
        "The model gets them as days since 1970-01-01 (2024-01-05 is 19727)",
        "empty.csv has a header, but no rows; so has the output",
        "columns are separated by semicolons",
        "commas are taken as decimal marks",
        "column 'a [USD]' has numbers with commas",
        "did you mean max_depth?",
        "error: 100% of the validation rows are training rows",
        "Only 5 validation rows",
        "predict: intervals of coverage 0.9 have infinite ends",
        "evaluate: these are the training rows",
    ):
        assert said in printed, printed


def test_a_distribution_of_ones_own():
    normal, own = run("own_distribution.py").splitlines()
    score = {line.split()[0]: float(line.split("CRPS ")[1].split()[0]) for line in (normal, own)}
    assert score["zero_inflated"] < score["normal"]
    assert "lowest lower end 0.00" in own


def test_the_score_of_a_family_of_ones_own():
    spec = importlib.util.spec_from_file_location("own_distribution", FOLDER / "own_distribution.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    d = module.ZeroInflated([0.0, 0.3, 0.9], [0.0, 1.0, -2.0], [0.5, 1.0, 0.1])
    y = np.array([[0.0, 0.7, 5.0]])
    x = np.linspace(0, 400, 2_000_001)
    steps = np.square(d.cdf(x[None, :])[:, None, :] - (x >= y[..., None]))  # (3, 3, n): the definition
    np.testing.assert_allclose(d.crps(y), trapezoid(steps, x, axis=2), rtol=1e-3)
    np.testing.assert_allclose(d[1].crps(y), d.crps(y)[1:2])
    assert type(d).crps is not Distribution.crps
