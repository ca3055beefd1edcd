"""Plots of predicted distributions and of the rows behind them, in the style of scikit-learn's displays.

Each display is made by ``from_estimator``, or by ``from_predictions`` or ``from_results`` if everything was computed
before. It keeps the numbers that it draws as attributes, and figure and artists as ``ax_``, ``figure_`` and so
on. matplotlib (``pip install "ibug-learn[plot]"``) is imported when something is drawn, not before.
"""

from ibug.plotting._calibration import CalibrationDisplay, PITDisplay
from ibug.plotting._density import DensityDisplay, JointDisplay
from ibug.plotting._diagnose import Diagnosis, diagnose
from ibug.plotting._drift import DriftDisplay
from ibug.plotting._explanation import DriversDisplay, WidthDisplay
from ibug.plotting._intervals import IntervalDisplay, SpreadErrorDisplay
from ibug.plotting._tuning import LeafDensityDisplay, TreeFractionDisplay, TuningDisplay

__all__ = [
    "CalibrationDisplay",
    "DensityDisplay",
    "Diagnosis",
    "DriftDisplay",
    "DriversDisplay",
    "IntervalDisplay",
    "JointDisplay",
    "LeafDensityDisplay",
    "PITDisplay",
    "SpreadErrorDisplay",
    "TreeFractionDisplay",
    "TuningDisplay",
    "WidthDisplay",
    "diagnose",
]
