"""Every header says what it needs: it can be read alone, by a compiler or an editor, for the baseline."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
# The bindings' own headers need nanobind and Python, which only a build has.
HEADERS = sorted(path for path in (ROOT / "cpp").rglob("*.hpp") if path.parent.name != "bindings")


@pytest.mark.skipif(COMPILER is None or os.name == "nt", reason="no compiler that takes the options of GCC and Clang")
@pytest.mark.parametrize("header", HEADERS, ids=lambda header: str(header.relative_to(ROOT)))
def test_a_header_is_complete(header, tmp_path):
    source = tmp_path / "alone.cpp"  # twice: it may be included again
    source.write_text(f'#include "{header.relative_to(ROOT / "cpp")}"\n' * 2)
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-function", "-Wno-psabi"]
    command += ["-Werror", "-Wno-unknown-pragmas", f"-I{ROOT / 'cpp'}", str(source)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
