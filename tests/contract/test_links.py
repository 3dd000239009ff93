"""Every link and picture of the README and the documentation leads to a file, and to a heading where it names one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]
LINK = re.compile(r"\]\(\s*(?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]*))?\)")


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as MyST makes them."""
    found = set()
    for line in page.read_text().splitlines():
        if line.startswith("#"):
            text = re.sub(r"[`*_]", "", line.lstrip("#").strip().lower())
            found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found


def wrong_links(page: Path, text: str) -> list[str]:
    wrong = []
    for target, anchor in LINK.findall(re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)):
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in headings(there)):
            wrong.append(f"{target}#{anchor}" if anchor else target)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert wrong_links(page, page.read_text()) == []


def test_a_wrong_link_is_found():
    text = "[a](docs/start.md) [b](docs/nowhere.md) [c](docs/start.md#no-such-heading) ![d](docs/images/none.png)"
    assert wrong_links(ROOT / "README.md", text) == [
        "docs/nowhere.md",
        "docs/start.md#no-such-heading",
        "docs/images/none.png",
    ]
