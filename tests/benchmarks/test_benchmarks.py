"""The benchmarks still run: their small settings, as a user starts them."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


def run(script, *options, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "IBUG_DATA"}
    environment |= {"IBUG_LEAST_TIME": "0.003"} | variables  # that it runs is tested, not what it measures
    command = [sys.executable, str(FOLDER / script), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_speed(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("catboost")
    pytest.importorskip("xgboost")
    results, report = tmp_path / "speed.jsonl", tmp_path / "performance.md"
    begin, end = (f"<!-- benchmarks/speed.py writes {where} here -->" for where in ("from", "to"))
    report.write_text(f"before\n{begin}\nstale\n{end}\nafter <!-- to here -->\n")
    options = ["--quick", "--rows", "1000", "--trees", "30", "--results", str(results)]
    options += ["--peer", "CBU", "--peer", "NGBoost"]
    run("speed.py", *options, "--library", "LightGBM")
    first = results.read_text()
    results.write_text(first + '{"key": "speed_mea')  # stopped in the middle of a line
    printed = run("speed.py", *options, "--report", str(report))
    assert printed.count("times the peak") == 4
    assert printed.count("leaves    compiled walk") == 4
    assert printed.count("walk to predict_dist") == 4
    assert printed.count("with data frames") == 4
    assert "CBU 1." in printed
    assert importlib.util.find_spec("ngboost") or "NGBoost: absent (No module named 'ngboost')" in printed
    assert json.loads(first.splitlines()[0])["per_row"]["predict_dist"] > 0
    assert results.read_text().startswith(first)  # what was measured is not measured again
    assert results.read_text().count("speed_measure.py LightGBM") == 1
    written = report.read_text()
    assert "stale" not in written
    assert printed.rstrip() in written
    assert written.startswith("before\n")
    assert written.endswith("after <!-- to here -->\n")


def test_speed_goes_on_when_a_package_fails(tmp_path):
    broken = tmp_path / "ngboost.py"
    broken.write_text("raise RuntimeError('broken on purpose')")
    command = ["--quick", "--rows", "600", "--trees", "5", "--library", "HistGradientBoosting", "--peer", "NGBoost"]
    printed = run("speed.py", *command, PYTHONPATH=str(tmp_path))
    assert "NGBoost: FAILED (RuntimeError: broken on purpose" in printed
    assert "times the peak" in printed


def test_bars():
    sys.path.insert(0, str(FOLDER))
    from speed_report import judge, judge_fit, judge_peers

    setting = {"library": "LightGBM", "n_rows": 7000, "n_trees": 500, "n_features": 9}
    fresh = {"peak_growth": 155e6, "index_bytes": 4e6, "first_call": 1.0, "tenth_call": 1.0}
    ratios = {"leaves + predict / read": 3.0, "leaves + predict alone / read alone": 1.9}
    ratios |= {"predict_dist alone / predict alone": 1.9, "interval alone / predict alone": 2.1}
    result = {"setting": setting, "kernel_share": 1.2, "index_bytes": 4e6, "ratios": ratios, "fresh": fresh}
    result |= {"fit_time": 1.0, "training_time": 2.0, "per_row": {"predict_dist": 1.0, "predict_dist alone": 2.0}}
    missed = [bar.text for bar in judge([result]) if not bar.met]
    assert len(missed) == 3
    assert "index at most" in missed[0]
    assert "one row: leaves and predictions" in missed[1]
    assert "predict_interval" in missed[2]
    too_much = {**result, "fit_time": 2.0, "fresh": {**fresh, "peak_growth": 157e6, "first_call": 1.6}}
    assert [bar.met for bar in judge_fit(too_much)] == [False, False, False]
    same = {**result, "setting": {**setting, "n_rows": 8000}}
    peers = [("NGBoost", {"per_row": {"batch": 2.0, "alone": 1.0}}), ("MAPIE CQR", {"absent": "No module"})]
    assert [bar.met for bar in judge_peers([same], peers)] == [True, False]


def test_tree_fraction(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    image, report = tmp_path / "figure.png", tmp_path / "performance.md"
    report.write_text("".join(f"<!-- benchmarks/tree_fraction.py writes {w} here -->\n" for w in ("from", "to")))
    options = ["--library", "HistGradientBoosting", "--trees", "20", "--repeats", "1"]
    printed = run("tree_fraction.py", *options, "--image", str(image), "--report", str(report))
    assert printed.startswith("diabetes, 282 training rows, HistGradientBoosting, 20 trees")
    assert len(printed.splitlines()) == 3 + 8
    assert image.stat().st_size > 10_000
    assert printed.rstrip() in report.read_text()


@pytest.mark.parametrize("command", [["shift.py"], ["interval_coverage.py", "--splits", "1"]])
def test_real_data_benchmarks_on_bundled_data(command):
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    assert "diabetes" in run(*command)


def test_ensembles():
    pytest.importorskip("catboost")
    pytest.importorskip("pandas")
    printed = run("ensembles.py", "--folds", "1", "--trees", "20")
    assert "diabetes: 442 rows, 1 folds" in printed
    assert [line.split()[0] for line in printed.splitlines()[-4:]] == ["IBUG", "CBU", "average", "mixture"]


def test_accuracy_stops_and_resumes_and_writes_its_report(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("catboost")
    pytest.importorskip("pandas")
    results, report = tmp_path / "accuracy.jsonl", tmp_path / "accuracy.md"
    begin, end = "<!-- benchmarks/accuracy.py writes from here -->", "<!-- to here -->"
    report.write_text(f"before\n{begin}\nstale\n{end}\nafter\n")
    options = ["--folds", "2", "--max-trees", "20", "--results", str(results)]
    run("accuracy.py", *options, "--methods", "paper", "--bases", "lightgbm")
    first = results.read_text()
    assert len(first.splitlines()) == 4  # two folds, tuned for two scores
    results.write_text(first + '{"dataset": "diab')  # stopped in the middle of a line
    printed = run("accuracy.py", *options, "--methods", "paper,auto", "--report", str(report))
    lines = [line for line in results.read_text().splitlines() if line != '{"dataset": "diab']
    assert "\n".join(lines).startswith(first.rstrip())
    assert len(lines) == 4 + 12
    assert "auto against paper" in printed
    written = report.read_text()
    assert "stale" not in written
    assert "auto against paper" in written
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert run("accuracy.py", *options, "--only-report") == run("accuracy.py", *options, "--methods", "paper,auto")
    assert len(results.read_text().splitlines()) == 17


def test_wins_ties_and_losses():
    sys.path.insert(0, str(FOLDER))
    from accuracy_report import outcome, wins_ties_losses

    base = {fold: 1.0 + fold for fold in range(5)}
    better = {fold: score - 0.1 - 0.001 * fold for fold, score in base.items()}
    noisy = {fold: score + (-1) ** fold for fold, score in base.items()}
    signs = [outcome(better, base)[0], outcome(base, better)[0], outcome(noisy, base)[0], outcome(base, base)[0]]
    assert signs == [-1, 1, 0, 0]
    assert wins_ties_losses(signs) == "1-2-1"
    assert outcome({0: 1.0}, {0: 2.0, 1: 3.0}) == (0, -1.0)  # one fold proves nothing


def marked(tmp_path, script):
    """Return a document with a place for the tables of a script, between two others."""
    page = tmp_path / "page.md"
    marks = [
        f"<!-- benchmarks/{name} writes from here -->\nstale {name}\n<!-- to here -->" for name in ("a", script, "z")
    ]
    page.write_text("before\n" + "\n".join(marks) + "\nafter\n")
    return page


def written(page, script):
    """Return what a script has put into its place; everything else is as it was."""
    text = page.read_text()
    assert text.startswith("before\n<!-- benchmarks/a writes from here -->\nstale a\n<!-- to here -->\n")
    assert text.endswith("<!-- benchmarks/z writes from here -->\nstale z\n<!-- to here -->\nafter\n")
    assert f"stale {script}" not in text
    return text.split(f"benchmarks/{script} writes from here -->\n\n```\n")[1].split("\n```\n")[0]


def test_speed_of_fits_writes_its_report(tmp_path):
    page = marked(tmp_path, "posterior.py")
    printed = run("posterior.py", "--rows", "12", "--k", "10", "--report", str(page))
    assert written(page, "posterior.py") == printed.strip()
    assert [line.split()[0] for line in printed.splitlines()[3:11]][:3] == ["normal", "skewnormal", "lognormal"]


def test_a_spike_lowers_the_nll_and_nothing_else(tmp_path):
    page = marked(tmp_path, "posterior_spike.py")
    printed = run("posterior_spike.py", "--report", str(page))
    table = written(page, "posterior_spike.py")
    assert table == printed.strip()
    scores = np.array([[float(cell) for cell in line.split()[-3:]] for line in table.splitlines()[-6:]])
    assert np.all(np.diff(scores[:, 0]) < 0)
    assert scores[-1, 0] < -5
    assert np.all(np.diff(scores[2:, 1:], axis=0) > 0)


def test_choice_of_a_family_writes_its_report(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    page = marked(tmp_path, "posterior_choice.py")
    printed = run("posterior_choice.py", "--folds", "1", "--booster", "lightgbm", "--report", str(page))
    assert [line.rstrip() for line in printed.splitlines()] == written(page, "posterior_choice.py").splitlines()
    assert printed.splitlines()[1].startswith("diabetes")


def test_a_document_without_a_place_for_tables_is_refused(tmp_path):
    sys.path.insert(0, str(FOLDER))
    import marks

    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(SystemExit, match="has not the lines"):
        marks.write(page, "posterior.py", "table")


def test_scale_out():
    pytest.importorskip("lightgbm")
    pytest.importorskip("distributed")
    printed = run("scale_out.py", "--quick", "--rows", "2000", "--trees", "10")
    assert "Parallel efficiency on two workers" in printed
    assert "A billion rows and 10 trees" in printed


def test_sharing():
    pytest.importorskip("lightgbm")
    printed = run("sharing.py", "--rows", "300", "--trees", "10")
    assert "baseline" in printed
    assert "us" in printed


def test_search():
    pytest.importorskip("lightgbm")
    pytest.importorskip("catboost")
    pytest.importorskip("pandas")
    printed = run("search.py", "--trees", "20")
    assert "diabetes, LightGBM: 397 rows, 20 trees" in printed
    assert "diabetes, CatBoost: 397 rows, 20 trees" in printed
    printed = run("search.py", "--growth", "--rows", "2000", "40000", "--trees", "20")
    assert "40,000" in printed
