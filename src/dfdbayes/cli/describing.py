"""A description on the terminal."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

from .running import printable, say

if TYPE_CHECKING:
    from ..fitting.describe import Description

WIDTH = 140  # of what is not a terminal


def show_description(found: Description, as_json: bool) -> None:
    """Print the columns, what is wrong, and the calls to make."""
    if as_json:
        print(json.dumps(found.plain(), allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    say(found.title)
    say()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    shown = found.shown
    for name in shown.columns:
        table.add_column(name, overflow="fold")
    for row in shown.to_numpy():
        table.add_row(*(Text(printable(cell)) for cell in row))
    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    Console(file=sys.stdout, width=width, highlight=False).print(table)
    if found.problems or found.notes:
        say("\nWhat to look at:")
        for text in (*found.problems, *found.notes):
            say(f"- {text}")
    if found.suggestions:
        say("\nWhat to call:")
    for one in found.suggestions:
        say(f"- {one.why}")
        for line in (*([one.command] if one.command else []), *one.python.splitlines()):
            say(f"    {line}")
