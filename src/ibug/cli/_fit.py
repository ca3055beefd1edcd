"""``ibug fit``: wrap a trained model, or train one, and save it with everything that predictions need."""

from __future__ import annotations

import os
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from ibug.cli import _options as o
from ibug.cli._errors import guarded
from ibug.cli._reading import STANDARD_STREAM, ReadOptions
from ibug.cli._terminal import Session, done, facts_table
from ibug.cli._writing import check_output
from ibug.describe import model_lines, number

if TYPE_CHECKING:
    from ibug.cli._fitting import Request


Scoring = StrEnum("Scoring", ["crps", "nll"])
SpreadName = StrEnum("SpreadName", ["auto", "targets", "residuals"])
ResidualsName = StrEnum("ResidualsName", ["auto", "model", "none"])
ConformalName = StrEnum("ConformalName", ["none", "scale", "distribution"])
Family = StrEnum("Family", ["auto", *o.FAMILIES, "tune"])  # type: ignore[misc]  # mypy wants the names written out
_STACK = Family("auto")
BoosterName = StrEnum("BoosterName", list(o.BOOSTER_NAMES))  # type: ignore[misc]  # as above


_columns = partial(typer.Option, rich_help_panel="Columns")
_training = partial(typer.Option, rich_help_panel="Training, without --model")
_uncertainty = partial(typer.Option, rich_help_panel="Uncertainty")

HELP = """
Wrap a trained model, or train one, and save it as one file.

With --model the model is used as it is; TRAIN are the rows that it was trained on, --valid rows that it has not seen.
Without, one is trained: early stopping finds the number of trees, and five clones give out-of-sample residuals.

[dim]Examples:[/]

  ibug fit train.csv --target price --model model.txt --valid valid.csv -o model.ibug

  ibug fit train.parquet --target price --booster catboost --support 0,inf -o model.ibug

  ibug fit train.csv --target price,days --booster lightgbm -o model.ibug

  ibug fit train.csv --target demand --valid valid.csv --blocks day -o model.ibug

  zcat big.csv.gz | ibug fit - --target y --conformal scale -o model.ibug
"""


@guarded
def fit(
    train_file: Annotated[
        str, typer.Argument(metavar="TRAIN", help="Training rows: .csv .csv.gz .tsv .parquet .feather or -")
    ],
    target: Annotated[
        list[str], typer.Option("--target", "-t", help="The column to predict; several: a,b or one by one.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write, model.ibug say.")],
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="A trained model: LightGBM .txt, XGBoost .ubj or .json, CatBoost .cbm."),
    ] = None,
    valid: Annotated[
        str | None, typer.Option("--valid", help="Rows that the model is not trained on, to tune and calibrate.")
    ] = None,
    id: Annotated[
        list[str] | None, _columns("--id", help="Columns that name rows and are not features: a,b or one by one.")
    ] = None,
    drop: Annotated[list[str] | None, _columns("--drop", help="Columns to leave out: a,b or one by one.")] = None,
    categorical: Annotated[
        list[str] | None, _columns("--categorical", help="Numbers that are categories; texts always are.")
    ] = None,
    weight: Annotated[str | None, _columns("--weight", help="The column of weights.")] = None,
    blocks: Annotated[
        list[str] | None,
        _columns(
            "--blocks",
            help="Columns of --valid, no features, that name rows which belong together (day): for totals.",
        ),
    ] = None,
    booster: Annotated[
        BoosterName | None, _training("--booster", "-b", help="The library; by default the first installed.")
    ] = None,
    trees: Annotated[
        int | None, _training("--trees", min=1, help="The number of trees, instead of early stopping.")
    ] = None,
    param: Annotated[
        list[str] | None, _training("--param", "-p", help="A parameter of the library: num_leaves=63.")
    ] = None,
    k: Annotated[str, _uncertainty("--k", help="The number of neighbours, or 'tune'.")] = "tune",
    scoring: Annotated[Scoring, _uncertainty("--scoring", help="The score that tunes and calibrates.")] = Scoring.crps,
    distribution: Annotated[
        Family, _uncertainty("--distribution", "-d", help="A family of distributions, or 'auto': a stack.")
    ] = _STACK,
    spread: Annotated[SpreadName, _uncertainty("--spread", help="The source of the variance.")] = SpreadName.auto,
    residuals: Annotated[
        ResidualsName,
        _uncertainty(
            "--residuals", help="The source of out-of-sample residuals: clones or the model, the model alone, none."
        ),
    ] = ResidualsName.auto,
    weight_neighbors: Annotated[
        bool, _uncertainty("--weight-neighbors", help="Let --weight count among the neighbours as well.")
    ] = False,
    conformal: Annotated[
        ConformalName, _uncertainty("--conformal", help="Guarantee the coverage.")
    ] = ConformalName.none,
    support: Annotated[
        str,
        _uncertainty(
            "--support", help="Bounds of the target: 0,inf; 'none'; or 'auto', by its values and the model's loss."
        ),
    ] = "auto",
    calibrate: Annotated[bool, _uncertainty("--calibrate/--no-calibrate", help="Calibrate the variance.")] = True,
    tree_fraction: Annotated[
        float, _uncertainty("--tree-fraction", help="The share of the trees that neighbours are found by.")
    ] = 1.0,
    search: Annotated[
        str, _uncertainty("--search", help="'auto'; 'exact': compare with all training rows; or a number of cells.")
    ] = "auto",
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of everything random.")] = 0,
    jobs: o.Jobs = -1,
    *,
    reading: ReadOptions,
    strict: o.Strict = False,
    session: Session,
) -> None:
    """Wrap a trained model, or train one; see HELP."""
    from ibug.cli._boosters import BOOSTERS_BY_NAME, Training, default_booster, load_model, parse_parameters
    from ibug.cli._fitting import Request, train, wrap
    from ibug.cli._model_file import Origin, save
    from ibug.neighbors import Sampling

    options = {
        "k": _number_or(("tune",), k, "--k"),
        "search": _number_or(("auto", "exact"), search, "--search"),
        "scoring": scoring.value,
        "distribution": distribution.value,
        "spread": spread.value,
        "residuals": residuals.value,
        "conformal": None if conformal.value == "none" else conformal.value,
        "support": o.support(support),
        "calibrate": calibrate,
        "sampling": Sampling(tree_fraction=tree_fraction, weight_neighbors=weight_neighbors),
        "random_state": seed,
    }
    ids, dropped, categories, kinds = (tuple(names or ()) for names in (id, drop, categorical, blocks))
    request = Request(
        train_file, tuple(target), valid, ids, dropped, categories, weight, reading, options, jobs, blocks=kinds
    )
    _check_usage(request, model, {"--booster": booster, "--trees": trees, "--param": param, "--weight": weight})
    if output == STANDARD_STREAM:
        raise typer.BadParameter("a model is a file of its own: name it.", param_hint="--output")
    check_output(output, train_file, valid, model)
    if model is not None:
        fitted = wrap(load_model(model), request, session)
    else:
        name = default_booster() if booster is None else booster.value
        training = Training(trees, parse_parameters(param or []), seed, jobs)
        fitted = train(BOOSTERS_BY_NAME[name], training, request, session)
    origin = Origin(_seen_from(output, train_file), fitted.n_rows, fitted.id)
    save(output, fitted.estimator, fitted.schema, origin)
    facts = {"output": output, "bytes": os.path.getsize(output), **fitted.facts()}
    if session.json:
        session.report(facts)
    else:
        session.say(_summary(facts))


def _seen_from(output: str, train_file: str) -> str | None:
    """Return the training file's path relative to the model file, so that both can move together."""
    if train_file == STANDARD_STREAM:
        return None
    try:
        return os.path.relpath(train_file, os.path.dirname(output) or ".")
    except ValueError:  # on another drive
        return os.path.abspath(train_file)


def _number_or(words: tuple[str, ...], text: str, option: str) -> int | str:
    if text in words:
        return text
    try:
        return int(text)
    except ValueError:
        expected = " or ".join(repr(word) for word in words)
        raise typer.BadParameter(f"a number or {expected} is expected, not {text!r}.", param_hint=option) from None


def _check_usage(request: Request, model: str | None, training: dict[str, Any]) -> None:
    """Refuse options that would have no effect, or that cannot work together."""
    if request.train == STANDARD_STREAM and request.valid == STANDARD_STREAM:
        raise typer.BadParameter("standard input can be read only once.", param_hint="--valid")
    if request.options["sampling"].weight_neighbors and request.weight is None:
        raise typer.BadParameter("name the column of weights: --weight COLUMN.", param_hint="--weight-neighbors")
    if request.blocks and request.valid is None:
        raise typer.BadParameter(
            "what rows of a block have in common is learned from rows that the model was not trained on: --valid FILE.",
            param_hint="--blocks",
        )
    if model is None:
        return
    given = [option for option, value in training.items() if value]
    if given:
        raise typer.BadParameter("a trained model (--model) is not trained again.", param_hint=", ".join(given))
    if request.valid is None and (request.options["k"] == "tune" or request.options["conformal"]):
        raise typer.BadParameter(
            "--model needs --valid FILE: rows that the model was not trained on, to choose the number of neighbours "
            "and to calibrate. Without such rows, --k 100 makes intervals that are not calibrated.",
            param_hint="--valid",
        )


def _summary(facts: dict[str, Any]) -> Any:
    """Return the facts that are reported in JSON, for people."""
    lines = model_lines(facts)
    scores = facts["validation_score"]
    if scores["calibrated"] is not None:
        name = {"crps": "CRPS", "nll": "NLL", "energy": "energy score"}.get(facts["scoring"], "score")
        where = "validation rows" if facts["validation_rows"] else "out-of-fold predictions"
        before = "" if scores["uncalibrated"] is None else f" (plain neighbours {number(scores['uncalibrated'])})"
        lines["score"] = f"{name} {number(scores['calibrated'])}{before} on {where}"
    return Group(done(facts["output"], facts["bytes"]), facts_table(lines))
