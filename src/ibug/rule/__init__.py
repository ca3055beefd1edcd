"""What is made of neighbours: a rule turns a batch of rows with their neighbours into distributions."""

from ibug.rule._family import Family
from ibug.rule._learning import (
    affinity_threshold,
    choose,
    conformalized,
    gathered,
    joined,
    learn,
    with_conformal,
    with_floor,
    with_neighbors,
    without_validation,
)
from ibug.rule._maker import AnyRule, Facts, RuleMaker, facts_of, maker_of, ranges_of, rule_from_state
from ibug.rule._plan import K_CANDIDATES, Plan, most_needed
from ibug.rule._reference import Reference, kept
from ibug.rule._rule import Rule
from ibug.rule._stacking import with_calibrated_sides
from ibug.rule._statistics import Statistics
from ibug.rule._targets import TargetRange, TargetSummary, TargetSupport
from ibug.rule.joint._facts import JointFacts
from ibug.rule.joint._joint_rule import JointRule

__all__ = [
    "K_CANDIDATES",
    "AnyRule",
    "Facts",
    "Family",
    "JointFacts",
    "JointRule",
    "Plan",
    "Reference",
    "Rule",
    "RuleMaker",
    "Statistics",
    "TargetRange",
    "TargetSummary",
    "TargetSupport",
    "affinity_threshold",
    "choose",
    "conformalized",
    "facts_of",
    "gathered",
    "joined",
    "kept",
    "learn",
    "maker_of",
    "most_needed",
    "ranges_of",
    "rule_from_state",
    "with_calibrated_sides",
    "with_conformal",
    "with_floor",
    "with_neighbors",
    "without_validation",
]
