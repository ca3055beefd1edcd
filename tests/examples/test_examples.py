"""The examples run as a user starts them."""

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

from ibug.distributions import Distribution

pytestmark = pytest.mark.once

FOLDER = Path(__file__).parents[2] / "examples"


def run(script):
    command = [sys.executable, "-W", "error", str(FOLDER / script)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_demo(capsys):
    pytest.importorskip("lightgbm")
    runpy.run_path(str(FOLDER / "demo.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "inside the 90% interval" in printed
    assert printed.count(" of 150 ") == 8


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
