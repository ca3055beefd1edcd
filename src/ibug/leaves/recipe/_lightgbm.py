"""How LightGBM came to its leaf values, from the text of its model file, which holds all parameters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ibug._typing import Floats
from ibug.leaves.recipe._base import (
    LOG_LINK,
    Boosting,
    LeafValues,
    Loss,
    NotRedoneError,
    by_tree,
    identity,
    in_single,
    link_of,
    mean,
    suspected,
)

_RENEWED = {"regression_l1", "quantile", "mape"}


def boosting(booster: Any, n_iterations: int, y: Floats, weights: Floats | None) -> Boosting:
    """Return the recipe of the first iterations. Shapes: y, weights (n_rows,)."""
    text = booster.model_to_string(num_iteration=n_iterations)
    trees, _, rest = text.partition("\nend of trees")
    header, *blocks = trees.split("\nTree=")
    given = dict(re.findall(r"^\[(\w+): (.*)\]$", rest, re.MULTILINE))
    if not given:
        raise NotRedoneError("its file does not tell its parameters")
    refusal = _sampling(given)
    loss, root = _loss(header, given)
    counts = [int(_field(block, "num_leaves")) for block in blocks]
    values = by_tree(np.fromstring(" ".join(_field(block, "leaf_value") for block in blocks), sep=" "), counts)
    rates = np.array([float(_field(block, "shrinkage")) for block in blocks])
    if rates[0] == 1.0 and len(set(rates[1:])) > 1:
        raise NotRedoneError("its learning rate changes, and the first tree does not tell its own")
    targets, weights = np.asarray(in_single(y)), in_single(weights)
    if root:
        targets = np.asarray(in_single(np.sign(targets) * np.sqrt(np.abs(targets))))
    start = 0.0
    if int(given["boost_from_average"]) and rates[0] == 1.0:  # which is how the average in the first tree shows
        start = mean(targets, weights)
        if loss.name in LOG_LINK:
            start = float(np.log(start))
        rates[0], values[0] = float(given["learning_rate"]), values[0] - start
    rates[np.array(counts) == 1] = 0.0
    return Boosting(
        LeafValues.of(values),
        loss,
        start,
        rates,
        targets,
        weights,
        l1=float(given["lambda_l1"]),
        l2=float(given["lambda_l2"]),
        max_step=float(given["max_delta_step"]),
        single=False,
        link=_signed_square if root else link_of(loss),
        suspects=suspected(
            monotone_constraints=bool(given["monotone_constraints"]),
            use_quantized_grad=given.get("use_quantized_grad", "0") != "0",
            cat_l2=any(int(_field(block, "num_cat")) for block in blocks) and float(given.get("cat_l2", 0)) > 0,
        ),
        sampled=bool(refusal),
        refusal=refusal,
    )


def _field(block: str, name: str) -> str:
    found = re.search(rf"^{name}=(.*)$", block, re.MULTILINE)
    if found is None:
        raise NotRedoneError(f"its file does not tell {name}")
    return found[1]


def _sampling(given: dict[str, str]) -> str:
    """Return which samples of the rows trees have seen, if so; raise where leaf values are made in another way."""
    if given["boosting"] not in ("gbdt", "gbrt"):
        raise NotRedoneError(f"its boosting is {given['boosting']!r}")
    if given.get("linear_tree", "0") != "0":
        raise NotRedoneError("its leaves have linear models")
    if float(given.get("path_smooth", "0")):
        raise NotRedoneError("the values of its leaves are smoothed (path_smooth)")
    if given.get("data_sample_strategy", "bagging") != "bagging":
        return f"its trees have seen samples of the rows ({given['data_sample_strategy']})"
    if int(given["bagging_freq"]) and float(given["bagging_fraction"]) < 1:
        return (
            f"its trees have seen samples of the rows (bagging_fraction={given['bagging_fraction']}, "
            f"bagging_freq={given['bagging_freq']})"
        )
    return ""


def _loss(header: str, given: dict[str, str]) -> tuple[Loss, bool]:
    """Return the loss, and whether it is that of square roots."""
    found = re.search(r"^objective=(.*)$", header, re.MULTILINE)
    if found is None:
        raise NotRedoneError("its loss is a function of its own")
    name, *words = found[1].split()
    if name in _RENEWED:
        raise NotRedoneError(f"its loss, {name!r}, makes leaf values of medians or quantiles")
    losses = {
        "regression": Loss(),
        "huber": Loss("huber", float(given["alpha"])),
        "poisson": Loss("poisson", float(given["poisson_max_delta_step"])),
        "gamma": Loss("gamma"),
        "tweedie": Loss("tweedie", float(given["tweedie_variance_power"])),
    }
    if name not in losses:
        raise NotRedoneError(f"its loss, {name!r}, is not known")
    return losses[name], "sqrt" in words


def _signed_square(raw: Floats) -> Floats:
    return np.asarray(np.sign(identity(raw)) * raw * raw)
