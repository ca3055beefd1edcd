"""Benchmarks as a user starts them, and documents that they write into."""

import contextlib
import io
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

FOLDER = Path(__file__).parents[2] / "benchmarks"


def run(script, *options):
    """Return what a benchmark prints, run here: the libraries are loaded already, which takes seconds in a process.

    All files of the folder start theirs in the same way (``test_only_public.py``), and `run_alone` shows that this
    works from elsewhere.
    """
    out, err = io.StringIO(), io.StringIO()
    with here(script, *options), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(str(FOLDER / script), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise AssertionError(f"{err.getvalue()}{end.code}") from end
    return out.getvalue()


@contextlib.contextmanager
def here(*arguments):
    """Let what is in the block believe that it is a process of its own, outside the checkout and without warnings."""
    folder, processors = os.getcwd(), os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    environment = {name: value for name, value in os.environ.items() if name != "IBUG_DATA"}
    with (
        mock.patch.object(sys, "argv", list(map(str, arguments))),
        mock.patch.object(sys, "path", ["", *sys.path]),
        mock.patch.dict(os.environ, environment, clear=True),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        os.chdir(FOLDER.parents[1])
        try:
            yield
        finally:
            os.chdir(folder)
            close_figures()
            if processors is not None:
                os.sched_setaffinity(0, processors)


def close_figures():
    """Close what was drawn: the next test begins without a figure, as a process does."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def run_alone(script, *options, **variables):
    """Return what a benchmark prints in a process of its own, started from another folder than the checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in ("IBUG_DATA", "PYTHONPATH")}
    command = [sys.executable, str(FOLDER / script), *options]
    started = subprocess.run(
        command, env=environment | variables, capture_output=True, text=True, cwd=FOLDER.parents[1]
    )
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
