"""What the default has to reach, and whether it does."""

from __future__ import annotations

import math
from collections.abc import Iterator

from benchmarks.accuracy.methods import PEERS
from benchmarks.accuracy.scores import Case, Scores, ratio
from benchmarks.common.bars import Bar
from benchmarks.common.statistics import geometric_mean, record

LEAST_CRPS_WINS, LEAST_NLL_WINS = 0.8, 0.5  # of the cases, against the normal distribution
MOST_RATIO = 0.95  # of the mean CRPS to that of the normal distribution, geometric mean over the cases
MOST_RATIO_OF_RESIDUALS = 0.99  # the same, of residuals by the model itself to targets alone
COVERAGE, LEAST_COVERAGE, MOST_COVERAGE = 0.9, 0.87, 0.94  # of 90 % intervals, on every dataset
HALVED = 200  # validation rows from which on half of them are for the conformal step
SIGMAS = 3.0  # by which the observed coverage of conformal intervals may differ from what is guaranteed

WORDS = {"prefit": "prefit", "trained": "trained here", "few": "few validation rows"}


def judge(scores: Scores) -> Iterator[Bar]:
    """Yield the bars for which there are results."""
    for way in scores.ways():
        if way in ("prefit", "trained"):
            yield from against_normal(scores, way)
            yield from coverages(scores, way)
    yield from residuals(scores)
    yield from against_peers(scores)
    yield from conformal(scores)


def against_normal(scores: Scores, way: str) -> Iterator[Bar]:
    """Hold the default against the default of before: normal, and of targets alone for a trained model."""
    other = "normal-targets" if way == "prefit" else "normal"
    for scoring, least in (("crps", LEAST_CRPS_WINS), ("nll", LEAST_NLL_WINS)):
        pairs = scores.common(scoring, "default", other, scoring, way)
        if not pairs:
            continue
        found = record(pairs.values())
        words = f"{WORDS[way]}, {scoring.upper()}: default against {other}"
        yield Bar(f"{words} loses nowhere", str(found), found.losses == 0)
        wins = f"{found.wins} of {len(pairs)}"
        yield Bar(f"{words} wins at least {least:.0%}", wins, found.wins >= least * len(pairs))
        if scoring == "crps":
            mean = geometric_mean(ratio(pair) for pair in pairs.values())
            yield Bar(f"{words}, geometric mean of ratios at most {MOST_RATIO}", f"{mean:.4f}", mean <= MOST_RATIO)


def residuals(scores: Scores) -> Iterator[Bar]:
    """Hold residuals by the model itself against none, and against those of clones."""
    pairs = scores.common("crps", "default", "targets-only", "crps", "prefit")
    if pairs:
        found, mean = record(pairs.values()), geometric_mean(ratio(pair) for pair in pairs.values())
        words = f"{WORDS['prefit']}, CRPS: default against targets-only"
        yield Bar(f"{words} loses nowhere", str(found), found.losses == 0)
        text = f"{words}, geometric mean of ratios at most {MOST_RATIO_OF_RESIDUALS}"
        yield Bar(text, f"{mean:.4f}", mean <= MOST_RATIO_OF_RESIDUALS)
    for scoring in ("crps", "nll"):
        pairs = scores.common(scoring, "own", "default", scoring, "trained")
        if pairs:
            found = record(pairs.values())
            text = f"{WORDS['trained']}, {scoring.upper()}: own against default, which trains clones, loses nowhere"
            yield Bar(text, str(found), found.losses == 0)


def against_peers(scores: Scores) -> Iterator[Bar]:
    """Hold the default, trained here on all training rows as they are, against other packages."""
    for peer in PEERS:
        pairs = scores.common("crps", "default", peer, "crps", "trained")
        if pairs:
            found = record(pairs.values())
            text = f"{WORDS['trained']}, CRPS: default wins more often than it loses against {peer}"
            yield Bar(text, str(found), found.wins > found.losses)


def coverages(scores: Scores, way: str) -> Iterator[Bar]:
    """Hold the coverage of the default's 90 % intervals against its limits."""
    found = {case: scores.mean("coverage", "default", "crps", case) for case in scores.cases if case.way == way}
    found = {case: share for case, share in found.items() if not math.isnan(share)}
    if found:
        low, high = min(found.values()), max(found.values())
        outside = [case for case, share in found.items() if not LEAST_COVERAGE <= share <= MOST_COVERAGE]
        text = f"{WORDS[way]}: coverage of 90 % intervals from {LEAST_COVERAGE:.0%} to {MOST_COVERAGE:.0%} everywhere"
        yield Bar(text + _listed(outside), f"{low:.1%} – {high:.1%}", not outside)


def conformal(scores: Scores) -> Iterator[Bar]:
    """Hold the coverage of conformal intervals against what chance allows around the guarantee."""
    cases = [case for case in scores.cases if scores.folds("coverage", "conformal", "crps", case)]
    if cases:
        shares = {case: scores.mean("coverage", "conformal", "crps", case) for case in cases}
        bounds = {case: conformal_bounds(scores, case) for case in cases}
        below = [case for case, share in shares.items() if share < bounds[case][0]]
        above = [case for case, share in shares.items() if share > bounds[case][1]]
        words = f"conformal: coverage of 90 % intervals, with {SIGMAS:g} standard errors of chance,"
        low, high = min(shares.values()), max(shares.values())
        yield Bar(f"{words} at least the level, as guaranteed{_listed(below)}", f"{low:.1%}", not below)
        text = f"{words} at most what is guaranteed for targets without ties{_listed(above)}"
        yield Bar(text, f"{high:.1%}", not above)


def conformal_bounds(scores: Scores, case: Case) -> tuple[float, float]:
    """Return the limits of the mean coverage over folds.

    Split conformal intervals from n rows hold a new value with a probability between p and p + 1/(n + 1), on average
    over these rows; given the rows, its variance is about p(1 − p)/n. Folds share most of their rows, so that this does
    not average out over folds, as the error of counting test rows does.
    """
    n_val = min(scores.folds("n_val", "conformal", "crps", case).values())
    n_test = sum(scores.folds("n_test", "conformal", "crps", case).values())
    n = n_val // 2 if n_val >= HALVED else n_val
    error = SIGMAS * math.sqrt(COVERAGE * (1 - COVERAGE) * (1 / n + 1 / n_test))
    return COVERAGE - error, COVERAGE + 1 / (n + 1) + error


def _listed(cases: list[Case]) -> str:
    return f"; not: {', '.join(f'{case.dataset} ({case.base})' for case in cases)}" if cases else ""
