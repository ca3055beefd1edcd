"""How source and rule are fitted: strategies, folds, out-of-sample residuals, and diagnostics of what was given."""

from ibug.training._diagnostics import warn_of_old_rows
from ibug.training._folds import (
    cross_fit,
    divide_rows,
    improvement_of,
    make_folds,
    split,
    tuning_rows,
)
from ibug.training._models import (
    check_same_targets,
    checked_model,
    for_targets,
    fresh,
    one_target,
    target_names,
    with_sample_weight,
)
from ibug.training._residuals import own_residuals
from ibug.training._strategies import (
    ROWS_FOR_FLOOR,
    ROWS_FOR_THRESHOLD,
    FitRequest,
    SourceAndRule,
    fit_source_and_rule,
    learn_from,
    updated_source,
    with_own_threshold,
)

__all__ = [
    "ROWS_FOR_FLOOR",
    "ROWS_FOR_THRESHOLD",
    "FitRequest",
    "SourceAndRule",
    "check_same_targets",
    "checked_model",
    "cross_fit",
    "divide_rows",
    "fit_source_and_rule",
    "for_targets",
    "fresh",
    "improvement_of",
    "learn_from",
    "make_folds",
    "one_target",
    "own_residuals",
    "split",
    "target_names",
    "tuning_rows",
    "updated_source",
    "warn_of_old_rows",
    "with_own_threshold",
    "with_sample_weight",
]
