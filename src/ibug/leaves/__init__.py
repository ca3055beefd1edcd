"""From a trained model and rows to leaf numbers: one reader per library."""

from ibug.leaves._matrix import is_pandas
from ibug.leaves._reader import (
    BOOSTERS,
    LeafReader,
    catboost_training,
    library_of,
    reader_of,
    reader_type,
    require_fitted,
)
from ibug.leaves._recipe import Bagging, Boosting, RecipeError
from ibug.leaves._wrappers import (
    RenamingReader,
    RepeatedReader,
    names_taken,
    reader_from_state,
    renamed,
    renamed_parameters,
    weighted_outputs,
)

__all__ = [
    "BOOSTERS",
    "Bagging",
    "Boosting",
    "LeafReader",
    "RecipeError",
    "RenamingReader",
    "RepeatedReader",
    "catboost_training",
    "is_pandas",
    "library_of",
    "names_taken",
    "reader_from_state",
    "reader_of",
    "reader_type",
    "renamed",
    "renamed_parameters",
    "require_fitted",
    "weighted_outputs",
]
