"""Where anyone can check our claims and the paper's.

``python benchmarks/NAME.py`` runs a benchmark, ``python -m benchmarks`` the paper's study. Files of this folder only
start one; the code is in the folders, and all of it is imported as ``benchmarks.<folder>.<module>``. For that the
checkout must be on Python's path: a file that is started puts it there in place of its own folder (``sys.path[0]``),
and processes that measure are started as modules from the checkout (``benchmarks.common.processes``).

Benchmarks use the public names of ibug only, as its users do; ``tests/benchmarks`` checks it.
"""
