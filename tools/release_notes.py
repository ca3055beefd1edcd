"""Print what a release has changed: ``python tools/release_notes.py v0.2.0``. The release workflow runs it.

It fails unless the tag, ``pyproject.toml``, ``CITATION.cff`` and the changelog tell the same version, and the
changelog its day.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(tag: str, root: Path = ROOT) -> str:
    """Return the part of the changelog that tells of a tag, if everything is ready for it."""
    version = tag.removeprefix("v")
    for file, pattern in {"pyproject.toml": r'^version = "(.+)"$', "CITATION.cff": r"^version: (.+)$"}.items():
        told = re.findall(pattern, (root / file).read_text("utf-8"), re.MULTILINE)
        if told != [version]:
            raise SystemExit(f"The tag is {tag}, and {file} tells version {', '.join(told)}: change one of them.")
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    part = re.search(rf"^## {re.escape(version)} \(([^)\n]*)\)\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if part is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", part[1]):
        raise SystemExit(f"CHANGELOG.md must have the heading '## {version} (YYYY-MM-DD)': the day of the release.")
    return part[2].strip()


if __name__ == "__main__":
    print(notes(*sys.argv[1:]))
