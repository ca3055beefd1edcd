"""Totals of rows: ``python benchmarks/totals.py --help``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout: benchmarks/__init__.py says why
    from benchmarks.totals.command import main

    main()
