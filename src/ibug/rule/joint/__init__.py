"""Several targets at once: one stack of joint experts, weighted by the energy score."""

from ibug.rule.joint._facts import JointFacts
from ibug.rule.joint._fit import JointEvidence, fit_joint
from ibug.rule.joint._joint_rule import JointRule
from ibug.rule.joint._joint_stacked import JointStacked
from ibug.rule.joint._learning import conformalized_joint, joint_with_floor, joint_without_validation, learn_joint

__all__ = [
    "JointEvidence",
    "JointFacts",
    "JointRule",
    "JointStacked",
    "conformalized_joint",
    "fit_joint",
    "joint_with_floor",
    "joint_without_validation",
    "learn_joint",
]
