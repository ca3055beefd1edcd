"""Exceptions as messages and exit codes. A traceback is shown only if IBUG_DEBUG is set."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from inspect import Parameter
from typing import Any, get_type_hints

import pyarrow as pa
import typer

from ibug.cli import interrupted
from ibug.cli._terminal import Session
from ibug.exceptions import IBUGError, IBUGWarning, LikelyMistakeWarning, MissingDependencyError, UnknownCategoryWarning

#: The exit codes; 2, for wrong usage, is typer's own.
OK, UNUSABLE, USAGE, MISSING_LIBRARY, DRIFT, BUG, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 4, 70, 130, 141
_BY_SIGNAL = 128  # and the signal's number: 143 where the process was terminated, 129 where its terminal was closed


class Terminated(BaseException):
    """The process was asked to end (SIGTERM), or its terminal was closed (SIGHUP)."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command with a session: what goes wrong becomes a message and an exit code.

    A parameter whose type is a dataclass, as the session is, stands for several options: its fields.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @functools.wraps(command)
    def run(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
        session = options["session"]
        try:
            with _unwound_signals(), warnings.catch_warnings(), session.resources:
                _show_warnings(session, strict=bool(options.get("strict")))
                command(**options)
                sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except BaseException as error:
            if os.environ.get("IBUG_DEBUG"):
                session.error(traceback.format_exc())
            raise typer.Exit(_report_error(error, session)) from None

    # typer reads the options from the signature, which must have those of the groups in their place.
    shown: list[Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            shown += [
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
                for field in fields(groups[name])
            ]
        else:
            shown.append(parameter.replace(annotation=hints[name]))
    setattr(run, "__signature__", inspect.Signature(shown))  # noqa: B010 - mypy does not know the name
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _report_error(error: BaseException, session: Session) -> int:
    """Report what went wrong, and return the exit code."""
    if isinstance(error, BrokenPipeError):  # `ibug predict … | head` has read enough
        # Python would complain again when it flushes standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    code, message = _meaning(error)
    if session.json:
        session.report({"error": message, "kind": type(error).__name__, "exit_code": code}, to_stderr=True)
    else:
        session.error(message)
    return code


def _meaning(error: BaseException) -> tuple[int, str]:
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted."
    if isinstance(error, Terminated):
        return _BY_SIGNAL + error.number, "terminated."
    if isinstance(error, MissingDependencyError):
        return MISSING_LIBRARY, str(error)
    if isinstance(error, LikelyMistakeWarning):
        return UNUSABLE, f"{error} (Without --strict this is a note.)"
    if isinstance(error, IBUGError):
        return UNUSABLE, str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return UNUSABLE, f"{where}{error.strerror or error}."
    if isinstance(error, MemoryError):
        return UNUSABLE, "not enough memory. Fewer rows, --chunk-rows or a machine with more memory would help."
    return BUG, (
        f"{type(error).__name__}: {error}\nThis is unexpected. IBUG_DEBUG=1 shows where it happened; please report it."
    )


def _show_warnings(session: Session, *, strict: bool) -> None:
    """Show ibug's own warnings as notes, each once; those of the libraries below only with --verbose.

    With --strict a likely mistake is an error.
    """

    def show(message: Any, category: type[Warning], *args: Any, **options: Any) -> None:
        if issubclass(category, UnknownCategoryWarning):
            return  # commands note such categories themselves, with the number of rows
        wanted = issubclass(category, IBUGWarning) or (session.verbose and issubclass(category, UserWarning))
        if wanted and str(message) not in session.notes:
            session.note(str(message))

    warnings.simplefilter("always")
    if strict:
        warnings.simplefilter("error", LikelyMistakeWarning)
    warnings.showwarning = show


@contextlib.contextmanager
def _unwound_signals() -> Iterator[None]:
    """Let signals to end unwind like Ctrl-C, so that temporary files are removed.

    This works in the main thread only. A signal that is ignored (by ``nohup``, say) stays ignored.
    """
    before: dict[int, Any] = {}

    def unwind(number: int, frame: Any) -> None:
        raise Terminated(number)

    # pyarrow would take Ctrl-C for itself while it reads, and forget it at the end of the input.
    pa.enable_signal_handlers(False)
    if signal.getsignal(signal.SIGINT) is interrupted:  # which does not unwind
        before[signal.SIGINT] = interrupted
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, unwind)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
