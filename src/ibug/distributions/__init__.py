"""Batched distributions with scipy.stats' method names: one distribution per predicted row."""

from ibug.distributions._base import Distribution
from ibug.distributions._discrete import DiscreteSupport
from ibug.distributions._empirical import Empirical
from ibug.distributions._kde import KDE
from ibug.distributions._location_scale import Gumbel, Laplace, LocationScale, Logistic, Normal
from ibug.distributions._mixture import Mixture, normalized_weights
from ibug.distributions._normal_scores import mean_distance
from ibug.distributions._numerics import gauss_nodes, solve_increasing
from ibug.distributions._registry import families, learns_from_targets, register, resolve_family
from ibug.distributions._shifted import Lognormal, Shifted
from ibug.distributions._skew_normal import SkewNormal
from ibug.distributions._stack import MixtureParams, Stack
from ibug.distributions._student_t import StudentT
from ibug.distributions._truncated import Censored, Truncated
from ibug.distributions._weibull import Weibull
from ibug.distributions.joint import JointMixtureParams, JointStack, Neighborhood

__all__ = [
    "KDE",
    "Censored",
    "DiscreteSupport",
    "Distribution",
    "Empirical",
    "Gumbel",
    "JointMixtureParams",
    "JointStack",
    "Laplace",
    "LocationScale",
    "Logistic",
    "Lognormal",
    "Mixture",
    "MixtureParams",
    "Neighborhood",
    "Normal",
    "Shifted",
    "SkewNormal",
    "Stack",
    "StudentT",
    "Truncated",
    "Weibull",
    "families",
    "gauss_nodes",
    "learns_from_targets",
    "mean_distance",
    "normalized_weights",
    "register",
    "resolve_family",
    "solve_increasing",
]
