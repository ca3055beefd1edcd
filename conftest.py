"""One thread per worker: the boosters' own threads would fight with pytest-xdist's processes."""

import os
from importlib.util import find_spec

os.environ.setdefault("OMP_NUM_THREADS", "1")

# Their doctests need the library that they are the bridge to.
collect_ignore = [f"src/ibug/{library}" for library in ("skpro", "mlflow") if find_spec(library) is None]
