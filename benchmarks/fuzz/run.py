"""Cases in child processes with limits of time and memory: a crash or a hang ends a child, and is told by its seed."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.common.progress import duration, say

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 2**30
SECONDS_PER_CASE = {"files": 30, "arrays": 30, "rows": 30, "options": 180}
#: How many of each kind a seed stands for: trees are forged in the files.
SHARES = {"files": 7, "arrays": 2, "rows": 1}
OPTIONS = {"options": 1}
_CHILD = "from benchmarks.fuzz.run import child; child()"


def child():
    """Run the cases whose seeds standard input names, and tell before and after each."""
    from benchmarks.fuzz import cases

    order = json.loads(sys.stdin.readline())
    cases.run(order[0][0], 0)  # what is made or imported once comes before there is a limit
    _limit()
    for kind, seed in order:
        print(json.dumps([kind, seed]), flush=True)
        signal.alarm(SECONDS_PER_CASE[kind])
        try:
            ended = cases.run(kind, seed)
        except Exception as error:  # with everything that it was caused by
            ended = f"UNEXPECTED {type(error).__name__}: {error}"
        signal.alarm(0)
        print(json.dumps(ended[:2000]), flush=True)


def _limit():
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def block(seeds, shares=SHARES):
    """Run cases in one child; yield kind, seed and end of each. A new child goes on after one that has died."""
    order = [(kind, share * seed + i) for seed in seeds for kind, share in shares.items() for i in range(share)]
    while order:
        process = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps(order) + "\n",
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # small models, and as many processes as there are processors
            check=False,
        )
        lines = [json.loads(line) for line in process.stdout.splitlines()]
        done = len(lines) // 2
        yield from ((*tuple(lines[2 * i]), lines[2 * i + 1]) for i in range(done))
        if process.returncode == 0:
            return
        if not lines or len(lines) % 2 == 0:
            raise SystemExit(f"The child has died between two cases: {process.stderr[-2000:]}")
        yield (*tuple(lines[-1]), f"UNEXPECTED death: exit code {process.returncode}")
        order = order[done + 1 :]


def main():
    """Run cases for a while, and print their number by kind and end: of forged input, or with --cases of options."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long, for forged input")
    parser.add_argument("--cases", type=int, help="the number of random combinations of options, in place of --minutes")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; go on with the one that was printed last")
    parser.add_argument("--block", type=int, default=50, help="the number of seeds that one process takes")
    parser.add_argument("--jobs", type=int, default=2, help="the number of processes, with --cases")
    parser.add_argument("--only", nargs=2, metavar=("KIND", "SEED"), help="run one case here, to see what happens")
    options = parser.parse_args()
    if options.only:
        from benchmarks.fuzz import cases

        print(cases.run(options.only[0], int(options.only[1])))
        return
    raise SystemExit(bool(run_options(options) if options.cases else run_forged(options)))


def run_options(options):
    """Run cases of options, and return the number of those that failed."""
    last = options.seed + options.cases
    blocks = [range(seed, min(seed + options.block, last)) for seed in range(options.seed, last, options.block)]
    ends, bad, inside, start = Counter(), [], [], time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        for seeds, found in zip(blocks, pool.map(lambda some: list(block(some, OPTIONS)), blocks), strict=True):
            for _, seed, ended in found:
                what, _, number = ended.partition("; inside: ")
                ends["FAILS" if what.startswith("UNEXPECTED") else what] += 1
                inside += [int(number)] if number else []
                if what.startswith("UNEXPECTED"):
                    bad.append(seed)
                    print(f"python benchmarks/fuzz.py --only options {seed}: {ended}", flush=True)
            done, took = ends.total(), time.monotonic() - start
            left = duration(took * (options.cases - done) / done)
            say(f"{done:,} of {options.cases:,} cases, to seed {seeds[-1]}; {len(bad)} failed; about {left} left")
    for ended, n in ends.most_common():
        print(f"{n:8,} {ended}")
    if inside:
        print(f"{len(inside):,} cases guarantee 90 % coverage: {sum(inside) / len(inside):.1f} % on new rows")
    print(f"{ends.total():,} cases, seeds {options.seed} to {last - 1}; {len(bad)} failed")
    return len(bad)


def run_forged(options):
    """Run cases of forged input, and return the number of those that ended as they must not."""
    until, seed, ends, bad = time.monotonic() + 60 * options.minutes, options.seed, Counter(), []
    while time.monotonic() < until:
        for kind, number, ended in block(range(seed, seed + options.block)):
            ends[kind, ended if not ended.startswith("UNEXPECTED") else "UNEXPECTED"] += 1
            if ended.startswith("UNEXPECTED"):
                bad.append((kind, number, ended))
                print(f"{kind} {number}: {ended}", flush=True)
        seed += options.block
        print(f"{sum(ends.values()):,} cases, {len(bad)} ended as they must not", file=sys.stderr, flush=True)
    for kind in SHARES:
        print(f"{kind}: {sum(n for (one, _), n in ends.items() if one == kind):,} cases")
        for (one, ended), n in sorted(ends.items()):
            if one == kind:
                print(f"  {n:8,} {ended}")
    print(f"{sum(ends.values()):,} cases, seeds {options.seed} to {seed - 1}; {len(bad)} ended as they must not")
    return len(bad)
