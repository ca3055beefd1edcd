"""``python -m benchmarks run|status|tables|figures|fetch``: the paper's study; ``compare``: your own data."""

import sys

if __name__ == "__main__":
    try:
        from benchmarks.study.cli import main  # takes a second or two, in which one may think better of it
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())
