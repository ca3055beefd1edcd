"""``ibug predict``: what is written, whatever the format and the size of chunks."""

import gzip

import numpy as np
import pandas as pd
import pytest

import ibug

EVERYTHING = (
    "--id", "order", "--interval", "0.5,0.9", "--quantiles", "0.05,0.5", "--neighbors", "2", "--samples", "3",
    "--flags",
)  # fmt: skip


def predict(files, data, output, *options):
    files.run("predict", files["model.ibug"], files[data], "-o", files[output], *options)
    return files.folder / output


@pytest.fixture
def rows(files):
    """The test rows as the library takes them, and the loaded estimator."""
    u = ibug.load(files["model.ibug"])
    frame = pd.read_parquet(files["test.parquet"])
    known = sorted(set(pd.read_parquet(files["train.parquet"])["hour"]))
    X = frame[files.features].astype({c: float for c in files.features if c != "hour"})
    return u, X.assign(hour=pd.Categorical(X["hour"], categories=known)), frame


def test_it_is_what_the_library_predicts(files, rows):
    u, X, frame = rows
    path = predict(files, "test.csv", "out.csv", *EVERYTHING)
    out = pd.read_csv(path, dtype={"order": str})
    texts = pd.read_csv(path, dtype=str)  # not every version of read_csv reads numbers to the last bit
    distribution = u.predict_dist(X)
    assert out["order"].tolist() == frame["order"].tolist()
    expected = {
        "prediction": u.predict(X),
        "std": distribution.std(),
        "lower_50": distribution.interval(0.5)[0],
        "upper_90": distribution.interval(0.9)[1],
        "q0.05": distribution.ppf(0.05),
        "affinity": u.affinity_score(X),
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(texts[name].astype(float), values, err_msg=name)  # bit for bit, through the text
    affinities, indices = u.kneighbors(X, 2)
    np.testing.assert_array_equal(out[["neighbor_1", "neighbor_2"]], indices)
    np.testing.assert_array_equal(texts["affinity_2"].astype(float), affinities[:, 1] / u.source_.index.n_trees)
    train = pd.read_parquet(files["train.parquet"])
    np.testing.assert_array_equal(out["target_1"], train["target"].to_numpy()[indices[:, 0]])
    np.testing.assert_array_equal(out["low_affinity"], u.affinity_score(X) < u.affinity_threshold_)
    assert out[["sample_1", "sample_2"]].nunique().min() > 1


@pytest.mark.parametrize("rows_at_a_time", [1, 7, 100])
def test_chunks_do_not_matter(files, rows_at_a_time):
    whole = predict(files, "test.csv", "whole.csv", *EVERYTHING).read_bytes()
    few = ("head.csv", "head-whole.csv")
    if rows_at_a_time == 1:  # which is slow
        head = "".join((files.folder / "test.csv").read_text().splitlines(keepends=True)[:12])
        (files.folder / few[0]).write_text(head)
        whole = predict(files, few[0], few[1], *EVERYTHING).read_bytes()
    data = few[0] if rows_at_a_time == 1 else "test.csv"
    assert predict(files, data, "parts.csv", *EVERYTHING, "--chunk-rows", rows_at_a_time).read_bytes() == whole


@pytest.mark.parametrize("data", ["test.csv.gz", "test.tsv", "test.parquet", "test.feather"])
def test_every_input_format_gives_the_same(files, data):
    expected = predict(files, "test.csv", "a.csv", *EVERYTHING)
    assert predict(files, data, "b.csv", *EVERYTHING, "--chunk-rows", 50).read_bytes() == expected.read_bytes()


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("o.csv.gz", lambda path: pd.read_csv(path, dtype={"order": str})),
        ("o.tsv", lambda path: pd.read_csv(path, sep="\t", dtype={"order": str})),
        ("o.parquet", pd.read_parquet),
        ("o.feather", pd.read_feather),
    ],
)
def test_every_output_format_has_the_same(files, name, read):
    options = ("--id", "order", "--chunk-rows", "60", "--samples", "2")
    expected = pd.read_csv(predict(files, "test.csv", "o.csv", *options), dtype={"order": str})
    pd.testing.assert_frame_equal(read(predict(files, "test.csv", name, *options)), expected, check_dtype=False)


def test_the_default_is_one_interval_on_standard_output(files):
    result = files.run("predict", files["model.ibug"], files["test.csv"])
    lines = result.stdout.splitlines()
    assert lines[0] == "prediction,std,lower_90,upper_90"
    assert len(lines) == 1 + len(pd.read_parquet(files["test.parquet"]))


def test_ids_are_kept_letter_by_letter(files, table):
    table["order"] = ["NA", "007", "", 'a"b,c', "ü", *table["order"][5:]]
    table.to_csv(files["odd.csv"], index=False)
    out = pd.read_csv(predict(files, "odd.csv", "out.csv", "--id", "order"), dtype=str, keep_default_na=False)
    assert out["order"].tolist() == table["order"].tolist()


def test_samples_depend_on_the_seed_alone(files):
    one, same, other = (
        predict(files, "test.csv", f"{i}.csv", "--samples", "2", "--seed", seed).read_text()
        for i, seed in enumerate((1, 1, 2))
    )
    assert one == same
    assert one != other


def test_unseen_categories_are_told_and_marked(files, table):
    table.loc[3, "hour"] = "h99"
    table.loc[7, "hour"] = ""  # missing is not unseen
    table.to_csv(files["new.csv"], index=False)
    result = files.run("predict", files["model.ibug"], files["new.csv"], "-o", files["out.csv"], "--flags")
    assert "1 of " in result.stderr
    assert "row 3 (line 5): hour (1: 'h99')" in result.stderr
    assert pd.read_csv(files["out.csv"], keep_default_na=False)["unseen"].tolist()[:5] == ["", "", "", "hour", ""]
    facts = files.json("predict", files["model.ibug"], files["new.csv"], "-o", files["out.csv"])
    assert facts["unseen_categories"]["columns"] == {"hour": {"rows": 1, "examples": ["h99"]}}
    assert facts["unseen_categories"]["first_row"] == 3
    # An unseen category is predicted as a missing one.
    table.loc[3, "hour"] = ""
    table.to_csv(files["missing.csv"], index=False)
    files.run("predict", files["model.ibug"], files["missing.csv"], "-o", files["out2.csv"])
    files.run("predict", files["model.ibug"], files["new.csv"], "-o", files["out.csv"], "-q")
    assert (files.folder / "out2.csv").read_bytes() == (files.folder / "out.csv").read_bytes()


def test_rows_of_low_similarity_are_noted(files, table):
    numbers = [name for name in files.features if name != "hour"]
    table.loc[2, numbers] = "-1e6"
    table.to_csv(files["odd.csv"], index=False)
    facts = files.json("predict", files["model.ibug"], files["odd.csv"], "-o", files["o.csv"])
    u = ibug.load(files["model.ibug"])
    assert facts["low_affinity"]["affinity_threshold"] == u.affinity_threshold_
    out = files.run("predict", files["model.ibug"], files["odd.csv"], "--flags").stdout.splitlines()
    flagged = [i for i, line in enumerate(out[1:]) if ",true," in line]
    assert facts["low_affinity"]["rows"] == len(flagged)
    assert facts["low_affinity"]["first_row"] == (flagged[0] if flagged else None)


def test_a_column_that_is_empty_in_one_chunk(files, table):
    name = next(column for column in files.features if column != "hour")
    table.loc[: len(table) // 2, name] = ""
    table.to_csv(files["gaps.csv"], index=False)
    whole = predict(files, "gaps.csv", "a.csv").read_bytes()
    assert predict(files, "gaps.csv", "b.csv", "--chunk-rows", "20").read_bytes() == whole
    # integers in one half and floats in the other
    table[name] = ["1" if i % 2 else "1.5" for i in range(len(table))]
    table.to_csv(files["mixed.csv"], index=False)
    whole = predict(files, "mixed.csv", "a.csv").read_bytes()
    assert predict(files, "mixed.csv", "b.csv", "--chunk-rows", "20").read_bytes() == whole


def test_columns_in_another_order_and_extra_ones(files, table):
    expected = predict(files, "test.csv", "a.csv").read_bytes()
    table = table[table.columns[::-1]].assign(comment="x")
    table.to_csv(files["other.csv"], index=False)
    result = files.run("predict", files["model.ibug"], files["other.csv"], "-o", files["b.csv"])
    assert (files.folder / "b.csv").read_bytes() == expected
    assert "ignored: comment" in result.stderr  # neither the target nor the id
    strict = files.run("predict", files["model.ibug"], files["other.csv"], "-o", files["c.csv"], "--strict", ok=False)
    assert strict.exit_code == 1
    assert "comment" in strict.stderr
    assert not (files.folder / "c.csv").exists()


def test_text_in_another_encoding_and_with_other_separators(files, table):
    table["order"] = "ä" + table["order"]
    text = table.to_csv(index=False, sep=";")
    (files.folder / "latin.csv").write_bytes(text.encode("latin-1"))
    (files.folder / "utf16.csv.gz").write_bytes(gzip.compress(text.encode("utf-16")))
    options = ("--id", "order", "--delimiter", ";")
    first = predict(files, "latin.csv", "a.csv", *options, "--encoding", "latin-1").read_bytes()
    assert predict(files, "utf16.csv.gz", "b.csv", *options, "--encoding", "utf-16").read_bytes() == first
    assert first.decode().splitlines()[1].startswith("ä")


def test_a_byte_order_mark_blank_lines_and_quotes(files, table):
    expected = predict(files, "test.csv", "a.csv", "--id", "order").read_bytes()
    lines = (files.folder / "test.csv").read_text().splitlines()
    lines.insert(3, "")
    (files.folder / "bom.csv").write_text("\ufeff" + "\r\n".join(lines) + "\r\n", encoding="utf-8", newline="")
    assert predict(files, "bom.csv", "b.csv", "--id", "order").read_bytes() == expected


def test_neighbours_are_searched_once_for_all_that_is_told_of_a_chunk(files, rows, monkeypatch):
    from ibug import LeafIndex
    from ibug.cli._predict import OutputSpec, Predictor
    from ibug.cli._rows import ModelRows

    u, X, _ = rows
    asked = []
    query = LeafIndex.query
    monkeypatch.setattr(
        LeafIndex, "query", lambda self, leaves, k, **more: asked.append(k) or query(self, leaves, k, **more)
    )
    predictor = Predictor(u, OutputSpec(intervals=(0.9,), neighbors=u.k_ + 3, flags=True))
    predictor.predict(ModelRows(X, {}, {}), {})
    assert len(asked) == 1
    assert asked[0] >= u.k_ + 3
