"""The accuracy benchmark: it can be stopped and taken up, and its tables and bars say what the results say."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas")

from benchmarks.accuracy import bars, measure, methods, report, results
from benchmarks.accuracy.fold import Fold
from benchmarks.accuracy.methods import Setting
from benchmarks.accuracy.peers import LEVELS, Peer
from benchmarks.accuracy.results import Experiment
from benchmarks.accuracy.scores import Case, Scores, difference, ratio
from benchmarks.common.data import load
from benchmarks.common.statistics import record
from ibug.distributions import Empirical, Normal
from tests.benchmarks.started import marked, run, written

pytestmark = pytest.mark.newest

EXPERIMENT = Experiment(folds=5, max_rows=100, max_trees=20)


def rows(method, values, dataset="wine", base="lightgbm", way="trained", scoring="crps", **more):
    """Return results with the given CRPS, which is the NLL as well, for each fold."""
    place = {"dataset": dataset, "method": method, "base": base, "way": way, "scoring": scoring}
    place = {**place, **EXPERIMENT.as_row(), "status": "ok", "n": 100, "n_val": 300, "n_test": 20}
    scores = {"coverage": 0.9, "width": 1.0, "interval_score": 2.0, "rmse": 1.0, "rmse_mean": 1.0}
    times = {"predict_seconds": 1.0}
    return [
        {**place, "fold": fold, "crps": value, "nll": value, **scores, **times, **more}
        for fold, value in enumerate(values)
    ]


def test_it_stops_and_resumes_and_writes_its_report(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("catboost")
    path, page = tmp_path / "accuracy.jsonl", marked(tmp_path, "accuracy.py")
    options = ["--folds", "2", "--max-trees", "20", "--results", str(path)]
    run("accuracy.py", *options, "--methods", "paper", "--bases", "lightgbm", "--ways", "trained")
    first = path.read_text()
    assert len(first.splitlines()) == 4  # two folds, tuned for two scores
    path.write_text(first + '{"dataset": "diab')  # stopped in the middle of a line
    whole = [*options, "--methods", "paper,normal,conformal,cbu"]
    printed = run("accuracy.py", *whole, "--report", str(page))
    assert path.read_text().startswith(first)
    # Two folds and scores; CBU, and for each base: paper and normal in two ways, conformal in one.
    assert len(path.read_text().splitlines()) == 2 * 2 * (1 + 2 * 5)
    assert "normal against paper" in printed
    assert "normal against cbu" in printed
    command, text = written(page, "accuracy.py").split("\n\n", 1)
    assert command.startswith("$ python accuracy.py --folds 2")
    assert text == printed.rstrip()
    assert run("accuracy.py", *options, "--only-report") == run("accuracy.py", *whole) == printed
    assert len(path.read_text().splitlines()) == 44
    page = marked(tmp_path, "accuracy.py --comparisons")
    short = run("accuracy.py", *options, "--only-report", "--comparisons", "--report", str(page))
    assert written(page, "accuracy.py --comparisons").endswith(short.rstrip())
    assert "normal against paper" in short
    assert ["normal,", "prefit", "nll", "1.00", "100%"] in [line.split() for line in short.splitlines()]
    assert "cbu, trained" not in short
    assert "90 % intervals" not in short
    scores = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(0 < row["crps"] < 100 and 0.5 < row["coverage"] <= 1 for row in scores)
    assert all(row["rmse"] == pytest.approx(row["rmse_mean"]) for row in scores if row["method"] != "conformal")


def test_a_method_that_fails_or_is_absent_does_not_stop_the_others(tmp_path, monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.setitem(methods.VARIANTS, "broken", {"spread": "none such"})
    monkeypatch.setattr("benchmarks.study.methods.importable", lambda package: False)
    names = ("broken", "normal")
    settings = (
        *(Setting(name, "lightgbm", "prefit", "crps") for name in names),
        Setting("cqr", "", "", "crps"),
    )
    found = measure.run(measure.Task("diabetes", 0, settings, EXPERIMENT, None, 1))
    assert [row["status"] for row in found] == ["failed", "ok", "skipped"]
    assert "none such" in found[0]["reason"]
    assert "cqr skipped: mapie is not installed" in report.tables(found)


def test_what_is_measured():
    assert len(methods.settings(["default", "cbu"], ["lightgbm", "catboost"], ["prefit", "trained"])) == 2 * 4 + 2
    conformal = methods.settings(["conformal"], ["lightgbm"], ["prefit", "trained"])
    assert {setting.way for setting in conformal} == {"prefit"}
    assert {setting.way for setting in methods.settings(["own"], ["lightgbm"], ["prefit", "trained"])} == {"trained"}
    assert set(methods.USUAL) <= set(methods.METHODS)


def test_an_unknown_method_is_refused(capfd):
    with pytest.raises(AssertionError, match="there is no magic; there are: default"):
        run("accuracy.py", "--methods", "magic")


def test_the_model_of_the_part_has_not_seen_the_validation_rows():
    pytest.importorskip("lightgbm")
    X, y = load("diabetes", None)
    fold = Fold(X, y, 0, 5)
    assert len(fold.y_train) + len(fold.y_test) == len(y)
    assert len(fold.y_part) + len(fold.y_val) == len(fold.y_train)
    np.testing.assert_array_equal(np.sort([*fold.y_part, *fold.y_val, *fold.y_test]), np.sort(y))
    split, X_test = fold.encoded
    np.testing.assert_array_equal(split.X_part, fold.X_part.to_numpy())
    np.testing.assert_array_equal(X_test, fold.X_test.to_numpy())


def test_a_method_of_the_study_is_a_peer():
    X, y = load("diabetes", None)
    fold = Fold(X, y, 0, 5)
    peer = Peer("knn", fold)
    found = measure.scores(fold.y_test, peer.predict("crps"), peer.predict_dist("crps"))
    assert found["rmse"] == found["rmse_mean"] < np.std(fold.y_test)
    assert 0.8 < found["coverage"] <= 1


def test_quantiles_make_a_distribution_without_a_density():
    mean, deviation = np.array([0.0, 5.0]), np.array([1.0, 2.0])
    exact = Normal(mean, deviation)
    made = Empirical(exact.ppf(LEVELS[None]))
    y = np.array([0.7, 1.0])
    found = measure.scores(y, mean, made)
    assert found["crps"] == pytest.approx(np.mean(exact.crps(y)), rel=0.01)
    assert found["width"] == pytest.approx(np.mean(np.diff(exact.interval(0.9), axis=0)), rel=1e-6)
    assert found["nll"] is None


def test_wins_ties_and_losses():
    base = {fold: 1.0 + fold for fold in range(5)}
    better = {fold: score - 0.1 - 0.001 * fold for fold, score in base.items()}
    noisy = {fold: score + (-1) ** fold for fold, score in base.items()}
    assert str(record([(better, base), (base, better), (noisy, base), (base, base)])) == "1-2-1"
    assert record([({0: 1.0}, {0: 2.0, 1: 3.0})]) == (0, 1, 0)  # one fold proves nothing
    assert difference(({0: 1.0}, {0: 2.0, 1: 3.0})) == -1.0
    assert ratio((better, base)) == pytest.approx(1 - 0.102 / 3)


def test_peers_take_part_in_every_case():
    values = [1.0, 2.0, 3.0, 4.0]
    found = Scores(
        [*rows("default", values), *rows("default", values, base="catboost"), *rows("cbu", values, base="", way="")]
    )
    assert found.cases == [Case("wine", "catboost", "trained"), Case("wine", "lightgbm", "trained")]
    assert len(found.common("crps", "default", "cbu", "crps", "trained")) == 2


@pytest.mark.parametrize(("shift", "met"), [(-0.5, True), (0.0, False), (0.5, False)])
def test_the_default_is_held_against_the_normal_distribution(shift, met):
    normal = np.array([1.0, 1.2, 1.1, 1.3])
    noise = np.array([0.01, -0.01, 0.02, -0.02])
    given = [
        *rows("normal", normal),
        *rows("normal", normal, scoring="nll"),
        *rows("default", normal + shift + noise),
        *rows("default", normal + shift + noise, scoring="nll"),
    ]
    judged = {bar.text: bar for bar in bars.judge(Scores(given))}
    assert judged["trained here, CRPS: default against normal wins at least 80%"].met is met
    assert judged["trained here, NLL: default against normal wins at least 50%"].met is met
    assert judged["trained here, CRPS: default against normal, geometric mean of ratios at most 0.95"].met is met
    assert judged["trained here, CRPS: default against normal loses nowhere"].met is (shift <= 0)
    assert "Bars" in report.tables(given)
    assert ("default against normal lost: wine (lightgbm)" in report.tables(given)) is (shift > 0)


@pytest.mark.parametrize(("coverage", "met"), [(0.86, False), (0.88, True), (0.95, False)])
def test_coverage_has_limits_on_every_dataset(coverage, met):
    given = [*rows("default", [1.0, 2.0]), *rows("default", [1.0, 2.0], dataset="bike", coverage=coverage)]
    (bar,) = bars.judge(Scores(given))
    assert bar.met is met
    assert bar.text.endswith("not: bike (lightgbm)") is not met


@pytest.mark.parametrize(
    ("coverage", "met"), [(0.70, [False, True]), (0.85, [True, True]), (0.97, [True, True]), (1.0, [True, False])]
)
def test_conformal_coverage_is_near_its_guarantee(coverage, met):
    """With 150 rows for the conformal step and 2,000 test rows, three standard errors are 7.6 %."""
    given = rows("conformal", [1.0, 2.0], way="prefit", coverage=coverage, n_test=1000)
    assert [bar.met for bar in bars.judge(Scores(given))] == met
    low, high = bars.conformal_bounds(Scores(given), Case("wine", "lightgbm", "prefit"))
    error = 3 * np.sqrt(0.09 * (1 / 150 + 1 / 2000))
    assert (low, high) == pytest.approx((0.9 - error, 0.9 + 1 / 151 + error))


@pytest.mark.parametrize(("factor", "met"), [(0.9, True), (0.995, False), (1.1, False)])
def test_residuals_by_the_model_are_held_against_none(factor, met):
    before = np.array([1.0, 1.2, 1.1, 1.3])
    given = [*rows("targets-only", before, way="prefit"), *rows("default", factor * before, way="prefit")]
    judged = {bar.text: bar for bar in bars.judge(Scores(given))}
    words = "prefit, CRPS: default against targets-only"
    assert judged[f"{words}, geometric mean of ratios at most 0.99"].met is met
    assert judged[f"{words} loses nowhere"].met is (factor < 1)
    given = [*rows("own", factor * before), *rows("default", before)]
    judged = {bar.text: bar.met for bar in bars.judge(Scores(given))}
    assert judged["trained here, CRPS: own against default, which trains clones, loses nowhere"] is (factor < 1)


def test_more_wins_than_losses_against_a_peer():
    better, worse = [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 6.0]
    given = [*rows("default", better), *rows("cbu", worse, base="", way="")]
    given += [*rows("default", worse, dataset="bike"), *rows("cbu", better, dataset="bike", base="", way="")]
    text = "trained here, CRPS: default wins more often than it loses against cbu"
    assert not next(bar for bar in bars.judge(Scores(given)) if bar.text == text).met
    given += [*rows("default", better, dataset="life"), *rows("cbu", worse, dataset="life", base="", way="")]
    bar = next(bar for bar in bars.judge(Scores(given)) if bar.text == text)
    assert bar.met
    assert bar.figure == "2-0-1"


def test_the_mean_of_the_distribution_stands_beside_the_model():
    text = report.tables([*rows("default", [1.0, 2.0], rmse=2.0, rmse_mean=1.9)])
    assert "wine, lightgbm, trained here" in text
    assert "0.950" in text


def test_results_of_before_can_be_read(tmp_path):
    old = {"dataset": "wine", "base": "catboost", "fold": 0, "scoring": "crps", "crps": 1.0, "nll": 2.0, "rmse": 3.0}
    path = tmp_path / "old.jsonl"
    path.write_text("".join(json.dumps({**old, "method": name}) + "\n" for name in ("auto", "cbu")))
    before = Experiment(folds=5, max_rows=20_000, max_trees=500)
    normal, cbu = results.read(path, before)
    assert (normal["method"], normal["base"], normal["way"]) == ("normal", "catboost", "trained")
    assert (cbu["method"], cbu["base"], cbu["way"]) == ("cbu", "", "")
    assert results.read(path, EXPERIMENT) == []
