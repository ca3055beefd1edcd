"""The registry, the checks on load, the encoding and the ways to get a dataset."""

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.study import cli, sources
from benchmarks.study.datasets import DATASETS, DatasetError, at_hand, check, load
from benchmarks.study.encoding import encode

pytestmark = pytest.mark.newest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

HERE = os.environ.get("IBUG_DATA")


def yacht(n_rows=308, **columns):
    """Something with the shape of yacht, and its target's mean and deviation."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n_rows)
    y = 10.495357142857143 + 15.135858907655322 * (y - y.mean()) / y.std()
    return pd.DataFrame({**{f"x{i}": rng.normal(size=n_rows) for i in range(6)}, **columns, "target": y})


def test_the_registry_has_the_papers_22():
    assert len(DATASETS) == 22
    assert sum(dataset.paper_rows for dataset in DATASETS.values()) > 1e6
    assert set(sources.SHAPES) | {"synthetic"} == set(DATASETS)


def test_synthetic_is_generated():
    X, y = load("synthetic", None, max_rows=500)
    assert X.shape == (500, 100)
    np.testing.assert_array_equal(y, load("synthetic", None, max_rows=500)[1])
    assert at_hand(None) == ["synthetic"]


def test_what_is_absent_is_told_with_the_file_and_the_place(tmp_path):
    with pytest.raises(DatasetError, match=rf"put concrete\.parquet \(UCI 165.*into {tmp_path}.*fetch"):
        load("concrete", tmp_path)
    with pytest.raises(DatasetError, match="IBUG_DATA"):
        load("concrete", None)


def test_a_good_file_is_loaded_and_a_bad_one_refused(tmp_path):
    yacht().to_parquet(tmp_path / "yacht.parquet")
    assert load("yacht", tmp_path)[0].shape == (308, 6)
    assert at_hand(tmp_path) == ["synthetic", "yacht"]
    y = yacht()["target"]
    for frame, problem in [
        (yacht(300), "300 rows in place of 308"),
        (yacht(x9=0.5), "7 numeric columns in place of 6"),
        (yacht().assign(x0="a"), "1 categorical columns in place of 0"),
        (yacht().assign(target=y + 1), "mean"),
        (yacht().assign(target=y.mean() + 2 * (y - y.mean())), "deviation"),
        (yacht().assign(target=np.nan), "missing"),
    ]:
        with pytest.raises(DatasetError, match=problem):
            check(DATASETS["yacht"], frame)
    with pytest.raises(DatasetError, match="last column"):
        check(DATASETS["yacht"], yacht().rename(columns={"target": "y"}))


@pytest.mark.skipif(not HERE, reason="IBUG_DATA names no folder with datasets")
def test_the_files_at_hand_are_those_of_the_registry():
    for name in at_hand(Path(HERE)):
        X, y = load(name, Path(HERE))
        encoded = encode(X, X[:5])[0]
        assert encoded.shape == (len(y), DATASETS[name].encoded), name
        assert np.all(np.isfinite(encoded))


def test_encoding_knows_the_training_rows_only():
    train = pd.DataFrame({"n": [1.0, np.nan, 4.0], "t": ["a", None, "b"]})
    test = pd.DataFrame({"n": [np.nan], "t": ["never seen"]})
    fitted, transformed = encode(train, test)
    np.testing.assert_array_equal(fitted, [[1, 1, 0], [2.5, 1, 0], [4, 0, 1]])  # "a" is the most frequent, by order
    np.testing.assert_array_equal(transformed, [[2.5, 0, 0]])


def test_fetch_writes_what_the_client_gives(tmp_path, monkeypatch):
    raw = yacht().rename(columns={"target": " resistance"})
    monkeypatch.setattr(sources, "_from_uci", lambda number: {243: raw}[number])
    assert "308 rows, 6 features" in sources.fetch("yacht", tmp_path)
    assert load("yacht", tmp_path)[0].shape == (308, 6)
    assert "already" in sources.fetch("yacht", tmp_path)


def test_fetch_without_a_network_tells_what_to_do(tmp_path, monkeypatch):
    def offline(number):
        raise ConnectionError("no route")

    monkeypatch.setattr(sources, "_from_uci", offline)
    with pytest.raises(DatasetError, match=r"UCI 363: no route.*Features_Variant_1.csv.*--raw"):
        sources.fetch("facebook", tmp_path)
    with pytest.raises(DatasetError, match="Kaggle"):
        sources.fetch("life", tmp_path)
    assert not list(tmp_path.iterdir())


def test_fetch_refuses_another_release(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_from_uci", lambda number: yacht(300).rename(columns={"target": "resistance"}))
    with pytest.raises(DatasetError, match="another release"):
        sources.fetch("yacht", tmp_path)
    assert not list(tmp_path.iterdir())


def texts_of(frame):
    return [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]


def test_raw_files_of_the_sources_get_the_papers_shape():
    rng = np.random.default_rng(0)
    wave = sources.SHAPES["wave"](pd.DataFrame(rng.normal(size=(5, 49))))
    assert wave.shape == (5, 49)
    facebook = sources.SHAPES["facebook"](pd.DataFrame(rng.integers(0, 9, (5, 54))))
    assert texts_of(facebook) == ["page_cat"]
    assert facebook.shape[1] - 2 == DATASETS["facebook"].numeric
    energy = sources.SHAPES["energy"](
        pd.DataFrame(rng.normal(size=(4, 10)), columns=[f"X{i}" for i in range(1, 9)] + ["Y1", "Y2"])
    )
    assert texts_of(energy) == ["X6", "X8"]
    superconductor = sources.SHAPES["superconductor"](pd.DataFrame({"a": [1.0], "critical_temp": [2.0]}))
    assert list(superconductor) == ["a", "critical_temp", "target"]
    life = sources.SHAPES["life"](
        pd.DataFrame({"Country": ["A", "B"], "Life expectancy ": [70.0, np.nan], " BMI ": [1.0, 2.0]})
    )
    assert life.to_dict("list") == {"Country": ["A"], "BMI": [1.0], "target": [70.0]}
    with pytest.raises(DatasetError, match="no column 'y'"):
        sources.SHAPES["kin8nm"](pd.DataFrame({"x": [1.0]}))


def test_star_is_made_of_its_scores():
    scores = {f"{subject}{grade}": [1.0, 2.0] for subject in ("read", "math") for grade in "k123"}
    texts = {f"lunch{g}": ["free", "non-free"] for g in "k123"} | {f"tethnicity{g}": ["cauc", "afam"] for g in "k12"}
    frame = pd.DataFrame(
        {
            "rownames": [1, 2],
            "gender": ["male", "female"],
            "birth": ["1979 Q3", "1980 Q1"],
            "stark": ["small", "regular"],
        }
        | texts
        | scores
    )
    star = sources.SHAPES["star"](pd.concat([frame, frame.assign(read1=np.nan)]))
    assert star["target"].tolist() == [8.0, 16.0]
    assert star["birth"].tolist() == [1979.5, 1980.0]
    assert star["gender"].tolist() == [1.0, 0.0]
    assert star["stark"].tolist() == ["small", "regular"]
    assert "rownames" not in star


def test_communities_keeps_complete_columns():
    frame = pd.DataFrame(
        {
            "state": [1, 2],
            "county": ["?", 3],
            "communityname": ["a", "b"],
            "fold": [1, 1],
            "population": [0.1, 0.2],
            "OtherPerCap": ["?", "0.4"],
            "ViolentCrimesPerPop": [0.5, 0.6],
        }
    )
    shaped = sources.SHAPES["communities"](frame)
    assert shaped.to_dict("list") == {"population": [0.1, 0.2], "OtherPerCap": [0.4, 0.4], "target": [0.5, 0.6]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["run", "--datasets", "nothing"], "there is no nothing"),
        (["run", "--methods", "magic"], "there is no magic"),
        (["run", "--folds", "11"], "1 to 10"),
        (["run", "--jobs", "0"], "at least 1"),
    ],
)
def test_the_command_refuses_what_it_does_not_know(options, message, capsys):
    with pytest.raises(SystemExit):
        cli.main(options)
    assert message in capsys.readouterr().err


def test_the_command_tells_of_an_absent_dataset(tmp_path, capsys):
    assert (
        cli.main(["run", "--datasets", "yacht", "--data", str(tmp_path), "--results", str(tmp_path / "r.jsonl")]) == 1
    )
    assert "put yacht.parquet" in capsys.readouterr().err
