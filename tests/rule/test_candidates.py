"""The choice of k against Algorithm 3 written out."""

import numpy as np
import pytest
from scipy.stats import norm

from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import crps, nll
from ibug.rule import K_CANDIDATES, Family
from ibug.rule._choice import best_candidate, smallest_nonzero
from ibug.rule._plan import candidates
from ibug.rule._spread import prefix_variances

pytestmark = pytest.mark.once

TINY = 1e-15


def candidates_up_to(n_rows):
    return candidates(None, n_rows)


def algorithm_3(mean, values, y, candidates):
    """The paper's double loop, scored by the negative log likelihood."""
    scores = np.zeros((len(y), len(candidates)))
    for j in range(len(y)):
        for i, k in enumerate(candidates):
            variance = max(np.mean((values[j, :k] - values[j, :k].mean()) ** 2), 1e-15)
            scores[j, i] = -norm(mean[j], np.sqrt(variance)).logpdf(y[j])
    return scores.mean(axis=0)


@pytest.fixture
def validation():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=40)
    spread = np.linspace(0.5, 3.0, 300) * rng.uniform(0.5, 2, (40, 1))
    return mean, mean[:, None] + spread * rng.normal(size=(40, 300)), mean + rng.normal(size=40)


def tune_on_values(mean, values, y, candidates, score):
    normal = [Family("normal", Normal)]
    return best_candidate(
        mean, prefix_variances("targets", values, candidates), values, y, candidates, normal, score, TINY
    )


def test_scores_and_choice_equal_the_double_loop(validation):
    candidates = candidates_up_to(300)
    tuning = tune_on_values(*validation, candidates, nll)
    expected = algorithm_3(*validation, candidates)
    np.testing.assert_allclose([one["score"] for one in tuning.tried], expected, rtol=1e-9)
    assert tuning.k == candidates[int(np.argmin(expected))]
    assert tuple(one["k"] for one in tuning.tried) == candidates


def test_floor_is_the_smallest_nonzero_variance_at_the_chosen_k(validation):
    mean, values, y = validation
    values[3] = 8.0  # one row without any variance
    tuning = tune_on_values(mean, values, y, [50], crps)
    variance = values[:, :50].var(axis=1)
    assert tuning.min_variance == pytest.approx(np.delete(variance, 3).min(), rel=1e-12)
    assert tuning.variance[3] == tuning.min_variance
    np.testing.assert_allclose(np.delete(tuning.variance, 3), np.delete(variance, 3))


def test_without_any_variance_the_floor_is_tiny():
    tuning = tune_on_values(np.zeros(2), np.ones((2, 5)), np.zeros(2), [3, 5], crps)
    assert tuning.min_variance == TINY
    assert tuning.k == 3  # of equal scores the smaller k wins
    assert smallest_nonzero(np.array([0.0, 4.0, 2.0]), TINY) == 2.0


def test_candidates():
    assert K_CANDIDATES == (3, 5, 7, 9, 11, 15, 31, 61, 91, 121, 151, 201, 301, 401, 501, 601, 701)
    assert candidates_up_to(10**6) == K_CANDIDATES
    assert candidates_up_to(61)[-1] == 61
    assert candidates_up_to(60)[-1] == 31
    assert candidates_up_to(2) == (2,)


def test_a_candidate_without_score_is_passed_over(validation):
    def score(y, distribution):
        return np.nan if distribution.std().mean() < 1.0 else crps(y, distribution)

    assert tune_on_values(*validation, candidates_up_to(300), score).k > 3


def test_a_score_that_is_never_a_number(validation):
    with pytest.raises(InvalidInputError, match="NaN for every candidate"):
        tune_on_values(*validation, [3, 5], lambda y, distribution: np.nan)
