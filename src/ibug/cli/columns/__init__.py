"""The columns that a model takes: their schema, where it comes from, and whether a file has them."""

from ibug.cli.columns._inferred_schema import (
    found_categories,
    names_in_file,
    place_categories,
    schema_of_model,
    schema_of_table,
)
from ibug.cli.columns._match import features, listed, match, require_column
from ibug.cli.columns._model_columns import ModelColumns, columns_of
from ibug.cli.columns._named import divided, targets_named
from ibug.cli.columns._schema import ANY, BOOLEAN, CATEGORY, DATE, MISSING_TEXT, NUMBER, Column, Schema

__all__ = [
    "ANY",
    "BOOLEAN",
    "CATEGORY",
    "DATE",
    "MISSING_TEXT",
    "NUMBER",
    "Column",
    "ModelColumns",
    "Schema",
    "columns_of",
    "divided",
    "features",
    "found_categories",
    "listed",
    "match",
    "names_in_file",
    "place_categories",
    "require_column",
    "schema_of_model",
    "schema_of_table",
    "targets_named",
]
