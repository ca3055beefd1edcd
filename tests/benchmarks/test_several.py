"""The benchmark of several targets: made tables, scores of samples, and the report."""

import numpy as np
import pytest

pytest.importorskip("pandas")

from benchmarks.several import report
from benchmarks.several.data import MADE, made
from benchmarks.several.treeffuser import energy, variogram
from ibug.metrics import energy_score, variogram_score

pytestmark = pytest.mark.newest


def test_scores_are_those_of_ibug():
    """Treeffuser's environment has no ibug: its scores are written out again."""
    rng = np.random.default_rng(0)
    samples, y = rng.normal(size=(9, 20, 3)), rng.normal(size=(20, 3))
    np.testing.assert_allclose(energy(samples, y), energy_score(y, samples, reduce=None))
    np.testing.assert_allclose(variogram(samples, y), variogram_score(y, samples, reduce=None))


@pytest.mark.parametrize("name", MADE)
def test_made_tables(name):
    X, Y = made(name, 2000)
    assert X.shape == (2000, 5)
    x = X.to_numpy()
    error = Y - np.column_stack([np.sin(2 * x[:, 0]) + x[:, 1], x[:, 1] * x[:, 2]])
    correlation = np.corrcoef(error.T)[0, 1]
    if name == "correlated":
        assert correlation == pytest.approx(0.8, abs=0.03)
    elif name == "branches":
        assert correlation > 0.9
    else:
        assert abs(correlation) < 0.08
    if name == "turning":
        assert np.corrcoef(error[x[:, 1] > 1].T)[0, 1] > 0.5


def rows(method, energies, size=3000, dataset="ring"):
    common = {"dataset": dataset, "folds": 3, "max_rows": size, "method": method, "variogram": 1.0}
    return [{**common, "fold": fold, "energy": value} for fold, value in enumerate(energies)]


def test_report():
    boxes = {"dataset": "ring", "fold": 0, "folds": 3, "max_rows": 1000, "method": "boxes", "splits": 200}
    boxes |= {"n_conformal": 99, "n_targets": 2, "continuous": True, "all_intervals": 0.8, "error": 0.002}
    beside = {"marginal": 1.0, "best": 0.5, "worst": 0.6}
    found = report.text(
        [
            *rows("joint", [1.0, 1.1, 0.9]),
            *rows("independent", [1.2, 1.35, 1.1]),
            *rows("joint", [1.0, 1.0, 1.0], dataset="independent"),
            *rows("independent", [0.9, 0.9, 0.9], dataset="independent"),
            *rows("joint", [1.0], size=1000),
            *rows("treeffuser", [2.0], size=1000),
            {**boxes, "coverage": 0.95},
            *({**row, "method": "conditional", "crps": row["energy"], **beside} for row in rows("", [0.5, 0.6])),
        ]
    )
    lines = found.splitlines()
    assert any("met" in line and "1 of 1" in line and "where targets are dependent" in line for line in lines)
    assert any("MISSED" in line and "1.1111" in line for line in lines)
    assert any("met" in line and "1 to 0" in line for line in lines)
    assert any("MISSED" in line and "0 of 1" in line and "boxes" in line for line in lines)
    assert "0.822 won  of  3" in found
    assert "0.550 tie  of  2" in found
    assert any("met" in line and "0.5500" in line and "never costs" in line for line in lines)
