"""The command starts at once: what takes long to import waits until it is needed; Ctrl-C meanwhile is one line."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("typer")

from ibug.cli import _options
from ibug.cli._boosters import BOOSTERS_BY_NAME
from ibug.distributions import families

pytestmark = pytest.mark.once

HEAVY = ("catboost", "joblib", "lightgbm", "matplotlib", "pandas", "scipy", "sklearn", "xgboost")


def in_a_new_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def test_nothing_heavy_is_imported_to_answer():
    code = (
        "import sys\n"
        "from ibug.cli._app import app\n"
        "for arguments in (['--version'], ['--help'], ['fit', '--help'], ['report', '--help'], ['--nonsense']):\n"
        "    try:\n        app(arguments)\n    except SystemExit:\n        pass\n"
        f"    print('HEAVY', arguments, sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    lines = [line for line in in_a_new_process(code).stdout.splitlines() if line.startswith("HEAVY")]
    assert len(lines) == 5
    assert all(line.endswith("[]") for line in lines), lines


def test_names_in_options_are_those_of_the_library():
    assert tuple(families()) == _options.FAMILIES
    assert tuple(BOOSTERS_BY_NAME) == _options.BOOSTER_NAMES


def test_the_package_has_all_its_names_without_importing_them(files):
    """And a file loads before any estimator was asked for."""
    code = (
        "import sys, ibug\n"
        f"assert not set({HEAVY!r}) & set(sys.modules)\n"
        "assert set(ibug.__all__) <= set(dir(ibug))\n"
        "from ibug.persistence import load\n"
        f"print(type(load({files['model.ibug']!r})).__name__)\n"
        "assert ibug.metrics.evaluate and ibug.IBUGRegressor and ibug.exceptions.ModelNotFittedError\n"
        "from ibug import *\n"
        "assert IBUGRegressor is ibug.IBUGRegressor and load is ibug.load\n"
        "try:\n    ibug.nothing\nexcept AttributeError as error:\n    assert 'nothing' in str(error)\n"
        "import pickle\n"
        "error = pickle.loads(pickle.dumps(ibug.exceptions.ModelNotFittedError('why')))\n"
        "assert isinstance(error, ibug.exceptions.IBUGError) and isinstance(error, ValueError)\n"
    )
    result = in_a_new_process(code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "IBUGRegressor", result.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("slow", "form"),
    [
        *((slow, "text") for slow in ("typer", "ibug.cli._app", "ibug.cli._fitting", "sklearn")),
        ("typer", "json"),  # before the options are read
        ("sklearn", "json"),
    ],
)
def test_an_interruption_of_the_imports_is_one_line(tmp_path, slow, form):
    """The import of a module is made to wait, and told when it does: of the application, or of what a command needs."""
    code = (
        "import sys, time\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {slow!r}:\n"
        "            print('importing', flush=True)\n"
        "            for _ in range(600):\n"
        "                time.sleep(0.1)\n"  # not in one: a thread of NumPy's may get the signal, and not wake it
        "sys.meta_path.insert(0, Slow())\n"
        "from ibug.cli import main\n"
        "main()\n"
    )
    arguments = [
        "fit",
        "train.csv",
        "-t",
        "y",
        "-b",
        "sklearn",
        "-o",
        "m.ibug",
        *(["--json"] if form == "json" else []),
    ]
    (tmp_path / "train.csv").write_text("x,y\n" + "".join(f"{i},{i}\n" for i in range(50)))
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout.readline() == b"importing\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    if form == "text":
        assert err == b"error: interrupted.\n"
    else:
        facts = {"error": "interrupted.", "kind": "KeyboardInterrupt", "exit_code": 130, "notes": []}
        assert json.loads(err) == facts
