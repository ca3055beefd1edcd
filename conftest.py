"""One thread per worker: the boosters' own threads would fight with pytest-xdist's processes."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
