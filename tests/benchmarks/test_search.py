"""Searches: those that skip rows, those that share bitmaps, and those over fewer trees."""

import pytest

from tests.benchmarks.started import marked, run, written

pytestmark = pytest.mark.newest


def test_search():
    pytest.importorskip("lightgbm")
    pytest.importorskip("catboost")
    pytest.importorskip("pandas")
    printed = run("search.py", "--trees", "20")
    assert "diabetes, LightGBM: 397 rows, 20 trees" in printed
    assert "diabetes, CatBoost: 397 rows, 20 trees" in printed
    printed = run("search.py", "--growth", "--rows", "2000", "40000", "--trees", "20")
    assert "40,000" in printed


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
