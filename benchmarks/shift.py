"""How well the affinity score finds rows dissimilar to the training data: ``python benchmarks/shift.py --help``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout: benchmarks/__init__.py says why
    from benchmarks.accuracy.shift import main

    main()
