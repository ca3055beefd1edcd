"""Rows that come one after another: intervals that keep their coverage, and a test for data drift every night."""

from ibug.online._drift_monitor import BettingTest, DriftMonitor, monitored_values
from ibug.online._intervals import AdaptiveIntervals, Tracker

__all__ = ["AdaptiveIntervals", "BettingTest", "DriftMonitor", "Tracker", "monitored_values"]
