"""A command opens the model file once, predicts each row once, and searches each row once."""

import os
import sys
from collections import Counter

import pandas as pd
import pytest

from ibug import IBUGRegressor, LeafIndex

pytestmark = pytest.mark.once

_opened: list[str] | None = None


def _note_opened(event, arguments):
    if event == "open" and _opened is not None and isinstance(arguments[0], (str, os.PathLike)):
        _opened.append(os.path.basename(arguments[0]))


sys.addaudithook(_note_opened)  # it sees every way to open a file, and cannot be removed: it is silent elsewhere


@pytest.fixture
def counts(files, monkeypatch):
    """Return a function that runs a command and counts."""

    def counted(*arguments):
        found = Counter()

        def count(cls, method, name):
            before = getattr(cls, method)

            def counting(self, rows, *more, **options):
                found[name] += len(rows)
                return before(self, rows, *more, **options)

            patch.setattr(cls, method, counting)

        with monkeypatch.context() as patch:
            count(LeafIndex, "query", "searched")
            count(IBUGRegressor, "predict", "predicted")
            patch.setattr(sys.modules[__name__], "_opened", [])
            files.run(*arguments)
            found["opened"] = _opened.count("model.ibug")
        return dict(found)

    return counted


@pytest.fixture
def n(files):
    return len(pd.read_csv(files["test.csv"]))


def test_predict(files, counts, n):
    options = ("--neighbors", 3, "--flags", "--interval", "0.5,0.9", "-o", files["out.csv"])
    found = counts("predict", files["model.ibug"], files["test.csv"], *options)
    assert found == {"opened": 1, "searched": n, "predicted": n}


@pytest.mark.parametrize("plots", [False, True])
def test_evaluate(files, counts, n, plots):
    options = []
    if plots:
        pytest.importorskip("matplotlib")
        options = ["--plots", files["plots"]]
    found = counts("evaluate", files["model.ibug"], files["test.csv"], *options)
    assert found == {"opened": 1, "searched": n, "predicted": n}  # with and without calibration by one search


def test_explain(files, counts, n):
    found = counts("explain", files["model.ibug"], files["test.csv"], "--row", 3)
    assert found == {
        "opened": 1,
        "searched": n,
        "predicted": 1,
    }  # the row is among those it is compared to


def test_report(files, counts, n):
    pytest.importorskip("plotly")
    found = counts("report", files["model.ibug"], files["test.csv"], "-o", files["report.html"], "--width-seconds", "0")
    assert found == {"opened": 1, "searched": n, "predicted": n}  # with and without calibration by one search


def test_info(files, counts):
    assert counts("info", files["model.ibug"]) == {"opened": 1}
