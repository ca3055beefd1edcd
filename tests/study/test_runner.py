"""A run that is killed goes on where it was; a method that crashes or hangs does not stop the others."""

import io
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.common.lines import Store
from benchmarks.common.progress import Progress
from benchmarks.common.workers import Outcome
from benchmarks.study import cli, runner
from benchmarks.study.results import complete, read
from benchmarks.study.runner import Plan
from benchmarks.study.task import Task
from tests.study.stand_in_methods import row, work

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parent.parent.parent
TIMES = ("seconds", "date", "run", "train_seconds", "train_wall_seconds", "predict_seconds")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.jsonl"


def test_what_fails_is_recorded_and_the_others_go_on(path):
    plan = Plan(["yacht"], ["cbu", "bart", "pgbm", "ngboost"], folds=2)
    said = io.StringIO()
    runner.run(plan, path, None, jobs=2, stream=said, work=work)
    rows = read(path)
    states = {(each["method"], each["status"]) for each in rows}
    assert states == {("cbu", "failed"), ("bart", "failed"), ("pgbm", "skipped"), ("ngboost", "ok")}
    reasons = {each["method"]: each["reason"] for each in rows if each["status"] != "ok"}
    assert "ValueError: no such thing" in reasons["cbu"]
    assert "died" in reasons["bart"]
    assert reasons["pgbm"] == "too many rows"
    assert len(rows) == 2 * 3 + 2 * 4  # one with the reason, or one for each setting
    assert "8/8" in said.getvalue()
    assert not runner.remaining(plan, rows)
    assert {task.method for task in runner.remaining(plan, rows, retry=True)} == {"cbu", "bart"}
    assert "whole folds: 1, 2" in runner.status(plan, path)


def test_a_method_that_hangs_is_ended(path):
    plan = Plan(["yacht"], ["knn", "ngboost"], folds=1)
    runner.run(plan, path, None, jobs=1, time_limit=2, stream=io.StringIO(), work=work)
    states = {each["method"]: each for each in read(path)}
    assert states["knn"]["status"] == "timeout"
    assert states["knn"]["reason"] == "passed the time limit of 2 s"
    assert states["ngboost"]["status"] == "ok"


def test_the_time_left_is_reckoned_by_method():
    tasks = Plan(["yacht"], ["knn", "bart", "cbu"], folds=3).tasks()
    said = io.StringIO()
    progress = Progress("study", 12, tasks, 2, said)
    for outcome in (
        Outcome(tasks[0], "ok", [], "", 10.0),  # 8 tasks of 10 s, two at a time
        Outcome(tasks[1], "failed", None, "no", 100.0),  # 2 of 10 s, 2 of 100 s, 3 of 55 s
    ):
        progress.tell(outcome.task, outcome.seconds, outcome.problem)
    lines = said.getvalue().splitlines()
    assert lines[0] == "[study] 3 of 12 tasks are done already; 9 are left"
    assert lines[2] == "[study] 4/12 yacht knn fold 1: 10.0 s; 40 s left"
    assert lines[3] == "[study] 5/12 yacht bart fold 1: failed: no; 3 min left"


def test_folds_are_outermost():
    tasks = Plan(["yacht", "energy"], ["knn", "cbu"], folds=2, max_rows=100).tasks()
    assert [task.fold for task in tasks] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert tasks[0] == Task("yacht", "knn", 0, "quick", 100)


def test_a_torn_line_is_cut_off_and_its_task_done_again(path):
    plan = Plan(["yacht"], ["ngboost"], folds=2)
    with Store(path) as store:
        for task in plan.tasks():
            store.append(runner.rows_of(Outcome(task, "ok", work(task), "", 1.0)))
    whole = path.read_bytes()
    assert len(whole.splitlines()) == 8
    path.write_bytes(whole[: len(whole) - 30])
    assert len(read(path)) == 7
    assert len(runner.remaining(plan, read(path))) == 1
    runner.run(plan, path, None, stream=io.StringIO(), work=work)
    assert len(read(path)) == 8
    for line in path.read_text().splitlines():
        json.loads(line)


def test_a_broken_line_in_the_middle_is_not_passed_over(path):
    path.write_text('{"dataset"\n{}\n')
    with pytest.raises(ValueError, match="line 1 is no JSON"):
        read(path)


def test_a_result_that_json_does_not_have_survives(path):
    task = Task("yacht", "knn", 0, "quick", None)
    with Store(path) as store:
        store.append([row(task, crps=float("inf"), run="a")])
    assert float(read(path)[0]["crps"]) == float("inf")


def test_two_runs_cannot_write_to_one_file(path):
    with Store(path), pytest.raises(SystemExit, match="Another run"), Store(path):
        pass


def test_a_task_is_complete_with_all_settings_only():
    task = Task("yacht", "knn", 0, "quick", None)
    rows = [row(task, run="a"), row(task, "nll", run="a")]
    assert list(complete(rows, 4)) == []
    assert list(complete(rows * 2, 4)) == [task]


def command(path):
    options = ["--datasets", "synthetic", "--max-rows", "300", "--folds", "3", "--methods", "knn,ibug-hist"]
    return ["run", *options, "--results", str(path)]


def comparable(path):
    rows = [{name: value for name, value in each.items() if name not in TIMES} for each in read(path)]
    return sorted(rows, key=lambda each: json.dumps(each, sort_keys=True))


def test_killed_and_resumed_it_has_the_same_results(tmp_path, capsys):
    """The real command, killed while it works: the second start does the rest, and all is as without the kill."""
    pytest.importorskip("pandas")
    killed, whole = tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    call = [sys.executable, "-m", "benchmarks", *command(killed)]
    process = subprocess.Popen(call, cwd=ROOT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not killed.exists() or len(killed.read_bytes().splitlines()) < 8:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = len(read(killed))
    assert 8 <= before < 24
    assert cli.main(command(killed)) == 0
    again = capsys.readouterr()
    assert "tasks are done already" in again.err
    assert "6 of 6 tasks are done" in again.out
    assert cli.main(command(whole)) == 0
    assert len(comparable(whole)) == 24
    assert comparable(killed) == comparable(whole)
    capsys.readouterr()
    assert cli.main(command(killed)) == 0
    assert "0 tasks" in capsys.readouterr().err
