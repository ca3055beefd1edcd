"""Totals of rows: a common factor of blocks against independent rows, added ends, and ranks of validation blocks."""
