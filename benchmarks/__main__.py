"""``python -m benchmarks run|status|tables|figures``: the paper's study."""

import sys

from benchmarks.study.cli import main

if __name__ == "__main__":
    sys.exit(main())
