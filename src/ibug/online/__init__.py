"""Rows that come one after another with their truths: intervals that keep their coverage while data move."""

from ibug.online._intervals import AdaptiveIntervals
from ibug.online._tracker import Tracker

__all__ = ["AdaptiveIntervals", "Tracker"]
