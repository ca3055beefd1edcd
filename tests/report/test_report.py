"""What stands in the file: the library's own numbers, nothing that runs, and no more than fits."""

import base64
import hashlib
import html.parser
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from sklearn.ensemble import GradientBoostingRegressor

import ibug.report
from ibug import IBUGRegressor, Sampling
from ibug.describe import number, predict_rows
from ibug.distributions import MixtureParams, Stack, families
from ibug.exceptions import InvalidInputError
from ibug.explain import plain_neighbors
from ibug.metrics import evaluate
from ibug.report._charts import densities
from ibug.report._explorer import differences, feature, widths
from ibug.report._page import pack, to_json
from ibug.report._summary import Similarity, caveats, headlines, scored


def unpack(packed):
    raw = base64.b64decode(packed["data"])
    return np.frombuffer(raw, np.dtype(packed["dtype"]).newbyteorder("<")).reshape(packed["shape"])


class Page(html.parser.HTMLParser):
    """Reads a page as a browser would: its elements, their attributes, and the text of scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.inside = [], [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def page(written):
    return Page(written.path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def data(page):
    return json.loads(page.scripts[0])


def test_numbers_are_the_librarys_own(written, data):
    u, X, y = written.u, written.X, written.y
    rows = data["rows"]
    interval = u.predict_interval(X, 0.9)
    np.testing.assert_array_equal(unpack(rows["prediction"]), u.predict(X))
    np.testing.assert_array_equal(unpack(rows["lower"]), interval[:, 0])
    np.testing.assert_array_equal(unpack(rows["upper"]), interval[:, 1])
    np.testing.assert_array_equal(unpack(rows["observed"]), y)
    np.testing.assert_array_equal(unpack(rows["std"]), u.predict_dist(X).std())
    np.testing.assert_array_equal(unpack(rows["affinity"]), u.affinity_score(X))
    assert rows["id"] == written.ids
    affinities, indices = u.kneighbors(X, max(u.k_, 10))
    near = data["neighbors"]
    places = unpack(near["places"])
    np.testing.assert_array_equal(unpack(near["row"])[places[:, :10]], indices[:, :10])
    np.testing.assert_array_equal(unpack(near["target"])[places[:, :10]], u.training_targets_[indices[:, :10]])
    np.testing.assert_array_equal(unpack(near["affinity"]), affinities[:, :10])
    np.testing.assert_allclose(unpack(near["std"]), u.training_targets_[indices[:, : u.k_]].std(axis=1), rtol=1e-6)


def said(lines, words):
    """Return the headline that has these words."""
    return next(line for line in lines if words in line["text"])


def test_scores_of_ibug_and_of_the_plain_neighbours(written, data):
    ibug_ = evaluate(written.u, written.X, written.y)
    plain = evaluate(plain_neighbors(written.u), written.X, written.y)
    by_name = {row["name"]: row for row in data["scores"]}
    assert by_name["CRPS"]["ibug"] == number(ibug_["crps"])
    assert by_name["CRPS"]["plain"] == number(plain["crps"])
    ninety = next(row for row in data["intervals"] if row["level"] == "90 %")
    assert ninety["ibug"]["inside"] == f"{100 * ibug_['coverage_90']:.1f} %"
    assert ninety["plain"]["width"] == number(plain["width_90"])
    assert [row["name"] for row in data["scores"]][:2] == ["CRPS", "width of 90 % intervals"]
    share = f"{100 * ibug_['coverage_90']:.1f} %"
    assert said(data["headlines"], f"{share} of the observed values are inside the 90 % intervals (")["figure"] == share


def test_how_rows_compare_with_the_validation_rows(written, data):
    expected = written.u.monitor(written.X, written.y)
    shown = data["drift"]
    assert [test["p_value"] for test in shown["tests"]] == [f"{test.p_value:.2g}" for test in expected]
    assert shown["verdict"].startswith("Yes" if expected.drifted else "There is no sign")


def test_densities_are_the_distributions_own(written, data):
    distribution = written.u.predict_dist(written.X)
    packed = data["rows"]["density"]
    start, length, peak = (unpack(packed[name])[:, None] for name in ("start", "length", "peak"))
    grid = start + unpack(packed["steps"]) / 65535 * length
    np.testing.assert_allclose(unpack(packed["heights"]) / 65535 * peak, distribution.pdf(grid), atol=1e-5 * peak.max())
    assert np.all(np.diff(grid, axis=1) >= 0)
    np.testing.assert_allclose(trapezoid(distribution.pdf(grid), grid, axis=1), 1, atol=0.02)


@pytest.mark.parametrize("family", sorted(families()))
def test_every_family_has_a_finite_density(model, family):
    u, X, _, y = model
    other = IBUGRegressor(u.estimator_, prefit=True, k=10, distribution=family, calibrate=False)
    distribution = other.fit(X[:200], y[:200]).predict_dist(X[300:320])
    packed = densities(distribution, *distribution.interval(0.9))
    for name in ("start", "length", "peak"):
        assert np.all(np.isfinite(unpack(packed[name])))
    assert np.all(unpack(packed["heights"]).max(axis=1) == 65535)


def test_differences_are_those_of_the_rows(written, data):
    found = data["features"]["differences"]
    columns = data["features"]["columns"]
    _, indices = written.u.kneighbors(written.X, 10)
    features, distances, there = unpack(found["feature"]), unpack(found["distance"]), unpack(found["there"])
    assert len(columns) == 3
    for row in (0, 7, 119):
        for place in range(3):
            j = features[row, place]
            if j < 0:
                continue
            own = unpack(columns[j]["values"])[row]
            expected = written.X_train.iloc[indices[row], j]
            if columns[j]["texts"] is not None:
                assert [columns[j]["texts"][int(code)] for code in there[row, place]] == list(expected)
                assert distances[row, place] == pytest.approx(np.mean(expected != columns[j]["texts"][int(own)]))
            else:
                np.testing.assert_allclose(there[row, place], expected, rtol=1e-6)
                if not np.isnan(own) and not expected.isna().any():
                    scale = written.X_train.iloc[:, j].std(ddof=0)
                    assert distances[row, place] == pytest.approx(np.mean(np.abs(expected - own)) / scale, rel=1e-5)
        assert list(distances[row]) == sorted(distances[row], reverse=True)


def test_values_of_every_kind_of_table():
    frame = pd.DataFrame(
        {
            "integers": pd.array([1, None, 3], "Int64"),
            "dates": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
            "categories": pd.Categorical(["a", "b", None]),
            "flags": [True, False, True],
        }
    )
    for j, expected in enumerate([[1, None, 3], ["2020-01-01", None, "2020-01-03"], ["a", "b", None], [1, 0, 1]]):
        found = feature(frame.columns[j], j, frame, frame)
        values = [None if np.isnan(v) else found.texts[int(v)] if found.texts else v for v in found.here]
        assert [str(v)[:10] for v in values] == [str(float(v) if isinstance(v, int) else v)[:10] for v in expected]
        nearest = differences([found], np.array([[0], [1], [2]]), 8)
        assert list(nearest.counts) == [0, 0, 0]
        assert list(nearest.features[:, 0]) == [-1, -1, -1]


def test_nothing_of_the_data_becomes_markup(written, page, data):
    allowed = {"script": 3, "img": 0, "svg": 0, "a": 1, "iframe": 0, "object": 0, "style": 1, "meta": 4, "title": 1}
    for tag, count in allowed.items():
        assert sum(name == tag for name, _ in page.elements) == count, tag
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    assert not [e for e in page.elements if {"src"} & set(e[1])]  # nothing is fetched
    assert data["rows"]["id"] == written.ids
    text = written.path.read_text(encoding="utf-8")
    block = text[text.index('id="data">') + 10 : text.index("</script>")]
    assert not set("<>&\u2028\u2029") & set(block)


def test_the_policy_names_just_the_two_scripts(page):
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    given = set(re.findall(r"'sha256-([^']+)'", policy))
    own = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in page.scripts[1:]}
    assert given == own
    assert "unsafe-eval" not in policy
    assert re.search(r"script-src[^;]*unsafe", policy) is None
    assert policy.startswith("default-src 'none'")


def test_the_pages_own_script_writes_text_alone(page):
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", page.scripts[2]
    )


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 255], "uint8"),
        ([-1, 255], "int16"),
        ([0, 40000], "uint16"),
        ([-1, 2**24 + 1], "int32"),
        ([2**40], "float64"),
        ([2.0**30 + 1, np.nan], "float64"),
        ([0.5, np.nan], "float32"),
        ([1e300, 0.5], "float64"),
        ([1e-300, 0.5], "float64"),
        ([], "uint8"),
        ([np.nan], "float32"),
    ],
)
def test_numbers_are_packed_short_but_not_changed(values, dtype):
    packed = pack(np.array(values, float))
    assert packed["dtype"] == dtype
    np.testing.assert_allclose(unpack(packed), values, rtol=1e-7)


def test_json_is_json_whatever_comes():
    given = {"a": ["</script>", float("nan"), np.float64(2), "\u2028", "\ud800"], "b": np.arange(2)}
    assert json.loads(to_json(given)) == {"a": ["</script>", None, 2.0, "\u2028", "?"], "b": [0, 1]}


def test_two_thousand_rows_of_a_hundred_features_fit(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 100))
    y = X[:, 0] + rng.normal(size=3000)
    from sklearn.ensemble import ExtraTreesRegressor

    forest = ExtraTreesRegressor(3, min_samples_leaf=20, max_features=3, random_state=0).fit(X[:1000], y[:1000])
    u = IBUGRegressor(forest, prefit=True, k=300, calibrate=False).fit(X[:1000], y[:1000])
    path = ibug.report.write(u, X[1000:], y[1000:], tmp_path / "report.html", X_train=X[:1000], width_seconds=0)
    assert path.stat().st_size < 10e6


@pytest.mark.parametrize(
    "options", [{"sampling": Sampling(row_fraction=0.5)}, {"sampling": Sampling(tree_fraction=0.3)}, {}]
)
def test_training_rows_are_known_again(options, tmp_path):
    """Also those of update, rows in single precision, and rows that are not in the index."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    X[100:150] = X[:50]
    y = X[:, 0] + rng.normal(size=900)
    model = GradientBoostingRegressor(n_estimators=40).fit(X[:400], y[:400])
    u = IBUGRegressor(model, prefit=True, random_state=0, **options).fit(X[:400], y[:400], X_val=X[600:], y_val=y[600:])
    u.update(X[400:600], y[400:600])
    for known in (X[:600], X[:600].astype(np.float32)):
        ibug.report.write(u, X[600:], y[600:], tmp_path / "report.html", X_train=known, max_rows=20, width_seconds=0)
    with pytest.raises(InvalidInputError, match="in their order"):
        ibug.report.write(u, X[600:], y[600:], tmp_path / "other.html", X_train=X[600:0:-1])


def test_more_rows_than_fit_are_drawn_at_random(model, tmp_path):
    u, X, _, y = model
    path = ibug.report.write(u, X[300:], y[300:], tmp_path / "report.html", max_rows=30, n_neighbors=3, width_seconds=0)
    data = json.loads(Page(path.read_text(encoding="utf-8")).scripts[0])
    rows = unpack(data["rows"]["row"])
    assert len(set(rows)) == 30
    np.testing.assert_array_equal(unpack(data["rows"]["prediction"]), u.predict(X[300:])[rows])
    assert (data["about"]["n_rows"], data["about"]["n_shown"]) == (120, 30)
    assert data["features"]["differences"] is None  # no X_train
    assert said(data["headlines"], "of 120 rows")


def test_without_neighbours(model, tmp_path):
    u, X, _, y = model

    class Plain:
        def predict(self, X):
            return u.predict(X)

        def predict_dist(self, X):
            return u.predict_dist(X)

    path = ibug.report.write(Plain(), X[300:], y[300:], tmp_path / "report.html")
    data = json.loads(Page(path.read_text(encoding="utf-8")).scripts[0])
    assert data["neighbors"] is None
    assert all(row["plain"] is None for row in data["scores"])
    assert "reason" in data["charts"]["tuning"]
    assert data["widths"]["reason"]
    with pytest.raises(InvalidInputError, match="has none"):
        ibug.report.write(Plain(), X[300:], y[300:], tmp_path / "report.html", X_train=X[:200])


@pytest.mark.filterwarnings("ignore::ibug.exceptions.TooFewRowsWarning")
def test_infinite_intervals_are_told(model, tmp_path):
    u, X, _, y = model
    few = IBUGRegressor(u.estimator_, prefit=True, k=10, conformal="scale")
    few.fit(X[:200], y[:200], X_val=X[200:206], y_val=y[200:206])
    assert np.isinf(few.predict_interval(X[300:], 0.9)).any()
    path = ibug.report.write(few, X[300:], y[300:], tmp_path / "report.html", width_seconds=0)
    data = json.loads(Page(path.read_text(encoding="utf-8")).scripts[0])
    assert any("have infinite ends" in line for line in data["caveats"])


def test_what_makes_the_widest_rows_wide(written):
    pytest.importorskip("shap", exc_type=ImportError)
    data = json.loads(Page(written.path.read_text(encoding="utf-8")).scripts[0])
    widths = data["widths"]
    places, parts = unpack(widths["place"]), unpack(widths["value"]).astype(float)
    assert widths["names"] == list(written.X)
    assert len(set(places)) == len(places) >= 1
    std = written.u.predict_dist(written.X).std()
    np.testing.assert_array_equal(places, np.argsort(-std, kind="stable")[: len(places)])
    total = np.log(unpack(widths["base"])) + parts.sum(axis=1) + unpack(widths["rest"])
    np.testing.assert_allclose(np.exp(total), std[places], rtol=1e-5)
    assert np.all(np.diff(np.abs(parts), axis=1) <= 0)


def test_time_for_the_widths_is_bounded(model, monkeypatch):
    pytest.importorskip("shap", exc_type=ImportError)
    u, X, _, _ = model
    std = u.predict_dist(X[300:]).std()
    clock = iter(range(1000))
    monkeypatch.setattr("ibug.report._explorer.monotonic", lambda: float(next(clock)))
    assert unpack(widths(u, X[300:], np.arange(120), std, 2.5)["place"]).shape == (3,)
    assert "width_seconds=0" in widths(u, X[300:], np.arange(120), std, 0)["reason"]
    assert "too few" in widths(u, X[300:310], np.arange(10), std[:10], 5)["reason"]


def test_words_are_honest(model):
    u, X, _, y = model
    found = scored(predict_rows(u, X[300:]), X[300:], y[300:], 0.9)
    wrong = scored(predict_rows(u, X[300:]), X[300:], y[300:] + 100, 0.9)
    few = scored(predict_rows(u, X[300:320]), X[300:320], y[300:320], 0.9)
    assert said(headlines(wrong, None, None), "too narrow")["tone"] == "bad"
    assert "only 20 rows" in " ".join(caveats(few, found, 0.0))
    assert "trained on them" in " ".join(caveats(found, found, 0.9))
    assert Similarity(np.array([0.1, 0.5]), 0.3).headline()["figure"] == "1"
    assert "not known" in Similarity(np.array([0.1]), float("nan")).headline()["text"]
    assert Similarity(np.full(100, 0.1), 0.3).headline()["tone"] == "bad"


@pytest.mark.parametrize("n", [1, 10])
def test_few_rows_promise_nothing(model, tmp_path, n):
    u, X, _, y = model
    rows = X[300:]
    lower, upper = u.predict_dist(rows).interval(0.9)
    inside = np.flatnonzero((lower <= y[300:]) & (y[300:] <= upper))[:n]
    few = scored(predict_rows(u, rows.iloc[inside]), rows.iloc[inside], y[300:][inside], 0.9)
    line = said(headlines(few, None, None), "inside the 90 % intervals")
    assert line["figure"] == "100.0 %"
    assert line["tone"] == "plain"
    assert "too few rows to say" in line["text"]
    assert "promised (" not in line["text"]
    assert ("1 row)" in line["text"]) == (n == 1)


def test_groups_have_a_table(model, tmp_path):
    u, X, frame, y = model
    options = {"X_shown": frame[300:], "coverage": 0.8}
    path = ibug.report.write(u, X[300:], y[300:], tmp_path / "report.html", groups="age", **options)
    found = json.loads(Page(path.read_text(encoding="utf-8")).scripts[0])["groups"]
    expected = evaluate(u, X[300:], y[300:], levels=[0.8], groups=frame["age"][300:]).groups
    assert found["by"] == "age"
    assert [line["group"] for line in found["lines"]] == expected["group"].tolist()
    assert found["lines"][-1]["group"] == "missing"
    assert [line["inside"] for line in found["lines"]] == [f"{100 * share:.1f} %" for share in expected["coverage_80"]]
    assert [line["width"] for line in found["lines"]] == [number(width) for width in expected["width_80"]]
    off = u.predict(X[300:]) + np.where(np.arange(120) < 60, 0.0, 1e6)
    path = ibug.report.write(u, X[300:], off, tmp_path / "report.html", groups=np.arange(120) < 60)
    lines = json.loads(Page(path.read_text(encoding="utf-8")).scripts[0])["groups"]["lines"]
    assert [line["mark"] for line in lines] == ["▼", "▲"]


def test_of_many_curves_six_have_names(model, tmp_path):
    u, X, _, y = model
    tuned = IBUGRegressor(u.estimator_, prefit=True, distribution="tune")
    tuned.fit(X[:200], y[:200], X_val=X[200:300], y_val=y[200:300])
    path = ibug.report.write(tuned, X[300:], y[300:], tmp_path / "report.html")
    curves = json.loads(Page(path.read_text(encoding="utf-8")).scripts[0])["charts"]["tuning"]["curves"]
    assert len(curves) > 10
    assert sum(curve["named"] for curve in curves) == 6


def test_densities_are_drawn_to_their_ends():
    """The last quantiles of a stack are single values; half of a kernel is beyond them."""
    atoms = np.tile([0.0, 10.0], (3, 1))
    stacks = Stack(np.full(3, 5.0), 1.0, atoms, np.ones((3, 2)), MixtureParams([0.0, 0.0, 1.0], bandwidth=0.5))
    lower, upper = stacks.interval(0.9)
    packed = densities(stacks, lower, upper)
    heights = unpack(packed["heights"]).reshape(3, -1)
    assert np.all(heights[:, [0, -1]] < 0.02 * 65535)
    assert np.all(unpack(packed["start"]) < -1)
    assert np.all(unpack(packed["start"]) > -10)


def test_wrong_arguments_are_named(model, tmp_path):
    u, X, _, y = model
    path = tmp_path / "report.html"
    X, y, X_train = X[300:], y[300:], X[:200]
    for options, message in [
        ({"X_train": X_train[:10]}, "X_train"),
        ({"X_train": X_train[::-1]}, "in their order: 1.. of 200 rows"),
        ({"X_train": X_train.sample(frac=1, random_state=0)}, "in their order: 1.. of 200 rows"),
        ({"X_shown": X[:10]}, "X_shown"),
        ({"ids": ["a"]}, "ids"),
        ({"train_ids": ["a"]}, "train_ids"),
        ({"coverage": 90}, "coverage"),
        ({"max_rows": 0}, "max_rows"),
        ({"n_neighbors": 0}, "n_neighbors"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            ibug.report.write(u, X, y, path, **options)
    assert not path.exists()
