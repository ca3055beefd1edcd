"""From a trained model and rows to leaf numbers: one small reader per library."""

from ibug.leaves._base import LeafReader, catboost_training, read_leaves_of, reader_type, require_fitted
from ibug.leaves._matrix import is_pandas
from ibug.leaves._names import RenamingReader, names_taken, renamed, renamed_parameters
from ibug.leaves._repeated import RepeatedReader, weighted_outputs
from ibug.leaves.recipe import Bagging, Boosting, NotRedoneError

__all__ = [
    "Bagging",
    "Boosting",
    "LeafReader",
    "NotRedoneError",
    "RenamingReader",
    "RepeatedReader",
    "catboost_training",
    "is_pandas",
    "names_taken",
    "read_leaves_of",
    "reader_type",
    "renamed",
    "renamed_parameters",
    "require_fitted",
    "weighted_outputs",
]
