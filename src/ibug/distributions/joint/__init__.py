"""Joint distributions of several targets, one per row."""

from ibug.distributions.joint._neighborhood import Neighborhood, predicted_plus
from ibug.distributions.joint._params import (
    JointMixtureParams,
    copula_points,
    local_copulas,
    log_densities,
    normal_points,
)
from ibug.distributions.joint._stack import JointStack, mean_distances, variogram

__all__ = [
    "JointMixtureParams",
    "JointStack",
    "Neighborhood",
    "copula_points",
    "local_copulas",
    "log_densities",
    "mean_distances",
    "normal_points",
    "predicted_plus",
    "variogram",
]
