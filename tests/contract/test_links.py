"""What pages name is there: files and headings that links lead to, paths, modules, and names that scripts import."""

import ast
import importlib
import pkgutil
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


# -- paths and modules -------------------------------------------------------------------------

SOURCE = ROOT / "src" / "dfdbayes"
PATH = re.compile(r"`((?:[\w.-]+/)+(?:[\w-]+\.(?:py|md|txt|json))?)`")
DOTTED = re.compile(r"\bdfdbayes(?:\.[A-Za-z_]\w*)+")
SCRIPTS = [*sorted((ROOT / "docs").rglob("*.py")), *sorted((ROOT / "benchmarks").glob("*.py"))]
SCRIPTS = [script for script in SCRIPTS if "_build" not in script.parts]


def wrong_paths(text: str) -> list[str]:
    """Of files and folders in backticks: those that are neither in the repository nor in the package."""
    named = [path for path in PATH.findall(text) if (ROOT / path.split("/")[0]).exists() or path.endswith((".py", "/"))]
    return [
        path for path in named if not any((folder / path).exists() for folder in (ROOT, SOURCE, SOURCE / "families"))
    ]


def wrong_names(text: str) -> list[str]:
    """Dotted names of the package that lead to nothing."""
    wrong = []
    for name in {name.rstrip(".") for name in DOTTED.findall(text)}:
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_and_modules_are_there(page):
    assert (wrong_paths(page.read_text()), wrong_names(page.read_text())) == ([], [])


def test_paths_in_comments_are_there():
    own = Path(__file__)  # which has wrong ones, to be found
    files = [path for path in (*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *SCRIPTS) if path != own]
    found = {str(file.relative_to(ROOT)): wrong_paths(file.read_text()) for file in files}
    assert not {file: wrong for file, wrong in found.items() if wrong}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: str(script.relative_to(ROOT)))
def test_scripts_import_what_is_there(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dfdbayes":
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}"), (
                    alias.name
                )


def test_a_wrong_path_and_a_wrong_name_are_found():
    text = (
        "`core/terms.py` `core/nowhere.py` `counts/` `models/` `tests/none.py` dfdbayes.core.terms.View dfdbayes.none.x"
    )
    assert wrong_paths(text) == ["core/nowhere.py", "models/", "tests/none.py"]
    assert wrong_names(text) == ["dfdbayes.none.x"]
