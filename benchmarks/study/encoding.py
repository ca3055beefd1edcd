"""The paper's preprocessing: one-hot encoding, fitted on the training fold alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

Floats = NDArray[np.float64]


def encoder(X: Any) -> ColumnTransformer:
    """Return the transformer for a frame, unfitted.

    Numbers: the median for missing values. Texts: the most frequent one for missing values, then one column for each
    text that the training rows have; a text that they do not have is zero in all of them.
    """
    import pandas as pd

    numeric = [column for column in X if pd.api.types.is_numeric_dtype(X[column])]
    texts = [column for column in X if column not in numeric]
    one_hot = make_pipeline(
        SimpleImputer(strategy="most_frequent", missing_values=None),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    return ColumnTransformer(
        [("numeric", SimpleImputer(strategy="median"), numeric), ("texts", one_hot, texts)],
        sparse_threshold=0,
    )


def encode(X_train: Any, X_test: Any) -> tuple[Floats, Floats]:
    """Return both as arrays of numbers, by what the training rows tell."""
    transformer = encoder(X_train)
    prepared = [_texts_as_objects(frame) for frame in (X_train, X_test)]
    fitted = np.ascontiguousarray(transformer.fit_transform(prepared[0]), np.float64)
    return fitted, np.ascontiguousarray(transformer.transform(prepared[1]), np.float64)


def _texts_as_objects(frame: Any) -> Any:
    """Return the frame with None for a missing text, whatever the type of the column was."""
    import pandas as pd

    texts = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    frame = frame.copy()
    for column in texts:
        values = frame[column].astype(object)
        frame[column] = values.where(values.notna(), None)
    return frame
