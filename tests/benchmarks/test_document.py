"""Tables are written between the marks of a document, and nowhere else."""

import pytest

from benchmarks.common import document


@pytest.mark.parametrize("spoil", [lambda text: "nothing", lambda text: text + text, lambda text: text[:-5]])
def test_a_document_without_a_place_for_tables_is_refused(spoil, tmp_path):
    page = tmp_path / "page.md"
    before = spoil(f"{document.begin('posterior.py')}\nstale\n{document.END}")
    page.write_text(before)
    with pytest.raises(SystemExit, match=r"must have the line .*posterior\.py.* once"):
        document.write(page, "posterior.py", "table")
    assert page.read_text() == before


def test_every_script_has_its_place_in_the_documents():
    pages = "".join(path.read_text(encoding="utf-8") for path in (document_folder()).glob("*.md"))
    for script in ("speed.py", "search.py", "search.py --growth", "sharing.py", "tree_fraction.py"):
        assert pages.count(document.begin(script)) == 1, script
    assert pages.count(document.begin("accuracy.py")) == 4  # the stack, peers, the spread, residuals
    assert pages.count(document.begin("accuracy.py --comparisons")) == 1  # shares of the trees
    for script in (
        "posterior.py",
        "posterior_choice.py",
        "posterior_spike.py",
        "drift.py",
        "treeffuser.py",
        "compare",
        "posterior_meps.py",
        "scale_out.py",
        "serving.py",
    ):
        assert pages.count(document.begin(script)) == 1, script
    assert pages.count(document.begin("report_browser.py")) == 1


def document_folder():
    from benchmarks.common.paths import ROOT

    return ROOT / "docs"
