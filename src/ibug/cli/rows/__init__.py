"""Rows as the model takes them, made of a table and a schema; with targets, or from the training file."""

from ibug.cli.rows._labelled import LabelledRows, groups_of, read_labelled, read_unlabelled, with_groups
from ibug.cli.rows._model_rows import ModelRows, Unseen, rows_of
from ibug.cli.rows._shown import shown_features
from ibug.cli.rows._training import TrainingRows, other_file, plain_values, read_training_rows

__all__ = [
    "LabelledRows",
    "ModelRows",
    "TrainingRows",
    "Unseen",
    "groups_of",
    "other_file",
    "plain_values",
    "read_labelled",
    "read_training_rows",
    "read_unlabelled",
    "rows_of",
    "shown_features",
    "with_groups",
]
