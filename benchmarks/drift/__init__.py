"""Data that move: streams, groups, covariates, and an index that grows."""
