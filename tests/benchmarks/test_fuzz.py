"""A few cases of each kind: forged ones in processes with limits, and random options."""

import sys

import numpy as np
import pytest

from tests.benchmarks.started import run

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limits are Linux's"),
]


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


@pytest.fixture
def fuzz_options(monkeypatch):
    for library in ("lightgbm", "xgboost", "catboost", "skops"):
        pytest.importorskip(library)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.usefixtures("fuzz_options")
@pytest.mark.parametrize("block", [*range(4), *(pytest.param(block, marks=pytest.mark.slow) for block in range(4, 8))])
def test_random_options_hold(block):
    from benchmarks.fuzz import cases

    ended = [cases.run("options", seed) for seed in range(5 * block, 5 * block + 5)]
    assert sum(one.startswith("holds") for one in ended) >= 3, ended


@pytest.mark.usefixtures("fuzz_options")
def test_what_lightgbm_itself_cannot_do_is_no_failure_of_ours():
    from lightgbm.basic import LightGBMError

    from benchmarks.fuzz import cases, options

    case = options.draw(974)
    (X, y), *_ = case.rows
    weights = np.random.default_rng([case.seed, 2]).integers(1, 4, case.n_train)
    with pytest.raises(LightGBMError, match="best_split_info"):
        case.estimator().fit(X, y, sample_weight=weights)
    assert cases.run("options", case.seed) == "LightGBM cannot train this model"


@pytest.mark.usefixtures("fuzz_options")
@pytest.mark.parametrize(
    ("method", "wrong", "told"),
    [
        ("ppf", lambda found: found[..., ::-1] if np.ndim(found) == 2 else found, "quantiles fall"),
        ("cdf", lambda found: found**1.1, "cdf"),
        ("logpdf", lambda found: found + 0.1, "does not integrate"),
        ("crps", lambda found: 1.1 * found, "crps is not the integral"),
        ("mean", lambda found: found + 0.3, "mean is not that of cdf"),
        ("rvs", lambda found: found + 1e9, "samples"),
    ],
)
def test_what_is_wrong_is_found(monkeypatch, method, wrong, told):
    from benchmarks.fuzz import invariants
    from ibug.distributions import Normal

    class Wrong(Normal):
        pass

    def broken(self, *arguments):
        return wrong(getattr(Normal, method)(self, *arguments))

    monkeypatch.setattr(Wrong, method, broken)
    rng = np.random.default_rng(0)
    y = rng.normal(size=50)
    invariants.check_distribution(Normal(np.zeros(50), np.ones(50)), y, (-np.inf, np.inf))
    with pytest.raises(invariants.BrokenError, match=told):
        invariants.check_distribution(Wrong(np.zeros(50), np.ones(50)), y, (-np.inf, np.inf))


def test_a_failing_case_names_its_reproducer(monkeypatch, capsys):
    from benchmarks.fuzz import run as fuzz

    monkeypatch.setattr(fuzz, "_CHILD", """input(); print('["options", 7]'); print('"UNEXPECTED x"')""")
    monkeypatch.setattr("sys.argv", ["fuzz.py", "--cases", "1", "--seed", "7"])
    with pytest.raises(SystemExit) as end:
        fuzz.main()
    assert end.value.code == 1
    assert "python benchmarks/fuzz.py --only options 7: UNEXPECTED x" in capsys.readouterr().out
