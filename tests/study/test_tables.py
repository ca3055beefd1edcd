"""The tables are right on hand-made results."""

import json
import math

import pytest

from benchmarks.common.statistics import Record, compare, geometric_mean, mean_and_error, record
from benchmarks.study import checks, facts, report, summary, tables
from benchmarks.study.runner import Plan
from benchmarks.study.scores import Scores

pytestmark = pytest.mark.newest

MAIN = tables.TABLES[0]
NAMES = ("summary", "claims", "differences", "tables")  # of the parts of the document


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


def test_the_summary_tells_where_ibug_wins_and_loses():
    better, worse = [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 6.0]
    results = [*rows("concrete", "ibug-catboost", better), *rows("concrete", "cbu", worse)]
    results += [*rows("yacht", "ibug-catboost", worse), *rows("yacht", "cbu", better)]
    results += [*rows("wine", "ibug-catboost", better), *rows("wine", "cbu", worse), *rows("wine", "knn", worse)]
    text = summary.render(Scores(results))
    assert "over 3 datasets" in text
    # Ratios 10/18, 18/10, 10/18 of the means 2.5 and 4.5; differences -2, 2, -2.
    assert "| CRPS, against | IBUG |\n|---|---|\n| CBU | 2-0-1 (0.56) |\n" in text
    assert "| CBU | 2-0-1 (-2.00) |" in text
    assert "**IBUG**, by CRPS: more wins than losses against CBU, kNN. It loses to CBU on Yacht." in text
    assert "IBUG+CBU" not in text  # which was not run


def test_the_summary_compares_the_folds_that_both_have():
    results = [*rows("wine", "ibug-catboost", [1.0, 2.0, 90.0]), *rows("wine", "cbu", [2.0, 4.0])]
    assert "| CBU | 0-1-0 (0.50) |" in summary.render(Scores(results))


def test_the_default_is_compared_with_the_papers_rule():
    better, worse = [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 6.0]
    text = summary.render(Scores([*rows("wine", "default-catboost", better), *rows("wine", "ibug-catboost", worse)]))
    assert "| CRPS, against | IBUG | ibug's default |\n|---|---|---|\n| IBUG | - | 1-0-0 (0.56) |" in text


def test_the_papers_claims_are_beside_ours():
    better, worse = [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 6.0]
    results = [*rows("wine", "ibug-catboost", better), *rows("wine", "ngboost", worse), *rows("wine", "cbu", better)]
    results += [*rows("wine", "ibug+cbu", worse)]
    text = summary.claims(Scores(results))
    assert "| IBUG against NGBoost | 17-3-2 | 1-0-0 of 1 | we agree |" in text
    assert "| IBUG against PGBM | 11-9-2 | – | not run |" in text
    assert "| IBUG against CBU | 9-5-8 | 0-1-0 of 1 | not told apart |" in text
    assert "| IBUG+CBU against CBU | 18-2-2 | 0-0-1 of 1 | we do not agree |" in text


def test_methods_with_fewer_folds_are_named():
    results = [*rows("wine", "cbu", [1.0, 2.0]), *rows("yacht", "cbu", [1.0, 2.0]), *rows("wine", "knn", [1.0])]
    given = report.how(Plan(["wine", "yacht"], ["cbu", "knn"], folds=5), results, Scores(results))
    assert "2 for 2 of the datasets. Fewer were run of kNN, 1 on 1 of the datasets." in given
    assert "--methods cbu,knn" in given


def test_the_summary_names_whom_it_is_level_with_and_behind():
    better, worse = [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 6.0]
    results = [*rows("wine", "ibug-catboost", worse), *rows("wine", "cbu", better), *rows("wine", "knn", worse)]
    text = summary.render(Scores(results))
    assert "**IBUG**, by CRPS: as many against kNN; fewer against CBU. It loses to CBU on Wine." in text


def test_what_is_far_from_the_paper_is_listed():
    # The paper's CRPS on Concrete: CBU 1.788, IBUG 1.849, NGBoost 3.410.
    results = [*rows("concrete", "cbu", [2.3, 2.3]), *rows("concrete", "ibug-catboost", [5.0, 5.2])]
    results += rows("concrete", "ngboost", [1.0, 1.0])
    text = summary.far_from_paper(Scores(results))
    assert "| Concrete | CRPS | IBUG 5.10 / 1.85 | NGBoost 1.00 / 3.41 |" in text
    assert "CBU" not in text
    assert "differ from it by a factor of 1.3" in text


def test_trees_that_the_limit_ended_are_counted():
    grown = [{**row, "parameters": {"trees": 300 if row["fold"] else 120}} for row in rows("wine", "cbu", [1, 2, 3])]
    text = report.how(Plan(["wine"], ["cbu"], 3), grown, Scores(grown))
    assert "not the validation rows: CBU 2 of 3." in text


def test_folds_are_listed_in_few_signs():
    failed = [
        {"method": "bart", "dataset": "wine", "fold": fold, "status": "failed", "reason": "r"} for fold in (0, 1, 3)
    ]
    assert "| BART (stochtree) | failed | r | Wine 1–2, 4 |" in report.missing(failed)


def marked(stale):
    parts = [f"{report.BEGIN.format(name)}\n{stale}\n{report.END}" for name in NAMES]
    return "\nbetween\n".join(["before", *parts, "after\n"])


def test_the_document_is_written_between_its_marks(tmp_path):
    results, document = tmp_path / "results.jsonl", tmp_path / "study.md"
    given = [{**row, "run": "a"} for row in rows("wine", "cbu", [1.0, 2.0])]
    failed = {**given[0], "method": "bart", "status": "failed", "reason": "no | reason", "run": "b"}
    results.write_text("".join(json.dumps(row) + "\n" for row in [*given, failed]))
    document.write_text(marked("stale"))
    plan = Plan(["wine", "yacht"], ["cbu", "bart"], folds=5)
    report.write(plan, results, document)
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"{report.END}\nbetween\nafter\n")
    assert text.count("between") == 5
    assert "stale" not in text
    assert "--folds 5 --grid quick" in text
    assert "on 2020-01-02" in text
    assert "the first ones were run: 2 for 1 of the datasets." in text
    assert "| BART (stochtree) | failed | no / reason | Wine 1 |" in text
    report.write(plan, results, document)
    assert document.read_text() == text


@pytest.mark.parametrize(
    "spoil", [lambda text: "mine", lambda text: text + text, lambda text: text[: -len("here -->") * 4]]
)
def test_a_document_without_marks_is_left_alone(spoil, tmp_path):
    document = tmp_path / "study.md"
    before = spoil(marked("mine"))
    document.write_text(before)
    with pytest.raises(SystemExit, match=r"must have the line .* once"):
        report.write(Plan([], [], 1), tmp_path / "none.jsonl", document)
    assert document.read_text() == before


def test_checks_stand_beside_the_study_and_the_paper():
    study = Scores([*rows("bike", "ibug-xgboost", [2.0, 4.0, 6.0]), *rows("concrete", "cbu", [1.0])])
    again = [*rows("bike", "ibug-xgboost-exact", [1.0, 2.0]), *rows("concrete", "cbu", [1.5], max_rows=500)]
    lines = checks.render(study, again).splitlines()[2:]
    assert lines == [
        "| Concrete | CBU | 1.00 | 1.50 | 1.79 | up to 500 rows | 1 |",
        "| Bike | IBUG (XGBoost) | 3.00 | 1.50 | 0.849 | IBUG (XGBoost, exact splits), all rows | 2 |",
    ]


def test_every_method_that_may_be_run_again_has_a_name_in_the_paper():
    varied = {known.varies for known in tables.METHODS.values() if known.varies}
    assert varied == {"knn", "ngboost", "ibug-xgboost"}
    assert varied <= set(checks.NAMES)
