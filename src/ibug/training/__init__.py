"""How a model comes to be: as given, trained, cross-fitted or split; and honest residuals of its training rows."""

from ibug.training._clones import checked_model, fresh, trainable, with_sample_weight
from ibug.training._cross_fit import CrossFit, cross_fit, improvement_of, make_folds, tuning_rows
from ibug.training._fewer_trees import TREE_SHARES
from ibug.training._final_model import ROWS_FOR_THRESHOLD, with_own_threshold
from ibug.training._guards import guard_old_rows
from ibug.training._job import Job
from ibug.training._later import updated_source
from ibug.training._own_residuals import own_residuals
from ibug.training._splits import divide, divide_rows, halves, split
from ibug.training._ways import ROWS_FOR_FLOOR, Learned, learn_from, learned

__all__ = [
    "ROWS_FOR_FLOOR",
    "ROWS_FOR_THRESHOLD",
    "TREE_SHARES",
    "CrossFit",
    "Job",
    "Learned",
    "checked_model",
    "cross_fit",
    "divide",
    "divide_rows",
    "fresh",
    "guard_old_rows",
    "halves",
    "improvement_of",
    "learn_from",
    "learned",
    "make_folds",
    "own_residuals",
    "split",
    "trainable",
    "tuning_rows",
    "updated_source",
    "with_own_threshold",
    "with_sample_weight",
]
