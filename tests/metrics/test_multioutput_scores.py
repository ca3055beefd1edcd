"""Energy and variogram scores against their definitions."""

import numpy as np
import pytest

from ibug.distributions import JointMixtureParams, JointStack, MixtureParams, Neighborhood, Stack
from ibug.exceptions import InvalidInputError
from ibug.metrics import coverage, crps, energy_score, nll, pit, rmse, variogram_score

pytestmark = pytest.mark.once

RNG = np.random.default_rng(0)
SAMPLES, Y = RNG.normal(size=(30, 70, 3)), RNG.normal(size=(70, 3))
UNIT = np.array([1.0, 2.0, 5.0])


def test_energy_score_of_samples_by_loops():
    expected = []
    for i in range(70):
        x, y = SAMPLES[:, i] / UNIT, Y[i] / UNIT
        apart = [np.linalg.norm(x[a] - x[b]) for a in range(30) for b in range(30) if a != b]
        expected.append(np.mean([np.linalg.norm(one - y) for one in x]) - np.mean(apart) / 2)
    np.testing.assert_allclose(energy_score(Y, SAMPLES, unit=UNIT, reduce=None), expected)
    assert energy_score(Y, SAMPLES, unit=UNIT) == pytest.approx(np.mean(expected))
    weights = RNG.random(70)
    assert energy_score(Y, SAMPLES, unit=UNIT, sample_weight=weights) == pytest.approx(
        np.average(expected, weights=weights)
    )


def test_variogram_score_of_samples_by_loops():
    expected = []
    for i in range(70):
        x, y = SAMPLES[:, i] / UNIT, Y[i] / UNIT
        pairs = [(0, 1), (0, 2), (1, 2)]
        means = [np.mean(np.abs(x[:, a] - x[:, b]) ** 0.7) for a, b in pairs]
        expected.append(sum((abs(y[a] - y[b]) ** 0.7 - mean) ** 2 for (a, b), mean in zip(pairs, means, strict=True)))
    np.testing.assert_allclose(variogram_score(Y, SAMPLES, 0.7, unit=UNIT, reduce=None), expected)


def test_the_energy_score_of_one_target_is_the_crps():
    """With a second target that is always right, only the first one counts."""
    own = (MixtureParams([0.0, 1.0, 0.0], np.array([-1.0, 0.0, 2.0])), MixtureParams([0.0, 1.0, 0.0], np.zeros(3)))
    errors = np.array([[-1.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    mixture = JointMixtureParams(np.array([0.0, 0.0, 1.0, 0.0]), own, errors, np.eye(2), np.eye(2), np.ones(2))
    alone = tuple(Stack(np.zeros(4), np.ones(4), np.empty((4, 0)), np.empty((4, 0)), one) for one in own)
    near = Neighborhood(np.empty((4, 0), int), np.empty((4, 0), np.float32), np.empty((0, 2)), None, 0)
    d = JointStack(np.zeros((4, 2)), np.ones((4, 2)), near, alone, mixture)
    y = np.column_stack([[-2.0, 0.0, 0.5, 3.0], np.zeros(4)])
    np.testing.assert_allclose(energy_score(y, d, reduce=None), crps(y[:, 0], d.marginal(0), reduce=None))
    halved = energy_score(y, d, unit=[2.0, 1.0], reduce=None)
    np.testing.assert_allclose(halved, energy_score(y, d, reduce=None) / 2)
    assert variogram_score(y, d, unit=[2.0, 2.0]) == pytest.approx(variogram_score(y, d) / 2)  # |·|^½, squared


@pytest.mark.parametrize("metric", [energy_score, variogram_score])
def test_another_unit_leaves_each_row_its_copula(metric):
    own, copulas = (MixtureParams([1.0, 0.0, 0.0], np.empty(0)),) * 2, np.array([[[1.0, 0.9], [0.9, 1.0]]] * 4)
    mixture = JointMixtureParams(
        np.array([1.0, 0.0, 0.0, 0.0]), own, np.empty((0, 2)), np.eye(2), np.eye(2), np.ones(2)
    )
    alone = tuple(Stack(np.zeros(4), np.ones(4), np.empty((4, 0)), np.empty((4, 0)), one) for one in own)
    near = Neighborhood(np.empty((4, 0), int), np.empty((4, 0), np.float32), np.empty((0, 2)), None, 0)
    d = JointStack(np.zeros((4, 2)), np.ones((4, 2)), near, alone, mixture, copulas)
    y = np.column_stack([[-2.0, 0.0, 0.5, 3.0], np.zeros(4)])
    assert metric(y, d, unit=[1.0, 1.0]) == metric(y, d)


@pytest.mark.parametrize("metric", [crps, nll, coverage, pit, rmse])
def test_metrics_of_one_target_say_what_to_do_with_several(metric):
    own = (MixtureParams([1.0, 0.0, 0.0], np.empty(0)),) * 2
    mixture = JointMixtureParams(
        np.array([0.0, 1.0, 0.0, 0.0]), own, np.empty((0, 2)), np.eye(2), np.eye(2), np.ones(2)
    )
    alone = tuple(Stack(np.zeros(4), np.ones(4), np.empty((4, 0)), np.empty((4, 0)), one) for one in own)
    near = Neighborhood(np.empty((4, 0), int), np.empty((4, 0), np.float32), np.empty((0, 2)), None, 0)
    d = JointStack(np.zeros((4, 2)), np.ones((4, 2)), near, alone, mixture)
    for y in (np.zeros((4, 2)), np.zeros(4)):
        with pytest.raises(InvalidInputError, match=r"one target.*d\.marginal\(j\).*evaluate\(u, X, y\).*JointDisplay"):
            metric(y, d)
    with pytest.raises(InvalidInputError, match="observed values come first"):
        metric(d, np.zeros(4))


@pytest.mark.parametrize("score", [energy_score, variogram_score])
def test_what_is_refused(score):
    with pytest.raises(InvalidInputError, match="two targets at least"):
        score(Y[:, :1], SAMPLES[:, :, :1])
    with pytest.raises(InvalidInputError, match=r"samples of shape \(m, 70, 3\)"):
        score(Y, SAMPLES[:, :, :2])
    with pytest.raises(InvalidInputError, match="m of at least 2"):
        score(Y, SAMPLES[:1])
    with pytest.raises(InvalidInputError, match="NaN"):
        score(np.where(Y > 2, np.nan, Y), SAMPLES)
