"""What the default `predict_interval` must reach, threads and first use included: bars of ``speed.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.common.bars import Bar
from benchmarks.speed.models import LARGE, SMALL, Setting

#: Of the default predict_interval to the model's own predict, in a batch.
MOST_IN_BATCH: Mapping[tuple[int, int], Mapping[str, float]] = {
    SMALL: {"LightGBM": 1.0, "HistGradientBoosting": 1.0, "XGBoost": 3.0},
    LARGE: {"LightGBM": 1.5, "XGBoost": 4.0, "CatBoost": 40.0},
}
MOST_ALONE = 2.0  # the same for one row of the large size
MOST_SECONDS_ALONE = 0.1e-3  # for one row of the small size
LEAST_TIMES_FASTER = {"Treeffuser": 5000.0, "NGBoost": 10.0, "quantile-forest": 10.0, "MAPIE CQR": 4.0}
LEAST_OF_TWO = 1.8  # of two threads to one, in a batch
MOST_LOADING = 1.0  # seconds, for a gigabyte that is mapped and verified
MOST_FIRST_CALL = 1.5  # of the first call after loading to the tenth

Result = dict[str, Any]


def judge_interval(f: Result) -> Iterator[Bar]:
    """Hold the default predict_interval of one setting against the model's own predict."""
    size, library = (f["setting"]["n_rows"], f["setting"]["n_trees"]), f["setting"]["library"]
    title, found = str(Setting(**f["setting"])), f["ratios"]
    most = MOST_IN_BATCH.get(size, {}).get(library)
    if most is not None and "default interval / predict" in found:
        ratio = found["default interval / predict"]
        yield Bar(f"{title}: default predict_interval at most {most:g} x predict", f"{ratio:.2f} x", ratio <= most)
    if size == LARGE and "default interval alone / predict alone" in found:
        ratio = found["default interval alone / predict alone"]
        bar = f"{title}, one row: default predict_interval at most {MOST_ALONE:g} x predict"
        yield Bar(bar, f"{ratio:.2f} x", ratio <= MOST_ALONE)
    if size == SMALL and "default interval alone" in f["per_row"]:
        time = f["per_row"]["default interval alone"]
        bar = f"{title}, one row: default predict_interval in {MOST_SECONDS_ALONE * 1e3:g} ms"
        yield Bar(bar, f"{time * 1e3:.3f} ms", time <= MOST_SECONDS_ALONE)


def threads(result: Result) -> Iterator[str]:
    """Yield the lines about two processors."""
    found = result["seconds"]
    yield f"Two processors: {result['library']}, {result['n_rows']:,} rows, {result['n_trees']:,} trees, by the clock"
    yield f"  {'predict_interval, default settings':<36}{'one thread':>12}{'two':>12}{'gain':>9}{'two processes':>16}"
    for kind in ("batch", "alone"):
        one, two = found[f"{kind}, one thread"], found[f"{kind}, two threads"]
        both = found.get(f"{kind}, two processes")
        ceiling = "" if both is None else f"{2 * one / both:13.2f} x"
        name = "4,000 rows" if kind == "batch" else "64 rows, one by one"
        yield f"  {name:<36}{one * 1e3:9.1f} ms{two * 1e3:9.1f} ms{one / two:7.2f} x{ceiling}"


def judge_threads(result: Result) -> Iterator[Bar]:
    """Hold the gain of a second thread against the bars."""
    found = result["seconds"]
    gain = found["batch, one thread"] / found["batch, two threads"]
    yield Bar(f"two threads at least {LEAST_OF_TWO:g} x one, batch", f"{gain:.2f} x", gain >= LEAST_OF_TWO)
    gain = found["alone, one thread"] / found["alone, two threads"]
    yield Bar("two threads no slower than one, one row", f"{gain:.2f} x", gain >= 0.95)


def loading(result: Result) -> Iterator[str]:
    """Yield the lines about the first use of a large model."""
    size = f"{result['index_bytes'] / 1e9:.2f} GB"
    yield f"First use: {result['library']}, {result['n_rows']:,} rows, {result['n_trees']:,} trees, an index of {size}"
    yield f"  {'ibug.load':<36}{'load':>12}{'first call':>14}{'tenth':>14}"
    for way, times in result["seconds"].items():
        first, tenth = times["first call"], times["tenth call"]
        yield f"  {way:<36}{times['load']:10.3f} s{first * 1e3:11.2f} ms{tenth * 1e3:11.2f} ms"


def judge_loading(result: Result) -> Iterator[Bar]:
    """Hold the first use against the bars."""
    times = result["seconds"]["mapped, checksums verified"]
    bar = f"a mapped index of a gigabyte is loaded and verified in {MOST_LOADING:g} s"
    yield Bar(bar, f"{times['load']:.2f} s", times["load"] <= MOST_LOADING)
    first = times["first call"] / times["tenth call"]
    bar = f"the first call after it takes at most {MOST_FIRST_CALL} x the tenth"
    yield Bar(bar, f"{first:.2f} x", first <= MOST_FIRST_CALL)
