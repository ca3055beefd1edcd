"""A file is written as a whole, or not at all: the only way in which ibug writes files."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import signal
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ibug.exceptions import InvalidInputError

#: What is neither a regular file nor absent cannot be replaced by one: the name would mean something else afterwards.
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_OLD_SECONDS = 24 * 3600  # where the system does not say whether a process is alive
_in_use: set[str] = set()


def check_replaceable(path: str | os.PathLike[str]) -> Path:
    """Return the file that is to be written, with links followed: a link stays a link, to the new file."""
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
            raise InvalidInputError(f"{os.fspath(path)} is {kind}, which ibug does not replace: name a file.")
    return Path(path).resolve()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file in the folder of `path`, and put it in the place of `path` when it is complete and on the disk.

    Whatever happens before that, a crash, a signal or a full disk, an old file stays as it is. Its permissions are
    kept, and its owner where that is allowed. Links are followed. What is no regular file is refused.

    On Linux the new file has no name until it is complete, so that nothing is left of a process that is killed.
    Elsewhere a hidden file with the ending ``.tmp`` may be; signals to end remove it, and what a killed process left
    is removed by the next process that writes the same file.
    """
    target = check_replaceable(path)
    temporary = target.with_name(f".{target.name[:150]}.{_here()}-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    _in_use.add(temporary.name)
    try:
        _remove_leftovers(target)
        with _new_file(temporary) as (file, has_name):
            yield file
            file.flush()
            _keep_permissions(file, target)
            os.fsync(file.fileno())
            if not has_name:
                _give_name(file, temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        _in_use.discard(temporary.name)
    if os.name == "posix":
        with suppress(OSError), _opened(target.parent) as folder:  # not every system can write a name to the disk
            os.fsync(folder)


@contextmanager
def _new_file(path: Path) -> Iterator[tuple[BinaryIO, bool]]:
    """Open a file without a name where the system has such, else one with this name; yield it and which it is."""
    number = _open_unnamed(path.parent)
    if number is not None:
        with open(number, "w+b") as file:
            yield file, False
        return
    with open(path, "x+b") as file, _removed_on_signals(path):
        yield file, True


def _open_unnamed(folder: Path) -> int | None:
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None:
        return None
    try:
        number = os.open(folder, flag | os.O_RDWR, 0o666)
    except OSError:  # a file system without them; where the folder cannot be written to, the other way says so
        return None
    if os.path.exists(f"/proc/self/fd/{number}"):  # by which it will get its name
        return number
    os.close(number)
    return None


def _give_name(file: BinaryIO, path: Path) -> None:
    # With a folder, Python asks the system to follow the link to the file.
    with _opened(path.parent) as folder:
        os.link(f"/proc/self/fd/{file.fileno()}", path.name, dst_dir_fd=folder, follow_symlinks=True)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY)
    try:
        yield number
    finally:
        os.close(number)


def _keep_permissions(file: BinaryIO, target: Path) -> None:
    if os.name != "posix" or not target.exists():
        return
    before = target.stat()
    with suppress(OSError):  # only the superuser may give files away
        os.fchown(file.fileno(), before.st_uid, before.st_gid)
    os.fchmod(file.fileno(), before.st_mode & 0o7777)


@contextmanager
def _removed_on_signals(path: Path) -> Iterator[None]:
    """Remove a file when a signal ends the process, where nothing else handles it; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        with suppress(OSError):
            path.unlink()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    ours = [number for number in _ENDING_SIGNALS if signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _remove_leftovers(target: Path) -> None:
    """Remove what processes that are gone have left in the folder of a file."""
    ours = re.compile(rf"\.{re.escape(target.name[:150])}\.{_here()}-(\d+)-[0-9a-f]{{8}}\.tmp")
    with suppress(OSError):
        for name in os.listdir(target.parent):
            found = ours.fullmatch(name)
            if found and name not in _in_use and not _is_alive(int(found[1]), target.with_name(name)):
                with suppress(OSError):
                    target.with_name(name).unlink()


def _is_alive(pid: int, left: Path) -> bool:
    if pid == os.getpid():
        return False  # of an earlier process of this number: what this one uses is known
    if os.name != "posix":
        return time.time() - left.stat().st_mtime < _OLD_SECONDS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _here() -> str:
    """Return a code for this machine and its process numbers: folders may be shared by machines."""
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbers = ""
    return hashlib.sha256(f"{platform.node()} {numbers}".encode()).hexdigest()[:8]
