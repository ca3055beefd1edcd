"""The page about the command line: its examples run as they stand."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def commands():
    """Return the commands of the page, in their order; one in quotes may have several lines."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [command.strip() for block in blocks for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]


@pytest.mark.skipif(os.name != "posix", reason="the examples are for a POSIX shell")
def test_examples_run(tmp_path, monkeypatch):
    """Those with a pipe in a shell, the others here: a process that loads the libraries takes seconds."""
    pytest.importorskip("lightgbm")
    from typer.testing import CliRunner

    from ibug.cli._app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"])
    shown, in_a_shell = [], 0
    for command in commands():
        program, *arguments = shlex.split(command)
        if program == "python" and arguments[0] == "-c" and len(arguments) == 2:
            exec(arguments[1], {"__name__": "__main__"})
        elif program == "ibug" and not {"|", ">", "<"} & set(arguments):
            if arguments[:2] == ["fit", "train.csv"] and "--model" not in arguments:
                arguments += ["--trees", "20"]  # to be quick
            if arguments[0] == "report":
                arguments += ["--width-seconds", "1"]
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, (command, result.stderr, result.exception)
            shown.append(result.stdout)
        else:
            subprocess.run(["sh", "-c", f"set -eu\n{command}"], check=True, capture_output=True)
            in_a_shell += 1
    assert len(shown) > 10
    assert in_a_shell == 1
    written = {"model.ibug", "wrapped.ibug", "intervals.csv", "quantiles.parquet", "draws.csv", "report.html"}
    assert written <= set(os.listdir(tmp_path))
    assert len((tmp_path / "draws.csv").read_text().splitlines()) > 100
    assert "P052" in (tmp_path / "intervals.csv").read_text()
    assert "training row" in "".join(shown)
