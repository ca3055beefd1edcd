"""The benchmarks still run: their small settings, as a user starts them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


def run(script, *options):
    environment = {name: value for name, value in os.environ.items() if name != "IBUG_DATA"}
    command = [sys.executable, str(FOLDER / script), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_speed():
    pytest.importorskip("lightgbm")
    pytest.importorskip("catboost")
    pytest.importorskip("xgboost")
    printed = run("speed.py", "--quick", "--rows", "1000", "--trees", "30")
    assert printed.count("of the peak") == 4
    assert printed.count("leaves    compiled walk") == 4
    assert printed.count("walk to predict_dist") == 4


@pytest.mark.parametrize("command", [["shift.py"], ["coverage.py", "--splits", "1"]])
def test_real_data_benchmarks_on_bundled_data(command):
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    assert "diabetes" in run(*command)
