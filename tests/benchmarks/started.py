"""Benchmarks as a user starts them, and documents that they write into."""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"


def run(script, *options, **variables):
    """Return what a benchmark prints; it is started from another folder than the checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in ("IBUG_DATA", "PYTHONPATH")}
    environment |= {"IBUG_LEAST_TIME": "0.003"} | variables  # that it runs is tested, not what it measures
    command = [sys.executable, str(FOLDER / script), *options]
    started = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=FOLDER.parents[1])
    assert started.returncode == 0, started.stderr
    return started.stdout


def marked(tmp_path, script):
    """Return a document with a place for the tables of a script, between two others."""
    page = tmp_path / "page.md"
    marks = [
        f"<!-- benchmarks/{name} writes from here -->\nstale {name}\n<!-- to here -->" for name in ("a", script, "z")
    ]
    page.write_text("before\n" + "\n".join(marks) + "\nafter\n")
    return page


def written(page, script):
    """Return what a script has put into its place; everything else is as it was."""
    text = page.read_text()
    assert text.startswith("before\n<!-- benchmarks/a writes from here -->\nstale a\n<!-- to here -->\n")
    assert text.endswith("<!-- benchmarks/z writes from here -->\nstale z\n<!-- to here -->\nafter\n")
    assert f"stale {script}" not in text
    return text.split(f"benchmarks/{script} writes from here -->\n\n```\n")[1].split("\n```\n")[0]
