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


def toctree_entries(page):
    """Return the pages that the toctrees of a page list, without their folder."""
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    entries = [line for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
    return [re.sub(r".*<(.+)>", r"\1", entry) for entry in entries]


def test_every_page_is_in_the_navigation_once():
    docs = ROOT / "docs"
    reference = docs / "api" / "index.md"
    listed = [entry for page in DOCS if page.suffix == ".md" for entry in toctree_entries(page)]
    listed += [entry.removeprefix("../") for entry in toctree_entries(reference) if entry.startswith("../")]
    own = [entry for entry in listed if "/" not in entry]
    assert sorted(own) == sorted({page.stem for page in DOCS} - {"index"})
    assert {"gallery/index", "api/index", "development/index"} == set(listed) - set(own)
    development = toctree_entries(docs / "development" / "index.md")
    assert sorted(development) == sorted({page.stem for page in DEVELOPMENT} - {"index"})
    api = [entry for entry in toctree_entries(reference) if not entry.startswith("../")]
    assert sorted(api) == sorted({page.stem for page in (docs / "api").glob("*.md")} - {"index"})


def test_the_sidebar_is_short():
    assert len(toctree_entries(ROOT / "docs" / "index.md")) <= 12
