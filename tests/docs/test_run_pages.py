"""The command that runs the pages finds their code, and sees when they say something else than it prints."""

import importlib.util
import json
import runpy
import sys
from pathlib import Path

import pytest

from tests.benchmarks.started import close_figures

pytestmark = pytest.mark.once

DOCS = Path(__file__).parents[2] / "docs"

PAGE = """# Title

<!-- given:
x = 3
-->

```python
print("a share of", x / 4)
```

```text
a share of 0.75
```

- In a list:

  ```python
  y = x + 1
  ```

<!-- not run: it would fail -->

```python
1 / 0
```
"""


@pytest.fixture(scope="module")
def run_pages():
    spec = importlib.util.spec_from_file_location("run_pages", DOCS / "run_pages.py")
    module = sys.modules["run_pages"] = importlib.util.module_from_spec(spec)  # where its dataclass looks for it
    spec.loader.exec_module(module)
    return module


def test_pieces(run_pages):
    given, first, second, last = run_pages.pieces(PAGE)
    assert (given.code, given.line, given.is_run) == ("x = 3\n", 4, True)
    assert first.output == "a share of 0.75\n"
    assert PAGE[slice(*first.where)] == first.output
    assert (second.code, second.output) == ("y = x + 1\n", None)
    assert not last.is_run


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("90% of 12 rows, CRPS 1.50\n", True),
        ("87%  of 12 rows, CRPS 1.4\n", True),  # a measured number may move, a little
        ("50% of 12 rows, CRPS 1.50\n", False),
        ("90% of 13 rows, CRPS 1.50\n", False),  # a count may not
        ("90% of 12 rows, NLL 1.50\n", False),
        ("90% of 12 rows, CRPS nan\n", False),
        ("90% of 12 rows, CRPS 1.50\nmore\n", False),
    ],
)
def test_what_is_the_same(run_pages, printed, same):
    assert run_pages.same("90% of 12 rows, CRPS 1.50\n", printed) is same


def test_dots_stand_for_anything(run_pages):
    assert run_pages.same("a ... z", "a b c z")
    assert not run_pages.same("a ... z", "a b c")


def test_a_page_is_run_and_written(run_pages, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    run_pages.run(page, write=False)
    page.write_text(PAGE.replace("x = 3", "x = 40"), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"line 8, prints\na share of 10\.0"):
        run_pages.run(page, write=False)
    run_pages.run(page, write=True)
    assert page.read_text(encoding="utf-8") == PAGE.replace("x = 3", "x = 40").replace("0.75", "10.0")


def test_what_a_cell_shows(run_pages):
    picture = {"output_type": "display_data", "data": {"image/png": "…", "text/plain": "<Figure size 800x400>"}}
    table = {"output_type": "execute_result", "data": {"text/html": "<table>", "text/plain": "  lower\n0   1.0"}}
    printed = {"output_type": "stream", "name": "stdout", "text": "yes\n"}
    assert run_pages.shown([printed, picture, table, picture]) == ("yes\n  lower\n0   1.0\n", 2)
    assert run_pages.shown([]) == ("", 0)


def test_a_notebook_is_run_and_written(run_pages, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    page = tmp_path / "page.ipynb"
    cells = [nbformat.v4.new_code_cell("x = 3"), nbformat.v4.new_code_cell("print(x / 4)\nx")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), page)
    assert run_pages.count(page) == (2, 0)
    with pytest.raises(AssertionError, match=r"page\.ipynb\nprint\(x / 4\)\nx\nshows 0 pictures and\n0\.75\n3\nnot 0"):
        run_pages.run_notebook(page, write=False)
    run_pages.run_notebook(page, write=True)
    run_pages.run_notebook(page, write=False)


@pytest.mark.parametrize("page", DOCS.glob("*.ipynb"), ids=lambda page: page.stem)
def test_a_notebook_was_stored_after_a_run_from_top_to_bottom(run_pages, page):
    cells = [cell for cell in json.loads(page.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output.get("name", output["output_type"]) for cell in cells for output in cell["outputs"]}
    assert kinds <= {"stdout", "display_data", "execute_result"}  # neither errors nor warnings
    assert page.stat().st_size < 300_000


@pytest.mark.parametrize("script", ["draw_architecture.py", "draw_how_it_works.py"])
def test_the_picture_is_drawn(script, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [script, "--out", str(path)])
    runpy.run_path(str(DOCS / script), run_name="__main__")
    close_figures()
    assert 50_000 < path.stat().st_size < 300_000
