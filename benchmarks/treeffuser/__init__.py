"""Treeffuser on the folds of the accuracy benchmark, in an environment of its own."""
