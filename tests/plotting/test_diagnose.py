"""All diagnostics in one figure."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ibug import IBUGRegressor, LeafIndex
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import evaluate
from ibug.plotting import diagnose

plt = pytest.importorskip("matplotlib.pyplot")

EVERY = {"calibration", "pit", "intervals", "spread_error", "densities", "tuning", "leaf_density"}


def test_every_diagnosis_is_drawn_in_one_figure_after_one_search(u, data, tmp_path, monkeypatch):
    X, y = data["test"]
    searched, before = [], LeafIndex.query
    monkeypatch.setattr(LeafIndex, "query", lambda *a, **o: searched.append(len(a[1])) or before(*a, **o))
    found = diagnose(u, X, y, coverage=0.8, unit="points")
    assert sum(searched) == len(X)
    assert set(found.displays) == EVERY
    assert not found.reasons
    assert len(plt.get_fignums()) == 1
    assert {display.figure_ for display in found.displays.values()} == {found.figure_}
    assert set(found.displays["calibration"].observed) == {"ibug", "plain neighbours"}
    assert dict(found.scores) == dict(evaluate(u, X, y))
    assert found.displays["intervals"].coverage == 0.8
    np.testing.assert_array_equal(found.displays["densities"].neighbors, u.training_targets_[u.kneighbors(X[:5])[1]])
    found.figure_.savefig(tmp_path / "all.png")
    words = [text.get_text() for text in found.axes_["scores"].texts]
    assert "mean width" in words[0]


class Plain:
    """An estimator without neighbours."""

    def predict_dist(self, X):
        return Normal(np.full(len(X), 150.0), 50.0)

    def predict(self, X):
        return np.full(len(X), 150.0)


def test_what_an_estimator_does_not_have_is_told(u, data, tmp_path):
    X, y = data["test"]
    found = diagnose(Plain(), X, y[:, None])
    assert set(found.displays) == EVERY - {"tuning", "leaf_density"}
    assert "no tuning_" in found.reasons["tuning"]
    assert list(found.displays["calibration"].observed) == ["predicted"]
    found.figure_.savefig(tmp_path / "all.png")
    fixed = IBUGRegressor(u.estimator_, prefit=True, k=5, calibrate=False).fit(*data["train"])
    assert "k=5 was given, not tuned" in diagnose(fixed, X, y).reasons["tuning"]


def test_it_draws_on_a_given_figure(u, data):
    figure = plt.figure(figsize=(18, 15), layout="constrained")
    assert diagnose(u, data["test"][0][:3], data["test"][1][:3], figure=figure).figure_ is figure


def test_an_estimator_that_cannot_predict_distributions(data):
    with pytest.raises(InvalidInputError, match="this LinearRegression has no predict_dist"):
        diagnose(LinearRegression().fit(*data["train"]), *data["test"])
    assert plt.get_fignums() == []
