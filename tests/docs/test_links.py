"""Links between the documents lead somewhere, as GitHub resolves them."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
DOCS = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*.ipynb"))]
DEVELOPMENT = sorted((ROOT / "docs" / "development").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS, *DEVELOPMENT]


def anchors(text):
    """Return the names that GitHub gives to the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page):
    """Return the places inside this project that a document links to."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in found if not re.match(r"https?:", link)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def test_there_are_links():
    assert sum(len(links(page)) for page in PAGES) > 50
    assert anchors("# What it costs\n\n```\n# no heading\n```\n## *Is* it `right`?") == {"what-it-costs", "is-it-right"}


def test_every_page_is_in_the_navigation():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"<([\w-]+)>", index))
    assert listed == {page.stem for page in DOCS} - {"index"}
    development = (ROOT / "docs" / "development" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^([\w-]+)$", development, re.MULTILINE)) == {page.stem for page in DEVELOPMENT} - {"index"}
