"""The environments of the project and what runs in them; ``.venv/bin/nox --list`` names the sessions.

The Makefile makes ``.venv``, the developer's environment, with nox in it. What needs other versions has an environment
of its own below ``.nox``, and is kept. All of them share one editable wheel, so that the kernels are compiled once.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True
nox.options.default_venv_backend = "uv|virtualenv"

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
EDITABLE = ROOT / "build" / "editable"
SCRIPTS = Path(sysconfig.get_path("scripts"))
CPP = [str(path) for folder in ("cpp", "tests/cpp") for path in sorted((ROOT / folder).rglob("*.[ch]pp"))]
# The tests start many processes. In many containers Python writes no bytecode, and each process would compile what it
# imports again. It is kept here, as a folder beside the sources would look to make like a new module.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / "build" / "bytecode")
PYTEST = ["-m", "pytest", "-n", "auto", "--dist", "worksteal"]
here = nox.session(venv_backend="none")  # in the environment that nox itself is in


def install(session: nox.Session, *requirements: str, python: str = sys.executable) -> None:
    """Install with uv, which takes seconds where pip takes minutes, or with pip where there is no uv."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(SCRIPTS))
    if uv:
        session.run(uv, "pip", "install", "--quiet", "--python", python, *requirements, external=True)
    else:
        session.run(python, "-m", "ensurepip", silent=True, external=True)
        session.run(python, "-m", "pip", "install", "--quiet", *requirements, external=True)


def editable_wheel(session: nox.Session) -> str:
    """Compile what has changed, and return the path of the editable wheel."""
    requires = PROJECT["build-system"]["requires"]
    install(session, *requires, *(tool for tool in ("cmake", "ninja") if shutil.which(tool) is None))
    shutil.rmtree(EDITABLE, ignore_errors=True)
    EDITABLE.mkdir(parents=True)
    code = f"from scikit_build_core.build import build_editable; build_editable({str(EDITABLE)!r})"
    path = os.pathsep.join([str(SCRIPTS), os.environ["PATH"]])
    session.run(sys.executable, "-c", code, silent=True, external=True, env={"PATH": path})
    return str(next(EDITABLE.glob("*.whl")))


def install_ibug(session: nox.Session, extras: str, *requirements: str, python: str = sys.executable) -> None:
    """Install the editable wheel with its extras; the second step replaces one of the same version."""
    wheel = editable_wheel(session)
    install(session, f"{wheel}[{extras}]", *requirements, python=python)
    install(session, "--force-reinstall", "--no-deps", wheel, python=python)


def own_python(session: nox.Session) -> str:
    """Return the interpreter of a session's own environment."""
    return str(next(Path(session.bin).glob("python*")))


# The developer's environment.


@here
def demo(session: nox.Session) -> None:
    """Install what the demo needs into this environment."""
    install_ibug(session, "lightgbm,plot")


@here
def dev(session: nox.Session) -> None:
    """Install everything that development needs into this environment."""
    install_ibug(session, "dev")


@here
def lint(session: nox.Session) -> None:
    """Check style, format, types and import layers."""
    session.run(sys.executable, "-m", "ruff", "check", ".", external=True)
    session.run(sys.executable, "-m", "ruff", "format", "--check", ".", external=True)
    session.run(SCRIPTS / "clang-format", "--dry-run", "-Werror", *CPP, external=True)
    session.run(sys.executable, "-m", "mypy", external=True)
    session.run(SCRIPTS / "lint-imports", external=True)


@here
def style(session: nox.Session) -> None:
    """Bring all sources into their format."""
    session.run(sys.executable, "-m", "ruff", "check", "--fix", ".", external=True)
    session.run(sys.executable, "-m", "ruff", "format", ".", external=True)
    session.run(SCRIPTS / "clang-format", "-i", *CPP, external=True)


@here
def tests(session: nox.Session) -> None:
    """Run the tests with the newest versions, but for the slow ones; arguments after -- go to pytest."""
    session.run(sys.executable, *PYTEST, "-m", "not slow", *session.posargs, external=True)


@here
def slow(session: nox.Session) -> None:
    """Run the slow tests, which are statistical studies (a minute)."""
    session.run(sys.executable, *PYTEST, "-m", "slow", "tests", external=True)


@here
def browser(session: nox.Session) -> None:
    """Test the report in headless Chromium, which must be there."""
    session.run(sys.executable, "-m", "tests.report.browser", external=True)
    session.run(sys.executable, "-m", "pytest", "tests/report/test_browser.py", external=True)


@here
def arm(session: nox.Session) -> None:
    """Test the search loops for 64-bit ARM by a cross compiler and an emulator, which must be there."""
    for program in ("aarch64-linux-gnu-g++", "qemu-aarch64"):
        if shutil.which(program) is None:
            session.error(f"{program} is missing (Debian: g++-aarch64-linux-gnu, qemu-user).")
    session.run(sys.executable, "-m", "pytest", "tests/cpp/test_loops.py", external=True)


@here
def rehearsal(session: nox.Session) -> None:
    """Build, check, install, test and uninstall what a release would publish; arguments name other interpreters."""
    session.run(sys.executable, "tools/rehearsal.py", *(session.posargs or [sys.executable]), external=True)


# Environments of their own.


@nox.session
def oldest(session: nox.Session) -> None:
    """Run the tests with the oldest versions; after ``--``: paths, ``--everything`` (without it: no test ``once``)."""
    if sys.version_info >= (3, 13):
        session.skip("the oldest supported versions have no builds for this Python; run make with PYTHON=python3.12")
    python = own_python(session)
    install_ibug(session, "all", "--constraint=tests/oldest.txt", "--requirement=tests/oldest.txt", python=python)
    marked = "not newest and not slow" if "--everything" in session.posargs else "not newest and not slow and not once"
    paths = [argument for argument in session.posargs if argument != "--everything"] or ["tests"]
    session.run(python, *PYTEST, "-m", marked, *paths, external=True)


@nox.session
def bridges(session: nox.Session) -> None:
    """Test skpro, MLflow, skforecast and the service; some of them hold pandas back."""
    python = own_python(session)
    install_ibug(session, "bridges", python=python)
    paths = ["tests/skpro", "tests/mlflow", "tests/regressor/test_skforecast.py", "tests/examples/test_serve.py"]
    session.run(python, *PYTEST, *paths, "src/ibug/skpro", "src/ibug/mlflow", external=True)


@nox.session
def serving(session: nox.Session) -> None:
    """Measure the service (minutes)."""
    python = own_python(session)
    install_ibug(session, "bridges", python=python)
    session.run(python, "benchmarks/serving.py", "--requests", "100000", "--write", external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Run the code of all pages and build the documentation into docs/_build/html; a warning is an error."""
    python = own_python(session)
    install_ibug(session, "docs", python=python)
    session.run(python, "docs/run_pages.py", external=True)
    for made in ("docs/_build", "docs/api/generated", "docs/gallery"):
        shutil.rmtree(ROOT / made, ignore_errors=True)
    options = ["-q", "-W", "--keep-going", "-b", "html"]
    session.run(python, "-m", "sphinx", *options, "docs", "docs/_build/html", external=True)


@nox.session
def sanitize(session: nox.Session) -> None:
    """Run the tests that reach the kernels most directly with AddressSanitizer and UndefinedBehaviorSanitizer.

    GCC on Linux only. The libraries must be loaded before all others. Python never gives all of its memory back, so
    leaks are not looked for. Their reports go past Python, and so past what pytest would capture.
    """
    python = own_python(session)
    settings = ["build-dir=build/sanitize", "cmake.build-type=RelWithDebInfo", "cmake.define.IBUG_SANITIZE=ON"]
    options = [f"--config-settings={setting}" for setting in settings]
    tools = ["pytest>=8.3", "hypothesis>=6.100", "polars>=1.0"]
    install(session, "--reinstall-package=ibug-learn", *options, "--editable=.[all]", *tools, python=python)
    compiler = os.environ.get("CXX", "g++")
    libraries = ("libasan.so", "libubsan.so", "libstdc++.so")
    found = [session.run(compiler, f"-print-file-name={name}", silent=True, external=True) for name in libraries]
    environment = {
        "LD_PRELOAD": " ".join(map(str.strip, found)),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    options = ["-p", "no:cacheprovider", "--capture=sys", "-m", "kernel", "tests"]
    session.run(python, "-m", "pytest", *options, external=True, env=environment)


@nox.session(python="3.11")
def study(session: nox.Session) -> None:
    """Run the paper's study (hours; it goes on where it was stopped); arguments after -- are the study's own."""
    session.install("--no-deps", "--requirement=benchmarks/study/requirements.lock")
    session.install("--no-deps", "--editable=.")
    arguments = session.posargs or ["run", "--folds", "10", "--grid", "full", "--max-rows", "10000", "--jobs", "2"]
    session.run("python", "-m", "benchmarks", *arguments)


@nox.session(python="3.11")
def study_tests(session: nox.Session) -> None:
    """Test the study with all of its methods; the session ``tests`` skips those whose packages are not there."""
    session.install("--no-deps", "--requirement=benchmarks/study/requirements.lock")
    session.install("--no-deps", "--editable=.")
    session.run("python", *PYTEST, "tests/study")


@nox.session(python="3.11")
def treeffuser(session: nox.Session) -> None:
    """Measure Treeffuser, which pins older versions than ibug takes; arguments after -- are the benchmark's own."""
    session.install("--no-deps", "--requirement=benchmarks/treeffuser/requirements.lock")
    session.run("python", "benchmarks/treeffuser.py", *session.posargs)
