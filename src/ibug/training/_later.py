"""What rows that come later change."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ibug._options import Options
from ibug._typing import Rows
from ibug._weights import as_weights
from ibug.exceptions import InvalidInputError
from ibug.neighbors import LocalSource, updated
from ibug.rule import AnyRule, JointRule, facts_of


def updated_source(
    source: LocalSource,
    rule: AnyRule,
    rows: Rows,
    options: Options,
    random_state: Any,
    keep: int | None,
    sample_weight: Any = None,
) -> LocalSource:
    """Return the source with newer rows, after checking that the rule can go on with it.

    Shapes: sample_weight (n_rows,).
    """
    X, y = rows
    weights = as_weights(sample_weight, len(y), "sample_weight")
    if weights is not None and (source.weights is None or not np.all(weights > 0)):
        raise InvalidInputError(
            "update takes sample_weight where training rows have weights as neighbours (weight_neighbors=True in fit), "
            "one above zero for each new row."
        )
    facts_of(np.concatenate([source.targets, y]), options)  # they must be inside a support that was given
    least = 1
    if keep is not None:
        rules = rule.rules if isinstance(rule, JointRule) else (rule,)
        spreads = (k for one in rules for k in one.spread.n_neighbors.values())
        least = max(rule.k, *rule.needs.values(), *spreads)
        _check_keep(keep, least, options)
    return updated(
        source,
        X,
        y,
        options.sampling,
        check_random_state(random_state),
        weights=weights,
        keep=keep,
        least=least,
        n_jobs=options.n_jobs,
        verbose=options.verbose,
    )


def _check_keep(keep: Any, least: int, options: Options) -> None:
    """Raise InvalidInputError unless the rows that are kept are enough for the rule."""
    whole = isinstance(keep, (int, np.integer)) and not isinstance(keep, bool)
    if not whole or options.sampling.n_rows(int(keep)) < least:
        raise InvalidInputError(
            f"keep must be None or a number of rows of which at least {least} can be neighbours: that many make up a "
            f"distribution. Got {keep!r}."
        )
