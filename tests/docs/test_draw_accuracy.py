"""The figure of the README: ratios of CRPS by dataset, on the folds that both methods have."""

import json
import subprocess
import sys

import pytest

from benchmarks.common.paths import ROOT

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")

METHODS = {
    ("default", "catboost", "trained"): 1.0,
    ("normal", "catboost", "trained"): 2.0,
    ("cbu", "", ""): 4.0,
    ("ngboost", "", ""): 1e9,
    ("pgbm", "", ""): 0.5,
    ("quantile-forest", "", ""): 1.25,
    ("cqr", "", ""): 1.0,
}


def results(path):
    """Write scores: the default's first fold alone has a partner in some methods, and other experiments are there."""
    common = {"folds": 3, "max_rows": 4000, "max_trees": 500, "scoring": "crps", "status": "ok"}
    lines = []
    for (method, base, way), crps in METHODS.items():
        for dataset in ("a", "b", "c"):
            for fold in range(3 if method == "default" else 2):
                row = {**common, "dataset": dataset, "fold": fold, "method": method, "base": base, "way": way}
                lines.append({**row, "crps": 100.0 if fold == 2 else crps})
                lines.append({**row, "max_rows": 9, "crps": 77.0})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def drawn(tmp_path, *options):
    return subprocess.run(
        [
            sys.executable,
            ROOT / "docs/draw_accuracy.py",
            "--results",
            tmp_path / "r.jsonl",
            "--out",
            tmp_path,
            *options,
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def test_ratios_are_those_of_common_folds(tmp_path):
    results(tmp_path / "r.jsonl")
    done = drawn(tmp_path)
    assert done.returncode == 0, done.stderr
    medians = [line.split("median ")[1].split(" ")[0] for line in done.stdout.splitlines()]
    assert medians == ["0.500", "0.250", "0.000", "2.000", "0.800", "1.000"]
    assert "above 1: a 2.00, b 2.00, c 2.00" in done.stdout
    assert "below 0.1: a 1e-09" in done.stdout
    assert (tmp_path / "accuracy.png").stat().st_size > 10_000


def test_results_that_are_missing_are_named(tmp_path):
    (tmp_path / "r.jsonl").write_text("")
    done = drawn(tmp_path)
    assert done.returncode == 1
    assert "has no results of" in done.stderr
