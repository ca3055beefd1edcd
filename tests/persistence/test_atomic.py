"""The one way in which files are written: what is replaced, what is kept, and what is left behind."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from ibug.exceptions import InvalidInputError
from ibug.persistence import _atomic, replacing

pytestmark = pytest.mark.once

posix = pytest.mark.skipif(os.name != "posix", reason="devices, pipes and signals are POSIX's")


@pytest.fixture(params=[True, False], ids=["without a name", "with a name"])
def way(request, monkeypatch):
    """Write in both ways: that of Linux, and that of other systems."""
    if not request.param:
        monkeypatch.setattr(_atomic, "_open_unnamed", lambda folder: None)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("files without a name are Linux's")
    return request.param


def write(path, data=b"new"):
    with replacing(path) as file:
        file.write(data)


def test_a_new_file(way, tmp_path):
    with replacing(tmp_path / "file") as file:
        file.write(b"12345")
        file.seek(0)
        assert file.read(2) == b"12"
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_bytes() == b"12345"
    assert os.listdir(tmp_path) == ["file"]


@posix
def test_a_pipe_a_folder_a_socket_and_a_device_are_refused(way, tmp_path, monkeypatch):
    import socket

    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        monkeypatch.chdir(tmp_path)  # the names of sockets are short
        made.bind("socket")
        for name, kind in {"pipe": "a pipe", "folder": "a folder", "link": "a pipe", "socket": "a socket"}.items():
            with pytest.raises(InvalidInputError, match=f"{name} is {kind}, .* name a file"):
                write(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    with pytest.raises(InvalidInputError, match="/dev/null is a device"):
        write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@posix
def test_links_are_followed_and_permissions_kept(way, tmp_path):
    (tmp_path / "there").mkdir()
    path, link, dangling = tmp_path / "there" / "file", tmp_path / "link", tmp_path / "dangling"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    dangling.symlink_to(tmp_path / "there" / "other")
    write(link)
    write(dangling)
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert path.read_bytes() == (tmp_path / "there" / "other").read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "there" / "other").stat().st_mode) == 0o666 & ~mask


def test_an_error_leaves_nothing(way, tmp_path):
    (tmp_path / "file").write_bytes(b"old")

    def fails():
        with replacing(tmp_path / "file") as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


# It imports the libraries, and forks a process that writes for each line of its input: the number of that process is
# printed when it writes, and then the signal that has ended it.
CODE = """
import os, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which may be ignored here
from ibug.persistence import _atomic
for line in sys.stdin:
    how, path = line.rstrip("\\n").split(":", 1)
    child = os.fork()
    if child == 0:
        if how == "with a name":
            _atomic._open_unnamed = lambda folder: None
        with _atomic.replacing(path) as file:
            file.write(b"new" * 10**6)
            file.flush()
            print(os.getpid(), flush=True)
            time.sleep(60)
    print(-os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def ended():
    """End a process that writes by a signal, and return what is left in the folder."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def end(path, how, number):
            process.stdin.write(f"{how}:{path}\n")
            process.stdin.flush()
            os.kill(int(process.stdout.readline()), number)
            assert int(process.stdout.readline()) == number
            return sorted(os.listdir(path.parent))

        yield end
        process.stdin.close()


@posix
@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("how", ["without a name", "with a name"])
def test_signals_leave_nothing(number, how, tmp_path, ended):
    (tmp_path / "file").write_bytes(b"old")
    assert ended(tmp_path / "file", how, getattr(signal, number)) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


@posix
def test_the_next_writer_removes_what_a_killed_one_has_left(tmp_path, ended):
    left = ended(tmp_path / "file", "with a name", signal.SIGKILL)
    assert len(left) == 1
    assert left[0].endswith(".tmp")
    (tmp_path / f".file.{'0' * 8}-{os.getppid()}-{'0' * 8}.tmp").touch()  # of another machine
    alive = tmp_path / f".file.{_atomic._here()}-{os.getppid()}-{'0' * 8}.tmp"
    alive.touch()
    other = tmp_path / f".other.{_atomic._here()}-999999999-{'0' * 8}.tmp"
    other.touch()
    (tmp_path / f".file.{_atomic._here()}-{os.getpid()}-{'0' * 8}.tmp").touch()  # of an earlier process of this number
    write(tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["file", alive.name, other.name, f".file.{'0' * 8}-{os.getppid()}-{'0' * 8}.tmp"]
    )


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are Linux's")
def test_nothing_is_left_of_a_killed_writer_on_linux(tmp_path, ended):
    if _atomic._open_unnamed(tmp_path) is None:
        pytest.skip("this file system has no files without a name")
    assert ended(tmp_path / "file", "without a name", signal.SIGKILL) == []


def test_two_writers_of_one_file_at_a_time(way, tmp_path):
    with replacing(tmp_path / "file") as first, replacing(tmp_path / "file") as second:
        first.write(b"first")
        second.write(b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]


def test_leftovers_elsewhere_are_removed_when_they_are_old(tmp_path, monkeypatch):
    monkeypatch.setattr(_atomic.os, "name", "nt")
    left = tmp_path / ".file.x-1-0.tmp"
    left.touch()
    assert _atomic._is_alive(1, left)
    os.utime(left, (time.time() - 10**6,) * 2)
    assert not _atomic._is_alive(1, left)
