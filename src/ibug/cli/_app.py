"""The application: all commands together."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import ibug
from ibug.cli import _evaluate, _explain, _fit, _info, _monitor, _predict, _recalibrate, _report
from ibug.cli._terminal import visible

HELP = """
Prediction intervals and whole distributions from gradient-boosted trees, on files.

[dim]Make a model, then use it on new rows:[/]

  ibug fit train.csv --target price -o model.ibug

  ibug predict model.ibug new.csv --interval 0.9 -o out.csv

  ibug evaluate model.ibug test.csv

  ibug report model.ibug test.csv -o report.html

[dim]Exit codes: 0 done; 1 a file or model cannot be used; 2 wrong usage; 3 a library is missing; 4 data drift
(ibug monitor); 70 a fault of ibug; 130 interrupted.[/]
"""


class Commands(TyperGroup):
    """The commands; errors about their options have no control characters."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the options that stand before the command."""
        with _visible_usage():
            return super().make_context(*args, **options)

    def invoke(self, *args: Any, **options: Any) -> Any:
        """Read the command and its options, and run it."""
        with _visible_usage():
            return super().invoke(*args, **options)


@contextlib.contextmanager
def _visible_usage() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "message"):  # a ClickException, without a public name
            error.message = visible(error.message)
        raise


app = typer.Typer(
    name="ibug",
    cls=Commands,
    help=HELP,
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for module in (_fit, _predict, _evaluate, _monitor, _recalibrate, _explain, _report, _info):
    name = module.__name__.rpartition("._")[2]
    app.command(name, help=module.HELP, no_args_is_help=True)(getattr(module, name))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ibug {ibug.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", hidden=True, help="Show tracebacks.")] = False,
) -> None:
    """Take the options of all commands."""
    if debug:
        os.environ["IBUG_DEBUG"] = "1"


def run() -> None:
    """Run the command, and end the process with its exit code."""
    try:
        app()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _leave(end.code or 0)
        raise


def _leave(code: int) -> NoReturn:
    """End the process at once: everything was unwound already.

    Arrow may be reading ahead from a pipe in a thread of its own, which calls Python for the next bytes. If they come
    while the interpreter shuts down, that call aborts the process.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader is gone
            stream.flush()
    os._exit(code)
