"""Batched distributions with scipy.stats' method names: one distribution per predicted row."""

from ibug.distributions._base import Distribution
from ibug.distributions._blend import MixtureParams
from ibug.distributions._empirical import Empirical
from ibug.distributions._gumbel import Gumbel
from ibug.distributions._kde import KDE
from ibug.distributions._laplace import Laplace
from ibug.distributions._location_scale import LocationScale
from ibug.distributions._logistic import Logistic
from ibug.distributions._lognormal import Lognormal
from ibug.distributions._mixture import Mixture, normalized_weights
from ibug.distributions._normal import Normal
from ibug.distributions._registry import families, learns_from_targets, register, resolve_family
from ibug.distributions._shifted import Shifted
from ibug.distributions._skew_normal import SkewNormal
from ibug.distributions._stack import Stack
from ibug.distributions._student_t import StudentT
from ibug.distributions._truncated import Censored, Truncated
from ibug.distributions._weibull import Weibull
from ibug.distributions.joint import JointMixtureParams, JointStack, Neighborhood

__all__ = [
    "KDE",
    "Censored",
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
    "learns_from_targets",
    "normalized_weights",
    "register",
    "resolve_family",
]
