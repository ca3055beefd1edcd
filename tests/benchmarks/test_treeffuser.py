"""Treeffuser beside ours: the unbiased CRPS of samples, and the bars. The package has an environment of its own."""

import json

import numpy as np
import pytest

from benchmarks.accuracy.results import Experiment
from benchmarks.treeffuser import report
from ibug.distributions import Normal
from tests.benchmarks.started import run

pytestmark = pytest.mark.newest

EXPERIMENT = Experiment(folds=3, max_rows=4000, max_trees=500)


def theirs(dataset, values, seconds=100.0):
    common = {"dataset": dataset, "folds": 3, "max_rows": 4000, "n_test": 10, "predict_seconds": seconds}
    return [{**common, "fold": fold, "crps": value} for fold, value in enumerate(values)]


def ours(dataset, values, method="default"):
    place = {"dataset": dataset, "method": method, "base": "lightgbm", "way": "trained", "scoring": "crps"}
    place |= {**EXPERIMENT.as_row(), "status": "ok", "n_test": 10, "predict_seconds": 0.01}
    return [{**place, "fold": fold, "crps": value} for fold, value in enumerate(values)]


def test_the_crps_of_samples_is_unbiased():
    pytest.importorskip("pandas")
    from benchmarks.treeffuser.measure import crps_of_samples

    rng = np.random.default_rng(0)
    samples, y = rng.normal(size=(5, 7)), rng.normal(size=7)
    pairs = np.abs(samples[:, None] - samples[None]).sum(axis=(0, 1)) / (5 * 4)
    np.testing.assert_allclose(crps_of_samples(samples, y), np.abs(samples - y).mean(axis=0) - pairs / 2)
    many = crps_of_samples(rng.normal(size=(3, 40_000)), np.full(40_000, 0.7))
    assert many.mean() == pytest.approx(Normal([0.0], [1.0]).crps(0.7)[0], abs=4 * many.std() / 200)


def test_bars():
    better, worse = [1.0, 2.0, 3.1], [2.0, 3.0, 4.0]
    text = report.text([*theirs("wine", worse), *theirs("bike", worse)], [*ours("wine", better)], "lightgbm")
    assert "wine" in text
    assert "bike" not in text  # ours has none
    assert text.count("  met ") == 3
    assert "10,000x   3" in text
    given = [*theirs("wine", better), *theirs("bike", better, seconds=1.0)]
    text = report.text(given, [*ours("wine", worse), *ours("bike", worse)], "lightgbm")
    assert text.count("MISSED") == 3
    assert "MISSED           2  at most 1 loss by the t-test" in text
    assert "100 x" in text


def test_the_report_pairs_results_of_two_files(tmp_path):
    for name, rows in (("theirs", theirs("wine", [1.0, 2.0])), ("ours", ours("wine", [0.5, 1.5]))):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = run(
        "treeffuser.py", "--only-report", "--results", str(tmp_path / "theirs"), "--ours", str(tmp_path / "ours")
    )
    assert "0.667  won" in printed
    assert "no results of both" in run("treeffuser.py", "--only-report", "--results", "none", "--ours", "none")
