"""Files as people have them: any name of a column, semicolons, decimal commas, dates, ids, and no rows at all."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import pyarrow as pa  # noqa: E402 - after the skip
from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402

from ibug import IBUGRegressor  # noqa: E402
from ibug.cli._columns import as_days  # noqa: E402
from ibug.cli._reading import form_of  # noqa: E402
from ibug.exceptions import InvalidInputError  # noqa: E402
from tests.cli.conftest import Files  # noqa: E402

QUICK = ("--trees", "9", "--k", "10", "-d", "normal", "--spread", "targets")


def made(n=240):
    """A table with names and values of many kinds."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "order": 1000 + rng.permutation(n),
            "a [USD]": rng.normal(10, 3, n).round(2),
            "b: x": rng.normal(size=n).round(3),
            "zone, type": rng.choice(["north", "south"], n),
            "größe": rng.integers(1, 9, n),
            "when": pd.date_range("2024-01-05", periods=n).strftime("%Y-%m-%d"),
        }
    )
    noise = rng.normal(size=n)
    return frame.assign(price=(20 * frame["a [USD]"] + 5 * frame["größe"] + noise).round(2))


@pytest.fixture
def own(tmp_path):
    """The table as files: train.csv, test.csv."""
    frame = made()
    frame[:200].to_csv(tmp_path / "train.csv", index=False)
    frame[200:].to_csv(tmp_path / "test.csv", index=False)
    return Files(tmp_path, [])


def fit(files, *options, train="train.csv", ok=True):
    return files.run("fit", files[train], "-t", "price", "-o", files["m.ibug"], *QUICK, *options, ok=ok)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost", "catboost", "sklearn"])
def test_any_name_of_a_column_with_every_booster(own, booster):
    fit(own, "-b", booster, "--id", "order")
    out = pd.read_csv(own.folder / "test.csv")
    own.run("predict", own["m.ibug"], own["test.csv"], "--id", "order", "-o", own["out.csv"])
    assert pd.read_csv(own["out.csv"])["order"].tolist() == out["order"].tolist()
    names = [column["name"] for column in own.json("info", own["m.ibug"])["columns"]]
    assert names == ["a [USD]", "b: x", "zone, type", "größe", "when"]
    facts = own.json("explain", own["m.ibug"], own["test.csv"], "--row", "3")
    assert set(facts["features"]) == set(names)
    assert {difference["feature"] for difference in facts["differences"]} <= set(names)
    without = out.rename(columns={"größe": "gross"})
    without.to_csv(own.folder / "without.csv", index=False)
    message = own.run("predict", own["m.ibug"], own["without.csv"], ok=False).stderr
    assert "größe" in message


def test_early_stopping_takes_any_name_too(own):
    fitted = own.json("fit", own["train.csv"], "-t", "price", "-b", "xgboost", "-o", own["m.ibug"], "--k", "10")
    assert fitted["trees"] > 1


def test_the_report_has_the_users_names(own):
    pytest.importorskip("plotly")
    fit(own, "-b", "lightgbm")
    own.run("report", own["m.ibug"], own["test.csv"], "-o", own["report.html"])
    page = (own.folder / "report.html").read_text(encoding="utf-8")
    assert "a [USD]" in page
    assert "a__USD_" not in page


def test_names_with_commas_can_be_left_out(own):
    fit(own, "--drop", "zone, type", "--drop", "b: x", "--id", "order", "--drop", "when")
    names = [column["name"] for column in own.json("info", own["m.ibug"])["columns"]]
    assert names == ["a [USD]", "größe"]
    fit(own, "--drop", "b: x,when,order", "--categorical", "zone, type", "--categorical", "größe")
    columns = own.json("info", own["m.ibug"])["columns"]
    assert [column["kind"] for column in columns] == ["number", "category", "category"]
    own.run("predict", own["m.ibug"], own["test.csv"], "--id", "zone, type", "--id", "order,when", "-o", own["o.csv"])
    assert pd.read_csv(own["o.csv"]).columns[:3].tolist() == ["zone, type", "order", "when"]
    own.run("evaluate", own["m.ibug"], own["test.csv"], "--id", "b: x", "--id", "order,when", "--strict")


def test_semicolons_and_decimal_commas(own):
    frame = made()
    fit(own)
    expected = own.run("predict", own["m.ibug"], own["test.csv"]).stdout
    frame[:200].to_csv(own.folder / "train.csv", sep=";", decimal=",", index=False)
    frame[200:].to_csv(own.folder / "semi.csv", sep=";", decimal=",", index=False)
    notes = fit(own).stderr
    assert "columns are separated by semicolons" in notes
    assert "commas are taken as decimal marks" in notes
    assert own.run("predict", own["m.ibug"], own["semi.csv"]).stdout == expected
    kinds = {column["name"]: column["kind"] for column in own.json("info", own["m.ibug"])["columns"]}
    assert kinds["a [USD]"] == "number"


def test_quoted_decimal_commas_are_never_categories(own):
    made().to_csv(own.folder / "quoted.csv", decimal=",", index=False)
    assert "--decimal ," in fit(own, train="quoted.csv", ok=False).stderr  # the target, which must be a number
    made().assign(**{"a [USD]": made()["a [USD]"].astype(str).str.replace(".", ",")}).to_csv(
        own.folder / "one.csv", index=False
    )
    message = fit(own, train="one.csv", ok=False).stderr
    assert "column 'a [USD]' has numbers with commas" in message
    assert "--decimal ," in message
    fit(own, "--decimal", ",", train="quoted.csv")
    fit(own, "--categorical", "a [USD]", train="one.csv")  # if one insists
    assert "comma or a point" in fit(own, "--decimal", ";", ok=False).stderr


@pytest.mark.parametrize(
    ("header", "rows", "form"),
    [
        ("a,b", "1,2\n", (",", ".")),
        ("a;b", "1;2\n", (";", ".")),
        ("a;b", "1,5;2,5\n", (";", ",")),
        ("a;b", "1,5;2.5\n", (";", ".")),  # one of both is no number: refused later
        ("a;b", "1.234,5;x\n", (";", ",")),
        ("a\tb", "1,5\t2\n", ("\t", ",")),
        ("a|b", "1|2\n", ("|", ".")),
        ("größe;zone, type;price", "1,5;a;2\n2,5;b;3\n", (";", ",")),
        ("a,b", "x;y,2\n", (",", ".")),
        ("a,b", "", (",", ".")),
        ("a;b", "", (";", ".")),
        ("a", "1;2\n", (",", ".")),
        ('"a;x",b', '"1;1",2\n', (",", ".")),
    ],
)
def test_the_form_of_a_text_table(header, rows, form):
    found = form_of(header, rows.encode(), None, None)
    assert (found.delimiter, found.decimal) == form
    assert len(found.notes) == (found.delimiter != ",") + (found.decimal != ".")


def test_what_is_said_is_not_found_out():
    assert form_of("a;b", b"1,5;2\n", ";", ".") == (";", ".", ())
    assert form_of("a,b", b"1,2\n", ",", ",") == (",", ",", ())


def test_dates_become_days(own):
    notes = fit(own).stderr
    assert (
        "column 'when' has dates or times. The model gets them as days since 1970-01-01 (2024-01-05 is 19727)" in notes
    )
    kinds = {column["name"]: column["kind"] for column in own.json("info", own["m.ibug"])["columns"]}
    assert kinds["when"] == "date"
    expected = own.run("predict", own["m.ibug"], own["test.csv"]).stdout
    frame = pd.read_csv(own["test.csv"])
    frame["when"] = pd.to_datetime(frame["when"])
    frame.to_parquet(own["test.parquet"])
    assert own.run("predict", own["m.ibug"], own["test.parquet"]).stdout == expected
    facts = own.json("explain", own["m.ibug"], own["test.csv"], "--row", "0")
    assert facts["features"]["when"] == "2024-07-23"
    frame.assign(when="soon").to_csv(own.folder / "soon.csv", index=False)
    message = own.run("predict", own["m.ibug"], own["soon.csv"], ok=False).stderr
    assert "column 'when' has values that are not dates ('soon', say)" in message


@pytest.mark.parametrize(
    ("values", "days"),
    [
        (["2024-01-05", None, "1970-01-01"], [19727, np.nan, 0]),
        (["2024-01-05 06:00:00", "1969-12-31 12:00"], [19727.25, -0.5]),
        (["2024-01-05T06:00:00Z", "2024-01-05T06:00:00+06:00"], [19727.25, 19727]),
        (["06:00:00", "12:00:00"], [0.25, 0.5]),
    ],
)
def test_texts_of_dates(values, days):
    np.testing.assert_allclose(as_days(pa.array(values), "when", "file"), days)


def test_typed_dates():
    moments = pd.Series(pd.to_datetime(["2024-01-05 18:00", None]))
    for column in (moments, moments.dt.tz_localize("UTC"), moments.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")):
        np.testing.assert_allclose(as_days(pa.array(column), "when", "file"), [19727.75, np.nan])
    np.testing.assert_allclose(as_days(pa.array([19727], pa.date32()), "when", "file"), [19727])
    np.testing.assert_allclose(as_days(pa.array([43200], pa.duration("s")), "when", "file"), [0.5])
    np.testing.assert_allclose(as_days(pa.array([None, None]), "when", "file"), [np.nan, np.nan])
    with pytest.raises(InvalidInputError, match="dates are expected"):
        as_days(pa.array([1.5]), "when", "file")


def test_dates_in_another_form_are_noted(own):
    frame = made()
    frame["when"] = pd.to_datetime(frame["when"]).dt.strftime("%d.%m.%Y")
    frame.to_csv(own.folder / "train.csv", index=False)
    assert "column 'when' looks like dates ('01.02.2024', say)" in fit(own).stderr


def test_a_unique_whole_number_is_probably_an_id(own):
    note = "column 'order' has a different whole number in each of the 200 rows. If it is an id, say so: --id order"
    assert note in fit(own).stderr
    assert "whole number" not in fit(own, "--id", "order").stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_no_rows_give_no_rows(own, ending):
    fit(own)
    empty = made()[:0]
    empty.to_csv(own.folder / "empty.csv", index=False)
    result = own.run("predict", own["m.ibug"], own["empty.csv"], "--id", "order", "-o", own[f"out.{ending}"], "--flags")
    assert "has a header, but no rows" in result.stderr
    out = pd.read_csv(own["out.csv"]) if ending == "csv" else pd.read_parquet(own["out.parquet"])
    assert len(out) == 0
    full = own.run("predict", own["m.ibug"], own["test.csv"], "--id", "order", "-o", own["full.csv"], "--flags")
    assert full.exit_code == 0
    assert out.columns.tolist() == pd.read_csv(own["full.csv"]).columns.tolist()


@pytest.mark.parametrize(
    ("booster", "given", "meant"),
    [
        ("lightgbm", "num_leafs=5", "did you mean num_leaves?"),
        ("xgboost", "max_dept=5", "did you mean max_depth?"),
        ("catboost", "dept=5", "did you mean depth?"),
        ("sklearn", "max_leaf_node=5", "did you mean max_leaf_nodes?"),
        ("lightgbm", "qqqq=5", "has no such parameter."),
    ],
)
def test_misspelt_parameters(own, booster, given, meant):
    message = fit(own, "-b", booster, "--param", given, ok=False).stderr
    assert meant in message


@pytest.mark.parametrize(
    ("booster", "given"), [("lightgbm", "min_data_in_leaf=9"), ("xgboost", "eta=0.2"), ("catboost", "l2_leaf_reg=2")]
)
def test_names_of_the_library_itself_are_known(own, booster, given):
    fit(own, "-b", booster, "--param", given)


def test_likely_mistakes_are_notes_or_errors(own):
    message = "100% of the validation rows are training rows"
    options = ("--valid", own["train.csv"])
    assert fit(own, *options).stderr.count(message) == 1
    result = fit(own, *options, "--strict", ok=False)
    assert result.exit_code == 1
    assert f"error: {message}" in result.stderr
    result = own.run("evaluate", own["m.ibug"], own["train.csv"], "--json")
    assert "these are the training rows" in result.stdout
    strict = own.run("evaluate", own["m.ibug"], own["train.csv"], "--strict", ok=False)
    assert (strict.exit_code, "these are the training rows" in strict.stderr) == (1, True)


def test_infinite_ends_are_noted_once(own):
    pd.read_csv(own["test.csv"])[:5].to_csv(own.folder / "five.csv", index=False)
    notes = fit(own, "--valid", own["five.csv"], "--conformal", "scale").stderr
    assert "Only 5 validation rows" in notes
    assert "0.9 needs 9 rows" in notes
    result = own.run("predict", own["m.ibug"], own["test.csv"], "-o", own["out.csv"], "--chunk-rows", "7")
    assert result.stderr.count("have infinite ends") == 1
    assert "low similarity to the training data" not in result.stderr
    assert "have infinite ends" in own.run("evaluate", own["m.ibug"], own["test.csv"]).stderr
    result = own.run("predict", own["m.ibug"], own["test.csv"], "-o", own["no.csv"], "--strict", ok=False)
    assert (result.exit_code, (own.folder / "no.csv").exists()) == (1, False)


def halved(rows):
    return rows / 2


def test_a_model_with_a_function_of_ones_own(tmp_path):
    frame = made()[["a [USD]", "größe"]]
    y = made()["price"].to_numpy()
    model = make_pipeline(FunctionTransformer(halved), HistGradientBoostingRegressor(max_iter=3)).fit(frame, y)
    u = IBUGRegressor(model, prefit=True, k=9, calibrate=False).fit(frame, y)
    name = f"{__name__}.halved"
    u.save(tmp_path / "model.ibug", trusted=[name])
    files = Files(tmp_path, [])
    frame.assign(price=y).to_csv(tmp_path / "rows.csv", index=False)
    for command in (
        ["info", files["model.ibug"]],
        ["predict", files["model.ibug"], files["rows.csv"]],
        ["explain", files["model.ibug"], files["rows.csv"], "--row", "0"],
    ):
        assert "--trusted" in files.run(*command, ok=False).stderr
        files.run(*command, "--trusted", name)


def test_a_category_that_is_called_none_stays_one(tmp_path):
    """The model knows it by that name; other files have it for a missing value."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    garage = rng.choice(["None", "attached", "detached"], 900)
    X = pd.DataFrame({"a": rng.normal(size=900), "garage": pd.Categorical(garage)})
    y = X["a"] + np.select([garage == "None", garage == "attached"], [5.0, 0.0], -5.0)
    X.loc[rng.uniform(size=900) < 0.05, "garage"] = np.nan
    model = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1).fit(X[:500], y[:500])
    files = Files(tmp_path, [])
    model.booster_.save_model(files["model.txt"])
    for name, part in (("train.csv", slice(500)), ("valid.csv", slice(500, 800)), ("new.csv", slice(800, 900))):
        X[part].assign(y=y[part]).to_csv(files[name], index=False)
    known = ("--model", files["model.txt"], "--valid", files["valid.csv"], "-o", files["m.ibug"])
    files.run("fit", files["train.csv"], "-t", "y", *known)
    files.run("predict", files["m.ibug"], files["new.csv"], "-o", files["out.csv"])
    np.testing.assert_allclose(pd.read_csv(files["out.csv"])["prediction"], model.predict(X[800:]))
