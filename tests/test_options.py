"""Parameters are checked once, in one place; strings are objects afterwards."""

import inspect
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.frozen import FrozenEstimator

from ibug import IBUGRegressor
from ibug._options import SPREADS, Options
from ibug.distributions import Laplace, Normal, families
from ibug.exceptions import InvalidInputError


def options(**parameters):
    return Options.of(IBUGRegressor(**parameters).get_params(deep=False))


def test_strings_are_objects():
    given = options(distribution="laplace", scoring="nll", spread="residuals", support=(0, 5))
    assert given.families == (("laplace", Laplace),)
    assert (given.scoring, given.loss) == ("nll", "nll")
    assert given.spread is SPREADS["residuals"]
    assert given.support == (0.0, 5.0)
    assert given.k is None
    assert options(k=np.int64(7)).k == 7
    assert options().families == (("normal", Normal),)
    assert options().scoring == "crps"
    assert [name for name, _ in options(distribution="tune").families] == list(families())
    assert options(scoring=lambda y, d: 1.0).loss == "crps"


def test_a_frozen_estimator_is_trained():
    assert options(estimator=FrozenEstimator(GradientBoostingRegressor())).prefit
    assert not options(estimator=GradientBoostingRegressor()).prefit


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scoring": "rmse"}, "scoring must be"),
        ({"refit": 1}, "refit must be True or False"),
        ({"calibrate": "often"}, "calibrate must be"),
        ({"spread": "wide"}, "spread must be one of"),
        ({"spread": ["targets"]}, "spread must be one of"),
        ({"conformal": "sure"}, "conformal must be"),
        ({"cv": 1.5}, "cv must be the share of the rows that is held out, a number between 0 and 1, or a whole"),
        ({"sampling": 0.5}, "sampling must be None or an ibug.Sampling, .* got 0.5"),
        ({"location": "mean"}, "location must be"),
        ({"distribution": "cauchy"}, "distribution must be"),
        ({"distribution": ["normal", "cauchy"]}, "distribution must be"),
        ({"support": (3, 3)}, "support must be a pair"),
        ({"n_jobs": 0}, "n_jobs must be None or a whole number"),
        ({"n_jobs": "2"}, "n_jobs must be None or a whole number"),
    ],
)
def test_every_parameter_is_checked_before_any_data_are_seen(parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        options(**parameters)


def test_every_parameter_is_an_option():
    # What is not an option of its own is part of one.
    parts = {"estimator", "random_state", "scoring", "k"}
    names = set(inspect.signature(IBUGRegressor).parameters) - parts
    assert names <= set(Options.__dataclass_fields__)


def test_options_are_frozen():
    with pytest.raises(FrozenInstanceError):
        options().prefit = True


@pytest.mark.parametrize(
    ("parameters", "needed"),
    [
        ({}, True),
        ({"k": 5}, True),
        ({"k": 5, "calibrate": False}, False),
        ({"k": 5, "calibrate": False, "distribution": "tune"}, True),
        ({"k": 5, "calibrate": False, "conformal": "scale"}, True),
    ],
)
def test_when_validation_rows_are_needed(parameters, needed):
    assert options(**parameters).needs_validation == needed
