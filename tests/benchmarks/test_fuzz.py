"""Forged cases, in processes with limits: a few of each kind."""

import sys

import pytest

from tests.benchmarks.started import run

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limits are Linux's")


def test_fuzz():
    pytest.importorskip("skops")
    pytest.importorskip("pandas")
    printed = run("fuzz.py", "--minutes", "0.001", "--block", "2")
    assert "files: 14 cases" in printed
    assert "arrays: 4 cases" in printed
    assert "rows: 2 cases" in printed
    assert "20 cases, seeds 0 to 1; 0 ended as they must not" in printed


def test_a_death_is_told_and_the_rest_goes_on(monkeypatch):
    from benchmarks.fuzz import run as fuzz

    code = (
        "import json, os, sys\n"
        "for kind, seed in json.loads(sys.stdin.readline()):\n"
        "    print(json.dumps([kind, seed]), flush=True)\n"
        "    if (kind, seed) == ('arrays', 1): os.abort()\n"
        "    print(json.dumps('fine'), flush=True)"
    )
    monkeypatch.setattr(fuzz, "_CHILD", code)
    ended = list(fuzz.block(range(1)))
    assert [one[:2] for one in ended if one[2] != "fine"] == [("arrays", 1)]
    assert "UNEXPECTED death" in next(one[2] for one in ended if one[2] != "fine")
    assert len(ended) == 10
