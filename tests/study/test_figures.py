"""The figures are drawn from results and models of a small dataset."""

import pytest

from benchmarks.common.lines import Store
from benchmarks.study import figures
from benchmarks.study.methods import METHODS, boosters
from benchmarks.study.runner import Plan

pytestmark = pytest.mark.newest


@pytest.fixture
def plan(monkeypatch):
    for package in ("pandas", "matplotlib", "catboost", "lightgbm", "xgboost"):
        pytest.importorskip(package)
    monkeypatch.setitem(boosters.LIMITS, "quick", (20, boosters.PATIENCE))
    return Plan(["synthetic"], ["cqr", "ibug-lightgbm"], folds=1, max_rows=200)


@pytest.fixture
def path(plan, tmp_path):
    path = tmp_path / "results.jsonl"
    with Store(path) as store:
        for task in plan.tasks():
            seconds = {"train_seconds": 1.0 + len(METHODS[task.method].title), "predict_seconds": 1e-5}
            common = {**task.as_row(), "status": "ok", "run": task.method, **seconds}
            store.append([{**common, "scoring": s, "calibrated": c} for s in ("crps", "nll") for c in (True, False)])
    return path


def test_every_figure_is_drawn(plan, path, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "REPEATS", 1)
    files = figures.draw(plan, path, None, tmp_path / "images")
    assert [file.name for file in files] == [f"study_{name}.png" for name in figures.FIGURES]
    for file in files:
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size > 5000


def test_the_runtime_figure_has_a_point_for_each_method(plan, path):
    drawn = figures.runtime(figures.Source(plan, path, None))
    points = {line.get_label(): line.get_xdata() for line in drawn.axes[0].get_lines()}
    assert set(points) == {"CQR (LightGBM)", "IBUG (LightGBM)"}
    assert list(points["CQR (LightGBM)"]) == [15.0]


def test_an_unknown_figure_is_refused(plan, tmp_path):
    with pytest.raises(SystemExit, match="there are: runtime"):
        figures.draw(plan, tmp_path / "results.jsonl", None, tmp_path, ["art"])
