"""Measurements in a process of their own: a module of this package, started from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.common.paths import ROOT


def result_of(
    module: str, *arguments: str, python: str = sys.executable, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Run a module and return the JSON that it prints in its last line.

    Parameters
    ----------
    module
        Its name, ``benchmarks.<folder>.<module>``.
    arguments
        Its arguments.
    python
        The interpreter, with the packages that the module needs.
    tell
        Gets each line of the module's progress, from its standard error.

    Returns
    -------
    dict
        The result; ``{"failed": reason}`` of a module that failed.
    """
    executable = os.path.abspath(python) if os.path.dirname(python) else python  # the process starts in another folder
    command = [executable, "-m", module, *arguments]
    last = ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stderr:  # one line is all that comes on the other stream, at the end
            tell(line.rstrip())
            last = line.strip() or last
        printed = process.stdout.read()
    if process.returncode != 0:
        return {"failed": f"{last} (exit code {process.returncode})"}
    try:
        result: dict[str, Any] = json.loads(printed.strip().rpartition("\n")[2])
    except json.JSONDecodeError:
        return {"failed": f"it printed no result: {printed!r}"}
    return result
