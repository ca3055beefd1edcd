"""Slow, obvious truths that the library is compared with."""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm


def nearest_rows(train_leaves, query_leaves, k):
    """Return affinities and rows of the k nearest training rows by Eq. 1, nearest first, ties by row number."""
    affinity = (np.asarray(query_leaves)[:, None, :] == np.asarray(train_leaves)[None, :, :]).sum(axis=-1)
    rows = np.tile(np.arange(affinity.shape[1]), (len(affinity), 1))
    best = np.lexsort((rows, -affinity), axis=-1)[:, :k]
    return np.take_along_axis(affinity, best, axis=1), best


def crps_by_quadrature(distribution, y, breaks=()):
    """Return the CRPS of one scipy.stats distribution at y from its definition, the integral of (F(x) - 1[x >= y])²."""
    from itertools import pairwise

    from scipy.integrate import quad

    def square(x):
        return distribution.cdf(x) ** 2 if x < y else distribution.sf(x) ** 2

    edges = [-np.inf, *np.unique([*breaks, y]), np.inf]
    return sum(quad(square, a, b, epsabs=1e-12, epsrel=1e-10)[0] for a, b in pairwise(edges))


def mixture_of(components, weights):
    """Return the mixture of distributions of scipy.stats with arrays as parameters, with the same methods."""
    from types import SimpleNamespace

    weights = np.asarray(weights) / np.sum(weights)
    mean = weights @ components.mean()
    return SimpleNamespace(
        pdf=lambda x: weights @ components.pdf(x),
        cdf=lambda x: weights @ components.cdf(x),
        sf=lambda x: weights @ components.sf(x),
        mean=lambda: mean,
        var=lambda: weights @ (components.var() + components.mean() ** 2) - mean**2,
    )


def variance_of_first(values, k):
    """Return the population variance of each row's first k values, one value after the other, in exact arithmetic."""
    from fractions import Fraction

    def exact(row):
        numbers = [Fraction(float(v)) for v in row[:k]]
        mean = sum(numbers) / k
        return float(sum((v - mean) ** 2 for v in numbers) / k)

    return np.array([exact(row) for row in values])


def calibrate_by_grid(mean, variance, y, score):
    """Return the best score over the paper's grid: γ with δ = 0, δ with γ = 1 (section B.2), by two plain loops."""
    from scipy.stats import norm

    base = [10.0**e for e in range(-8, 4)]
    grid = [0.0] + [b * m for b in base for m in (1.0, 2.5, 5.0)]
    scores = []
    for value in grid:
        if value > 0:
            scores.append(score(y, norm(mean, np.sqrt(value * variance))))
        scores.append(score(y, norm(mean, np.sqrt(variance + value))))
    return min(scores)


def lightgbm_raw(booster, leaves):
    """Return the raw score: the sum of the reached leaves' outputs."""
    return sum_leaf_values(booster.get_leaf_output, leaves)


def xgboost_margin(booster, leaves, link=lambda base_score: base_score):
    """Return the margin: the base score and the reached leaves of the JSON dump, weighted by dart where it is dart."""
    import json

    learner = json.loads(booster.save_raw("json"))["learner"]
    base_score = float(json.loads(booster.save_config())["learner"]["learner_model_param"]["base_score"].strip("[]"))
    weights = learner["gradient_booster"].get("weight_drop") or np.ones(leaves.shape[1])
    values = [leaves_of_dump(json.loads(tree)) for tree in booster.get_dump(dump_format="json")]
    return link(base_score) + sum_leaf_values(lambda tree, leaf: weights[tree] * values[tree][leaf], leaves)


def leaves_of_dump(node):
    """Return {node number: leaf value} of one tree in XGBoost's JSON dump."""
    if "leaf" in node:
        return {node["nodeid"]: node["leaf"]}
    return {number: value for child in node["children"] for number, value in leaves_of_dump(child).items()}


def catboost_raw(model, leaves):
    """Return the raw value: scale and bias on the sum of the reached leaves, which CatBoost lists tree by tree."""
    values, first = model.get_leaf_values(), np.cumsum([0, *model.get_tree_leaf_counts()])
    scale, bias = model.get_scale_and_bias()
    return scale * sum_leaf_values(lambda tree, leaf: values[first[tree] + leaf], leaves) + bias


def hist_gradient_boosting_raw(model, leaves):
    """Return the raw value: the baseline and the reached leaves, in the order of their nodes."""
    values = [nodes["value"][nodes["is_leaf"] == 1] for nodes in (trees[0].nodes for trees in model._predictors)]
    return model._baseline_prediction.item() + sum_leaf_values(lambda tree, leaf: values[tree][leaf], leaves)


def gradient_boosting_raw(model, leaves, X):
    """Return the prediction: the initial model's and the reached leaves' values, times the learning rate."""
    values = [_values_of_leaves(tree) for tree in model.estimators_[:, 0]]
    return model.init_.predict(X) + model.learning_rate * sum_leaf_values(lambda t, leaf: values[t][leaf], leaves)


def forest_mean(model, leaves):
    """Return the prediction: the mean of the reached leaves' values."""
    values = [_values_of_leaves(tree) for tree in model.estimators_]
    return sum_leaf_values(lambda tree, leaf: values[tree][leaf], leaves) / len(values)


def _values_of_leaves(tree):
    return tree.tree_.value[tree.tree_.feature < 0, 0, 0]  # leaves split by no feature


def sum_leaf_values(value_of, leaves):
    """Return the sums over trees, of shape (n_rows,), of the values of the leaves, of shape (n_rows, n_trees)."""
    return np.array([sum(value_of(tree, int(leaf)) for tree, leaf in enumerate(row)) for row in leaves])


def combined_variance(spread, validation, variances):
    """Return exp 2(log s0 + a + sum of b (log s - m)) row by row; logarithms stay in their range on validation rows."""
    floors = np.maximum(1e-3 * validation.mean(axis=0), 1e-15)
    seen = np.log(np.sqrt(validation + floors))
    result = []
    for row in variances:
        logs = [
            min(max(np.log(np.sqrt(v + f)), low), high)
            for v, f, low, high in zip(row, floors, seen.min(axis=0), seen.max(axis=0), strict=True)
        ]
        terms = [b * (log - m) for b, log, m in zip(spread.exponents, logs, seen.mean(axis=0), strict=True)]
        result.append(np.exp(logs[0] + spread.intercept + sum(terms)) ** 2)
    return np.array(result)


def penalised_score(parameters, start, features, error, loss):
    """Return the score of the normal distribution with log scale = start + intercept + features b, plus 20/n |b|²."""

    def score(log_scale):
        scale = np.exp(log_scale)
        z = error / scale
        if loss == "nll":
            return -norm.logpdf(error, scale=scale).mean()
        return np.mean(scale * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)))

    unit = 1.0
    if loss == "crps":  # in units of the best score that the start has with a factor
        unit = minimize_scalar(lambda a: score(start + a), bracket=(-1, 1)).fun
    intercept, b = parameters[0], parameters[1:]
    return score(start + intercept + features @ b) / unit + 20 / len(error) * np.sum(b**2)


def walk_trees(trees, rows):
    """Return leaves (n_rows, n_trees) and sums (n_rows,): each row goes down each tree by itself, rule by rule."""
    leaves, sums = [], []
    for row in rows:
        reached, total = [], _sum_type(trees)(trees.reading.get("start", 0.0))
        for t in range(len(trees.first) - 1):
            nodes = trees.nodes[trees.first[t] : trees.first[t + 1]]
            if trees.leaf_values is None:
                at = 0
                while nodes[at]["left"] >= 0:
                    at = nodes[at]["left" if _goes_left(trees, nodes[at], row) else "right"]
                number, value = nodes[at]["number"], nodes[at]["value"]
            else:
                number = sum(2**level for level, node in enumerate(nodes) if not _goes_left(trees, node, row))
                first = sum(2 ** (trees.first[s + 1] - trees.first[s]) for s in range(t))
                value = trees.leaf_values[first + number]
            reached.append(number)
            total = total + _sum_type(trees)(value)
        leaves.append(reached)
        sums.append(total)
    return np.array(leaves), np.array(sums, np.float64)


def _sum_type(trees):
    return np.float32 if trees.reading.get("single_sums") else np.float64


def _goes_left(trees, node, row):
    rules = trees.reading
    with np.errstate(over="ignore"):
        value = float(np.float32(row[node["feature"]]) if rules.get("single") else row[node["feature"]])
    if value == rules.get("missing", np.nan):
        value = np.nan
    tiny = abs(value) <= float(np.float32(1e-35))
    if rules.get("tiny_is_zero") and tiny:
        value = 0.0
    if node["categories"] >= 0:
        return _category_goes_left(trees, node, value)
    if np.isnan(value) and node["missing"] == 0:
        value = 0.0
    if np.isnan(value) or (node["missing"] == 1 and tiny):
        return bool(node["default_left"])
    return value <= node["threshold"]


def _category_goes_left(trees, node, value):
    rules = trees.reading
    if np.isnan(value):
        return bool(node["default_left"])
    below = value <= -1 if rules.get("truncated") else value < 0
    category = None if below or value > 1e9 else int(value)  # rounded towards zero
    if category in set(trees.categories[node["categories"]].tolist()):
        return rules.get("members_left", True)
    if rules.get("others_as_missing") and (category is None or category >= _n_categories(trees, node["feature"])):
        return bool(node["default_left"])
    return not rules.get("members_left", True)


def _n_categories(trees, feature):
    """One more than the highest category of the feature that the model knows."""
    splits = trees.nodes[(trees.nodes["left"] >= 0) & (trees.nodes["feature"] == feature)]
    highest = max(max(trees.categories[i].tolist(), default=-1) for i in splits["categories"] if i >= 0)
    return max(highest + 1, trees.n_categories.get(int(feature), 0))


def adaptive_level(scores, tau, steps, horizon, correction):
    """Follow the tau-quantile of scores, one by one, as the formulas say: experts, their weights, and the correction.

    Returns the level before each score, and the mean of the experts at that time.
    """
    n = len(steps)
    q, w, c, loss = [float(norm.ppf(tau))] * n, [1 / n] * n, 0.0, None
    levels, means = [], []
    for s in scores:
        mean = sum(wi * qi for wi, qi in zip(w, q, strict=True))
        levels.append(mean + c)
        means.append(mean)
        pinball = [tau * (s - qi) if s > qi else (1 - tau) * (qi - s) for qi in q]
        square = sum(wi * p**2 for wi, p in zip(w, pinball, strict=True))
        loss = square if loss is None else (1 - 1 / horizon) * loss + square / horizon
        rate = math.sqrt((math.log(n * horizon) + 2) / (horizon * loss))
        w = [wi * math.exp(-rate * p) for wi, p in zip(w, pinball, strict=True)]
        total, share = sum(w), 1 / (2 * horizon)
        w = [(1 - share) * wi / total + share / n for wi in w]
        q = [qi + step * ((s > qi) - (1 - tau)) for qi, step in zip(q, steps, strict=True)]
        c += correction * ((s > levels[-1]) - (1 - tau))
    return np.array(levels), np.array(means)


def leave_one_out_by_hand(
    leaves, values, y, slopes, *, start, rates, weights=None, l1=0.0, l2=0.0, max_step=0.0, seen=None
):
    """Return each row's raw prediction by trees whose leaf values are made again without it, row by row.

    Gradients are those at the raw predictions of the model itself, whose leaf values, one array for each tree, stay.
    The penalty `l2` is that of all leaves, or one array for each tree. `seen` has the rows of each tree, (n_trees, n).
    """
    weights = np.ones(len(y)) if weights is None else weights
    raw, left_out = np.full(len(y), float(start)), np.full(len(y), float(start))
    for tree, own in enumerate(values):
        gradients, hessians = (weights * part for part in slopes(raw, y))
        for row in range(len(y)):
            others = (leaves[:, tree] == leaves[row, tree]) & (np.arange(len(y)) != row)
            others &= True if seen is None else seen[tree]
            gradient, hessian = gradients[others].sum(), hessians[others].sum()
            gradient = np.sign(gradient) * max(abs(gradient) - l1, 0)
            penalty = l2 if np.isscalar(l2) else l2[tree][leaves[row, tree]]
            step = -gradient / (hessian + penalty) if hessian > 0 else 0.0
            left_out[row] += rates[tree] * (np.clip(step, -max_step, max_step) if max_step else step)
        raw = raw + own[leaves[:, tree]]
    return left_out


def lightgbm_bags(n_rows, n_trees, seed, fraction, frequency):
    """Return the rows that each tree has seen, (n_trees, n_rows), number by random number."""
    states = [seed + block for block in range((n_rows + 1023) // 1024)]
    bags = []
    for tree in range(n_trees):
        if tree % frequency == 0:
            bag = np.zeros(n_rows, bool)
            for row in range(n_rows):
                states[row // 1024] = (214013 * states[row // 1024] + 2531011) % 2**32
                bag[row] = (states[row // 1024] >> 16) % 2**15 / 2**15 < fraction
        bags.append(bag)
    return np.array(bags)


def shapley_values(function, row, background):
    """Return the Shapley values of one row by their definition, a sum over all sets of features."""
    from itertools import combinations
    from math import factorial

    n = len(row)

    def value(chosen):
        rows = np.array(background, copy=True)
        rows[:, list(chosen)] = row[list(chosen)]
        return np.mean(function(rows))

    values = np.zeros(n)
    for j in range(n):
        others = [i for i in range(n) if i != j]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            values[j] += weight * sum(value({*chosen, j}) - value(chosen) for chosen in combinations(others, size))
    return values


def greedy_cover(affinity, spread, covered, n_chosen):
    """Choose rows one after another, each the one that raises the sum of spread times nearest affinity most.

    `affinity` has the affinities of all pairs, (n, n), zero where they do not count.
    """
    chosen, left = [], list(range(len(spread)))
    for _ in range(n_chosen):
        gain = {i: np.maximum(affinity[i] - covered, 0) @ spread for i in left}
        best = max(left, key=lambda i: (gain[i], spread[i], -i))
        covered = np.maximum(covered, affinity[best])
        chosen.append(best)
        left.remove(best)
    return chosen


def conformal_p_value(value, earlier, uniform):
    """The share of rows, this one included, that are lower; of equal ones, a part at random."""
    lower = sum(one < value for one in earlier)
    equal = sum(one == value for one in earlier) + 1
    return (lower + uniform * equal) / (len(earlier) + 1)


def betting_wealth(nights, stakes):
    """The wealth after each row: in night t, 1/(t + 1) of the cash is divided between the stakes on both bets."""
    cash, fortunes, wealth = 1.0, [0.0] * (2 * len(stakes)), []
    for t, p_values in enumerate(nights, 1):
        invested = cash / (t + 1)
        cash -= invested
        fortunes = [fortune + invested / len(fortunes) for fortune in fortunes]
        for p in p_values:
            z = 2 * p - 1
            bets = [1 + stake * bet for bet in (z, (3 * z * z - 1) / 2) for stake in stakes]
            fortunes = [fortune * bet for fortune, bet in zip(fortunes, bets, strict=True)]
            wealth.append(cash + sum(fortunes))
    return wealth
