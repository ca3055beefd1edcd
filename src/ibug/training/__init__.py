"""How source and rule are fitted: strategies, folds, out-of-sample residuals, and diagnostics of what was given."""

from ibug.training._diagnostics import (
    LOOKED_UP,
    SUSPICIOUS_SHARE,
    count_equal_rows,
    evenly_spaced,
    is_suspicious,
    row_hashes,
    warn_of_number_of_rows,
    warn_of_objective,
    warn_of_old_rows,
    warn_of_seen_rows,
)
from ibug.training._folds import (
    divide_rows,
    split,
)
from ibug.training._models import (
    check_same_targets,
    checked_model,
    for_targets,
    fresh,
    target_names,
    with_sample_weight,
)
from ibug.training._residuals import own_residuals
from ibug.training._strategies import (
    ROWS_FOR_FLOOR,
    ROWS_FOR_THRESHOLD,
    FitRequest,
    fit_source_and_rule,
    learn_from,
    updated_source,
    with_own_threshold,
)

__all__ = [
    "LOOKED_UP",
    "ROWS_FOR_FLOOR",
    "ROWS_FOR_THRESHOLD",
    "SUSPICIOUS_SHARE",
    "FitRequest",
    "check_same_targets",
    "checked_model",
    "count_equal_rows",
    "divide_rows",
    "evenly_spaced",
    "fit_source_and_rule",
    "for_targets",
    "fresh",
    "is_suspicious",
    "learn_from",
    "own_residuals",
    "row_hashes",
    "split",
    "target_names",
    "updated_source",
    "warn_of_number_of_rows",
    "warn_of_objective",
    "warn_of_old_rows",
    "warn_of_seen_rows",
    "with_own_threshold",
    "with_sample_weight",
]
