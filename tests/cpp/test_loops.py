"""The loops of the baseline and plain ones find the same neighbours: on this machine, and on ARM by an emulator."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("compare_loops.cpp")
LOOPS = ROOT / "cpp" / "search" / "loops.cpp"
OPTIONS = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", f"-I{ROOT / 'cpp'}"]

NATIVE = os.environ.get("CXX", "c++")
CROSS, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"


def compiled(compiler, folder, *options):
    """Return the program with the loops of the baseline and with plain ones."""
    program = folder / "compare_loops"
    objects = []
    for name, source, own in (
        ("program", PROGRAM, ["-O1"]),  # quicker to compile
        ("baseline", LOOPS, ["-DIBUG_TARGET_BASELINE"]),
        ("scalar", LOOPS, ["-DIBUG_TARGET_SCALAR"]),
    ):
        objects.append(str(folder / f"{name}.o"))
        subprocess.run([compiler, *OPTIONS, *own, "-c", str(source), "-o", objects[-1]], check=True)
    subprocess.run([compiler, *objects, *options, "-o", str(program)], check=True)
    return program


def assert_agree(command, instructions):
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 failed" in run.stdout
    assert instructions in run.stdout, "the program was compiled for another machine"


@pytest.mark.skipif(shutil.which(NATIVE) is None or os.name == "nt", reason="no compiler with the options of GCC")
def test_loops_agree_on_this_machine(tmp_path):
    assert_agree([str(compiled(NATIVE, tmp_path))], "comparisons")


@pytest.mark.skipif(shutil.which(CROSS) is None, reason=f"{CROSS} is not installed (Debian: g++-aarch64-linux-gnu)")
@pytest.mark.skipif(shutil.which(EMULATOR) is None, reason=f"{EMULATOR} is not installed (Debian: qemu-user)")
def test_loops_agree_on_arm(tmp_path):
    assert_agree([EMULATOR, str(compiled(CROSS, tmp_path, "-static"))], "NEON")
