"""Options that several commands share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import typer

from ibug.cli._columns import divided
from ibug.cli._model_file import StoredModel, load

#: The families of distributions and the libraries by name: the modules that have them take long to import.
FAMILIES = (
    "normal", "skewnormal", "lognormal", "laplace", "student_t", "logistic", "gumbel", "weibull", "kde", "empirical",
)  # fmt: skip
BOOSTER_NAMES = ("lightgbm", "xgboost", "catboost", "sklearn")

_ROWS = "Rows: .csv .csv.gz .tsv .parquet .feather or -"

ModelFile = Annotated[str, typer.Argument(metavar="MODEL.ibug", help="A file that ibug fit or u.save has written.")]
DataFile = Annotated[str, typer.Argument(metavar="DATA", help=_ROWS)]
TestFile = Annotated[str, typer.Argument(metavar="TEST", help=_ROWS)]
Target = Annotated[
    list[str] | None, typer.Option("--target", "-t", help="The observed values; by default the column of ibug fit.")
]
Coverage = Annotated[str, typer.Option("--interval", "-i", help="The coverage of the interval.")]
Groups = Annotated[
    str | None,
    typer.Option("--groups", help="A column: coverage and width for each of its values, or ranges of numbers."),
]
Ids = Annotated[list[str] | None, typer.Option("--id", help="Columns that name rows.")]
TrainFile = Annotated[str | None, typer.Option("--train", help="The training file, if it has moved.")]
Features = Annotated[bool, typer.Option("--features/--no-features", help="Compare features with training rows.")]
Isolate = Annotated[
    bool, typer.Option("--isolate", help="Try the model file in a process of its own first: for a stranger's file.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all processors.")]
AllowedType = Annotated[
    list[str] | None,
    typer.Option("--trusted", metavar="NAME", help="A type or function of yours that the model file may hold."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse likely mistakes, and columns that the model does not know."),
]


@dataclass(frozen=True)
class LoadOptions:
    """The options of all commands that open a model file and predict; see `guarded`."""

    jobs: Jobs = -1
    trusted: AllowedType = None
    isolate: Isolate = False

    def load(self, path: str) -> StoredModel:
        """Return the model of a file."""
        return load(path, jobs=self.jobs, trusted=self.trusted, isolate=self.isolate)


def numbers(given: list[str], option: str) -> list[float]:
    """Return numbers that were given one by one or with commas, each once."""
    found = []
    for part in divided(given):
        try:
            found.append(float(part))
        except ValueError:
            raise typer.BadParameter(f"a number is expected, not {part!r}.", param_hint=option) from None
    return found


def probabilities(given: list[str] | None, option: str) -> list[float]:
    """Return numbers between 0 and 1, both excluded."""
    found = numbers(given or [], option)
    for value in found:
        if not 0 < value < 1:
            raise typer.BadParameter(f"a number between 0 and 1 is expected, not {value:g}.", param_hint=option)
    return found


def coverage(given: str) -> float:
    """Return the coverage, which must be one number."""
    found = probabilities([given], "--interval")
    if len(found) != 1:
        raise typer.BadParameter(f"one number is expected, not {given!r}.", param_hint="--interval")
    return found[0]


def support(given: str) -> tuple[float, float] | str | None:
    """Return the bounds of the target, ``0,inf`` say, where an empty side is unbounded; "auto", or None for "none"."""
    if given in ("auto", "none"):
        return None if given == "none" else given
    sides = [side.strip() for side in given.split(",")]
    if len(sides) != 2:
        raise typer.BadParameter(
            f"two bounds are expected, 0,inf say, or 'auto' or 'none'; not {given!r}.", param_hint="--support"
        )
    lower = numbers(sides[:1], "--support") or [-math.inf]
    upper = numbers(sides[1:], "--support") or [math.inf]
    if not lower[0] < upper[0]:
        raise typer.BadParameter(f"the lower bound must be below the upper one: {given!r}.", param_hint="--support")
    return lower[0], upper[0]
