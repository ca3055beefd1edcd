"""Data that do not fit: each message names the file, the column and the way out; no output is left behind."""

import gzip
import os
import stat

import pandas as pd
import pytest

pytestmark = pytest.mark.once


def refused(files, *arguments, code=1):
    before = sorted(path.name for path in files.folder.iterdir())
    result = files.run(*arguments, ok=False)
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in files.folder.iterdir()) == before
    return " ".join(result.stderr.replace("│", " ").split())


def write(files, name, text, encoding="utf-8"):
    (files.folder / name).write_bytes(text.encode(encoding))
    return files[name]


def predicting(files, path, *options):
    return refused(files, "predict", files["model.ibug"], path, "-o", files["out.csv"], *options)


def test_no_such_file_with_a_suggestion(files):
    message = predicting(files, files["tets.csv"])
    assert "tets.csv does not exist; did you mean" in message
    assert "test.csv" in message


def test_a_folder(files):
    assert "is a folder" in predicting(files, str(files.folder))


def test_an_unknown_ending(files):
    assert "--format" in predicting(files, write(files, "data.xlsx", "a,b\n1,2\n"))


def test_an_empty_file(files):
    assert "is empty" in predicting(files, write(files, "empty.csv", ""))
    assert "is empty" in refused(files, "fit", files["empty.csv"], "-t", "y", "-o", files["m.ibug"])


def test_a_header_without_rows(files, table):
    path = write(files, "head.csv", ",".join(table.columns) + "\n")
    assert "has a header, but no rows" in refused(files, "evaluate", files["model.ibug"], path)
    assert "has a header, but no rows" in refused(files, "fit", path, "-t", "target", "-o", files["m.ibug"])
    table[:0].to_parquet(files["head.parquet"])
    assert "no rows" in refused(files, "evaluate", files["model.ibug"], files["head.parquet"])


def test_missing_columns_with_what_was_meant(files, table):
    name = next(column for column in files.features if len(column) > 2 and column != "hour")
    table.rename(columns={name: name.upper(), "hour": "hours"}).to_csv(files["named.csv"], index=False)
    message = predicting(files, files["named.csv"])
    assert f"lacks 2 of the model's {len(files.features)} columns" in message
    assert f"{name} (did you mean {name.upper()!r}?)" in message
    assert "hour (did you mean 'hours'?)" in message


def test_a_row_with_too_few_values_tells_its_line(files):
    lines = (files.folder / "test.csv").read_text().splitlines()
    lines[6] = lines[6].rpartition(",")[0]
    lines.insert(2, "")  # blank lines are no rows, but lines
    message = predicting(files, write(files, "ragged.csv", "\n".join(lines)))
    columns = len(lines[0].split(","))
    assert f"row 5 (line 8): the header has {columns} columns, this row {columns - 1}" in message


def test_a_ragged_row_far_behind_leaves_no_output(files):
    lines = (files.folder / "test.csv").read_text().splitlines()
    message = predicting(files, write(files, "r.csv", "\n".join([*lines, "1,2"])), "--chunk-rows", "10")
    assert f"row {len(lines) - 1} (line {len(lines) + 1})" in message


def test_text_among_numbers(files, table):
    name = next(column for column in files.features if column != "hour")
    table.loc[4, name] = "many"
    table.to_csv(files["text.csv"], index=False)
    message = predicting(files, files["text.csv"])
    assert f"text.csv, row 4 (line 6): column {name!r} must be a number, but has 'many'" in message
    assert "--missing" in message
    files.run("predict", files["model.ibug"], files["text.csv"], "-o", files["out.csv"], "--missing", "many")
    table.to_parquet(files["text.parquet"])
    (files.folder / "out.csv").unlink()
    message = predicting(files, files["text.parquet"])
    assert f"text.parquet: column {name!r} has text ('many', say)" in message


def test_dates_where_numbers_are_expected(files):
    frame = pd.read_parquet(files["test.parquet"])
    name = next(column for column in files.features if column != "hour")
    frame[name] = pd.Timestamp("2020-01-01")
    frame.to_parquet(files["dates.parquet"])
    assert f"column {name!r} has dates or times" in predicting(files, files["dates.parquet"])


def test_bad_encoding(files, table):
    table.loc[3, "hour"] = "été"
    path = write(files, "latin.csv", table.to_csv(index=False), "latin-1")
    message = predicting(files, path)
    assert "row 3 (line 5), column 'hour': this is not utf-8 text" in message
    assert "--encoding latin-1" in message
    header = write(files, "header.csv", "é,b\n1,2\n", "latin-1")
    assert "line 1: this is not utf-8 text" in predicting(files, header)
    assert "no encoding of this name" in predicting(files, path, "--encoding", "klingon")


def test_a_separator_that_cannot_be_told(files):
    path = write(files, "odd.csv", "a;b|c\n1;2|3\n")
    assert "--delimiter ';'" in predicting(files, path)


def test_two_columns_of_one_name(files):
    assert "several columns with the same name: 'a'" in predicting(files, write(files, "twice.csv", "a,b,a\n1,2,3\n"))


def test_damaged_files(files):
    (files.folder / "cut.parquet").write_bytes((files.folder / "test.parquet").read_bytes()[:-20])
    assert "cut.parquet cannot be read" in predicting(files, files["cut.parquet"])
    (files.folder / "cut.feather").write_bytes((files.folder / "test.feather").read_bytes()[:-20])
    assert "cut.feather cannot be read" in predicting(files, files["cut.feather"])
    (files.folder / "cut.csv.gz").write_bytes((files.folder / "test.csv.gz").read_bytes()[:-200])
    assert "cut.csv.gz cannot be read" in predicting(files, files["cut.csv.gz"])
    (files.folder / "junk.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:2] + b"junk" * 10)
    assert "junk.csv.gz cannot be read" in predicting(files, files["junk.csv.gz"])


def test_a_name_that_tells_the_wrong_format(files):
    (files.folder / "really.csv").write_bytes((files.folder / "test.parquet").read_bytes())
    assert "--format parquet" in predicting(files, files["really.csv"])
    (files.folder / "really.parquet").write_bytes((files.folder / "test.csv").read_bytes())
    assert "looks like text" in predicting(files, files["really.parquet"])
    files.run("predict", files["model.ibug"], files["really.csv"], "-o", files["o.csv"], "--format", "parquet")


def test_the_target(files, table):
    fit = ("-t", "target", "-o", files["m.ibug"])
    message = refused(files, "fit", files["train.csv"], "-t", "tarjet", "-o", files["m.ibug"])
    assert "has no column 'tarjet', the target (did you mean 'target'?). Its columns are" in message
    table.assign(target="high").to_csv(files["words.csv"], index=False)
    assert "row 0 (line 2): column 'target' must be a number" in refused(files, "fit", files["words.csv"], *fit)
    table.loc[[5, 8], "target"] = ""
    table.to_csv(files["gaps.csv"], index=False)
    message = refused(files, "fit", files["gaps.csv"], *fit)
    assert f"'target', is missing or infinite in 2 of {len(table)} rows, first (missing) in row 5 (line 7)" in message
    assert "is missing or infinite in 2" in refused(files, "evaluate", files["model.ibug"], files["gaps.csv"])
    table.drop(columns="target").to_csv(files["without.csv"], index=False)
    assert "no column 'target'" in refused(files, "evaluate", files["model.ibug"], files["without.csv"])
    files.run("predict", files["model.ibug"], files["without.csv"], "-o", files["o.csv"])


def test_model_files(files):
    assert "does not exist" in refused(files, "predict", files["no.ibug"], files["test.csv"], "-o", files["o.csv"])
    path = write(files, "bad.ibug", "not a zip")
    assert "bad.ibug" in refused(files, "info", path)
    whole = (files.folder / "model.ibug").read_bytes()
    (files.folder / "cut.ibug").write_bytes(whole[: len(whole) // 2])
    assert "cut.ibug" in refused(files, "predict", files["cut.ibug"], files["test.csv"], "-o", files["o.csv"])


def test_outputs_that_cannot_be(files):
    model, data = files["model.ibug"], files["test.csv"]
    assert "does not exist" in refused(files, "predict", model, data, "-o", files["no/out.csv"])
    assert "is a folder" in refused(files, "predict", model, data, "-o", str(files.folder))
    assert "the ending does not name a format" in refused(files, "predict", model, data, "-o", files["out.xlsx"])
    assert "is an input" in refused(files, "predict", model, data, "-o", data)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--interval", "90"], "between 0 and 1"),
        (["--interval", "x"], "a number is expected"),
        (["--quantiles", "0"], "between 0 and 1"),
        (["--neighbors", "-1"], "--neighbors"),
        (["--id", "prediction"], "column of the output"),
        (["--delimiter", ";;"], "one character"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage_is_exit_code_2(files, options, expected):
    assert expected in refused(files, "predict", files["model.ibug"], files["test.csv"], *options, code=2)


def test_errors_in_json(files):
    import json

    result = files.run("predict", files["model.ibug"], files["no.csv"], "--json", ok=False)
    assert result.exit_code == 1
    error = json.loads(result.stderr)
    assert error["exit_code"] == 1
    assert error["kind"] == "InvalidInputError"
    assert "no.csv does not exist" in error["error"]


def test_a_fault_of_ours_is_exit_code_70(files, monkeypatch):
    monkeypatch.setattr("ibug.cli._info.load", lambda *args, **options: 1 / 0)
    message = refused(files, "info", files["model.ibug"], code=70)
    assert "ZeroDivisionError" in message
    assert "IBUG_DEBUG=1" in message
    monkeypatch.setenv("IBUG_DEBUG", "1")
    assert "Traceback" in files.run("info", files["model.ibug"], ok=False).stderr


def test_a_missing_library_is_exit_code_3(files, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "catboost", None)
    fit = ("fit", files["train.csv"], "-t", "target", "-o", files["m.ibug"], "-b", "catboost")
    assert 'pip install "ibug-learn[catboost]"' in refused(files, *fit, code=3)


@pytest.mark.skipif(os.name != "posix", reason="devices and pipes are POSIX's")
def test_outputs_that_are_no_files(files):
    """A model and a report take the place of a file, and so refuse devices and pipes; rows can be written to them."""
    os.mkfifo(files["pipe"])
    for output, kind in {"/dev/null": "device", files["pipe"]: "pipe", files.folder: "folder"}.items():
        for command in (
            ["fit", files["train.csv"], "--target", "target"],
            ["report", files["model.ibug"], files["test.csv"]],
        ):
            result = files.run(*command, "-o", output, ok=False)
            assert result.exit_code == 1, result.stderr
            assert kind in result.stderr
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO(os.stat(files["pipe"]).st_mode)
    os.unlink(files["pipe"])
