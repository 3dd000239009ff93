"""The code of the README and of the documentation's pages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]


def blocks(page: str) -> list[tuple[str, str]]:
    """Every fenced block of a page as (language, code), and indented blocks with the language ''."""
    text = (ROOT / page).read_text()
    fenced = re.findall(r"^```([^\n`]*)\n(.*?)^```\s*$", text, flags=re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```.*?^```\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r"(?:^    [^\n]*\n)+", rest, flags=re.MULTILINE)
    return [(language.strip(), code) for language, code in fenced] + [("", code) for code in indented]


def python(page: str) -> list[str]:
    """The blocks that a reader runs as one session, in order."""
    return [code for language, code in blocks(page) if language == "python"]


def cells(page: str) -> list[str]:
    """The cells that the build of the documentation runs, without their options."""
    found = [code for language, code in blocks(page) if language.startswith("{code-cell}")]
    return [re.sub(r"\A(:[^\n]*\n)+", "", code) for code in found if "remove-cell" not in code]


def commands(page: str) -> list[str]:
    """The lines that call this package's command line, without their comments."""
    lines = [
        line.strip() for language, code in blocks(page) if language in ("", "console") for line in code.split("\n")
    ]
    return [line.partition("  #")[0].strip() for line in lines if line.startswith("dfdbayes ")]
