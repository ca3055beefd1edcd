"""Make the table of supported versions: ``python tools/compatibility.py .venv .venv-bridges --write``.

The oldest versions are those that ibug's metadata asks for, and the newest those that are installed in the
environments, where the tests run. ``--write`` puts the table into docs/compatibility.md. Run it before a release, after
``make test``.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import distributions, metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PAGE = Path(__file__).parents[1] / "docs" / "compatibility.md"
MARK = "<!-- tools/compatibility.py writes from here -->"

#: Extras that users install; the others are for those who work on ibug.
EXTRAS = (
    "lightgbm",
    "xgboost",
    "catboost",
    "skops",
    "plot",
    "report",
    "explain",
    "cli",
    "dask",
    "skpro",
    "mlflow",
    "serve",
)


def supported() -> dict[str, tuple[str, str]]:
    """Return for each library its oldest version and the extras that it is part of; none are the core."""
    found: dict[str, tuple[str, list[str]]] = {}
    for text in metadata("ibug-learn").get_all("Requires-Dist") or []:
        requirement = Requirement(text)
        needs = [""] if requirement.marker is None else [e for e in EXTRAS if requirement.marker.evaluate({"extra": e})]
        oldest = [s.version for s in requirement.specifier if s.operator == ">="]
        if needs and oldest:
            found.setdefault(canonicalize_name(requirement.name), (oldest[0], []))[1].extend(needs)
    return {name: (oldest, ", ".join(f"`{e}`" for e in extras if e)) for name, (oldest, extras) in found.items()}


def installed(environments: list[Path]) -> dict[str, Version]:
    """Return the newest versions of all libraries in some environments."""
    found: dict[str, Version] = {}
    for environment in environments:
        folders = [str(path) for path in environment.glob("lib/python*/site-packages")]
        for distribution in distributions(path=folders):
            name, version = canonicalize_name(distribution.name), Version(distribution.version)
            found[name] = max(version, found.get(name, version))
    return found


def table(environments: list[Path]) -> str:
    """Return the table in Markdown."""
    newest = installed(environments)
    lines = ["| library | extra | oldest supported | newest tested |", "|---|---|---|---|"]
    for name, (oldest, extras) in supported().items():
        lines.append(f"| {name} | {extras or 'always'} | {oldest} | {newest.get(name, '–')} |")
    return "\n".join(lines)


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="+", type=Path, help="virtual environments in which the tests have run")
    parser.add_argument("--write", action="store_true", help="put the table into docs/compatibility.md")
    options = parser.parse_args()
    text = table(options.environments)
    if options.write:
        sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout
        from benchmarks.common.document import write_parts

        write_parts(PAGE, {MARK: text})
    else:
        print(text)


if __name__ == "__main__":
    main()
