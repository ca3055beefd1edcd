"""How a model came to the values of its leaves: what is needed to redo them, with a row left out."""

from ibug.leaves.recipe._base import LOG_LINK, Bagging, Boosting, LeafValues, Loss, NotRedoneError

__all__ = ["LOG_LINK", "Bagging", "Boosting", "LeafValues", "Loss", "NotRedoneError"]
