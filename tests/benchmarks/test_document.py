"""Tables are written between the marks of a document, and nowhere else."""

import re

import pytest

from benchmarks.common import document

pytestmark = pytest.mark.newest


@pytest.mark.parametrize("spoil", [lambda text: "nothing", lambda text: text + text, lambda text: text[:-5]])
def test_a_document_without_a_place_for_tables_is_refused(spoil, tmp_path):
    page = tmp_path / "page.md"
    before = spoil(f"{document.begin('posterior.py')}\nstale\n{document.END}")
    page.write_text(before)
    with pytest.raises(SystemExit, match=r"must have the line .*posterior\.py.* once"):
        document.write(page, "posterior.py", "table")
    assert page.read_text() == before


def test_the_marks_of_documents_name_scripts():
    pages = [*document.LOGS.glob("*.md"), *(document.ROOT / "docs").glob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    scripts = [
        name for text in texts for name in re.findall(r"^<!-- benchmarks/(\S+).* writes from here -->", text, re.M)
    ]
    assert len(scripts) > 15
    assert [name for name in scripts if not (document.ROOT / "benchmarks" / name).exists()] in ([], ["compare"])


def test_excerpts_are_those_of_the_logs():
    pages = list((document.ROOT / "docs").glob("*.md"))
    texts = [page.read_text(encoding="utf-8") for page in pages]
    assert sum("<!-- from benchmarks/results" in text for text in texts) > 3
    assert [page.name for page, text in zip(pages, texts, strict=True) if document.with_excerpts(text) != text] == []


def test_excerpts_are_blocks_or_lines(tmp_path):
    log = tmp_path / "log.md"
    log.write_text("# A log\n\n```\nCRPS: ours\na  1\nb  2\n```\n\n| table |\n| a 3 |\n")

    def page(kind, pattern, inside="stale"):
        return f'before\n<!-- from {log}: {kind} "{pattern}" -->\n{inside}{document.END}\nafter'

    assert document.with_excerpts(page("block", "CRPS")) == page(
        "block", "CRPS", "\n```\nCRPS: ours\na  1\nb  2\n```\n\n"
    )
    assert document.with_excerpts(page("block", "| table")) == page("block", "| table", "\n| table |\n| a 3 |\n\n")
    assert document.with_excerpts(page("lines", "^[ab] ")) == page("lines", "^[ab] ", "\n```\na  1\nb  2\n```\n\n")
    with pytest.raises(SystemExit, match="has no block 'NLL' any more"):
        document.with_excerpts(page("block", "NLL"))
