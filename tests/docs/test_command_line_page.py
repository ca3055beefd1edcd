"""The page about the command line: its examples run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


@pytest.mark.skipif(os.name != "posix", reason="the examples are for a POSIX shell")
def test_examples_run(tmp_path):
    pytest.importorskip("lightgbm")
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    script = "set -eu\n" + "".join(re.sub(r"^\$ ", "", block, flags=re.MULTILINE) for block in blocks)
    script = script.replace("--id patient -o model.ibug", "--id patient --trees 20 -o model.ibug")  # to be quick
    folder = str(Path(sys.executable).parent)
    env = {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"]}
    result = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    written = {"model.ibug", "wrapped.ibug", "intervals.csv", "quantiles.parquet", "draws.csv", "report.html"}
    assert written <= set(os.listdir(tmp_path))
    assert "P052" in (tmp_path / "intervals.csv").read_text()
    assert "training row" in result.stdout
