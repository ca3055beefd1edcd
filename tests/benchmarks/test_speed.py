"""The speed of predictions: small settings, results that are kept, and the bars."""

import contextlib
import importlib
import importlib.util
import io
import json

import pytest

from benchmarks.speed import bars, loading, threads
from benchmarks.speed.bars import judge_interval
from benchmarks.speed.command import treeffuser
from benchmarks.speed.report import judge, judge_fit, judge_peers
from tests.benchmarks.started import here, marked, run, run_alone, written

pytestmark = pytest.mark.newest


def result_here(module, *arguments, **_):
    """Return what `benchmarks.common.processes.result_of` returns, without a process."""
    out = io.StringIO()
    with here(module, *arguments), contextlib.redirect_stdout(out):
        importlib.import_module(module).main()
    return json.loads(out.getvalue())


@pytest.fixture
def one_process(monkeypatch):
    """Measure everything here; ``test_it_starts_processes_…`` starts them."""
    from benchmarks.speed import command, fresh, measure

    monkeypatch.setattr(command, "result_of", result_here)
    monkeypatch.setattr(measure, "result_of", result_here)
    monkeypatch.setattr(fresh, "CACHE_BYTES", 2**16)
    monkeypatch.setattr(fresh, "LOADED", 1)


@pytest.mark.usefixtures("one_process")
def test_speed(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("catboost")
    pytest.importorskip("xgboost")
    results, page = tmp_path / "speed.jsonl", marked(tmp_path, "speed.py")
    options = ["--quick", "--rows", "1000", "--trees", "30", "--results", str(results)]
    options += ["--peer", "CBU", "--peer", "NGBoost"]
    run("speed.py", *options, "--library", "LightGBM")
    first = results.read_text()
    results.write_text(first + '{"key": "mea')  # stopped in the middle of a line
    printed = run("speed.py", *options, "--report", str(page))
    assert printed.count("times the peak") == 4
    assert printed.count("leaves    compiled walk") == 4
    assert printed.count("walk to predict_dist") == 4
    assert printed.count("with data frames") == 4
    assert "CBU 1." in printed
    assert importlib.util.find_spec("ngboost") or "NGBoost: absent (No module named 'ngboost')" in printed
    assert json.loads(first.splitlines()[0])["per_row"]["predict_dist"] > 0
    assert results.read_text().startswith(first)  # what was measured is not measured again
    assert results.read_text().count("measure LightGBM") == 1
    command, text = written(page, "speed.py").split("\n", 1)
    assert command.startswith("$ python speed.py --quick --rows 1000")
    assert text == printed.rstrip()


def test_it_starts_processes_and_goes_on_when_a_package_fails(tmp_path):
    broken = tmp_path / "ngboost.py"
    broken.write_text("raise RuntimeError('broken on purpose')")
    command = ["--quick", "--rows", "600", "--trees", "5", "--library", "HistGradientBoosting", "--peer", "NGBoost"]
    printed = run_alone("speed.py", *command, PYTHONPATH=str(tmp_path))
    assert "NGBoost: FAILED (RuntimeError: broken on purpose" in printed
    assert "times the peak" in printed


def test_bars():
    setting = {"library": "LightGBM", "n_rows": 7000, "n_trees": 500, "n_features": 9}
    fresh = {"peak_growth": 155e6, "index_bytes": 4e6, "first_call": 1.0, "tenth_call": 1.0}
    ratios = {"leaves + predict / read": 3.0, "leaves + predict alone / read alone": 1.9}
    ratios |= {
        "predict_dist alone / predict alone": 1.9,
        "interval alone / predict alone": 2.1,
        "default / normal": 2.1,
    }
    result = {"setting": setting, "kernel_share": 1.2, "index_bytes": 4.5e6, "ratios": ratios, "fresh": fresh}
    per_row = {"predict_dist": 1.0, "predict_dist alone": 2.0, "default alone": 0.3e-3, "predict alone": 0.2e-3}
    result |= {"fit_time": 1.0, "training_time": 2.0, "per_row": per_row}
    missed = [bar.text for bar in judge([result]) if not bar.met]
    assert len(missed) == 5
    assert "index at most" in missed[0]
    assert "one row: leaves and predictions" in missed[1]
    assert "the default at most 2 x a normal distribution" in missed[2]
    assert "below 0.4 ms and the model's predict, 0.200" in missed[3]
    assert "predict_interval" in missed[4]
    too_much = {**result, "fit_time": 2.0, "fresh": {**fresh, "peak_growth": 157e6, "first_call": 1.6}}
    assert [bar.met for bar in judge_fit(too_much)] == [False, False, False]
    own = {"default interval": 1.0, "default interval alone": 2.0}
    same = {**result, "setting": {**setting, "n_rows": 8000}, "per_row": per_row | own}
    peers = [("NGBoost", {"per_row": {"batch": 10.0, "alone": 19.0}}), ("MAPIE CQR", {"absent": "No module"})]
    assert [bar.met for bar in judge_peers([same], peers)] == [True, False]
    assert [bar.met for bar in judge_peers([same], [("Treeffuser", {"per_row": {"batch": 4999.0}})])] == [False]


@pytest.mark.parametrize(("library", "most"), [("LightGBM", 1.0), ("HistGradientBoosting", 1.0), ("XGBoost", 3.0)])
def test_bars_of_intervals(library, most):
    setting = {"library": library, "n_rows": 7000, "n_trees": 500, "n_features": 9}
    found = {"setting": setting, "per_row": {"default interval alone": 0.11e-3}}
    met = [bar.met for bar in judge_interval(found | {"ratios": {"default interval / predict": most}})]
    assert met == [True, False]
    large = {**found, "setting": setting | {"n_rows": 40_000, "n_trees": 2000}}
    ratios = {"default interval / predict": 4.1, "default interval alone / predict alone": 2.0}
    met = [bar.met for bar in judge_interval(large | {"ratios": ratios})]
    assert met == ([True] if library == "HistGradientBoosting" else [False, True])


def test_threads_and_loading():
    pytest.importorskip("lightgbm")
    found = threads.measure("LightGBM", 500, 10, 1)
    if "absent" not in found:
        assert "4,000 rows" in "\n".join(bars.threads(found))
        assert len(list(bars.judge_threads(found))) == 2
    found = loading.measure("LightGBM", 500, 10, 1)
    assert "mapped, unverified" in "\n".join(bars.loading(found))
    assert len(list(bars.judge_loading(found))) == 2


def test_treeffuser_is_the_median_of_its_results(tmp_path):
    path = tmp_path / "results.jsonl"
    rows = [{"n_test": 10, "predict_seconds": s, "version": "0.2.0"} for s in (1.0, 3.0, 20.0)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert treeffuser(path) == {"version": "0.2.0", "per_row": {"batch": 0.3}}
    path.write_text("")
    with pytest.raises(SystemExit, match="no results"):
        treeffuser(path)


def test_persistence():
    pytest.importorskip("lightgbm")
    printed = run("persistence.py", "500", "5")
    assert "index of 500 rows and 5 trees" in printed
    assert "load, mapped, unverified" in printed
