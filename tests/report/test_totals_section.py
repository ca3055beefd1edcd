"""The section of totals, for models that know what rows of a block have in common."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor

import ibug.report
from ibug import IBUGRegressor
from ibug.totals import group_sums

pytestmark = pytest.mark.once


def days(several=False):
    rng = np.random.default_rng(0)
    day = np.arange(1200) // 12
    X = pd.DataFrame({"a": rng.normal(size=1200), "b": rng.normal(size=1200)})
    y = X["a"].to_numpy() + 0.7 * rng.normal(size=100)[day] + rng.normal(size=1200)
    return X, np.stack([y, -y], axis=1) if several else y, day


def fitted(X, y, day, blocks=True):
    model = GradientBoostingRegressor(n_estimators=10, random_state=0)
    model = (model if y.ndim == 1 else MultiOutputRegressor(model)).fit(X[:480], y[:480])
    known = {"blocks_val": pd.DataFrame({"day": day[480:960]})} if blocks else {}
    return IBUGRegressor(model, prefit=True).fit(X[:480], y[:480], X_val=X[480:960], y_val=y[480:960], **known)


def content(u, X, y, path, **options):
    text = ibug.report.write(u, X, y, path, width_seconds=0, **options).read_text(encoding="utf-8")
    start = text.index('id="data">') + len('id="data">')
    return json.loads(text[start : text.index("</script>", start)])


@pytest.mark.parametrize("how", ["array", "frame", "shown"])
def test_observed_and_predicted_totals_of_days(how, tmp_path):
    X, y, day = days()
    u = fitted(X, y, day)
    X, y, day = X[960:], y[960:], day[960:]
    given = {
        "array": {"blocks": day},
        "frame": {"blocks": pd.DataFrame({"day": day})},
        "shown": {"X_shown": X.assign(day=day)},
    }[how]
    found = content(u, X, y, tmp_path / "r.html", **given)["totals"]
    assert found["about"].startswith("day: correlation 0.")
    (kind,) = found["kinds"]
    expected = u.total_dist(X, day, blocks=day)
    observed = group_sums(y, day)
    np.testing.assert_allclose(kind["observed"], observed)
    np.testing.assert_allclose(kind["median"], expected.median())
    lower, upper = expected.interval(0.9)
    np.testing.assert_allclose(kind["lower"], lower)
    np.testing.assert_allclose(kind["upper"], upper)
    assert kind["inside"] == ((lower <= observed) & (observed <= upper)).tolist()
    assert kind["groups"] == [str(one) for one in np.unique(day)]
    assert (kind["name"], kind["n"]) == ("day", 20)
    assert f"({sum(kind['inside'])} of 20 totals)" in kind["line"]["text"]
    assert "observed totals are inside the 90 % intervals of totals" in kind["line"]["text"]


def test_no_section_without_blocks(tmp_path):
    X, y, day = days()
    u = fitted(X, y, day)
    assert content(u, X[960:], y[960:], tmp_path / "r.html")["totals"] is None
    assert content(u, X[960:], y[960:], tmp_path / "r.html", blocks=np.zeros(240))["totals"] is None
    plain = fitted(X, y, day, blocks=False)
    assert content(plain, X[960:], y[960:], tmp_path / "r.html", X_shown=X[960:].assign(day=1))["totals"] is None


def test_each_of_several_targets_has_its_own(tmp_path):
    X, y, day = days(several=True)
    u = fitted(X, y, day)
    targets = content(u, X[960:], y[960:], tmp_path / "r.html", blocks=day[960:])["targets"]
    for j, one in enumerate(targets):
        np.testing.assert_allclose(one["totals"]["kinds"][0]["observed"], group_sums(y[960:, j], day[960:]))


def test_the_command_takes_the_blocks_of_the_model(tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("pyarrow")
    pytest.importorskip("lightgbm")
    from typer.testing import CliRunner

    from ibug.cli._app import app

    X, y, day = days()
    frame = X.assign(y=y, day=day)
    for name, part in {"train": frame[:480], "valid": frame[480:960], "test": frame[960:]}.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)

    def run(*arguments):
        result = CliRunner().invoke(app, [str(one) for one in arguments])
        assert result.exit_code == 0, (result.stderr, result.exception)

    model, page = tmp_path / "m.ibug", tmp_path / "r.html"
    run(
        "fit", tmp_path / "train.csv", "-t", "y", "--valid", tmp_path / "valid.csv", "--blocks", "day", "-b",
        "lightgbm", "--trees", "10", "-o", model,
    )  # fmt: skip
    run("report", model, tmp_path / "test.csv", "-o", page, "--width-seconds", "0")
    assert '"totals":{"about":"day: correlation 0.' in page.read_text(encoding="utf-8")
