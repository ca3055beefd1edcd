"""Where anyone can check our claims and the paper's: the study is ``python -m benchmarks``, the rest are scripts."""
