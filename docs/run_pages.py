"""Run the Python code of the pages, each page from top to bottom, and compare what it prints with what the page says.

``python docs/run_pages.py`` runs all pages of this folder, ``python docs/run_pages.py faq quick-start`` these;
``--write`` puts what was printed into the pages. Each runs in a process and an empty folder of its own. In a page,

- a ``python`` block is run;
- a ``text`` block right after it is what it prints. Words and whole numbers must be the same; other numbers may
  differ by a fifth, as they do between versions of a library, and ``...`` matches anything;
- ``<!-- given: ... -->`` is code that is run but not shown: the reader's own model and rows;
- ``<!-- not run: ... -->`` before a block says why that one is not run.

A notebook is run by Jupyter, and what its cells print or show is compared with what it has stored; of pictures, only
that they are there.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TOLERANCE = 0.2

_PIECE = re.compile(
    r"^<!-- given:\n(?P<given>.*?)^-->$"
    r"|^(?P<skip><!-- not run: .*? -->\n+)?(?P<pad> *)```python\n(?P<code>.*?)^(?P=pad)```$"
    r"(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_MEASURED = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?%?|\d+%")


@dataclass
class Piece:
    """One piece of code of a page."""

    code: str
    line: int
    output: str | None  # what the page says that it prints; None where it says nothing
    where: tuple[int, int]  # the place of the output in the page's text
    is_run: bool


def pieces(text: str) -> list[Piece]:
    """Return the code of a page, in its order."""
    found = []
    for match in _PIECE.finditer(text):
        group = "given" if match["given"] is not None else "code"
        line = text.count("\n", 0, match.start(group)) + 1
        code = textwrap.dedent(match[group])  # a block in a list is indented
        found.append(Piece(code, line, match["output"], match.span("output"), match["skip"] is None))
    return found


def same(said: str, printed: str) -> bool:
    """Tell whether a page says what its code prints."""
    pattern = "".join(
        r"(\S+)" if _MEASURED.fullmatch(part) else re.escape(part).replace(r"\.\.\.", ".*?")
        for part in re.split(f"({_MEASURED.pattern})", " ".join(said.split()))
    )
    match = re.fullmatch(pattern, " ".join(printed.split()))
    if match is None:
        return False
    pairs = zip(_MEASURED.findall(said), match.groups(), strict=True)
    return all(
        _MEASURED.fullmatch(b) and math.isclose(_number(a), _number(b), rel_tol=TOLERANCE, abs_tol=1e-9)
        for a, b in pairs
    )


def _number(text: str) -> float:
    return float(text.rstrip("%"))


def shown(outputs: list[Any]) -> tuple[str, int]:
    """Return the text that a notebook's cell has printed and shown, and the number of its pictures."""
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    texts = [
        output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"] + "\n"
        for output in outputs
        if output not in pictures
    ]
    return "".join(texts), len(pictures)


def run_notebook(page: Path, *, write: bool) -> None:
    """Run a notebook; raise what it raises, and AssertionError where it shows something else than it has stored."""
    import nbformat
    from nbclient import NotebookClient

    stored = nbformat.read(page, as_version=4)
    notebook = copy.deepcopy(stored)
    NotebookClient(notebook, timeout=600, record_timing=False).execute()
    if write:
        notebook.metadata.pop("language_info", None)  # the version of whoever ran it
        nbformat.write(notebook, page)
        return
    for before, after in zip(stored.cells, notebook.cells, strict=True):
        said, now = shown(before.get("outputs", [])), shown(after.get("outputs", []))
        if not same(said[0], now[0]) or said[1] != now[1]:
            here = f"{page.name}\n{after.source}\nshows {now[1]} pictures and\n{now[0]}"
            raise AssertionError(f"{here}not {said[1]} and\n{said[0]}")


def run(page: Path, *, write: bool) -> None:
    """Run a page here; raise what it raises, and AssertionError where it prints something else."""
    from ibug.exceptions import IBUGWarning

    warnings.simplefilter("error", IBUGWarning)
    names: dict[str, Any] = {"__name__": "page"}
    text = page.read_text(encoding="utf-8")
    written = [text]
    for piece in pieces(text):
        if not piece.is_run:
            continue
        printed = io.StringIO()
        # The lines before it are there, so that a traceback shows the line of the page.
        code = compile("\n" * (piece.line - 1) + piece.code, str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if piece.output is None:
            continue
        if write and "..." not in piece.output:
            begin, end = (place - len(text) for place in piece.where)  # from the end: what comes after is as it was
            written[0] = written[0][:begin] + printed.getvalue() + written[0][end:]
        elif not same(piece.output, printed.getvalue()):
            raise AssertionError(f"{page.name}, line {piece.line}, prints\n{printed.getvalue()}not\n{piece.output}")
    if written[0] != text:
        page.write_text(written[0], encoding="utf-8")


def count(page: Path) -> tuple[int, int]:
    """Return how many pieces of code of a page are run, and how many are not."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        return sum(cell["cell_type"] == "code" for cell in json.loads(text)["cells"]), 0
    code = pieces(text)
    n_run = sum(piece.is_run for piece in code)
    return n_run, len(code) - n_run


def run_alone(page: Path, *, write: bool) -> tuple[bool, str]:
    """Run a page in a process of its own; return whether that went well, and what it wrote."""
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": str(HERE), "MPLBACKEND": "Agg"}
    if page.suffix == ".ipynb":
        del environment["MPLBACKEND"]  # Jupyter's own keeps pictures
    command = [sys.executable, str(HERE / "run_pages.py"), "--here", str(page), *(["--write"] if write else [])]
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return result.returncode == 0, result.stderr


def main() -> None:
    """Run the pages that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="names without .md or .ipynb (all)")
    parser.add_argument("--write", action="store_true", help="put what was printed into the pages")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        try:
            (run_notebook if options.here.suffix == ".ipynb" else run)(options.here, write=options.write)
        except Exception:
            traceback.print_exc()
            sys.exit(1)
        return
    every = sorted((*HERE.glob("*.md"), *HERE.glob("*.ipynb"), *HERE.glob("development/*.md")))  # tests run the README
    chosen = [page for page in every if not options.pages or page.stem in options.pages]
    failed = 0
    for page in chosen:
        n_run, n_skipped = count(page)
        if not n_run:
            continue
        start = time.perf_counter()
        ok, written = run_alone(page, write=options.write)
        failed += not ok
        skipped = f", {n_skipped} not run" if n_skipped else ""
        seconds = time.perf_counter() - start
        print(f"{'ok' if ok else 'FAILED':7}{page.name}: {n_run} pieces{skipped}, {seconds:.1f} s", flush=True)
        if not ok:
            print(written, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
