"""What the package shows to the outside."""

import io
from importlib.metadata import requires, version

import pytest
from sklearn.exceptions import NotFittedError

import ibug
from ibug import exceptions
from ibug._progress import Progress


def test_public_names():
    assert sorted(ibug.__all__) == [
        "CBURegressor",
        "IBUGRegressor",
        "LeafIndex",
        "ProbabilisticEnsemble",
        "VarianceCalibrator",
        "__version__",
        "load",
    ]
    assert ibug.__version__ == version("ibug")


def test_core_dependencies_are_few():
    core = {r.split(">")[0].strip() for r in requires("ibug") if "extra ==" not in r}
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
