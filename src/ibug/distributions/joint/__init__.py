"""Batched distributions of several targets at once."""

from ibug.distributions.joint._blend import JointBlend, copula_points, normal_points
from ibug.distributions.joint._distances import mean_distances, variogram
from ibug.distributions.joint._stack import JointStack, Neighborhood

__all__ = ["JointBlend", "JointStack", "Neighborhood", "copula_points", "mean_distances", "normal_points", "variogram"]
