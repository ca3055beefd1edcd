"""The examples run as a user starts them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

from ibug.distributions import Distribution

FOLDER = Path(__file__).parents[2] / "examples"


def run(script):
    command = [sys.executable, "-W", "error", str(FOLDER / script)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_demo():
    pytest.importorskip("lightgbm")
    command = [sys.executable, str(FOLDER / "demo.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "truth inside the 90% interval" in printed
    assert printed.count(" of 150 ") == 8


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
