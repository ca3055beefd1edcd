"""The parameters of a library's estimator, as ``--param name=value`` gives them; misspelt ones are refused."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from ibug.exceptions import InvalidInputError

# XGBRegressor takes the library's own names as well, and only warns of others once it is trained.
_XGBOOST = {
    "aft_loss_distribution", "aft_loss_distribution_scale", "alpha", "disable_default_eval_metric", "eta",
    "extmem_single_page", "feature_selector", "huber_slope", "lambda", "lambda_bias", "max_cached_hist_node",
    "max_cat_threshold", "max_cat_to_onehot", "min_split_loss", "normalize_type", "nthread", "num_target", "one_drop",
    "process_type", "quantile_alpha", "rate_drop", "refresh_leaf", "sample_type", "seed", "seed_per_iteration",
    "sketch_ratio", "skip_drop", "top_k", "tweedie_variance_power", "updater", "use_rmm",
}  # fmt: skip


def parse_parameters(given: list[str]) -> dict[str, Any]:
    """Return ``name=value`` pairs as parameters; values are JSON where they can be, and text otherwise."""
    parameters = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInputError(f"--param {pair}: name=value is expected, num_leaves=63 say.")
        try:
            parameters[name] = json.loads(text)
        except ValueError:
            parameters[name] = text
    return parameters


def check_parameters(given: Iterable[str], estimator: Any, library: str) -> None:
    """Refuse parameters that the library does not know, and suggest what was probably meant."""
    known = _known(estimator, library)
    for name in given:
        if name not in known:
            usual = get_close_matches(name, sorted(estimator.get_params()), 1, cutoff=0.7)
            close = usual or get_close_matches(name, sorted(known), 1, cutoff=0.7)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise InvalidInputError(f"--param {name}: {library} has no such parameter{hint}")


def _known(estimator: Any, library: str) -> set[str]:
    known = {*estimator.get_params(), *inspect.signature(type(estimator).__init__).parameters}
    if library == "xgboost":
        known |= _XGBOOST
    if library == "lightgbm":
        known |= _lightgbm_names()
    return known - {"self", "kwargs"}


def _lightgbm_names() -> set[str]:
    """Return all names and aliases that LightGBM's compiled part lists; LGBMRegressor itself takes anything."""
    from lightgbm.basic import _ConfigAliases

    return {alias for aliases in _ConfigAliases._get_all_param_aliases().values() for alias in aliases}
