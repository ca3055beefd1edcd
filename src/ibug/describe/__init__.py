"""Models, predictions and numbers in words and curves, for plots, report and command line.

Nothing here computes a prediction by itself: it asks an estimator, and prepares the answer for people or for JSON.
"""

from ibug.describe._curves import chosen_curve, density_ends, highest_drawn, named_curves, tuning_curves
from ibug.describe._model import model_facts, model_lines
from ibug.describe._predictions import NearestRows, Predictions, deviation, mean_distances, predict_rows
from ibug.describe._text import (
    chance_band,
    group_lines,
    json_values,
    number,
    ordered_scores,
    percent,
    scoring_label,
    with_unit,
)

__all__ = [
    "NearestRows",
    "Predictions",
    "chance_band",
    "chosen_curve",
    "density_ends",
    "deviation",
    "group_lines",
    "highest_drawn",
    "json_values",
    "mean_distances",
    "model_facts",
    "model_lines",
    "named_curves",
    "number",
    "ordered_scores",
    "percent",
    "predict_rows",
    "scoring_label",
    "tuning_curves",
    "with_unit",
]
