"""Simulations of data drift, with bars.

  python benchmarks/drift.py [--seeds 3] [--splits 200] [--fits 400] [--only PART …] [--report docs/drift.md]

alarms      how often `monitor` is alarmed, with independent fits, by rows as before and by rows of which one feature is
            shifted by half a standard deviation
nights      how often `DriftMonitor` is ever alarmed in a hundred nights of rows as before, and how soon it finds rows
            of which one feature is shifted
streams     LightGBM on rows of one kind, then 3,000 rows that drift, in batches of 10: coverage of 90 % intervals that
            stay as they are (split conformal), are calibrated again on the last 500 rows every 250, and adapt
groups      coverage in groups of rows over many random splits, by partition and by overlapping groups
covariates  coverage where covariates have drifted in a known way, with the likelihood ratio and without it
update      an index that takes 1 % more rows: the time, and whether it finds what an index of all rows finds
"""

from __future__ import annotations

import argparse

from benchmarks.common import document
from benchmarks.common.arguments import add_report, parser_of
from benchmarks.common.progress import say
from benchmarks.drift import alarms, groups, streams, update

PARTS = ("alarms", "nights", "streams", "groups", "covariates", "update")

#: Parts whose tables have a place of their own in the document; the others share one.
OWN_PLACE = ("alarms", "nights", "update")


def main() -> None:
    options = parse_options()
    every = {
        "alarms": lambda: alarms.measured(options.fits, options.n_jobs),
        "nights": lambda: alarms.nights(options.fits, options.n_jobs),
        "streams": lambda: streams.measured(options.seeds),
        "groups": lambda: groups.measured(options.splits),
        "covariates": lambda: groups.shifted(options.splits),
        "update": lambda: update.measured(options.rows),
    }
    found = {}
    for name in options.only or every:
        found[name] = every[name]()
        say(found[name])
    if options.report is not None:
        own = {name: found.pop(name) for name in OWN_PLACE if name in found}
        tables = {document.begin(f"drift.py --only {name}"): [text] for name, text in own.items()}
        tables |= {document.begin("drift.py"): list(found.values())} if found else {}
        written = {mark: "\n\n".join([document.command(), *texts]) for mark, texts in tables.items()}
        document.write_parts(options.report, {mark: f"```\n{text}\n```" for mark, text in written.items()})


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="streams of each kind, with the seeds 0, 1, …")
    parser.add_argument("--splits", type=int, default=200, help="random splits of groups, and samples of covariates")
    parser.add_argument("--fits", type=int, default=400, help="independent fits of each setting of monitor")
    parser.add_argument("--n-jobs", type=int, default=1, help="processes for these")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="run these parts alone")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the index that grows")
    add_report(parser)
    return parser.parse_args()
