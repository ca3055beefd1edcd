"""One thread per worker, and without an optional library the tests that need it are left out, and named.

The boosters' own threads would fight with pytest-xdist's processes. A wheel is tested with the core dependencies alone.
"""

import os
from importlib.util import find_spec

os.environ.setdefault("OMP_NUM_THREADS", "1")
# LightGBM asks for all processors all the same: let a thread that waits for another sleep, and not spin on a processor
# that another worker needs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # shap's loops: on a few rows compiling takes longer than they do
os.environ.setdefault("IBUG_LEAST_TIME", "0.003")  # seconds: that a benchmark runs is tested, not what it measures

_BOOSTERS = ("lightgbm", "xgboost", "catboost")

# What is imported by all tests of a folder, or by its doctests; single tests ask for more with pytest.importorskip. A
# conftest.py cannot ask: a skip there would skip all folders beside its own.
collected_with = {
    "src/ibug/cli": ("typer", "rich", "pyarrow", "pandas"),
    "src/ibug/dask": ("dask", "distributed"),
    "src/ibug/mlflow": ("mlflow",),
    "src/ibug/skpro": ("skpro",),
    "tests/cli": ("typer", "rich", "pyarrow", "pandas"),
    "tests/dask": ("dask", "distributed", "lightgbm", "xgboost", "pandas"),
    "tests/describe": ("pandas",),
    "tests/persistence": (*_BOOSTERS, "skops", "pandas"),
    "tests/report": ("plotly", "pandas"),
}
_MISSING = {path: [name for name in needs if find_spec(name) is None] for path, needs in collected_with.items()}

collect_ignore = [path for path, missing in _MISSING.items() if missing]


def pytest_report_header() -> list[str]:
    """Say what is left out, and why."""
    return [f"not collected: {path} (needs {', '.join(_MISSING[path])})" for path in collect_ignore]
