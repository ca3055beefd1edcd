"""What the package shows to the outside."""

import importlib
import io
import re
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from sklearn.exceptions import NotFittedError

import ibug
from ibug import exceptions
from ibug._progress import Progress

ROOT = Path(__file__).parents[1]


def test_public_names():
    assert sorted(ibug.__all__) == [
        "AdaptiveIntervals",
        "CBURegressor",
        "IBUGRegressor",
        "LeafIndex",
        "ProbabilisticEnsemble",
        "Sampling",
        "VarianceCalibrator",
        "__version__",
        "load",
    ]
    assert ibug.__version__ == version("ibug-learn")


@pytest.fixture
def namesake(tmp_path, monkeypatch):
    """The authors' distribution, as far as a look at its metadata goes."""
    metadata = tmp_path / "ibug-0.0.11.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: ibug\nVersion: 0.0.11\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_the_authors_distribution_beside_ours_is_told_at_import(namesake):
    with pytest.warns(exceptions.NameConflictWarning) as told:
        importlib.reload(ibug)
    (warning,) = told
    message = str(warning.message)
    assert f"ibug-learn {ibug.__version__}" in message
    assert "ibug 0.0.11" in message
    assert "pip uninstall -y ibug ibug-learn, then pip install ibug-learn" in message
    assert warning.filename == importlib.__file__  # whoever imports ibug; here reload did


def test_alone_nothing_is_said():
    importlib.reload(ibug)  # a warning is an error


# What is said to users; Makefile and workflows install from this folder.
SPEAKS = [*ROOT.glob("*.md"), *(path for name in ("src", "docs", "examples") for path in (ROOT / name).rglob("*.*"))]


def test_what_pip_is_told_to_install_is_this_distribution():
    """On PyPI `ibug` is another project. Only a sentence that says so, "`pip install ibug` installs …", may name it."""
    wrong = re.compile(r"""pip install (-\S+ )*["'`]?ibug(?!-learn|` installs)|(?<![\w.])ibug\[[a-z]""")
    assert wrong.search("pip install --upgrade ibug")
    assert wrong.search('"ibug[plot]"')
    texts = (path for path in SPEAKS if path.suffix in {".md", ".py", ".rst", ".html"} and "_build" not in path.parts)
    assert [str(path) for path in texts if wrong.search(path.read_text("utf-8"))] == []


def test_core_dependencies_are_few():
    core = {r.split(">")[0].strip() for r in requires("ibug-learn") if "extra ==" not in r}
    assert core == {"numpy", "scipy", "scikit-learn"}


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (exceptions.InvalidInputError, ValueError),
        (exceptions.UnsupportedModelError, TypeError),
        (exceptions.ModelNotFittedError, NotFittedError),
        (exceptions.MissingExtensionError, ImportError),
        (exceptions.MissingDependencyError, ImportError),
        (exceptions.NotStorableError, TypeError),
        (exceptions.FileFormatError, ValueError),
        (exceptions.NotStoredWarning, UserWarning),
        (exceptions.OlderLibraryWarning, UserWarning),
        (exceptions.NotCalibratedWarning, UserWarning),
        (exceptions.NameConflictWarning, UserWarning),
    ],
)
def test_errors_are_builtin_errors_too(error, builtin):
    assert issubclass(error, builtin)
    assert issubclass(error, (exceptions.IBUGError, exceptions.IBUGWarning))
    assert error.__name__ in exceptions.__doc__


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_silent_unless_asked_for():
    stream = Terminal()
    with Progress("work", 10, enabled=False, stream=stream) as progress:
        progress.advance(10)
    assert stream.getvalue() == ""


def test_progress_in_a_terminal_draws_a_bar(monkeypatch):
    monkeypatch.setattr("ibug._progress._SECONDS_BETWEEN_UPDATES", 0)
    stream = Terminal()
    with Progress("work", 4, enabled=True, stream=stream) as progress:
        progress.advance(1)
    assert " 25% " in stream.getvalue()
    assert stream.getvalue().rstrip().rpartition("\r")[2].startswith("[ibug] work: done in")


def test_progress_elsewhere_is_one_line():
    stream = io.StringIO()
    with Progress("work", 4, enabled=True, stream=stream) as progress:
        progress.advance(4)
    assert stream.getvalue().startswith("[ibug] work: done in")
    assert stream.getvalue().count("\n") == 1


def test_progress_says_when_work_was_stopped():
    stream = io.StringIO()
    with pytest.raises(KeyboardInterrupt), Progress("work", 4, enabled=True, stream=stream):
        raise KeyboardInterrupt
    assert "stopped" in stream.getvalue()
