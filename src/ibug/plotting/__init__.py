"""Plots of predicted distributions and of the rows behind them, in the style of scikit-learn's displays.

Each display is made by ``from_estimator``, or by ``from_predictions`` or ``from_results`` if everything was computed
before. It keeps the numbers that it draws as attributes, and axes, figure and artists as ``ax_``, ``figure_`` and so
on. matplotlib (``pip install "ibug-learn[plot]"``) is imported when something is drawn, not before.
"""

from ibug.plotting._calibration import CalibrationDisplay
from ibug.plotting._density import DensityDisplay
from ibug.plotting._diagnose import Diagnosis, diagnose
from ibug.plotting._drift import DriftDisplay
from ibug.plotting._drivers import DriversDisplay
from ibug.plotting._interval import IntervalDisplay
from ibug.plotting._joint import JointDisplay
from ibug.plotting._leaf_density import LeafDensityDisplay
from ibug.plotting._pit import PITDisplay
from ibug.plotting._spread_error import SpreadErrorDisplay
from ibug.plotting._tree_fraction import TreeFractionDisplay
from ibug.plotting._tuning import TuningDisplay
from ibug.plotting._width import WidthDisplay

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
