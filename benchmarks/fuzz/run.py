"""Cases in child processes with limits of time and memory: a crash or a hang ends a child, and is told by its seed."""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS_PER_CASE, MEMORY = 30, 2**30
#: How many of each kind a seed stands for: trees are forged in the files.
SHARES = {"files": 7, "arrays": 2, "rows": 1}
_CHILD = "from benchmarks.fuzz.run import child; child()"


def child():
    """Run the cases whose seeds standard input names, and tell before and after each."""
    from benchmarks.fuzz import cases

    order = json.loads(sys.stdin.readline())
    cases.run("files", 0)  # what is made once is made before there is a limit
    _limit()
    for kind, seed in order:
        print(json.dumps([kind, seed]), flush=True)
        signal.alarm(SECONDS_PER_CASE)
        try:
            ended = cases.run(kind, seed)
        except Exception as error:  # with everything that it was caused by
            ended = f"UNEXPECTED {type(error).__name__}: {error}"
        signal.alarm(0)
        print(json.dumps(ended[:300]), flush=True)


def _limit():
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def block(seeds):
    """Run cases in one child; yield kind, seed and end of each. A new child goes on after one that has died."""
    order = [(kind, share * seed + i) for seed in seeds for kind, share in SHARES.items() for i in range(share)]
    while order:
        process = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps(order) + "\n",
            capture_output=True,
            text=True,
            cwd=ROOT,
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
    """Run cases for a while, and print their number by kind and end."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--block", type=int, default=50, help="the number of seeds that one process takes")
    parser.add_argument("--only", nargs=2, metavar=("KIND", "SEED"), help="run one case here, to see what happens")
    options = parser.parse_args()
    if options.only:
        from benchmarks.fuzz import cases

        print(cases.run(options.only[0], int(options.only[1])))
        return
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
    raise SystemExit(bool(bad))
