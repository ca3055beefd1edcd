"""Families of distributions: how fast they are fitted to neighbours, and which one validation rows choose."""
