"""Where anyone can check our claims and the paper's: ``python -m benchmarks`` is the study, the scripts are the rest."""
