"""The command as its users run it: a process of its own, with pipes, signals and a shell around it."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import ibug
from ibug.cli._reading import ReadOptions, TextTable

pytestmark = pytest.mark.once

IBUG = str(Path(sys.executable).with_name("ibug"))
posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


def run(*arguments, ok=True, **options):
    result = subprocess.run([IBUG, *map(str, arguments)], capture_output=True, timeout=300, **options)
    if ok:
        assert result.returncode == 0, result.stderr.decode()
    return result


@contextlib.contextmanager
def as_standard_input(path):
    """Let this process read a file as its standard input, which the command reads past Python."""
    before = os.dup(0)
    with open(path, "rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def test_from_training_to_predictions(files):
    fit = run(
        "fit", files["train.csv"], "--target", "target", "--id", "order", "--trees", "20", "-b", "lightgbm", "-d",
        "normal", "-o", files["mine.ibug"],
    )  # fmt: skip
    assert fit.stdout == b""
    assert fit.stderr == b""  # quiet when not a terminal
    text = Path(files["test.csv"]).read_bytes()
    piped = run("predict", files["mine.ibug"], "-", "--id", "order", input=text)
    table = pd.read_csv(io.BytesIO(piped.stdout), dtype={"order": str})
    assert len(table) == len(pd.read_parquet(files["test.parquet"]))
    assert (table["lower_90"] < table["prediction"]).all()
    assert (table["prediction"] < table["upper_90"]).all()
    # gzip, Parquet and Feather are known by their first bytes
    for name in ("test.csv.gz", "test.parquet", "test.feather"):
        with as_standard_input(files[name]):
            result = files.run("predict", files["mine.ibug"], "-", "--id", "order")
        assert result.stdout_bytes == piped.stdout
    with as_standard_input(files["test.csv"]):
        data = files.run("predict", files["mine.ibug"], "-", "--json")
    assert data.stdout.startswith("prediction,")
    assert data.stderr.startswith('{"output": "-"')  # data go to standard output, so the report does not


def test_training_from_standard_input(files):
    with as_standard_input(files["train.csv.gz"]):
        files.run("fit", "-", "-t", "target", "--trees", "10", "--drop", "order", "-o", files["m.ibug"])
    Path(files["few.csv"]).write_text("a,b\n1\n")
    with as_standard_input(files["few.csv"]):
        broken = files.run("predict", files["m.ibug"], "-", ok=False)
    assert broken.exit_code == 1
    assert "standard input lacks" in broken.stderr
    assert "Traceback" not in broken.stderr


def test_version_help_and_completion(files):
    assert run("--version").stdout.decode().strip() == f"ibug {ibug.__version__}"
    text = run("predict", "--help", env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}).stdout.decode()
    assert "ibug predict model.ibug new.csv" in text
    assert "\x1b[" not in text
    script = run("--show-completion", "bash", env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert b"_IBUG_COMPLETE" in script.stdout
    assert run(ok=False).returncode in (0, 2)  # the help, and that nothing was asked for


def test_python_m(files):
    result = subprocess.run([sys.executable, "-m", "ibug.cli", "--version"], capture_output=True, check=True)
    assert result.stdout.startswith(b"ibug ")


def test_no_colour_unless_in_a_terminal(files):
    assert b"\x1b[" not in files.run("info", files["model.ibug"]).stdout_bytes


@posix
def test_colour_in_a_terminal_unless_refused(files):
    import pty

    # Both in one process, as it takes seconds to load the libraries.
    code = (
        "import os, sys\n"
        "from ibug.cli._app import app\n"
        "for refused in (False, True):\n"
        "    print('NEXT', flush=True)\n"
        "    os.environ |= {'NO_COLOR': '1'} if refused else {}\n"
        "    try:\n        app(['info', sys.argv[1]])\n    except SystemExit as end:\n        assert not end.code\n"
    )
    reader, writer = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm-256color"}
    command = [sys.executable, "-c", code, files["model.ibug"]]
    process = subprocess.Popen(command, stdout=writer, stderr=writer, env=env)
    os.close(writer)
    text = b""
    try:
        while block := os.read(reader, 2**16):
            text += block
    except OSError:  # the terminal is closed
        pass
    os.close(reader)
    assert process.wait(60) == 0, text
    _, plain, refused = text.split(b"NEXT")
    assert b"\x1b[" in plain
    # Bold and dim are no colours, and stay.
    assert b"\x1b[3" not in refused


def test_without_the_extra(files):
    code = "import sys; sys.modules['typer'] = None; from ibug.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert result.returncode == 3
    assert b'pip install "ibug-learn[cli]"' in result.stderr


def being_written(pid, folder):
    """Yield the sizes of what a process has begun to write in a folder: without a name yet, or with a hidden one."""
    yield from (path.stat().st_size for path in folder.iterdir() if path.suffix == ".tmp")
    with contextlib.suppress(OSError):  # without /proc, or when the process has just closed one
        for path in Path(f"/proc/{pid}/fd").iterdir():
            where = os.readlink(path)
            if where.startswith(f"{folder}/") and where.endswith("(deleted)"):
                yield path.stat().st_size


@posix
@pytest.mark.parametrize(
    ("number", "code", "megabytes"),
    [(signal.SIGINT, 130, 5), (signal.SIGTERM, 143, 5), (signal.SIGHUP, 129, 5), (signal.SIGINT, 130, 12)],
)
def test_interruption_leaves_no_file(files, number, code, megabytes):
    """The pipe stays open: the signal meets the command while it waits for rows, or predicts some and reads on."""
    before = sorted(os.listdir(files.folder))
    command = [IBUG, "predict", files["model.ibug"], "-", "-o", files["out.csv"], "--chunk-rows", "50"]
    # In the background of a shell the tests themselves may ignore Ctrl-C, and would pass that on.
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)
    )
    sent = send(process, files, megabytes)
    deadline = time.monotonic() + 60
    while not any(size >= (megabytes > 5) for size in being_written(process.pid, files.folder)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == code
    sent.join(60)
    with contextlib.suppress(BrokenPipeError):  # what was not sent yet
        process.stdin.close()
    message = process.stderr.read()
    process.stderr.close()
    assert b"Traceback" not in message
    assert (b"interrupted" if code == 130 else b"terminated") in message
    assert sorted(os.listdir(files.folder)) == before


@posix
def test_a_signal_that_does_not_wake_the_main_thread_is_noticed():
    """As where it arrives between the main thread's last look and its wait: here another thread is given it."""
    reader, writer = os.pipe()
    end = threading.Timer(30, os.close, [writer])
    rows = threading.Thread(target=os.write, args=(writer, b"a,b\n" + b"1,2\n" * 2**20), daemon=True)
    rows.start()
    stream = os.fdopen(reader, "rb")
    table = TextTable("a pipe", stream, False, None, ReadOptions(), None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        end.start()
        threading.Timer(0.5, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            list(table.batches({"a": pa.int64(), "b": pa.int64()}))
        assert end.is_alive(), "it was noticed only when the pipe was closed"
    finally:
        signal.signal(signal.SIGINT, before)
        if end.is_alive():
            end.cancel()
            rows.join(60)
            os.close(writer)
        stream.close()


@posix
def test_a_command_that_has_enough_ends_while_the_pipe_is_open(files):
    """It needs the first row only, and more are being read ahead."""
    command = [IBUG, "explain", files["model.ibug"], "-", "--row", "0", "--no-features", "--json"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    sent = send(process, files, 12)
    out = process.stdout.read()
    assert process.wait(60) == 0, process.stderr.read()
    assert json.loads(out)
    sent.join(60)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.stdout.close()
    process.stderr.close()


def send(process, files, megabytes):
    """Write a table into the command's pipe, in a thread, and leave the pipe open."""
    header, _, rows = Path(files["test.csv"]).read_bytes().partition(b"\n")

    def write():
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(header + b"\n" + rows * (megabytes * 2**20 // len(rows)))
            process.stdin.flush()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


@posix
def test_a_reader_that_has_enough(files):
    """As in ``ibug predict … | head -1``."""
    command = [IBUG, "predict", files["model.ibug"], files["test.csv"], "--samples", "500", "--chunk-rows", "20"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(120) == 141
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()


def test_an_old_output_stays_if_the_new_one_fails(files):
    Path(files["out.csv"]).write_text("old")
    lines = Path(files["test.csv"]).read_text().splitlines()
    Path(files["bad.csv"]).write_text("\n".join([*lines, "1,2"]))
    result = run("predict", files["model.ibug"], files["bad.csv"], "-o", files["out.csv"], ok=False)
    assert result.returncode == 1
    assert b"Traceback" not in result.stderr
    assert Path(files["out.csv"]).read_text() == "old"
