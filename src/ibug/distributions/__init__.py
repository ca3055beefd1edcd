"""Batched laws with scipy.stats' method names: one law per predicted row."""

from ibug.distributions._base import Distribution
from ibug.distributions._normal import Normal

__all__ = ["Distribution", "Normal"]
