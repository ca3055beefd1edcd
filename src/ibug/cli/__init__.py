"""The ``ibug`` command: wrap or train a model, predict, evaluate, explain, from files. Needs the extra ``cli``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from ibug._installed import how_to_install

__all__ = ["interrupted", "main"]

_EXTRA = {"click", "pandas", "pyarrow", "rich", "typer"}


def main() -> None:
    """Run the command, or say what to install."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupted)
    try:
        from ibug.cli._app import run
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(f"The ibug command needs {error.name}, which is not installed: {how_to_install('cli')}.\n")
        sys.exit(3)
    run()


def interrupted(*_: Any) -> None:
    """End the process by Ctrl-C where there is nothing to unwind; imports under way would hide an exception."""
    line = "error: interrupted."
    if "--json" in sys.argv:
        line = '{"error": "interrupted.", "kind": "KeyboardInterrupt", "exit_code": 130, "notes": []}'
    os.write(2, f"{line}\n".encode())
    os._exit(130)
