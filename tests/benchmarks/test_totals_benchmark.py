"""The benchmark of totals: its made rows, ranks of validation blocks, and a small run of all of it."""

import numpy as np
import pytest

pytest.importorskip("pandas")

from benchmarks.totals import report, schaake
from benchmarks.totals.data import KNOWN, divided, made
from tests.benchmarks.started import marked, run

pytestmark = pytest.mark.newest


@pytest.mark.parametrize("name", KNOWN)
def test_made_rows_have_the_known_correlations(name):
    """Products of pairs of rows of a block, over 20 draws: those of nested blocks have the outer factor, too."""
    found = []
    for seed in range(20):
        case = made(name, seed)
        x = case.X.to_numpy()
        error = (case.y - np.sin(2 * x[:, 0]) - x[:, 1]) / (0.5 + 0.3 * np.abs(x[:, 2]))
        found.append([])
        for kind in case.blocks:
            rows = error.reshape(len(np.unique(case.blocks[kind])), -1)
            size = rows.shape[1]
            found[-1].append(((rows.sum(axis=1) ** 2).mean() - size * np.mean(rows**2)) / (size * (size - 1)))
    expected = list(KNOWN[name].values())
    if name == "made-nested":  # a pair of rows of a week is of one day with probability 5 / 41
        week, day = expected
        expected = [week + day * 5 / 41, week + day]
    np.testing.assert_allclose(np.mean(found, axis=0), expected, atol=0.012)


def test_splits_divide_no_unit_and_test_each_once():
    case = made("made-nested", 0)
    tested = []
    for split in range(5):
        parts = [np.unique(part.units) for part in divided(case, split)]
        assert [len(part) for part in parts] == [180, 60, 60]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(300))
        tested.append(parts[2])
    np.testing.assert_array_equal(np.sort(np.concatenate(tested)), np.arange(300))


def test_ranks_are_taken_from_the_same_place():
    rng = np.random.default_rng(0)
    quantiles = np.sort(rng.normal(size=(5, len(schaake.LEVELS))), axis=1)
    known, blocks = np.array([0.2, 0.9, 0.4, 0.5, 0.6, 0.7]), np.array([7, 7, 9, 9, 9, 9])
    units, groups = np.array([1, 1, 2, 2, 2]), np.array(["b", "a", "b", "b", "b"])
    at = [[0.2, 0.9, 0.2, 0.9, 0.9], [0.5, 0.7, 0.4, 0.6, 0.7]]  # two rows take both, or the 2nd and 4th of four
    expected = np.zeros((2, 2))
    for j in range(2):
        for row in range(5):
            expected[int(groups[row] == "b"), j] += np.interp(at[j][row], schaake.LEVELS, quantiles[row])
    np.testing.assert_allclose(schaake.samples(quantiles, units, groups, known, blocks), expected, rtol=1e-5)
    low = np.array([0.3, 0.1, 0.7, 0.3])
    np.testing.assert_allclose(np.sort(schaake.ranks(low, low + 0.05, rng)), [0.125, 0.375, 0.625, 0.875])
    assert schaake.ranks(low, low + 0.05, rng)[1] == 0.125


def test_scores_of_samples_and_of_quantiles():
    rng = np.random.default_rng(0)
    values, y = rng.normal(size=(6, 40)), rng.normal(size=6)
    apart = np.abs(values[:, :, None] - values[:, None, :]).mean(axis=(1, 2))
    expected = np.abs(values - y[:, None]).mean(axis=1) - apart / 2
    np.testing.assert_allclose(schaake.crps_of_samples(values, y), expected)
    from scipy.stats import norm

    score = 1.5 * (2 * norm.cdf(1.5) - 1) + 2 * norm.pdf(1.5) - 1 / np.sqrt(np.pi)
    quantiles = norm.ppf(schaake.LEVELS)[None, :]
    np.testing.assert_allclose(schaake.crps_of_quantiles(quantiles, np.array([1.5])), score, rtol=0.01)


def test_it_runs_small(tmp_path):
    pytest.importorskip("lightgbm")
    page, results = marked(tmp_path, "totals.py"), tmp_path / "totals.jsonl"
    options = ["--trees", "20", "--max-units", "60", "--cases", "made-one,made-nested", "--results", results]
    printed = run("totals.py", *options, "--splits", "2")
    assert "made-nested" in printed
    assert run("totals.py", *options, "--splits", "2") == printed  # all was known
    printed = run(
        "totals.py", "--speed", "--speed-rows", "2000", "--trees", "5", "--results", results, "--report", page
    )
    assert "2,000 rows in 1,000 groups" in printed
    assert printed.strip() in page.read_text()
    one = next(line for line in printed.splitlines() if line.startswith("  made-one"))
    assert one.split()[1:3] == ["24", "12"]  # totals of both splits, validation blocks


def rows(case, method, crps, coverage=0.9, units=100, **more):
    common = {"case": case, "method": method, "trees": 1, "max_units": None, "groups": 50, "units": units, "width": 4.0}
    return [{**common, "split": i, "crps": value, "coverage": coverage, **more} for i, value in enumerate(crps)]


def every(case, ours, base, estimate, kinds=("day",), **more):
    learned = {"kinds": kinds, "estimates": estimate, "errors": [0.02] * len(kinds), "used": estimate}
    others = [row for name in ("ends", "ranks") for row in rows(case, name, base)]
    return [*rows(case, "factor", ours, **learned, **more), *rows(case, "independent", base), *others]


def test_bars():
    found = report.bars(
        [
            *every("a", [1.0, 1.1, 0.9], [1.2, 1.35, 1.1], [0.2], coverage=0.94, units=99),
            *every("b", [1.2, 1.2, 1.2], [1.2, 1.35, 1.1], [0.2], coverage=0.94),
            *every("made-none", [1.1, 1.1, 1.1], [1.0, 1.0, 1.0], [0.05 - 1e-3]),
            *every("made-one", [1.0, 1.1, 0.9], [1.2, 1.35, 1.1], [0.23]),
            {"case": "speed", "split": 0, "method": "speed", "ratio": 2.5},
        ]
    )
    verdicts = {line.split("  ")[-1]: line.split()[:2] for line in found}
    assert verdicts["a: 85% to 95% inside, 99 validation blocks"] == ["met", "94.0%"]
    assert verdicts["b: 87% to 93% inside, 100 validation blocks"] == ["MISSED", "94.0%"]
    assert verdicts["a: CRPS better than of independent rows by a t-test"] == ["met", "0.822"]
    assert verdicts["b: CRPS better than of independent rows by a t-test"] == ["MISSED", "0.986"]
    assert verdicts["made-none: CRPS no worse than 0.3% where rows are independent"] == ["MISSED", "1.1000"]
    known = {text: verdict for text, verdict in verdicts.items() if "standard errors" in text}
    assert known == {
        "made-one: day's 0.2 is within two standard errors in 80% of splits or more": ["met", "3"],
        "made-none: day's 0.0 is within two standard errors in 80% of splits or more": ["MISSED", "0"],
    }
    assert verdicts["totals take at most 2 times as long as distributions of rows"] == ["MISSED", "2.50"]
