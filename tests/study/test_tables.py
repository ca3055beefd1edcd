"""The tables are right on hand-made results."""

import json
import math

import pytest
from benchmarks.study import facts, report, tables
from benchmarks.study.runner import Plan
from benchmarks.study.scores import Scores
from benchmarks.study.statistics import Record, compare, geometric_mean, mean_and_error, record

MAIN = tables.TABLES[0]


def folds(*values):
    return dict(enumerate(values))


def rows(dataset, method, values, **more):
    common = {"dataset": dataset, "method": method, "grid": "quick", "max_rows": None, "status": "ok"}
    common |= {"n_train": 90, "n_test": 10, "n_features": 3, "date": "2020-01-02T03:04:05", "versions": {"ibug": "9"}}
    return [
        {**common, "fold": fold, "scoring": scoring, "calibrated": calibrated, "crps": value, "nll": value, **more}
        for fold, value in enumerate(values)
        for scoring in ("crps", "nll")
        for calibrated in (True, False)
    ]


# Differences 1, 2, 3: mean 2, standard error 1/sqrt(3), t = 3.4641 with 2 degrees of freedom, p = 0.0742.
# Differences 1, 2, 3, 2: t = 4.8990 with 3 degrees of freedom, p = 0.0163.
@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (folds(1, 2, 3), folds(2, 4, 6), 0),
        (folds(1, 2, 3, 4), folds(2, 4, 6, 6), 1),
        (folds(2, 4, 6, 6), folds(1, 2, 3, 4), -1),
        (folds(1, 2), folds(1, 2), 0),
        (folds(1, 2), folds(2, 3), 1),  # always the same difference
        (folds(1), folds(2), 0),
        (folds(1, 2, 3, 4), {0: 2, 1: 4, 7: 100}, 0),  # two common folds with t = 3, p = 0.2
        (folds(1, 2, math.inf), folds(2, 4, 6), 0),
    ],
)
def test_a_known_t_test(ours, theirs, expected):
    assert compare(ours, theirs) == expected


def test_a_known_record():
    win, tie = (folds(1, 2, 3, 4), folds(2, 4, 6, 6)), (folds(1, 2, 3), folds(2, 4, 6))
    assert record([win, win, tie, win[::-1]]) == Record(2, 1, 1)
    assert str(Record(2, 1, 1)) == "2-1-1"


def test_means():
    mean, error = mean_and_error(folds(1, 2, 3))
    assert mean == 2
    assert error == pytest.approx(1 / math.sqrt(3))
    assert math.isnan(mean_and_error(folds(1))[1])
    assert geometric_mean([1, 100]) == pytest.approx(10)


def test_a_table_has_ours_the_papers_and_the_record():
    better, worse = [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 6.0]
    results = [*rows("concrete", "ibug-catboost", better), *rows("concrete", "cbu", worse)]
    results += [*rows("yacht", "ibug-catboost", better), *rows("yacht", "cbu", better[::-1])]
    lines = tables.render(MAIN, Scores(results)).splitlines()
    table = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in lines if "|" in line
    }
    header = table["Dataset"]
    assert header[:5] == ["NGBoost", "PGBM", "CBU", "IBUG", "IBUG+CBU"]
    assert table["Concrete"][2] == "4.50 ±0.96 / 1.79"
    assert table["Concrete"][3] == "**2.50** ±0.65 / 1.85"
    assert table["Concrete"][0] == "– / 3.41"
    assert table["Yacht"][2] == "**2.50** ±0.65 / 0.281"
    assert table["*IBUG W-T-L*"][2] == "1-1-0 / 9-5-8"
    assert table["*IBUG W-T-L*"][3] == "-"
    assert table["*IBUG+CBU W-T-L*"][2] == "0-0-0 / 18-2-2"


def test_the_best_is_bold_and_what_its_error_reaches():
    results = [
        *rows("wine", "cbu", [1.0, 1.2]),
        *rows("wine", "pgbm", [1.15, 1.35]),
        *rows("wine", "ngboost", [3.0, 3.1]),
    ]
    line = next(line for line in tables.render(MAIN, Scores(results)).splitlines() if "Wine" in line)
    assert "**1.10** ±0.10" in line
    assert "**1.25** ±0.10" in line
    assert "| 3.05 ±0.05" in line


def test_calibration_compares_a_method_with_itself():
    results = [
        {**row, "crps": row["crps"] - (row["fold"] + 1 if row["calibrated"] else 0)}
        for row in rows("wine", "cbu", [10.0, 10.0, 10.0, 11.0])
    ]
    text = tables.calibration(Scores(results))
    # Differences 1, 2, 3, 4: t = 3.873, p = 0.030; of the NLL there are none.
    assert "| CBU | 1-0-0 / 17-5-0 | 0-1-0 / 11-11-0 |" in text


def test_times_have_a_geometric_mean_over_common_datasets():
    table = next(table for table in tables.TABLES if table.metric == "predict_seconds")
    results = [*rows("wine", "cbu", [1.0], predict_seconds=1e-3), *rows("yacht", "cbu", [1.0], predict_seconds=1e-1)]
    results += rows("wine", "pgbm", [1.0], predict_seconds=2e-3)
    line = next(line for line in tables.render(table, Scores(results)).splitlines() if "Geometric" in line)
    assert line.split("|")[3].split("/")[0].strip() == "2.00"
    assert line.split("|")[4].split("/")[0].strip() == "1.00"  # of wine alone


def test_the_facts_of_the_paper():
    assert facts.values()["crps", "Concrete", "IBUG"] == 1.849
    assert facts.values()["crps_bart", "Yacht", "BART"] == 0.849
    assert facts.wins()["crps", "IBUG", "CBU"] == Record(9, 5, 8)
    for (*_, name), paper in facts.wins().items():
        assert sum(paper) in (11, 22), name


def test_every_table_renders_without_results():
    assert "### CRPS" in tables.every(Scores([]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00"),
        (0.5, "0.500"),
        (1.849, "1.85"),
        (38346, "38346"),
        (3e-5, "3.00e-05"),
        (1e11, "1.00e+11"),
        (-0.639, "-0.639"),
        (math.inf, "∞"),
        (99.96, "100.0"),
    ],
)
def test_numbers_take_little_room(value, text):
    assert tables.number(value) == text


def test_the_document_is_written_between_its_marks(tmp_path):
    results, document = tmp_path / "results.jsonl", tmp_path / "study.md"
    given = [{**row, "run": "a"} for row in rows("wine", "cbu", [1.0, 2.0])]
    failed = {**given[0], "method": "bart", "status": "failed", "reason": "no | reason", "run": "b"}
    results.write_text("".join(json.dumps(row) + "\n" for row in [*given, failed]))
    document.write_text(f"before\n{report.BEGIN}\nstale\n{report.END}\nafter\n")
    plan = Plan(["wine", "yacht"], ["cbu", "bart"], folds=5)
    report.write(plan, results, document)
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"{report.END}\nafter\n")
    assert "stale" not in text
    assert "--folds 5 --grid quick" in text
    assert "on 2020-01-02" in text
    assert "the first ones were run: 2 for 1 of the datasets." in text
    assert "| BART (stochtree) | failed | no / reason | Wine 1 |" in text
    report.write(plan, results, document)
    assert document.read_text() == text


def test_a_document_without_marks_is_left_alone(tmp_path):
    document = tmp_path / "study.md"
    document.write_text("mine")
    with pytest.raises(SystemExit, match="once each"):
        report.write(Plan([], [], 1), tmp_path / "none.jsonl", document)
    assert document.read_text() == "mine"
