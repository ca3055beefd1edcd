"""Measure the speed and memory of ibug on synthetic data, one thread, beside the model and other ways.

Beside the model's own `predict`, that is, a walk over leaf members, and other packages that predict uncertainty.

    python benchmarks/speed.py --report docs/performance.md    everything but the huge size
    python benchmarks/speed.py --huge                          500,000 rows of 90 features, 1,000 trees as well
    python benchmarks/speed.py --quick                         small sizes: does it run?

Every setting is measured in a process of its own, on one processor. With --results FILE each result is kept as a line
of JSON as soon as it is there, and what the file has already is not measured again: a run can be stopped and taken up.
A setting that fails is said to have failed, and the others go on; a package that is not installed is said to be absent.
Some packages want older versions of NumPy and scikit-learn: --peers-python names the Python of an environment that has
them.

Times are processor times of one thread. "Peak" is what the kernel's counting loop reaches where its data fit the
first-level cache; "kernel" is the whole search for the nearest rows, by the comparisons of leaf codes that it stands
for. Many queries share bitmaps of their leaves instead of comparing code by code, so the kernel can be above the peak.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import marks
import speed_report
from speed_models import FEATURES_OF_HUGE, HUGE, LARGE, MATCHING, MODELS, QUICK, SMALL, USUAL_FEATURES
from speed_peers import PEERS
from speed_timing import use_one_thread

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Unit:
    """One setting, to be measured by one process."""

    script: str
    name: str
    n_rows: int
    n_trees: int
    n_features: int = USUAL_FEATURES

    def command(self, python: str, n_rounds: int) -> list[str]:
        """Return how to measure it."""
        rounds = ["--rounds", str(n_rounds)]
        script = str(FOLDER / self.script)
        if self.script == "speed_peers.py":
            return [python, script, self.name, "--rows", str(self.n_rows), "--trees", str(self.n_trees), *rounds]
        size = [str(self.n_rows), str(self.n_trees), "--features", str(self.n_features)]
        return [sys.executable, script, self.name, *size, *rounds]

    @property
    def key(self) -> str:
        """What tells it from other units."""
        return f"{self.script} {self.name} {self.n_rows} {self.n_trees} {self.n_features}"


def main() -> None:
    options = parse_options()
    use_one_thread()  # which the processes that measure inherit
    done = read_results(options.results)
    n_rounds = options.rounds or (1 if options.quick else 5)
    units = plan(options)
    for number, unit in enumerate(units, 1):
        title = f"[{number}/{len(units)}] {unit.name}, {unit.n_rows:,} rows, {unit.n_trees:,} trees"
        if unit.key in done:
            progress(f"{title}: measured before")
            continue
        progress(title)
        start = time.monotonic()
        done[unit.key] = run(unit.command(options.peers_python, n_rounds))
        progress(f"{title}: {time.monotonic() - start:.0f} s")
        if options.results is not None and "failed" not in done[unit.key]:
            with options.results.open("a") as file:
                file.write(json.dumps({"key": unit.key, **done[unit.key]}) + "\n")
    ours = [(unit, done[unit.key]) for unit in units if unit.script == "speed_measure.py"]
    peers = [(unit, done[unit.key]) for unit in units if unit.script == "speed_peers.py"]
    text = speed_report.text([(u.name, r) for u, r in ours], [(u.name, r) for u, r in peers])
    print(text)
    if options.report is not None:
        speed_report.write(options.report, f"{marks.command()}\n{text}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--huge", action="store_true", help="500,000 rows of 90 features, 1,000 trees as well")
    parser.add_argument("--library", action="append", choices=MODELS, help="measure this library only (repeatable)")
    parser.add_argument("--peer", action="append", choices=PEERS, help="measure this package only (repeatable)")
    parser.add_argument("--no-peers", action="store_true", help="measure no other packages")
    parser.add_argument("--peers-python", default=sys.executable, help="the Python that has the other packages")
    parser.add_argument("--rows", type=int, help="measure this number of training rows instead")
    parser.add_argument("--trees", type=int, help="measure this number of trees instead")
    parser.add_argument("--rounds", type=int, help="how often each task is timed (default: 5, quick: 1)")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep results here, and go on from what is there")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the output into this document")
    return parser.parse_args()


def plan(options: argparse.Namespace) -> list[Unit]:
    """Return what to measure; an override of rows or trees replaces all sizes by one."""
    libraries = options.library or list(MODELS)
    peers = [] if options.no_peers else options.peer or list(PEERS)
    sizes, matching = [LARGE, SMALL, MATCHING], MATCHING
    if options.quick or options.rows is not None or options.trees is not None:
        rows, trees = QUICK if options.quick else LARGE
        matching = (options.rows or rows, options.trees or trees)
        sizes = [matching]
    units = [Unit("speed_measure.py", library, *size) for size in sizes for library in libraries]
    units += [Unit("speed_peers.py", peer, *matching) for peer in peers]
    if options.huge:
        units += [Unit("speed_measure.py", library, *HUGE, FEATURES_OF_HUGE) for library in libraries]
    return units


def run(command: list[str]) -> dict[str, Any]:
    """Return what the command prints as JSON, or the last words of one that failed; its progress is passed on."""
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stderr:  # one line is all that comes on the other stream, at the end
            progress(f"    {line.rstrip()}")
            last = line.strip() or last
        printed = process.stdout.read()
    if process.returncode != 0:
        return {"failed": f"{last} (exit code {process.returncode})"}
    try:
        result: dict[str, Any] = json.loads(printed.strip().rpartition("\n")[2])
    except json.JSONDecodeError:
        return {"failed": f"it printed no result: {printed!r}"}
    return result


def read_results(path: Path | None) -> dict[str, dict[str, Any]]:
    """Return the results of an earlier run; a line that was cut short does not count."""
    results = {}
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            results[row.pop("key")] = row
    return results


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
