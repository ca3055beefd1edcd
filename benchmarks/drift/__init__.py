"""Data drift: false alarms, streams, groups, covariates, and an index that grows."""
