"""The compiled functions on spreads."""
