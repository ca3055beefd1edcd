"""A rule is made, used, stored and sent without a model, an index or rows."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from scipy.stats import norm

from ibug import IBUGRegressor
from ibug._options import Options
from ibug.calibration import ScaleConformal
from ibug.distributions import Laplace, Normal, Stack, Truncated, Weibull
from ibug.exceptions import InvalidInputError, NotStorableError
from ibug.neighbors import Batch, CrossFittedSource, ValidationRows
from ibug.rule import (
    Family,
    Rule,
    TargetRule,
    conformalized,
    joined,
    learn,
    summarize,
    with_calibrated_sides,
    with_floor,
    without_validation,
)
from ibug.rule._experts import Experts, Nearest, Pooled
from ibug.rule._spread import Spread
from ibug.rule._stack import StackRule

pytestmark = pytest.mark.once


def make_batch(seed=0, n=30, k=12, first=0):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=n)
    values = {"targets": mean[:, None] + rng.normal(size=(n, k)), "residuals": rng.normal(size=(n, k))}
    affinities = -np.sort(-rng.integers(0, 50, (n, k)), axis=1)
    return Batch(slice(first, first + n), mean, affinities, rng.integers(0, 500, (n, k)), values, 50)


def make_stack(**shared):
    experts = Experts(targets=(Nearest(3), Nearest(9, 15.0)), residuals=(Nearest(5, 2.0),))
    pooled = Pooled(np.linspace(-2, 2, 9), **shared)
    weights = np.array([0.3, 0.2, 0.1, 0.2, 0.2])
    return StackRule(experts, weights, np.full(5, 1.5), 1.2, "crps", pooled, 0.25)


def rule_of(*known, **parameters):
    return Rule((TargetRule(*known, **parameters),))


def with_part(rule, **changes):
    return replace(rule, parts=(replace(rule.parts[0], **changes),))


RULES = {
    "normal": rule_of(Spread.of("targets", 7), Family("normal", Normal), 7, 0.3, 2.0, 0.5),
    "residuals": rule_of(Spread.of("residuals", 5), Family("normal", Normal), 5, 0.0),
    "laplace": rule_of(Spread.of("targets", 7), Family("laplace", Laplace), 9, 0.0, 1.5),
    "bounded": rule_of(Spread.of("targets", 7), Family("normal", Normal, support=(-1.0, np.inf)), 7, 0.0),
    "neighbours": rule_of(Spread.of("residuals", 5), Family("laplace", Laplace, "neighbors"), 12, 0.0),
    "stack": rule_of(Spread.of("targets", 7), Family("normal", Normal), 7, 0.3, 2.0, 0.5, stack=make_stack()),
    "bounded stack": rule_of(
        Spread.of("targets", 7), Family("normal", Normal), 7, 0.3, stack=make_stack(support=(-1.0, np.inf))
    ),
}


def test_predicted_variances_are_those_of_the_distributions():
    # A Weibull distribution has a least spread, 1e-8 of its mean: a variance below it is not kept.
    weibull = Family("weibull", Weibull, learned={"shift": -20.0}, lowest=-15.0)
    rules = [*RULES.values(), rule_of(Spread.of("targets", 7), weibull, 7, 0.0, 1e-30)]
    for rule, batch in ((rule, make_batch()) for rule in rules):
        np.testing.assert_allclose(rule.predicted_variance(batch), rule.distribution(batch).var(), rtol=1e-6)


def test_the_papers_rule_is_its_formula():
    batch, rule = make_batch(), RULES["normal"]
    variance = 2.0 * np.maximum(batch.values["targets"][:, :7].var(axis=1), 0.3) + 0.5
    np.testing.assert_allclose(rule.parts[0].variance(batch), variance)
    np.testing.assert_allclose(
        rule.distribution(batch).ppf(0.9), norm(batch.mean, np.sqrt(variance)).ppf(0.9), rtol=1e-12
    )
    assert rule.needs == {"targets": 7}


@pytest.mark.parametrize("name", RULES)
def test_the_variance_is_that_of_the_distribution(name):
    batch, rule = make_batch(), RULES[name]
    np.testing.assert_allclose(rule.predicted_variance(batch), rule.distribution(batch).var(), rtol=1e-9)


def test_what_a_rule_needs():
    assert RULES["laplace"].needs == {"targets": 9}  # the shape looks at more neighbours than the spread
    assert RULES["neighbours"].needs == {"residuals": 12}
    assert isinstance(RULES["bounded"].distribution(make_batch()), Truncated)
    assert RULES["stack"].needs == {"targets": 9, "residuals": 5}
    assert isinstance(RULES["stack"].distribution(make_batch()), Stack)


@pytest.mark.parametrize("name", RULES)
def test_more_neighbours_than_needed_change_nothing(name):
    batch, rule = make_batch(k=12), RULES[name]
    few = batch._replace(values={quantity: batch.values[quantity][:, :k] for quantity, k in rule.needs.items()})
    np.testing.assert_array_equal(rule.distribution(few).ppf(0.8), rule.distribution(batch).ppf(0.8))


@pytest.mark.parametrize("name", RULES)
def test_batches_join_to_the_whole(name):
    rule, one, other = RULES[name], make_batch(1), make_batch(2)
    whole = joined([rule.distribution(one), rule.distribution(other)])
    parts = [rule.distribution(batch).cdf(0.3) for batch in (one, other)]
    np.testing.assert_array_equal(whole.cdf(0.3), np.concatenate(parts))


@pytest.mark.parametrize("name", RULES)
def test_state_and_pickle_bring_it_back(name):
    batch = make_batch()
    distribution = RULES[name].distribution(batch)
    rule = with_part(RULES[name], conformal=ScaleConformal().fit(distribution, batch.mean + 1.0))
    for other in (Rule.from_state(rule.state()), pickle.loads(pickle.dumps(rule))):
        np.testing.assert_array_equal(rule.distribution(batch).ppf(0.7), other.distribution(batch).ppf(0.7))
        assert (other.k, other.needs, other.gamma) == (rule.k, rule.needs, rule.gamma)


def test_a_stack_is_its_formula():
    batch, rule = make_batch(), RULES["stack"]
    scale = np.sqrt(rule.parts[0].variance(batch))
    share = batch.affinities / batch.n_trees

    def weighted(values, k, sharpness):
        weights = np.exp(sharpness * (share[:, :k] - share[:, :1]))
        return np.sum(weights * (values[:, :k] <= 0.3), axis=1) / weights.sum(axis=1)

    targets, moved = batch.values["targets"], batch.mean[:, None] + batch.values["residuals"]
    errors = batch.mean[:, None] + scale[:, None] * np.linspace(-2, 2, 9)
    expected = 0.3 * norm.cdf((0.3 - batch.mean) / scale) + 0.2 * np.mean(errors <= 0.3, axis=1)
    expected += 0.1 * weighted(targets, 3, 0.0) + 0.2 * weighted(targets, 9, 15.0) + 0.2 * weighted(moved, 5, 2.0)
    np.testing.assert_allclose(rule.distribution(batch).cdf(0.3), expected, rtol=1e-6)  # masses in single precision
    assert (rule.distribution_name, rule.experts["weight"].sum()) == ("stack", 1.0)
    assert rule.uncalibrated().distribution_name == "normal"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [0.5, 0.5, 0.5, 0.0, 0.0]}, "sum to 1"),
        ({"weights": [1.5, -0.5, 0.0, 0.0, 0.0]}, "at least zero"),
        ({"weights": [np.nan, 0.2, 0.1, 0.2, 0.2]}, "at least zero"),
        ({"weights": [0.5, 0.5]}, "as many weights"),
        ({"scores": [1.0]}, "as many weights"),
        ({"bandwidth": 0.0}, "bandwidths"),
        ({"bandwidth": np.nan}, "bandwidths"),
        ({"pooled": {"errors": [np.inf]}}, "must be finite"),
        ({"pooled": {"errors": []}}, "needs errors"),
        ({"pooled": {"resolution": -1.0}}, "resolution"),
        ({"pooled": {"support": [3.0, 3.0]}}, "lower bound"),
        ({"experts": {"targets": [[0, 0.0], [9, 15.0]]}}, "k of at least 1"),
        ({"experts": {"targets": [[3, np.nan], [9, 15.0]]}}, "finite sharpness"),
        ({"experts": {"targets": []}}, "as many weights"),
    ],
)
def test_an_impossible_stack_is_refused(change, message):
    state = RULES["stack"].state()
    stack = state["parts"][0]["stack"]
    for name, value in change.items():
        stack[name] = {**stack[name], **value} if isinstance(value, dict) else value
    with pytest.raises(InvalidInputError, match=message):
        Rule.from_state(state)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"k": 0}, "k is impossible"), ({"k": True}, "k is no number"), ({"gamma": "2"}, "gamma is no number")],
)
def test_an_impossible_state_is_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        TargetRule.from_state({**RULES["normal"].parts[0].state(), **change})


def test_a_family_without_a_name_cannot_be_stored():
    class Own(Laplace):
        pass

    with pytest.raises(NotStorableError, match=r"Own.*register"):
        with_part(RULES["laplace"], family=Family("Own", Own)).state()


def test_it_is_frozen_and_a_query_changes_nothing():
    rule, batch = RULES["normal"], make_batch()
    before = pickle.dumps(rule.state())
    rule.distribution(batch)
    assert pickle.dumps(rule.state()) == before
    with pytest.raises(FrozenInstanceError):
        rule.parts[0].gamma = 3.0


def test_uncalibrated_and_another_k():
    plain = RULES["normal"].uncalibrated()
    assert (plain.gamma, plain.delta, plain.conformal, plain.k) == (1.0, 0.0, None, 7)
    other = plain.with_k(4)
    assert (other.k, other.parts[0].spread.k, other.needs) == (4, 4, {"targets": 4})
    assert plain.with_k(None) is plain


def options(**parameters):
    return Options.of(IBUGRegressor(**parameters).get_params(deep=False))


def make_rows(n=300, k=61, seed=0):
    rng = np.random.default_rng(seed)
    targets = np.cumsum(rng.normal(size=1000))
    at = rng.integers(30, 960, n)
    neighbors = at[:, None] + rng.permutation(np.arange(-k // 2 + 1, k // 2 + 1))[None, :]
    mean = targets[at]
    source = CrossFittedSource(
        mean, np.full((n, k), 0.5, np.float32), neighbors.astype(np.int32), targets, rng.normal(size=1000)
    )
    return ValidationRows(source, np.arange(n), mean + rng.normal(size=n))


def test_learn_is_a_function_of_rows_options_and_targets():
    rows = make_rows()
    wanted = options(distribution="normal", spread="targets", scoring="nll")
    targets = summarize(rows.source.targets, wanted)
    one, same = (learn(rows, wanted, targets, has_residuals=True) for _ in range(2))
    assert pickle.dumps(one.state()) == pickle.dumps(same.state())
    assert one.spread_name == "targets"
    assert one.affinity_threshold == 0.5
    best = np.nanargmin(one.tuning["score"])
    assert one.tuning["k"][best] == one.k


def test_a_stack_is_learned_beside_the_normal_distribution():
    rows = make_rows()
    for scoring in ("crps", "nll"):
        wanted = options(scoring=scoring)
        targets = summarize(rows.source.targets, wanted)
        one, same = (learn(rows, wanted, targets, has_residuals=True) for _ in range(2))
        assert pickle.dumps(one.state()) == pickle.dumps(same.state())
        assert one.tuning["distribution"][-1] == "stack"
        assert (one.parts[0].stack is None) == bool(one.tuning["reason"][-1])
    without = learn(rows, options(distribution="normal"), targets, has_residuals=True)
    assert without.parts[0].stack is None


def test_conformal_calibration_comes_last():
    rows = make_rows()
    wanted = options(conformal="scale")
    targets = summarize(rows.source.targets, wanted)
    rule = learn(rows, wanted, targets, has_residuals=False)
    assert rule.conformal is None
    sure = conformalized(rule, rows, wanted)
    (batch,) = rows.batches(sure.needs)
    lower, upper = sure.distribution(batch).interval(0.9)
    assert np.mean((rows.y >= lower) & (rows.y <= upper)) >= 0.9
    assert conformalized(rule, rows, options()) is rule


def test_without_validation_rows_the_rule_is_what_was_asked_for():
    rows = make_rows()
    wanted = options(k=20, distribution="normal", calibrate=False)
    targets = summarize(rows.source.targets, wanted)
    rule = without_validation(wanted, targets, 1000)
    assert (rule.k, rule.spread_name, rule.gamma, len(rule.tuning["k"])) == (20, "targets", 1.0, 0)
    floored = with_floor(rule, rows.batches(rule.needs), targets)
    (batch,) = rows.batches(rule.needs)
    assert floored.min_variance == batch.values["targets"].var(axis=1).min()


def test_a_widened_rule_has_the_same_share_of_more_rows():
    rule = RULES["stack"].with_more_neighbors(0.8, 10**6)
    part = rule.parts[0]
    assert (rule.k, part.spread.k) == (9, 9)  # 7/0.8 = 8.75
    assert [one.k for one in part.stack.experts.targets] == [4, 11]
    assert [one.k for one in part.stack.experts.residuals] == [6]
    assert rule.with_more_neighbors(1.0, 10**6) is rule
    few = RULES["stack"].with_more_neighbors(0.8, 8)
    assert (few.k, max(few.needs.values())) == (8, 8)
    assert len(few.parts[0].stack.experts) == len(few.parts[0].stack.weights)


@pytest.mark.parametrize("k", [2, 4, 8, 40])
def test_a_widened_variance_has_the_expectation_that_it_was_calibrated_for(k):
    values = {"targets": np.random.default_rng(k).normal(size=(40_000, 2 * k))}
    rule = TargetRule(Spread.of("targets", k), Family("normal", Normal), k, 0.0, gamma=1.7, delta=0.4)
    batch = make_batch()._replace(values=values)
    assert rule.with_more_neighbors(0.5, 2 * k).variance(batch).mean() == pytest.approx(
        rule.variance(batch).mean(), rel=0.02
    )


def test_smaller_errors_make_narrower_normal_distributions_and_leave_neighbours_as_they_are():
    batch = make_batch()
    for name in ("normal", "stack"):
        plain, found = RULES[name].distribution(batch), RULES[name].with_errors_times(0.9).distribution(batch)
        np.testing.assert_allclose(found.scale, 0.9 * plain.scale)
    np.testing.assert_array_equal(found.atoms, plain.atoms)


def out_of_fold(y, targets, mean):
    n, k = targets.shape
    source = CrossFittedSource(mean, np.ones((n, k), np.float32), np.arange(n * k).reshape(n, k), targets.ravel(), y)
    return ValidationRows(source, np.arange(n), y)


def skewed_rows(n, seed=0):
    """Rows whose errors have a long upper side, with neighbours whose means differ from theirs."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=n)
    noise = rng.gamma(4.0, size=(n, 13)) - 4.0
    return out_of_fold(mean + noise[:, 0], mean[:, None] + 0.5 * rng.normal(size=(n, 12)) + noise[:, 1:], mean)


@pytest.mark.parametrize("n", [1000, 40_000])
def test_both_sides_of_a_stack_leave_out_as_many_rows_as_they_should(n):
    rows, rule = (
        skewed_rows(n),
        with_part(
            RULES["stack"],
            stack=replace(
                make_stack(),
                experts=Experts((Nearest(3), Nearest(9)), (), True),
                weights=np.array([0.3, 0.3, 0.1, 0.3]),
                scores=np.ones(4),
            ),
        ),
    )
    options = Options.of(IBUGRegressor().get_params(deep=False))
    found = with_calibrated_sides(rule, rows, options)

    def shares(one, some=rows):
        distribution = joined([one.distribution(batch) for batch in some.batches(one.needs)])
        lower, upper = distribution.interval(0.9)
        return np.array([np.mean(some.y < lower), np.mean(some.y > upper)])

    full = n / (n + 170)  # the factors are pulled towards 1
    stack = found.parts[0].stack
    exact = with_part(found, stack=replace(stack, sides=tuple(side ** (1 / full) for side in stack.sides)))
    np.testing.assert_allclose(shares(exact), 0.05, atol=2 / n + 0.0005)
    assert np.abs(shares(rule) - 0.05).max() > 0.02
    np.testing.assert_allclose(shares(found, skewed_rows(40_000, seed=1)), 0.05, atol=0.015 if n == 1000 else 0.003)
    assert Rule.from_state(found.state()).parts[0].stack.sides == stack.sides


@pytest.mark.parametrize("target", ["whole numbers", "many zeros", "few rows", "continuous"])
def test_values_that_are_known_stay_where_they_are(target):
    rows = skewed_rows(90 if target == "few rows" else 1000)
    y = np.round(rows.y) if target == "whole numbers" else np.maximum(rows.y, 0) if target == "many zeros" else rows.y
    values = np.unique(y) if target == "whole numbers" else np.empty(0)
    rule = with_part(RULES["stack"], stack=make_stack(values=values, resolution=float(len(values) > 0)))
    rows = replace(rows, y=y, source=replace(rows.source, residuals=np.zeros(rows.source.targets.shape)))
    found = with_calibrated_sides(rule, rows, Options.of(IBUGRegressor().get_params(deep=False)))
    if target == "few rows":
        assert found is rule
        return
    assert found.parts[0].stack.sides != (1.0, 1.0)
    found = Rule.from_state(found.state())
    (batch,) = rows.batches(rule.needs)
    same = np.array_equal(found.distribution(batch).atoms, rule.distribution(batch).atoms)
    assert same == (target != "continuous")


def test_a_stretched_stack_is_the_stack_of_stretched_values():
    batch, stack = make_batch(), make_stack()
    rule = with_part(RULES["stack"], stack=replace(stack, sides=(0.5, 2.0)))
    plain, found = RULES["stack"].distribution(batch), rule.distribution(batch)
    away = plain.atoms - plain.loc[:, None]
    np.testing.assert_allclose(found.atoms, plain.loc[:, None] + np.where(away < 0, 0.5, 2.0) * away)
    np.testing.assert_allclose(found.scale, plain.scale)  # the geometric mean of both sides is 1
    errors = plain.mixture.errors
    np.testing.assert_allclose(found.mixture.errors, np.where(errors < 0, 0.5, 2.0) * errors)
    state = rule.state()
    state["parts"][0]["stack"]["sides"] = [0.0, 1.0]
    with pytest.raises(InvalidInputError, match="factors above zero"):
        Rule.from_state(state)
