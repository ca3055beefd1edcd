"""The report of several targets: each is what the library says of it, and so is what is told of all together."""

import json

import numpy as np
import pytest

import ibug.report
from ibug import IBUGRegressor
from ibug.describe import number
from ibug.exceptions import InvalidInputError
from ibug.explain import plain_neighbors
from ibug.metrics import evaluate
from ibug.report._joint import listed
from tests.report.conftest import HOSTILE
from tests.report.test_report import Page, unpack


@pytest.fixture(scope="module")
def data(several_written):
    return json.loads(Page(several_written.path.read_text(encoding="utf-8")).scripts[0])


def test_each_target_has_the_librarys_own_numbers(several_written, data):
    u, X, Y = several_written.u, several_written.X, several_written.y
    interval, (affinities, indices) = u.predict_interval(X, 0.9), u.kneighbors(X, 10)
    assert len(data["targets"]) == 3
    places = unpack(data["neighbors"]["places"])
    np.testing.assert_array_equal(unpack(data["neighbors"]["row"])[places[:, :10]], indices)
    np.testing.assert_array_equal(unpack(data["neighbors"]["affinity"]), affinities)
    np.testing.assert_array_equal(unpack(data["rows"]["affinity"]), u.affinity_score(X))
    for j, one in enumerate(data["targets"]):
        rows = one["rows"]
        np.testing.assert_array_equal(unpack(rows["prediction"]), u.predict(X)[:, j])
        np.testing.assert_allclose(unpack(rows["lower"]), interval[:, j, 0])
        np.testing.assert_allclose(unpack(rows["upper"]), interval[:, j, 1])
        np.testing.assert_array_equal(unpack(rows["observed"]), Y[:, j])
        assert unpack(rows["density"]["heights"]).max() == 65535
        targets = unpack(one["neighbors"]["target"])[places[:, :10]]
        np.testing.assert_array_equal(targets, u.training_targets_[indices][:, :, j])
        assert "corrected for 2 comparisons" in data["drift"]["verdict"]
        assert one["charts"]["tuning"]["chosen"] == u.rule_.parts[j].k
        assert one["groups"]["by"] == "size"


def test_scores_are_those_of_evaluate(several_written, data):
    scores = evaluate(several_written.u, several_written.X, several_written.y)
    plain = evaluate(plain_neighbors(several_written.u), several_written.X, several_written.y)
    joint = {row["name"]: row for row in data["joint"]["scores"]}
    assert joint["energy score"]["ibug"] == number(scores["energy_score"])
    assert joint["energy score"]["plain"] == number(plain["energy_score"])
    assert joint["variogram score"]["ibug"] == number(scores["variogram_score"])
    ninety = next(row for row in data["joint"]["boxes"] if row["level"] == "90 %")
    assert ninety["boxes"] == f"{100 * scores['box_coverage_90']:.1f} %"
    names = several_written.u.target_names_
    for name, line, one in zip(names, data["joint"]["overview"], data["targets"], strict=True):
        assert line["name"] == name
        assert line["mae"] == number(scores[f"{name}_mae"], 3)
        assert line["inside"] == f"{100 * scores[f'{name}_coverage_90']:.1f} %"
        level = next(row for row in one["intervals"] if row["level"] == "90 %")
        assert level["ibug"]["width"] == number(scores[f"{name}_width_90"])
    sentence = data["joint"]["headlines"][0]["text"]
    share = f"{100 * scores['box_coverage_90']:.1f} %"
    assert sentence.startswith(f"{share} of the rows have all targets inside the 90 % boxes (")


def test_boxes_samples_and_correlations(several_written, data):
    u, X = several_written.u, several_written.X
    np.testing.assert_allclose(unpack(data["joint"]["box"]), u.predict_interval(X, 0.9, joint=True))
    distribution, packed = u.predict_dist(X), data["joint"]["samples"]
    np.testing.assert_allclose(unpack(data["joint"]["correlation"]), distribution.correlation(), rtol=1e-4, atol=1e-5)
    start, length, steps = (unpack(packed[name]) for name in ("start", "length", "steps"))
    assert steps.shape == (120, packed["count"], 3)
    samples = start[:, None] + steps / 65535 * length[:, None]
    drawn = distribution.rvs(packed["count"], random_state=0).transpose(1, 0, 2)
    np.testing.assert_allclose(samples, drawn, atol=length.max() / 65535)


def test_names_are_text(several_written):
    text = several_written.path.read_text(encoding="utf-8")
    assert HOSTILE[0] not in text
    title = json.loads(Page(text).scripts[0])["about"]["title"]
    assert title == f"How sure is the model of price, {HOSTILE[0]} and days?"
    assert listed(["a", "b"]) == "a and b"


def test_without_validation_rows_there_are_no_boxes(several, tmp_path):
    u, X, Y = several
    plain = IBUGRegressor(u.estimator_, prefit=True, k=10, calibrate=False).fit(X[:200], Y[:200])
    path = ibug.report.write(plain, X[300:], Y[300:], tmp_path / "report.html", max_rows=20)
    joint = json.loads(Page(path.read_text(encoding="utf-8")).scripts[0])["joint"]
    assert joint["box"] is None
    assert {row["boxes"] for row in joint["boxes"]} == {"–"}
    assert [line["figure"] for line in joint["headlines"]] == ["?"]  # which similarity is low is not known either
    assert unpack(joint["samples"]["steps"]).shape[0] == 20


def test_many_targets_have_fewer_samples(several, monkeypatch, tmp_path):
    u, X, Y = several
    monkeypatch.setattr("ibug.report._joint._SAMPLE_BYTES", 10)
    path = ibug.report.write(u, X[300:], Y[300:], tmp_path / "report.html")
    assert json.loads(Page(path.read_text(encoding="utf-8")).scripts[0])["joint"]["samples"]["count"] == 30


def test_wrong_targets_are_refused(several, tmp_path):
    u, X, Y = several
    for y in (Y.iloc[300:, :2], Y.iloc[300:, 0]):
        with pytest.raises(InvalidInputError, match=r"has 3 targets: y must have the shape \(120, 3\)"):
            ibug.report.write(u, X[300:], y, tmp_path / "report.html")
