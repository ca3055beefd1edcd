"""What is made of neighbours: a rule turns a batch of rows with their neighbours into distributions."""

from ibug.rule._family import Family
from ibug.rule._learning import (
    affinity_threshold,
    choose,
    conformalized,
    learn,
    with_calibrated_sides,
    with_conformal,
    with_floor,
    without_validation,
)
from ibug.rule._plan import K_CANDIDATES, Plan, most_needed
from ibug.rule._reference import Reference
from ibug.rule._rule import Rule, TargetRule, joined, one_target
from ibug.rule._statistics import Statistics
from ibug.rule._targets import TargetRange, TargetSummary, TargetSupport, ranges_of, suited, summarize

__all__ = [
    "K_CANDIDATES",
    "Family",
    "Plan",
    "Reference",
    "Rule",
    "Statistics",
    "TargetRange",
    "TargetRule",
    "TargetSummary",
    "TargetSupport",
    "affinity_threshold",
    "choose",
    "conformalized",
    "joined",
    "learn",
    "most_needed",
    "one_target",
    "ranges_of",
    "suited",
    "summarize",
    "with_calibrated_sides",
    "with_conformal",
    "with_floor",
    "without_validation",
]
