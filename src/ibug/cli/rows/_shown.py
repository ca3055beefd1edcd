"""Features as people know them, for the report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ibug.cli.columns import CATEGORY, DATE, NUMBER, Schema
from ibug.cli.tables import as_numbers, as_texts


def shown_features(data: Any, schema: Schema, file: str) -> pd.DataFrame:
    """Return the features as people know them: categories as texts, also those that the model does not know."""
    columns = {}
    for column in schema.columns:
        values = data.column(column.name).combine_chunks()
        if column.kind == CATEGORY:
            columns[column.name] = np.array(as_texts(values, column.name, file).to_pylist(), object)
        elif column.kind == NUMBER:
            columns[column.name] = as_numbers(values, column.name, file)
        elif column.kind == DATE:
            columns[column.name] = np.array(values.cast(pa.string()).to_pylist(), object)
        else:
            columns[column.name] = np.array(values.to_pylist(), object)
    return pd.DataFrame(columns, copy=False)
