"""What uncertainty costs in a web service: ``python benchmarks/serving.py [--write] [--requests 100000]``.

Starts ``examples/serve.py`` on 127.0.0.1 with a LightGBM model and sends it single rows: over 1, 8 and 64 connections,
in turn with the booster's point prediction alone (``/point``) and with intervals (``/predict``); more than it takes on;
while a worker is killed; and as many as it takes for a leak of memory to show. ``--write`` puts what it prints into
docs/serving.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor

import ibug
from benchmarks.common import document
from benchmarks.common.arguments import parser_of
from benchmarks.common.paths import ROOT
from benchmarks.serving.client import HOST, Load, load
from ibug import IBUGRegressor


def make_model(path: Path, n_rows: int, n_trees: int) -> list[bytes]:
    """Save a model to be mapped into memory, and return requests of one row each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows + 2000, 10))
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) * rng.normal(size=len(X))
    model = LGBMRegressor(n_estimators=n_trees, verbose=-1).fit(X[:n_rows], y[:n_rows])
    u = IBUGRegressor(model, prefit=True).fit(X[:n_rows], y[:n_rows], X_val=X[n_rows:], y_val=y[n_rows:])
    u.save(path, compress=False)
    rows = [dict(zip((f"column_{i}" for i in range(10)), row, strict=True)) for row in X[n_rows:][:500].tolist()]
    return [json.dumps({"row": row}).encode() for row in rows]


@contextlib.contextmanager
def service(model: Path, **options: int) -> Iterator[int]:
    """Run the service, and yield its port."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = int(free.getsockname()[1])
    settings = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [sys.executable, str(ROOT / "examples" / "serve.py"), str(model), f"--port={port}", *settings]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        workers(port, options.get("workers", 1))
        yield port
    finally:
        process.terminate()
        process.wait(60)


def health(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=30) as answer:
        return dict(json.load(answer))


def workers(port: int, count: int, seconds: float = 120.0) -> set[int]:
    """Wait until `count` workers have answered, each on a connection of its own; return their process numbers."""
    found: set[int] = set()
    end = time.monotonic() + seconds
    while len(found) < count:
        if time.monotonic() > end:
            raise SystemExit(f"Only {len(found)} of {count} workers answered within {seconds:g} s.")
        try:
            found.add(int(health(port)["pid"]))
        except OSError:
            time.sleep(0.1)
    return found


def private_megabytes(pid: int) -> float:
    """Return the memory that a process shares with no other; the mapped model is shared."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def cost(model: Path, bodies: list[bytes], seconds: float, n_workers: int) -> Iterator[str]:
    yield f"{'connections':>11} {'':14}{'requests/s':>11} {'p50 ms':>8} {'p99 ms':>8} {'others':>7}"
    with service(model, workers=n_workers) as port:
        for path in ("/point", "/predict"):  # so that nothing is done for the first time while it is measured
            asyncio.run(load(port, path, bodies, connections=8, requests=200))
        for connections in (1, 8, 64):
            rates = []
            for path in ("/point", "/predict"):
                found = asyncio.run(load(port, path, bodies, connections=connections, seconds=seconds))
                rates.append(found.rate)
                others = found.codes.total() - found.codes[200]
                p50, p99 = found.quantile(0.5), found.quantile(0.99)
                yield f"{connections:11} {path:14}{found.rate:11.0f} {p50:8.2f} {p99:8.2f} {others:7}"
            yield f"{'':11} /predict answers {rates[1] / rates[0]:.2f} of the requests of /point"


def overload(model: Path, bodies: list[bytes], seconds: float) -> Iterator[str]:
    with service(model, in_flight=4) as port:
        found = asyncio.run(load(port, "/predict", bodies, connections=64, seconds=seconds))
        yield (
            f"64 connections to a service that takes on 4 requests: {found.codes[200]} answered "
            f"(p99 {found.quantile(0.99):.1f} ms), {found.codes[503]} told to come again, {found.codes[0]} lost"
        )
        after = asyncio.run(load(port, "/predict", bodies, connections=1, requests=100))
        yield f"then 1 connection: {after.codes[200]} of 100 answered (p99 {after.quantile(0.99):.1f} ms)"


def killed(model: Path, bodies: list[bytes], seconds: float) -> Iterator[str]:
    with service(model, workers=2) as port:
        before = workers(port, 2)
        back: list[float] = []

        async def kill(_: Load) -> None:
            await asyncio.sleep(seconds / 4)
            began = time.perf_counter()
            os.kill(min(before), signal.SIGKILL)
            while time.perf_counter() - began < 120 and not back:
                await asyncio.sleep(0.1)
                with contextlib.suppress(OSError):
                    if (await asyncio.to_thread(health, port))["pid"] not in before:
                        back.append(time.perf_counter() - began)

        found = asyncio.run(load(port, "/predict", bodies, connections=8, seconds=seconds, during=kill))
        again = f"a new one answers after {back[0]:.1f} s" if back else "no new one has answered"
        yield f"one of 2 workers killed: {again}; {found.codes[200]} requests answered meanwhile, {found.codes[0]} lost"


def memory(model: Path, bodies: list[bytes], requests: int) -> Iterator[str]:
    yield f"{'requests':>9}  private memory of the worker"
    with service(model) as port:
        (pid,) = workers(port, 1)
        done = 0
        first = min(1000, requests // 10)  # after these, everything has been done once
        for part in (first, *[(requests - first) // 9] * 8, requests - first - (requests - first) // 9 * 8):
            found = asyncio.run(load(port, "/predict", bodies, connections=8, requests=part))
            done += found.codes[200]
            yield f"{done:9}  {private_megabytes(pid):.1f} MB"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--requests", type=int, default=10_000, help="of the memory test")
    parser.add_argument("--write", action="store_true", help="put the results into docs/serving.md")
    options = parser.parse_args()
    lines = [
        f"ibug {ibug.__version__}, {os.cpu_count()} processors for service and client, {options.workers} worker(s);",
        f"LightGBM of {options.trees} trees, {options.rows} training rows of 10 features, one row per request",
        "",
    ]
    print("\n".join(lines))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.ibug"
        bodies = make_model(model, options.rows, options.trees)
        for part in (
            cost(model, bodies, options.seconds, options.workers),
            overload(model, bodies, options.seconds),
            killed(model, bodies, options.seconds * 2),
            memory(model, bodies, options.requests),
        ):
            for line in part:
                print(f"{line:90} {time.monotonic() - began:5.0f} s", flush=True)
                lines.append(line)
            print()
            lines.append("")
    if options.write:
        document.write(ROOT / "docs" / "serving.md", "serving.py", "\n".join(lines).rstrip())
