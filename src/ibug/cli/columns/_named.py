"""Names of columns as options give them: one by one, or with commas."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def divided(given: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns, given one by one or with commas, each once; what is a column's name is not divided."""
    return tuple(dict.fromkeys(_parts(given, columns)))


def targets_named(given: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the targets that --target names, like `divided`; none, or one that is named twice, is wrong usage."""
    names = _parts(given, columns)
    if not names:
        raise typer.BadParameter("name a column.", param_hint="--target")
    for name in names:
        if names.count(name) > 1:
            raise typer.BadParameter(f"{name!r} is named twice; name each target once.", param_hint="--target")
    return tuple(names)


def _parts(given: Sequence[str], columns: Sequence[str]) -> list[str]:
    names = [name for text in given for name in ([text] if text in columns else text.split(","))]
    stripped = [name if name in columns else name.strip() for name in names]
    return [name for name in stripped if name]
