"""The objects that are compiled for one instruction set share no code with those for another.

A function that is compiled for AVX-512 and may be merged with the same function of another object ("weak", as inline
functions and templates are) could be the one that the linker keeps, and a machine without AVX-512 would stop at it. So
such an object exports its table of functions, and nothing else.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = {"loops": "loops", "walk": "walks", "likelihood": "fits"}  # by the source's name
SETS = ("baseline", "avx2", "avx512")


def compiled():
    """Return {(source, instruction set): object} of the newest optimised build that is up to date."""
    sources = list((ROOT / "cpp").rglob("*.[ch]pp"))
    newest = max((path.stat().st_mtime for path in sources), default=0)
    builds = sorted((ROOT / "build").glob("*/compile_commands.json"), key=lambda path: path.stat().st_mtime)
    for build in reversed(builds):
        found = {}
        for entry in json.loads(build.read_text()):
            command = entry["command"].split()
            if "-O3" not in command or any(option.startswith("-fsanitize") for option in command):
                continue
            path = Path(entry["directory"]) / command[command.index("-o") + 1]
            if not path.exists() or path.stat().st_mtime < newest:
                continue
            for name in SETS:
                if f"-DIBUG_TARGET_{name.upper()}" in command:
                    found[Path(entry["file"]).stem, name] = path
        if found:
            return found
    return {}


OBJECTS = compiled() if sys.platform == "linux" and shutil.which("nm") else {}


@pytest.mark.skipif(not OBJECTS, reason="nm, or the objects of an up-to-date build with optimisation, are not there")
def test_every_source_of_loops_is_compiled_for_every_instruction_set():
    found = {name for _, name in OBJECTS}
    assert "baseline" in found
    assert OBJECTS.keys() == {(source, name) for source in TABLES for name in found}


@pytest.mark.parametrize(("source", "instruction_set"), OBJECTS)
def test_an_object_exports_its_table_only(source, instruction_set):
    lines = subprocess.run(["nm", "-C", OBJECTS[source, instruction_set]], capture_output=True, text=True, check=True)
    defined = [line.split(maxsplit=2)[1:] for line in lines.stdout.splitlines() if not line.startswith(" ")]
    shared = [(kind, name) for kind, name in defined if kind.isupper() or kind in "uvw"]
    assert [name for _, name in shared] == [f"ibug::{instruction_set}::{TABLES[source]}"]
    assert all(kind in "DR" for kind, _ in shared)  # data, and not weak
