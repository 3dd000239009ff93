"""The code of the README and of the documentation's pages."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dfdbayes.core.losses import LOSSES
from dfdbayes.core.samplers import SAMPLERS
from dfdbayes.families.graph.terms import TERMS
from dfdbayes.families.named import MODELS
from dfdbayes.families.network.kinds import KINDS

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]

EXTENSIONS = ROOT / "docs" / "how-to" / "extensions"


@contextmanager
def extending() -> Iterator[pytest.MonkeyPatch]:
    """As a reader with the files of extensions beside the script; what is registered meanwhile is forgotten."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXTENSIONS))
        for registry in (MODELS, TERMS, LOSSES, SAMPLERS, KINDS):
            patch.setattr(registry, "_known", dict(registry.items()))
        try:
            yield patch
        finally:
            for path in EXTENSIONS.glob("*.py"):
                sys.modules.pop(path.stem, None)


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
