"""Models, predictions and numbers in words, for plots, report and command line.

Nothing here computes a prediction by itself: it asks an estimator, and prepares the answer for people or for JSON.
"""

from ibug.describe._checks import at_least_one, finite, require
from ibug.describe._densities import density_ends
from ibug.describe._differences import deviation, mean_distances
from ibug.describe._groups import group_lines
from ibug.describe._model import model_facts, model_lines
from ibug.describe._numbers import number, percent, with_unit
from ibug.describe._plain import plain
from ibug.describe._predictions import Neighbors, Predictions
from ibug.describe._scores import chance_band, scoring_label
from ibug.describe._tuning import curve_name, highest_drawn, named_curves, tuning_curves

__all__ = [
    "Neighbors",
    "Predictions",
    "at_least_one",
    "chance_band",
    "curve_name",
    "density_ends",
    "deviation",
    "finite",
    "group_lines",
    "highest_drawn",
    "mean_distances",
    "model_facts",
    "model_lines",
    "named_curves",
    "number",
    "percent",
    "plain",
    "require",
    "scoring_label",
    "tuning_curves",
    "with_unit",
]
