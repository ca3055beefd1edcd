"""Evidence about the width of a distribution: the features and the training rows that make it, and what would help."""

from ibug.explain._influence import Influence, influence
from ibug.explain._labelling import LabellingRank, rank_for_labelling
from ibug.explain._neighbors import leaf_density, plain_neighbors
from ibug.explain._shapley import shap_package
from ibug.explain._width import Attribution, Attributor, Drivers, drivers, explain_width

__all__ = [
    "Attribution",
    "Attributor",
    "Drivers",
    "Influence",
    "LabellingRank",
    "drivers",
    "explain_width",
    "influence",
    "leaf_density",
    "plain_neighbors",
    "rank_for_labelling",
    "shap_package",
]
