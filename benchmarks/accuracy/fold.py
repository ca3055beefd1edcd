"""The rows of one fold, as the methods of the accuracy benchmark get them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from benchmarks.common.data import categories, without_missing_categories
from benchmarks.common.folds import fold_of
from benchmarks.study.encoding import encode
from benchmarks.study.methods import Split

Floats = NDArray[np.float64]

VALIDATION = 0.2


class Fold:
    """Training rows, which are also divided into a part to train on and validation rows, and test rows.

    Parameters
    ----------
    X
        All rows; categorical columns are categories.
    y : ndarray of shape (n_rows,)
        Their targets.
    number, n_folds
        Which of how many folds is the test set.

    Attributes
    ----------
    categories : list of str
        The categorical columns. A missing category is a category of its own.
    X_train, X_part, X_val, X_test
        Rows as frames.
    y_train, y_part, y_val, y_test : ndarray
        Their targets.
    """

    def __init__(self, X: Any, y: Floats, number: int, n_folds: int) -> None:
        train, test = fold_of(len(y), number, n_folds)
        X = without_missing_categories(X)
        self.categories = categories(X)
        self.X_train, self.y_train = X.iloc[train].reset_index(drop=True), y[train]
        self.X_test, self.y_test = X.iloc[test].reset_index(drop=True), y[test]
        self._part, self._val = train_test_split(np.arange(len(train)), test_size=VALIDATION, random_state=0)
        self.X_part, self.y_part = self.X_train.iloc[self._part].reset_index(drop=True), self.y_train[self._part]
        self.X_val, self.y_val = self.X_train.iloc[self._val].reset_index(drop=True), self.y_train[self._val]

    @cached_property
    def encoded(self) -> tuple[Split, Floats]:
        """The same rows as the methods of the study take them, one-hot encoded; and the test rows."""
        X_train, X_test = encode(self.X_train, self.X_test)
        parts = X_train[self._part], self.y_part, X_train[self._val], self.y_val
        return Split(*parts, X_train, self.y_train), X_test
