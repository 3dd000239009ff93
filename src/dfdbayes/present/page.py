"""The document of a fit as one self-contained HTML page, which also prints, with the numbers as JSON beside it."""

from __future__ import annotations

import json
from pathlib import Path

from markupsafe import Markup

from .._util.files import write_atomically
from . import html
from .blocks import Interactive
from .document import Document


def written(document: Document, path: str | Path) -> Path:
    """Write the page, completely or not at all, and beside it a JSON file of the same name (page.html, page.json)."""
    beside = Path(path).with_suffix(".json")
    page, numbers = rendered(document, beside.name), json.dumps(document.numbers, indent=2, allow_nan=False)
    write_atomically(beside, lambda scratch: scratch.write_text(numbers, encoding="utf-8"))
    return write_atomically(path, lambda scratch: scratch.write_text(page, encoding="utf-8"))


def rendered(document: Document, beside: str = "") -> str:
    """The page as text; ``beside`` names a file with the same numbers that stands beside it."""
    number = len(document.warnings)
    told = "There is 1 warning; read it" if number == 1 else f"There are {number} warnings; read them"
    live = [block for part in document.sections for block in part.blocks if isinstance(block, Interactive)]
    bodies = [(part.title, html.body(part)) for part in document.sections]
    return html.templates().get_template("page.html").render(
        title=f"{document.model}: {document.source}",
        heading=document.title,
        intro=f"{document.about[0].upper()}{document.about[1:]}, fitted to {document.size}.",
        answer=document.answer,
        warnings=f"{told} below." if number else "",
        parts=[{"anchor": _anchor(title), "title": title, "body": body} for title, body in bodies if body],
        style=html.text_of("style.css") + Markup("".join(dict.fromkeys(block.style for block in live))),
        script=Markup("".join(dict.fromkeys(block.script for block in live))),
        version=document.versions.get("dfdbayes", ""),
        beside=beside,
    )  # fmt: skip


def _anchor(title: str) -> str:
    plain = "".join(letter for letter in title.lower() if letter.isalnum() or letter == " ")
    return plain.replace(" ", "-")
