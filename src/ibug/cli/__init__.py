"""The ``ibug`` command: wrap or train a model, predict, evaluate, explain, from files. Needs the extra ``cli``."""

from __future__ import annotations

import signal
import sys

__all__ = ["main"]

_EXTRA = {"click", "pandas", "pyarrow", "rich", "typer"}


def main() -> None:
    """Run the command, or say what to install."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until all is imported Ctrl-C ends the process without a word
    try:
        from ibug.cli._app import run
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(
            f'The ibug command needs {error.name}, which is not installed: pip install "ibug-learn[cli]"\n'
        )
        sys.exit(3)
    signal.signal(signal.SIGINT, interrupt)
    run()
