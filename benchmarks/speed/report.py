"""The tables and bars of ``speed.py``, from the results of its processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.common.bars import Bar
from benchmarks.speed import bars
from benchmarks.speed.models import LARGE, MATCHING, SMALL, USUAL_FEATURES, Setting

LEAST_SHARE_OF_PEAK = 1.0
LEAST_SPEEDUP = {"LightGBM": 150.0, "XGBoost": 150.0, "CatBoost": 40.0}  # to the walk over leaf members, large, batch
LEAST_READING_SPEEDUP = 2.0  # of ibug's tree walk to the library's leaf numbers and predictions, or it is not worth it
MOST_TO_PREDICT = 2.0  # of a single row to the model's own prediction, small
MOST_TO_NORMAL = {SMALL: 2.0, LARGE: 1.3}  # of the default, a stack, to a normal distribution, batch
MOST_ALONE = 0.4e-3  # seconds for one row with default settings, small; and less than the model's own prediction
MOST_TO_READING = 2.0  # of residuals by the model itself to reading its trees and the training rows' leaves, large
MOST_FIRST_CALL = 1.5  # of the first call after loading to the tenth
MOST_BYTES = 1.1  # of the index, per row and tree: the prototypes of a large one take a few percent of its codes
MOST_MEMORY, CONSTANT_MEMORY = 1.5, 150e6  # while fitting: a multiple of the index, and some bytes

Result = dict[str, Any]
Named = list[tuple[str, Result]]


def text(ours: Named, peers: Named, threads: Named, loading: Named) -> str:
    """Return the figures, the other packages, threads, first use, and the bars."""
    good = [result for _, result in ours if "failed" not in result]
    lines = [f"One thread, instruction set {good[0]['instruction_set']}, {versions(good)}."] if good else []
    for name, result in ours:
        lines += ["", *(figures(result) if "failed" not in result else [f"{name}: FAILED ({result['failed']})"])]
    lines += ["", *peer_table(good, peers)] if peers else []
    bars_of = list(judge(good)) + list(judge_peers(good, peers))
    for results, lines_of, judge_one in (
        (threads, bars.threads, bars.judge_threads),
        (loading, bars.loading, bars.judge_loading),
    ):
        for name, result in results:
            if "seconds" in result:
                lines += ["", *lines_of(result)]
                bars_of += judge_one(result)
            else:
                lines += ["", f"{name}: not measured ({result.get('failed') or result.get('absent')})"]
    lines += ["", "Bars" if bars_of else "The bars are judged at the full sizes only."]
    lines += [bar.line() for bar in bars_of]
    return "\n".join(lines)


def versions(results: list[Result]) -> str:
    """Return the packages' versions."""
    found = {name: number for result in results for name, number in result["versions"].items()}
    return ", ".join(f"{name} {number}" for name, number in found.items())


def size(result: Result) -> tuple[int, int]:
    """Return the training rows and the trees."""
    return result["setting"]["n_rows"], result["setting"]["n_trees"]


def title(result: Result) -> str:
    """Return what was measured, in words."""
    return str(Setting(**result["setting"]))


def figures(f: Result) -> Iterator[str]:
    """Yield the lines of one setting."""
    n_codes, fresh = size(f)[0] * size(f)[1], f["fresh"]
    yield f"{title(f)}, codes of type {f['code_type']}"
    best, peak = f["best_kernel_rate"], f["best_peak_rate"]
    yield (
        f"  kernel    {f['kernel_share']:.1f} times the peak of comparing code by code; at best {best / 1e9:.1f} "
        f"billion comparisons a second, comparing alone {peak / 1e9:.1f}"
    )
    walk = f" (the walk's matrix: {f['walk_bytes'] / n_codes:.1f})" if f["walk_bytes"] else ""
    yield f"  index     {f['index_bytes'] / 1e6:.1f} MB, {f['index_bytes'] / n_codes:.3f} bytes per row and tree{walk}"
    yield (
        f"  fit       {f['fit_time']:.2f} s with {fresh['n_validation']} validation rows: "
        f"{f['fit_time'] / f['training_time']:.0%} of the model's training, {f['training_time']:.2f} s; "
        f"memory grew by {fresh['peak_growth'] / 1e6:.0f} MB"
    )
    yield f"  leaves    {f['how']}"
    first, tenth = fresh["first_call"] * 1e3, fresh["tenth_call"] * 1e3
    yield f"  loaded    first call {first:.3f} ms, tenth {tenth:.3f} ms, caches cold"
    yield from times(f)
    yield from ratios(f)


def times(f: Result) -> Iterator[str]:
    """Yield the times per row of one setting."""
    yield f"  {'time per row':<42}in a batch       alone"
    per_row = f["per_row"]
    for name, key in (
        ("predict_dist, the paper's rule, k = 100", "predict_dist"),
        ("  of which search", "search"),
        ("  of which leaf numbers and predictions", "read"),
        ("predict_interval, the paper's rule", "interval"),
        ("predict_dist, default settings", "default"),
        ("predict_interval, default settings", "default interval"),
        ('predict_dist, distribution="normal"', "normal"),
        ("the model's predict", "predict"),
        ("the library's leaf numbers", "leaves"),
        ("data frames: predict_dist", "frame predict_dist"),
        ("data frames: the model's predict", "frame predict"),
        ("walk over leaf members, whole path", "walk"),
        (f"  of which search, {f['fastest_walk']}", "walk search"),
        ("no walk: search by a dense product", "scan search"),
        ("training rows: trees and leaves, read", "training leaves"),
        ("training rows: residuals by the model", "residuals"),
    ):
        if key in per_row or f"{key} alone" in per_row:
            yield line(name, per_row.get(key), per_row.get(f"{key} alone"), scale=1e3, digits=4, unit="ms")


def ratios(f: Result) -> Iterator[str]:
    """Yield the ratios of one setting."""
    yield f"  {'ratios':<42}in a batch       alone"
    found = f["ratios"]
    for name, slow, fast in (
        ("predict_dist to the model's predict", "predict_dist", "predict"),
        ("  with default settings", "default", "predict"),
        ("  predict_interval, default settings", "default interval", "predict"),
        ('predict_dist, default to "normal"', "default", "normal"),
        ("  with data frames", "frame predict_dist", "frame predict"),
        ("library's leaves + predict to ibug's", "leaves + predict", "read"),
        ("walk to predict_dist", "walk", "predict_dist"),
        ("walk's search to ibug's search", "walk search", "search"),
        ("dense product's search to ibug's search", "scan search", "search"),
        ("residuals to reading trees and leaves", "residuals", "training leaves"),
    ):
        batch, alone = found.get(f"{slow} / {fast}"), found.get(f"{slow} alone / {fast} alone")
        if batch is not None or alone is not None:
            yield line(name, batch, alone, scale=1, digits=2, unit="x ")


def line(name: str, batch: float | None, alone: float | None, *, scale: float, digits: int, unit: str) -> str:
    """Return a line of a table of times or ratios; what was not measured stays empty."""
    shown = [" " * 12 if value is None else f"{value * scale:9.{digits}f} {unit}" for value in (batch, alone)]
    return f"    {name:<40}{''.join(shown)}".rstrip()


def peer_table(ours: list[Result], peers: Named) -> Iterator[str]:
    """Yield the times of other packages, and how many times ibug's they are, model by model."""
    measured = [(name, r) for name, r in peers if "per_row" in r]
    matching = same_size(ours, peers)
    yield "Other packages, time per row in a batch / alone, and as a multiple of predict_interval (default settings)"
    names = [result["setting"]["library"] for result in matching]
    yield f"  {'':<22}{'ms':>18}" + "".join(f"{name:>22}" for name in names)
    own = {name: own_times(result) for name, result in zip(names, matching, strict=True)}
    yield f"  {'ibug':<22}{'':>18}" + "".join(f"{b * 1e3:>12.4f} /{a * 1e3:>8.3f}" for b, a in own.values())
    for name, result in measured:
        batch, alone = result["per_row"]["batch"], result["per_row"].get("alone", float("nan"))
        multiples = "".join(f"{batch / b:>10.1f} /{alone / a:>8.1f} x" for b, a in own.values())
        yield f"  {name + ' ' + result['version']:<22}{batch * 1e3:>8.4f} /{alone * 1e3:>8.3f}{multiples}"
    for name, result in peers:
        if "absent" in result:
            yield f"  {name}: absent ({result['absent']})"
        elif "failed" in result:
            yield f"  {name}: FAILED ({result['failed']})"


def same_size(ours: list[Result], peers: Named) -> list[Result]:
    """Return our results at the size at which the other packages were measured: the last but the huge one."""
    usual = [size(result) for result in ours if result["setting"]["n_features"] == USUAL_FEATURES]
    return [result for result in ours if usual and peers and size(result) == usual[-1]]


def own_times(result: Result) -> tuple[float, float]:
    """Return the time per row of the default predict_interval in a batch and alone."""
    return result["per_row"]["default interval"], result["per_row"]["default interval alone"]


def judge(results: list[Result]) -> Iterator[Bar]:
    """Hold the figures of the full sizes against the bars."""
    for f in results:
        if size(f) not in (LARGE, SMALL):
            continue
        share, n_bytes = f["kernel_share"], f["index_bytes"] / (size(f)[0] * size(f)[1])
        bar = f"{title(f)}: kernel at least {LEAST_SHARE_OF_PEAK:.0%} of the peak of comparing"
        yield Bar(bar, f"{share:.1%}", share >= LEAST_SHARE_OF_PEAK)
        bar = f"{title(f)}: index at most {MOST_BYTES} bytes per row and tree"
        yield Bar(bar, f"{n_bytes:.3f}", n_bytes <= MOST_BYTES)
        yield from judge_speed(f)
        yield from bars.judge_interval(f)
        yield from judge_fit(f)


def judge_speed(f: Result) -> Iterator[Bar]:
    """Hold the predictions of one setting against the bars."""
    found, library = f["ratios"], f["setting"]["library"]
    for alone in ("", " alone"):
        speedup = found[f"leaves + predict{alone} / read{alone}"]
        bar = f"{title(f)}{alone and ', one row'}: leaves and predictions {LEAST_READING_SPEEDUP:.0f} x faster at least"
        yield Bar(bar, f"{speedup:.1f} x", speedup >= LEAST_READING_SPEEDUP)
    if size(f) == LARGE and library in LEAST_SPEEDUP:
        speedup, least = found["walk / predict_dist"], LEAST_SPEEDUP[library]
        bar = f"{title(f)}: predict_dist at least {least:.0f} x faster than the walk over leaf members"
        yield Bar(bar, f"{speedup:.1f} x", speedup >= least)
    to_normal, most = found["default / normal"], MOST_TO_NORMAL[size(f)]
    bar = f"{title(f)}: the default at most {most:g} x a normal distribution"
    yield Bar(bar, f"{to_normal:.2f} x", to_normal <= most)
    if size(f) == LARGE and "residuals / training leaves" in found:
        ratio, most = found["residuals / training leaves"], MOST_TO_READING
        bar = f"{title(f)}: residuals by the model at most {most:g} x reading trees and leaves"
        yield Bar(bar, f"{ratio:.2f} x", ratio <= most)
    if size(f) != SMALL:
        return
    default, model = f["per_row"]["default alone"], f["per_row"]["predict alone"]
    words = f"default settings below {MOST_ALONE * 1e3:g} ms and the model's predict, {model * 1e3:.3f}"
    bar = f"{title(f)}, one row: {words}"
    yield Bar(bar, f"{default * 1e3:.3f} ms", default < min(MOST_ALONE, model))
    for words, key in (
        ("predict_dist", "predict_dist alone / predict alone"),
        ("predict_interval", "interval alone / predict alone"),
        ("predict_dist of a data frame", "frame predict_dist alone / frame predict alone"),
    ):
        if key in found:
            bar = f"{title(f)}, one row: {words} below {MOST_TO_PREDICT:.0f} x the model's predict"
            yield Bar(bar, f"{found[key]:.2f} x", found[key] < MOST_TO_PREDICT)


def judge_fit(f: Result) -> Iterator[Bar]:
    """Hold fitting, its memory and the first call against the bars."""
    share, fresh = f["fit_time"] / f["training_time"], f["fresh"]
    yield Bar(f"{title(f)}: fitting costs less than training the model", f"{share:.0%}", share < 1)
    most = MOST_MEMORY * fresh["index_bytes"] + CONSTANT_MEMORY
    bar = f"{title(f)}: fitting needs at most {MOST_MEMORY} x the index and {CONSTANT_MEMORY / 1e6:.0f} MB"
    yield Bar(bar, f"{fresh['peak_growth'] / 1e6:.0f} MB", fresh["peak_growth"] <= most)
    first = fresh["first_call"] / fresh["tenth_call"]
    bar = f"{title(f)}: the first call after loading takes at most {MOST_FIRST_CALL} x the tenth"
    yield Bar(bar, f"{first:.2f} x", first <= MOST_FIRST_CALL)


def judge_peers(ours: list[Result], peers: Named) -> Iterator[Bar]:
    """Hold ibug against the packages that it should be faster than."""
    for f in same_size(ours, peers):
        if size(f) != MATCHING:
            continue
        for name, result in peers:
            least = bars.LEAST_TIMES_FASTER.get(name)
            if least is None or "per_row" not in result:
                continue
            for own, kind in zip(own_times(f), ("batch", "alone"), strict=True):
                if kind in result["per_row"]:
                    multiple = result["per_row"][kind] / own
                    rows = "one row" if kind == "alone" else "batch"
                    bar = f"{title(f)}, {rows}: default predict_interval {least:,.0f} x faster than {name}"
                    yield Bar(bar, f"{multiple:.1f} x", multiple >= least)
