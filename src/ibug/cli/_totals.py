"""``ibug predict --total-by``: the distribution of the sum of the rows of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import typer

from ibug.cli._columns import divided, match, require_columns
from ibug.cli._model_file import StoredModel
from ibug.cli._reading import InputTable
from ibug.cli._rows import label_frame, read_table, rows_of
from ibug.cli._terminal import Session

#: The word for rows that are taken as independent of each other.
NONE = "none"


@dataclass(frozen=True)
class TotalOptions:
    """Which rows are added up, and which belong together."""

    by: tuple[str, ...]  # columns, as they were given
    blocks: tuple[str, ...]

    def check(self, others: dict[str, Any]) -> None:
        """Refuse options that have no meaning for totals, or that have none without them."""
        if not self.by:
            if self.blocks:
                raise typer.BadParameter("blocks are for totals: --total-by COLUMN.", param_hint="--blocks")
            return
        given = [option for option, value in others.items() if value]
        if given:
            raise typer.BadParameter(
                f"totals have intervals alone (--interval): leave {', '.join(given)} out.", param_hint="--total-by"
            )


def predicted_totals(
    stored: StoredModel,
    table: InputTable,
    options: TotalOptions,
    coverages: Sequence[float],
    strict: bool,
    session: Any,
) -> tuple[Any, dict[str, Any]]:
    """Return the table of totals, one line for each group, and facts to report. All rows are read at once."""
    u = stored.estimator
    by = divided(options.by, table.columns)
    require_columns(table, "group", *by)
    blocks = _blocks(options.blocks, u.dependence_, table, session)
    others = list(dict.fromkeys([*by, *blocks]))
    schema = match(table, stored.schema, [*others, stored.id], session, strict=strict)
    types = {**dict.fromkeys(others), **schema.types}
    data = read_table(table, [*types], types, (), session)
    rows = rows_of(data, schema, table.name)
    coverage: Any = coverages[0] if len(coverages) == 1 else list(coverages)
    with session.stages():
        found = u.predict_total(
            rows.X,
            label_frame(data, by),
            blocks=label_frame(data, blocks) if blocks else False,
            coverage=coverage,
            output="pandas",
        )
    facts = {"rows": data.num_rows, "groups": len(found), "total_by": list(by), "blocks": list(blocks)}
    return _as_table(found, by), facts


def _blocks(given: Sequence[str], dependence: Any, table: InputTable, session: Session) -> tuple[str, ...]:
    """Return the columns that say which rows belong together; none where rows are taken as independent."""
    if given == (NONE,) and NONE not in table.columns:
        return ()
    if dependence is None:
        if given:
            raise typer.BadParameter(
                "this model has not learned what rows of a block have in common: ibug fit … --valid FILE --blocks "
                "COLUMN does.",
                param_hint="--blocks",
            )
        session.note(
            "Rows are taken as independent of each other, since this model does not know which belong together: totals "
            "are too narrow if rows share what the model does not know, the weather of a day say. ibug fit … --valid "
            "FILE --blocks COLUMN learns it; --blocks none says that nothing is shared."
        )
        return ()
    names = divided(given, table.columns)
    if names:
        if len(names) != len(dependence.names):
            raise typer.BadParameter(
                f"the model knows blocks of {len(dependence.names)} kinds, {', '.join(dependence.names)}: name a "
                f"column for each, not {len(names)}.",
                param_hint="--blocks",
            )
        require_columns(table, "block", *names)
        return names
    missing = [name for name in dependence.names if name not in table.columns]
    if missing:
        raise typer.BadParameter(
            f"the model has learned what rows of {', '.join(map(repr, dependence.names))} have in common, and "
            f"{table.name} has no column {', '.join(map(repr, missing))}: name the columns, or --blocks none.",
            param_hint="--blocks",
        )
    return tuple(dependence.names)


def _as_table(found: Any, by: Sequence[str]) -> Any:
    """Return a frame of totals as a table of Arrow; groups by several columns have a column for each."""
    labels = {"group": found["group"]}
    if len(by) > 1:
        labels = {name: np.array([one[i] for one in found["group"]]) for i, name in enumerate(by)}
    arrays = {name: pa.array(values) for name, values in labels.items()}
    return pa.table(arrays | {name: pa.array(found[name]) for name in found.columns if name != "group"})
