"""The examples run as a user starts them."""

import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_law_of_ones_own():
    normal, own = run("own_law.py").splitlines()
    score = {line.split()[0]: float(line.split("CRPS ")[1].split()[0]) for line in (normal, own)}
    assert score["zero_inflated"] < score["normal"]
    assert "lowest lower end 0.00" in own
