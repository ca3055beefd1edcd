"""Benchmarks on real data, of which scikit-learn's bundled one is always at hand."""

import pytest

from tests.benchmarks.started import run

pytestmark = pytest.mark.newest


@pytest.mark.parametrize("command", [["shift.py"], ["interval_coverage.py", "--splits", "1"]])
def test_real_data_benchmarks_on_bundled_data(command):
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    assert "diabetes" in run(*command)


def test_which_rows_to_label():
    pytest.importorskip("lightgbm")
    pytest.importorskip("pandas")
    printed = run("labelling.py", "--seeds", "1")
    assert [line.split()[:2] for line in printed.splitlines()[-2:]] == [
        ["diabetes", "the"],
        ["diabetes", "rank_for_labelling"],
    ]


def test_the_noisy_feature_is_found(monkeypatch):
    pytest.importorskip("lightgbm")
    pytest.importorskip("shap", exc_type=ImportError)
    monkeypatch.setattr("benchmarks.explain.width.N_FEATURES", 6)  # the time grows with them
    lines = run("width.py", "--rows", "2", "--train", "400").splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["two", "slope"]


def test_ensembles():
    pytest.importorskip("catboost")
    pytest.importorskip("pandas")
    printed = run("ensembles.py", "--folds", "1", "--trees", "20")
    assert "diabetes: 442 rows, 1 folds" in printed
    assert [line.split()[0] for line in printed.splitlines()[-4:]] == ["IBUG", "CBU", "average", "mixture"]


def test_a_column_that_is_the_target_is_left_out(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from benchmarks.common.data import load

    frame = pd.DataFrame({"x": ["a", None, "b"], "critical_temp": [1.0, 2.0, 3.0], "target": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "superconductor.parquet")
    X, y = load("superconductor", tmp_path)
    assert list(X) == ["x"]
    assert str(X["x"].dtype) == "category"
    assert y.tolist() == [1.0, 2.0, 3.0]
