"""Measure the speed and memory of ibug on synthetic data, one thread, beside a walk over leaf members and the model.

    python benchmarks/speed.py            all settings, some minutes
    python benchmarks/speed.py --quick    small ones, some seconds: does it run?
    python benchmarks/speed.py --huge     500,000 rows of 90 features, 1,000 trees: half an hour and some gigabytes

Times are processor times of one thread. "Peak" is what the kernel's counting loop reaches where its data fit the
first-level cache; "kernel" is the whole search for the nearest rows, by its comparisons of leaf codes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speed_measure import Figures

LIBRARIES = ("LightGBM", "XGBoost", "CatBoost", "HistGradientBoosting")
LARGE, SMALL, QUICK, HUGE = (40_000, 2_000), (7_000, 500), (2_000, 100), (500_000, 1_000)  # rows, trees
FEATURES_OF_HUGE = 90

LEAST_SHARE_OF_PEAK = 0.6
LEAST_SPEEDUP = {"LightGBM": 150.0, "XGBoost": 150.0, "CatBoost": 40.0}  # to the walk over leaf members, large, batch
LEAST_READING_SPEEDUP = 2.0  # of ibug's tree walk to the library's leaf numbers and predictions, or it is not worth it
MOST_TO_PREDICT = 2.0  # of a single row to the model's own prediction, small
MOST_BYTES = 1.1


@dataclass(frozen=True)
class Bar:
    """A figure and the bar that it should clear."""

    text: str
    figure: str
    met: bool


def main() -> None:
    options = parse_options()
    use_one_thread()
    # These load NumPy and the like, which read the number of threads when they are loaded.
    from speed_measure import Setting, measure

    from ibug.neighbors._index import instruction_sets

    n_features = {"n_features": FEATURES_OF_HUGE} if options.huge else {}
    libraries = options.library or LIBRARIES
    settings = [Setting(library, *size, **n_features) for size in sizes(options) for library in libraries]
    print(f"One thread, instruction set {instruction_sets()[-1]}.", flush=True)
    n_rounds = options.rounds or (1 if options.quick else 5)
    measured = []
    for setting in settings:
        measured.append(measure(setting, n_rounds, progress))
        print_figures(measured[-1])
    bars = judge(measured)
    print_bars(bars)
    if options.json is not None:
        content = {"figures": [asdict(f) for f in measured], "bars": [asdict(bar) for bar in bars]}
        options.json.write_text(json.dumps(content, indent=2) + "\n")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--huge", action="store_true", help="500,000 rows of 90 features, 1,000 trees, instead")
    parser.add_argument("--library", action="append", choices=LIBRARIES, help="measure this library only (repeatable)")
    parser.add_argument("--rows", type=int, help="measure this number of training rows instead")
    parser.add_argument("--trees", type=int, help="measure this number of trees instead")
    parser.add_argument("--rounds", type=int, help="how often each task is timed (default: 5, quick: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    return parser.parse_args()


def sizes(options: argparse.Namespace) -> list[tuple[int, int]]:
    """Return the (rows, trees) to measure; an override of either replaces the whole list by one size."""
    chosen = [QUICK] if options.quick else [HUGE] if options.huge else [LARGE, SMALL]
    if options.rows is None and options.trees is None:
        return chosen
    rows, trees = chosen[0]
    return [(options.rows or rows, options.trees or trees)]


def use_one_thread() -> None:
    """Keep every library to one thread; CatBoost, which predicts with all processors, by giving it only one."""
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def progress(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


def print_figures(f: Figures) -> None:
    print(f"\n{f.setting}, codes of type {f.code_type}")
    print(
        f"  kernel    {f.kernel_share:.0%} of the peak; at best {f.best_kernel_rate / 1e9:.1f} of "
        f"{f.best_peak_rate / 1e9:.1f} billion comparisons a second ({f.best_kernel_rate / f.best_peak_rate:.0%})"
    )
    print(
        f"  index     {f.index_bytes / 1e6:.1f} MB, {f.bytes_per_row_and_tree:.3f} bytes per row and tree "
        f"(the walk's matrix: {f.walk_bytes_per_row_and_tree:.1f})"
    )
    print(
        f"  fit       {f.fit_time:.2f} s with {f.n_validation} validation rows: {f.fit_time / f.training_time:.0%} of "
        f"the model's training, {f.training_time:.2f} s; memory grew by {f.peak_memory / 1e6:.0f} MB"
    )
    print(f"  leaves    {f.how}")
    print_times(f)
    print_ratios(f)
    sys.stdout.flush()


def print_times(f: Figures) -> None:
    print(f"  {'time per row':<42}in a batch       alone")
    for text, name in (
        ("predict_dist", "predict_dist"),
        ("  of which search", "search"),
        ("  of which leaf numbers and predictions", "read"),
        ("the model's predict", "predict"),
        ("the library's leaf numbers", "leaves"),
        ("walk over leaf members, whole path", "walk"),
        (f"  of which search, {f.fastest_walk}", "walk search"),
        ("no walk: search by a dense product", "scan search"),
    ):
        if name in f.per_row:
            print_line(text, f.per_row[name], f.per_row.get(f"{name} alone"), scale=1e3, digits=4, unit="ms")


def print_ratios(f: Figures) -> None:
    print(f"  {'ratios':<42}in a batch       alone")
    for text, slow, fast in (
        ("predict_dist to the model's predict", "predict_dist", "predict"),
        ("library's leaves + predict to ibug's", "leaves + predict", "read"),
        ("walk to predict_dist", "walk", "predict_dist"),
        ("walk's search to ibug's search", "walk search", "search"),
        ("dense product's search to ibug's search", "scan search", "search"),
    ):
        alone = f.ratios.get(f"{slow} alone / {fast} alone")
        if f"{slow} / {fast}" in f.ratios:
            print_line(text, f.ratios[f"{slow} / {fast}"], alone, scale=1, digits=1, unit="x ")


def print_line(text: str, batch: float, alone: float | None, *, scale: float, digits: int, unit: str) -> None:
    shown = [f"{value * scale:9.{digits}f} {unit}" for value in (batch, alone) if value is not None]
    print(f"    {text:<40}{''.join(shown)}".rstrip())


def judge(measured: list[Figures]) -> list[Bar]:
    """Hold the figures of the full sizes against the bars."""
    bars = []
    for f in measured:
        size = (f.setting.n_rows, f.setting.n_trees)
        if size not in (LARGE, SMALL):
            continue
        share, n_bytes = f.kernel_share, f.bytes_per_row_and_tree
        text = f"{f.setting}: kernel at least {LEAST_SHARE_OF_PEAK:.0%} of its peak"
        bars.append(Bar(text, f"{share:.1%}", share >= LEAST_SHARE_OF_PEAK))
        text = f"{f.setting}: index at most {MOST_BYTES} bytes per row and tree"
        bars.append(Bar(text, f"{n_bytes:.3f}", n_bytes <= MOST_BYTES))
        bars += judge_speed(f, size)
    return bars


def judge_speed(f: Figures, size: tuple[int, int]) -> list[Bar]:
    bars = []
    for alone in ("", " alone"):
        speedup = f.ratios[f"leaves + predict{alone} / read{alone}"]
        text = (
            f"{f.setting}{alone and ', one row'}: leaves and predictions {LEAST_READING_SPEEDUP:.0f} x faster at least"
        )
        bars.append(Bar(text, f"{speedup:.1f} x", speedup >= LEAST_READING_SPEEDUP))
    share = f.fit_time / f.training_time
    bars.append(Bar(f"{f.setting}: fitting costs less than training the model", f"{share:.0%}", share < 1))
    if size == LARGE and f.setting.library in LEAST_SPEEDUP:
        speedup, least = f.ratios["walk / predict_dist"], LEAST_SPEEDUP[f.setting.library]
        text = f"{f.setting}: predict_dist at least {least:.0f} x faster than the walk over leaf members"
        bars.append(Bar(text, f"{speedup:.1f} x", speedup >= least))
    if size == SMALL:
        ratio = f.ratios["predict_dist alone / predict alone"]
        text = f"{f.setting}, one row: predict_dist below {MOST_TO_PREDICT:.0f} x the model's predict"
        bars.append(Bar(text, f"{ratio:.2f} x", ratio < MOST_TO_PREDICT))
    return bars


def print_bars(bars: list[Bar]) -> None:
    print("\nBars" if bars else "\nThe bars are judged at the full sizes only.")
    for bar in bars:
        print(f"  {'met' if bar.met else 'MISSED':<8}{bar.figure:>8}  {bar.text}")


if __name__ == "__main__":
    main()
