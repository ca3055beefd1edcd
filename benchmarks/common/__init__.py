"""What several benchmarks share: datasets, results, processes, timing, statistics and tables in documents."""
