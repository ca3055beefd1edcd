"""The objects that are compiled for one instruction set share no code with those for another.

A function that is compiled for AVX-512 and may be merged with the same function of another object ("weak", as inline
functions and templates are) could be the one that the linker keeps, and a machine without AVX-512 would stop at it. So
such an object exports its table of functions, and nothing else.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
TABLES = {"loops": "loops", "walk": "walks", "likelihood": "fits"}  # by the source's name
CPP = ROOT / "cpp"
SETS = ("baseline", "avx2", "avx512")
INCLUDED = re.compile(r'^\s*#\s*include\s*"(.*)"', re.MULTILINE)


def compiled():
    """Return {(source, instruction set): object} of the newest optimised build that is up to date."""
    builds = sorted((ROOT / "build").glob("*/compile_commands.json"), key=lambda path: path.stat().st_mtime)
    for build in reversed(builds):
        found = {}
        for entry in json.loads(build.read_text()):
            command = entry["command"].split()
            if "-O3" not in command or any(option.startswith("-fsanitize") for option in command):
                continue
            path = Path(entry["directory"]) / command[command.index("-o") + 1]
            for name in SETS:
                if f"-DIBUG_TARGET_{name.upper()}" in command:
                    found[Path(entry["file"]), name] = path
        if found and all(up_to_date(path, source) for (source, _), path in found.items()):
            return {(source.stem, name): path for (source, name), path in found.items()}
    return {}


def up_to_date(path, source):
    """Return whether an object is newer than all that is read to compile it.

    Not than all sources: a build compiles again only what reads a file that has changed.
    """
    if not (path.exists() and source.exists()):
        return False
    return path.stat().st_mtime >= max(one.stat().st_mtime for one in files_read(source))


def files_read(source):
    """Return a source of ours, and the headers of ours that it includes, and that these include."""
    found, new = set(), {source}
    while new:
        found |= new
        named = [(path.parent, name) for path in new for name in INCLUDED.findall(path.read_text())]
        paths = {root / name for folder, name in named for root in (folder, CPP)}
        new = {path.resolve() for path in paths if path.exists()} - found
    return found


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
