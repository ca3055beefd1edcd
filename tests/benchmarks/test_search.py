"""Searches: those in cells, those that share bitmaps, and those over fewer trees."""

import json
import re
from argparse import Namespace

import numpy as np
import pytest

from tests.benchmarks.started import marked, run, written

pytestmark = pytest.mark.newest


def test_search(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    results, page = tmp_path / "results.jsonl", marked(tmp_path, "search.py")
    options = ["--datasets", "made", "diabetes", "--trees", "200", "--rounds", "1", "--results", str(results)]
    printed = run("search.py", *options, "--models", str(tmp_path), "--report", str(page))
    assert written(page, "search.py").endswith(printed.rstrip())
    made, diabetes = (json.loads(line) for line in results.read_text().splitlines())
    assert made["n_rows"] == 24_300
    assert 8 <= made["n_cells"] <= made["all_cells"] // 2
    assert 0 < made["visited"] < 0.2
    assert 0.9 < made["recall"] < 1
    assert made["least_recall"] < made["recall"]
    assert 0 < abs(made["loss"]) < 0.01
    assert 0 < made["error"] < 0.001
    relative = made["crps"]["auto"] / made["crps"]["exact"] - 1
    assert relative == pytest.approx(made["loss"])
    assert all(seconds > 0 for seconds in made["seconds"].values())
    assert (diabetes["n_cells"], diabetes["recall"], diabetes["visited"], diabetes["loss"]) == (None, 1.0, 1.0, 0.0)
    assert "made: time of alone at most 1.03 x that of exact" in printed
    # Nothing is measured again, and a report alone measures nothing.
    assert (tmp_path / "made-200-0-of-1.txt").exists()
    before = results.read_text()
    assert run("search.py", *options, "--only-report") == printed
    assert results.read_text() == before


def test_folds_are_compared(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    results = tmp_path / "results.jsonl"
    options = ["--datasets", "diabetes", "--trees", "20", "--folds", "3", "--rounds", "1", "--results", str(results)]
    printed = run("search.py", *options)
    assert "diabetes: no higher CRPS by a t-test over 3 folds" in printed
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert sum(row["n_test"] for row in rows) == 442
    for row, loss in zip(rows, (0.01, 0.011, 0.012), strict=True):
        row["crps"]["auto"] = row["crps"]["exact"] * (1 + loss)
        row["loss"] = loss
    results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = run("search.py", *options, "--only-report")
    assert re.search(r"MISSED +\+1\.100%  diabetes: no higher CRPS", printed)
    assert "+1.100 ± 0.058" in printed


def test_growth(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    results = tmp_path / "results.jsonl"
    options = ["--growth", "--rows", "2000", "26000", "--datasets", "made", "--trees", "200", "--rounds", "1"]
    printed = run("search.py", *options, "--results", str(results))
    few, many = (json.loads(line) for line in results.read_text().splitlines())
    assert (few["n_rows"], few["n_cells"], few["visited"]) == (2000, None, 1.0)
    assert many["n_rows"] == 26_000  # 24,000 of its own, and 2,000 again
    assert many["n_cells"] < many["all_cells"]
    assert 1 < many["bytes"] < 1.1
    assert 0 < many["build"] < many["fit"]
    mapped = many["mapped"]
    assert mapped["equal"]
    assert mapped["limit"] == mapped["index"] // 4
    assert 0 < mapped["largest"] < mapped["index"] + 2**20
    assert "results of both are equal" in printed


def test_rows_grow_by_noise(monkeypatch):
    pytest.importorskip("pandas")
    from benchmarks.search.growth import Grown

    monkeypatch.delenv("IBUG_DATA", raising=False)
    grown = Grown("diabetes", 20, Namespace(data=None, models=None, rounds=1))
    X, y = grown.rows(800)
    n = 442 - 2 * 44
    assert len(X) == len(y) == 800
    assert np.array_equal(y[:n], y[n : 2 * n])
    assert np.array_equal(grown.rows(n)[0], X[:n])
    noise = (X[n : 2 * n] - X[:n]) / X[:n].std(axis=0)
    assert noise.std(axis=0) == pytest.approx(np.full(X.shape[1], 0.05), rel=0.15)


def test_on_paper_is_what_was_measured_where_nothing_grows(monkeypatch):
    from benchmarks.search import growth

    monkeypatch.setattr(growth, "PAPER_ROWS", 1_000_000)
    monkeypatch.setattr(growth, "PAPER_TREES", 500)
    seconds = {"search batch": 0.002, "search alone": 0.003, "exact search batch": 0.05}
    visited = (8000 + 64 * 125) / 1_000_000  # 8,000 cells of 125 rows on average
    row = {"n_rows": 1_000_000, "n_trees": 500, "n_cells": 64, "all_cells": 8000, "visited": visited, "bytes": 1.0}
    text = "\n".join(growth.on_paper({**row, "build": 3600.0, "fit": 7200.0, "seconds": seconds}))
    assert re.search(r"build +1\.0 h", text)
    assert re.search(r"rest of fit +1\.0 h", text)
    assert re.search(r"64 cells a row +2\.0 ms a row in a batch, 3\.0 alone: 16,000 rows, 1\.60% of all", text)
    assert re.search(r"256 cells a row +5\.0 ms", text)
    assert re.search(r"all rows +50 ms", text)


def test_sharing():
    pytest.importorskip("lightgbm")
    printed = run("sharing.py", "--rows", "300", "--trees", "10")
    assert "baseline" in printed
    assert "us" in printed


def test_tree_fraction(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    image, page = tmp_path / "figure.png", marked(tmp_path, "tree_fraction.py")
    options = ["--library", "HistGradientBoosting", "--trees", "20", "--repeats", "1"]
    printed = run("tree_fraction.py", *options, "--image", str(image), "--report", str(page))
    assert printed.startswith("diabetes, 282 training rows, HistGradientBoosting, 20 trees")
    assert len(printed.splitlines()) == 3 + 8
    assert image.stat().st_size > 10_000
    assert written(page, "tree_fraction.py").endswith(printed.rstrip())
