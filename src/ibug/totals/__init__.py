"""Totals: distributions of sums of rows, which share what the model does not know."""

from ibug.totals._blocks import Labels, column_names, label_columns
from ibug.totals._dependence import Dependence, learn_dependence, normal_scores
from ibug.totals._distribution import TotalDistribution
from ibug.totals._sums import MOST_SAMPLED, N_DRAWS, Plan, Sums
from ibug.totals._totals import (
    ConformalTotals,
    blocks_of,
    check_total_weights,
    dependence_of,
    group_sums,
    groups_of,
    sampled_paths,
    total_distributions,
)

__all__ = [
    "MOST_SAMPLED",
    "N_DRAWS",
    "ConformalTotals",
    "Dependence",
    "Labels",
    "Plan",
    "Sums",
    "TotalDistribution",
    "blocks_of",
    "check_total_weights",
    "column_names",
    "dependence_of",
    "group_sums",
    "groups_of",
    "label_columns",
    "learn_dependence",
    "normal_scores",
    "sampled_paths",
    "total_distributions",
]
