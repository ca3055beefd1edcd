"""Readers around another reader of the same model: what they do not change is the inner one's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ibug._typing import Floats
from ibug.leaves._base import LeafReader
from ibug.leaves.recipe import Bagging, Boosting


class DelegatingReader(LeafReader):
    """Has the facts of the model from another reader of it, and hands on what makes that one ready.

    Parameters
    ----------
    inner : LeafReader
        The model's own reader.
    """

    def __init__(self, inner: LeafReader) -> None:
        super().__init__(inner.model)
        self.inner = inner

    @property
    def how(self) -> str:  # type: ignore[override]  # a constant of other readers
        """How the inner reader finds leaf numbers, in words."""
        return self.inner.how

    @property
    def predicts_by_walk(self) -> bool:
        """Whether the inner reader does."""
        return self.inner.predicts_by_walk

    @property
    def n_features(self) -> int | None:
        """The number of columns."""
        return self.inner.n_features

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns as the model knows them."""
        return self.inner.feature_names

    @property
    def n_outputs(self) -> int:
        """The number of targets."""
        return self.inner.n_outputs

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of rows in leaves of the inner reader's trees."""
        return self.inner.leaf_sizes(n)

    @property
    def changes_unit(self) -> bool:
        """Whether the inner reader does."""
        return self.inner.changes_unit

    @property
    def quantile(self) -> float | None:
        """The level of the quantile that the model was trained for."""
        return self.inner.quantile

    @property
    def expectile(self) -> float | None:
        """The level of the expectile that the model was trained for."""
        return self.inner.expectile

    @property
    def nonnegative_losses(self) -> list[str]:
        """By output, the loss that the model was trained with, if it is for targets from 0 on."""
        return self.inner.nonnegative_losses

    def restore(self, state: Mapping[str, Any]) -> None:
        """Get the inner reader ready."""
        self.inner.restore(state["inner"])

    def recipe_of(self, output: int, y: Floats, sample_weight: Floats | None) -> Boosting | Bagging:
        """Return how the model came to the leaf values of one output."""
        return self.inner.recipe_of(output, y, sample_weight)

    def recipe(self, y: Floats, sample_weight: Floats | None) -> Boosting | Bagging:
        """Return how the model came to the values of its leaves."""
        return self.inner.recipe(y, sample_weight)

    def written_as(self, name: str) -> str:
        """Return a column's name as the library writes it."""
        return self.inner.written_as(name)
