"""Scores of probabilistic predictions: functions of ``(y, distribution)``."""

from ibug.metrics._coverage import coverage
from ibug.metrics._crps import crps
from ibug.metrics._nll import nll
from ibug.metrics._scoring import Scoring, resolve_scoring

__all__ = ["Scoring", "coverage", "crps", "nll", "resolve_scoring"]
