"""Batched distributions of several targets at once."""

from ibug.distributions.joint._blend import JointMixtureParams, copula_points, normal_points
from ibug.distributions.joint._copulas import local_copulas, log_densities, points_of_copulas
from ibug.distributions.joint._distances import mean_distances, variogram
from ibug.distributions.joint._neighborhood import Neighborhood, predicted_plus
from ibug.distributions.joint._stack import JointStack

__all__ = [
    "JointMixtureParams",
    "JointStack",
    "Neighborhood",
    "copula_points",
    "local_copulas",
    "log_densities",
    "mean_distances",
    "normal_points",
    "points_of_copulas",
    "predicted_plus",
    "variogram",
]
