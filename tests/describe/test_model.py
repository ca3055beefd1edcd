"""A fitted estimator in words."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor, Sampling
from ibug.describe import json_values, model_facts, model_lines

pytestmark = pytest.mark.once

EXPERTS = [
    {"expert": "normal", "k": 0, "weight": 0.4, "score": 1.0},
    {"expert": "errors", "k": 0, "weight": 0.037, "score": 1.1},
    {"expert": "targets of 3", "k": 3, "weight": 0.003, "score": 1.3},
    {"expert": "targets of 9", "k": 9, "weight": 0.26, "score": 1.2},
    {"expert": "targets of 63, by affinity (15)", "k": 63, "weight": 0.3, "score": 1.2},
    {"expert": "residuals of 21, by affinity (5)", "k": 21, "weight": 0.0, "score": 1.0},
]


def fitted(**parameters):
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=9).fit(X[:300], y[:300])
    return IBUGRegressor(model, prefit=True, **parameters).fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])


def test_a_stack_in_words():
    facts = {**model_facts(fitted()), "stack": EXPERTS}
    said = "56 % neighbours' targets (9, 63), 40 % normal, 4 % errors of validation rows"
    assert model_lines(facts)["distribution"] == f"stack: {said}"
    facts["support"] = [0.0, np.inf]
    assert model_lines(facts)["distribution"] == f"stack within 0 to inf: {said}"
    assert model_lines(facts)["calibration"] == "by the combination of spreads itself; then the weights of the stack"


def test_the_trees_that_count():
    assert model_lines(model_facts(fitted()))["model"] == "sklearn.GradientBoostingRegressor, 9 trees"
    said = model_lines(model_facts(fitted(sampling=Sampling(tree_fraction=0.4))))["model"]
    assert said == "sklearn.GradientBoostingRegressor, 9 trees, of which 4 find neighbours"


def test_the_facts_of_a_stack_are_json():
    u = fitted()
    experts = json.loads(json.dumps(json_values(model_facts(u))))["stack"]
    assert [expert["expert"] for expert in experts] == u.stack_["expert"].tolist()
    assert sum(expert["weight"] for expert in experts) == pytest.approx(1.0)


def test_without_a_stack():
    facts = model_facts(fitted(distribution="normal", support=(0, np.inf)))
    assert facts["stack"] == []
    assert model_lines(facts)["distribution"] == "normal within 0 to inf"
    assert model_lines(facts)["support"] == "0 to inf (given)"
    assert "stack" not in model_lines(facts)["calibration"]
