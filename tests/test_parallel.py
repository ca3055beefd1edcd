"""Work that is divided among threads."""

import threading
from contextvars import ContextVar

import pytest
from joblib import effective_n_jobs

from ibug import _parallel
from ibug._parallel import n_threads_of, run_parallel
from ibug.exceptions import InvalidInputError

pytestmark = pytest.mark.once


def test_works_run_at_the_same_time_and_answer_in_order():
    met = threading.Barrier(3, timeout=30)

    def work(number):
        met.wait()  # which no work passes before all are there
        return number, threading.get_ident()

    found = run_parallel([lambda i=i: work(i) for i in range(3)])
    assert [number for number, _ in found] == [0, 1, 2]
    assert found[0][1] == threading.get_ident()
    assert len({ident for _, ident in found}) == 3


def test_one_work_needs_no_thread():
    assert run_parallel([threading.get_ident]) == [threading.get_ident()]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_is_raised_after_the_others_have_ended(failing):
    ended = []

    def work(number):
        if number == failing:
            raise KeyError(number)
        ended.append(number)

    with pytest.raises(KeyError, match=str(failing)):
        run_parallel([lambda i=i: work(i) for i in range(3)])
    assert sorted(ended) == [number for number in range(3) if number != failing]


def test_works_see_the_context_of_the_caller():
    # NumPy's error state is in it from version 2 on.
    variable = ContextVar("variable", default=0)
    variable.set(7)
    assert run_parallel([variable.get] * 3) == [7, 7, 7]


def test_n_jobs_is_in_the_convention_of_joblib():
    assert n_threads_of(None, 9) == n_threads_of(1, 9) == 1
    assert n_threads_of(3, 9) == 3
    assert n_threads_of(-1, 9) == min(9, effective_n_jobs(-1))


def test_no_more_threads_than_there_are_parts():
    assert n_threads_of(3, 2) == 2
    assert n_threads_of(3, 1) == n_threads_of(-1, 0) == 1


def test_joblib_is_not_asked_where_one_thread_is_enough(monkeypatch):
    monkeypatch.setattr(_parallel, "effective_n_jobs", None)
    assert n_threads_of(-1, 1) == 1


@pytest.mark.parametrize("n_jobs", [0, 1.0, 1.5, "2", [2]])
def test_other_n_jobs_are_refused_whatever_there_is_to_do(n_jobs):
    for most in (1, 9):
        with pytest.raises(InvalidInputError, match="a whole number other than 0"):
            n_threads_of(n_jobs, most)
