"""What the commands answer: a table of predictions, the explanation of one row, plots."""

from ibug.cli.answers._explanation import compare, explain_row, reasons, widening
from ibug.cli.answers._plots import ROWS_OF_DENSITIES, draw_all, require_matplotlib
from ibug.cli.answers._predictions import OutputSpec, Predictor

__all__ = [
    "ROWS_OF_DENSITIES",
    "OutputSpec",
    "Predictor",
    "compare",
    "draw_all",
    "explain_row",
    "reasons",
    "require_matplotlib",
    "widening",
]
