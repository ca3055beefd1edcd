"""The command: ``python -m benchmarks run|status|tables|checks|figures|fetch|compare``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.common.paths import data_folder
from benchmarks.own import command as own
from benchmarks.study.datasets import DATASETS, DatasetError, at_hand
from benchmarks.study.methods import GRIDS, METHODS
from benchmarks.study.results import read
from benchmarks.study.runner import Plan, run, status

RESULTS = Path("study-results/results.jsonl")
DOCUMENT = Path("benchmarks/results/study.md")
IMAGES = Path("docs/images")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    options = parse(arguments)
    try:
        COMMANDS[options.command](options)
    except DatasetError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130
    return 0


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options, checked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="The paper's study.")
    commands = parser.add_subparsers(dest="command", required=True)
    run_options = commands.add_parser("run", help="run what has no result yet; can be stopped and started again")
    status_options = commands.add_parser("status", help="tell what is done, what failed and why")
    tables_options = commands.add_parser("tables", help="print the paper's tables and write them into a document")
    checks_options = commands.add_parser("checks", help="print what was run again, closer to the paper, beside it")
    figures_options = commands.add_parser("figures", help="draw the paper's figures")
    fetch_options = commands.add_parser("fetch", help="get datasets from their public sources")
    own.add_options(
        commands.add_parser("compare", help="the default against others on your own data", description=own.HELP)
    )
    for each in (run_options, status_options, tables_options, checks_options, figures_options):
        add_plan(each)
    for each in (run_options, figures_options, fetch_options):
        each.add_argument("--data", type=Path, help="folder with the datasets' files; default: IBUG_DATA")
    run_options.add_argument("--jobs", type=int, default=1, help="processes, each with one thread")
    run_options.add_argument("--time-limit", type=float, help="seconds for each task; default: none")
    run_options.add_argument("--retry", action="store_true", help="try again what failed or passed its time limit")
    checks_options.add_argument("--again", type=Path, required=True, help="results of what was run again")
    for each in (tables_options, checks_options):
        each.add_argument("--document", type=Path, default=DOCUMENT, help="written between its marks")
    figures_options.add_argument("--images", type=Path, default=IMAGES, help="folder for the images")
    figures_options.add_argument("--only", help="names of figures, with commas; default: all")
    fetch_options.add_argument("--datasets", default="all")
    fetch_options.add_argument("--raw", type=Path, help="the source's own table as CSV, in place of a download")
    options = parser.parse_args(arguments)
    resolve(parser, options)
    return options


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is run, or what of the results is looked at."""
    parser.add_argument("--datasets", default="all", help="names, with commas; 'all' are those at hand")
    parser.add_argument("--methods", default="all", help=f"names, with commas, of: {', '.join(METHODS)}")
    parser.add_argument("--folds", type=int, default=10, help="the first of the ten folds")
    parser.add_argument("--grid", choices=GRIDS, default="quick")
    parser.add_argument("--max-rows", type=int, help="take a random sample of larger datasets")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"default: {RESULTS}")


def resolve(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Make names of what was given, or stop with what can be given."""
    if options.command == "compare":  # which has options of its own
        return
    options.folder = data_folder(getattr(options, "data", None))
    for what, known in (("datasets", list(DATASETS)), ("methods", list(METHODS))):
        given = getattr(options, what, None)
        if given is None:
            continue
        names = known if given == "all" else given.split(",")
        unknown = sorted(set(names) - set(known))
        if unknown:
            parser.error(f"there is no {', '.join(unknown)}; {what} are: {', '.join(known)}")
        setattr(options, what, names)
        if what == "datasets" and given == "all" and options.command in ("run", "figures", "status"):
            found = set(at_hand(options.folder))
            if options.command == "status":  # wherever the data are by now
                found |= {row["dataset"] for row in read(options.results)}
            options.datasets = [name for name in known if name in found]
    if hasattr(options, "folds") and not 1 <= options.folds <= 10:
        parser.error(f"--folds must be 1 to 10; got {options.folds}")
    if getattr(options, "jobs", 1) < 1:
        parser.error(f"--jobs must be at least 1; got {options.jobs}")


def plan_of(options: argparse.Namespace) -> Plan:
    """Return the plan that the options make."""
    return Plan(options.datasets, options.methods, options.folds, options.grid, options.max_rows)


def _run(options: argparse.Namespace) -> None:
    from benchmarks.study.datasets import load

    plan = plan_of(options)
    for name in plan.datasets:
        load(name, options.folder)  # what is absent or another release shall be told at once
    run(
        plan,
        options.results,
        options.folder,
        jobs=options.jobs,
        time_limit=options.time_limit,
        retry=options.retry,
    )
    _status(options)


def _status(options: argparse.Namespace) -> None:
    print(status(plan_of(options), options.results))


def _tables(options: argparse.Namespace) -> None:
    from benchmarks.study.report import write

    print(write(plan_of(options), options.results, options.document))


def _checks(options: argparse.Namespace) -> None:
    from benchmarks.study.checks import write

    print(write(plan_of(options), options.results, options.again, options.document))


def _figures(options: argparse.Namespace) -> None:
    from benchmarks.study.figures import draw

    only = None if options.only is None else options.only.split(",")
    for path in draw(plan_of(options), options.results, options.folder, options.images, only):
        print(path)


def _fetch(options: argparse.Namespace) -> None:
    from benchmarks.study.sources import fetch

    if options.raw is not None and len(options.datasets) != 1:
        raise DatasetError("--raw is the file of one dataset: name it by --datasets.")
    failures = []
    for name in options.datasets:
        try:
            print(fetch(name, options.folder, options.raw))
        except DatasetError as error:
            failures.append(str(error))
    if failures:
        raise DatasetError("\n".join(failures))


COMMANDS = {
    "compare": own.compare,
    "run": _run,
    "status": _status,
    "tables": _tables,
    "checks": _checks,
    "figures": _figures,
    "fetch": _fetch,
}
