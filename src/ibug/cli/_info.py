"""``ibug info``: the content of a model file."""

from __future__ import annotations

import math
import os
from typing import Any

from rich.console import Group

from ibug.cli import _options as o
from ibug.cli._errors import guarded
from ibug.cli._model_file import load
from ibug.cli._schema import CATEGORY, Schema
from ibug.cli._terminal import Session, bytes_text, facts_table, plain_table
from ibug.describe import model_facts, model_lines, number

_MOST_CATEGORIES = 6

HELP = """
Describe a model file: model, training rows, columns and their categories, calibration, versions.

[dim]Examples:[/]

  ibug info model.ibug

  ibug info model.ibug --json | jq '.columns[].name'
"""


@guarded
def info(model: o.ModelFile, trusted: o.AllowedType = None, isolate: o.Isolate = False, *, session: Session) -> None:
    """Describe a model file; see HELP."""
    stored = load(model, jobs=1, trusted=trusted, isolate=isolate)
    facts: dict[str, Any] = {"file": model, "bytes": os.path.getsize(model), **stored.versions}
    facts |= model_facts(stored.estimator)
    origin = stored.origin
    facts["target"] = stored.schema.target
    facts["train"] = None if origin is None else {"path": origin.path, "rows": origin.n_rows, "id": origin.id}
    facts["columns"] = _columns(stored.schema)
    if session.json:
        session.report(facts)
        return
    lines = {"file": f"{model}, {bytes_text(facts['bytes'])}", **model_lines(facts)}
    if stored.schema.target is not None:
        lines["target"] = stored.schema.target
    if origin is not None:
        lines["training file"] = origin.path or "standard input"
    if not math.isnan(facts["affinity_threshold"]):
        lines["low similarity"] = f"affinity scores below {number(facts['affinity_threshold'])}"
    lines["written by"] = ", ".join(f"{name} {version}" for name, version in facts["written_by"].items())
    session.show(Group(facts_table(lines), "", _columns_table(stored.schema)))


def _columns(schema: Schema) -> list[dict[str, Any]]:
    if schema.placed:
        return [{"name": None, "kind": column.kind} for column in schema.columns]
    return [dict(entry) for entry in schema.to_json()["columns"]]


def _columns_table(schema: Schema) -> Any:
    table = plain_table("column")
    table.add_column("kind")
    table.add_column("categories", style="label", overflow="fold")
    for column in schema.columns:
        known = column.categories or ()
        shown = ", ".join(known[:_MOST_CATEGORIES])
        if len(known) > _MOST_CATEGORIES:
            shown += f", … ({len(known)})"
        table.add_row(column.name, column.kind, shown if column.kind == CATEGORY else "")
    return table
