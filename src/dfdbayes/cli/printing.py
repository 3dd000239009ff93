"""What commands print and write. Output cannot end a command: what was computed is worth more than what is shown."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._util.files import write_atomically

if TYPE_CHECKING:
    from ..fitting.describe import Description

BEGAN = time.perf_counter() - time.process_time()  # about when the process began: importing is all it did


class Lasting:
    """A stream of text that goes on without its reader, terminal or disk; otherwise like the one behind it.

    Attributes
    ----------
    problem : OSError, ValueError or None
        Why nothing is shown any more; the latter of a stream that is closed.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.problem: OSError | ValueError | None = None
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # characters that the terminal's encoding does not have

    def write(self, text: str) -> int:
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, act: Callable[[], object]) -> None:
        if self.problem is not None:
            return
        try:
            act()
        except (OSError, ValueError) as problem:
            self.problem = problem
            with suppress(OSError, ValueError, AttributeError):  # what is left in its buffer goes nowhere, quietly
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lasting() -> Iterator[tuple[Lasting, Lasting]]:
    """Let standard output and error outlast whoever reads them; they are put back at the end."""
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w") as nowhere:
        ours = Lasting(before[0] or nowhere), Lasting(before[1] or nowhere)
        sys.stdout, sys.stderr = ours
        try:
            yield ours
        finally:
            for stream in ours:
                stream.flush()
            sys.stdout, sys.stderr = before


def printable(text: object) -> str:
    """A text that a terminal shows and does not obey: control characters are written out."""
    plain = str(text).encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in plain)


def say(text: object = "", error: bool = False) -> None:
    """Print a line; names from data may hold anything."""
    print(printable(text), file=sys.stderr if error else sys.stdout)


def tell(text: str, as_json: bool) -> None:
    """A line for people; beside JSON it goes to standard error."""
    say(text, error=as_json)


def tell_written(folder: Path | None, names: Sequence[str], as_json: bool) -> None:
    """Say which files are in a folder now, if one was asked for."""
    if folder is not None:
        tell(f"written to {folder}{os.sep}: {', '.join(names)}", as_json)


def plain_table(table: Any) -> list[dict[str, Any]]:
    """A table as JSON can hold it."""
    return json.loads(table.to_json(orient="records"))


def draw(path: Path, figure: Any) -> None:
    """Write a figure, completely or not at all."""
    write_atomically(path, lambda scratch: figure.savefig(scratch, format="png", dpi=130))


def write_text(path: Path, text: str) -> None:
    """Write a text, completely or not at all."""
    write_atomically(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


def show(result: Any, interval: float, as_json: bool = False) -> None:
    """Print a fit: the answer, the table, how sure and why, how it was found."""
    from ..present.renderers import console

    if as_json:
        print(json.dumps(result.describe(interval), allow_nan=False))
        return
    say(console(result, interval))


def show_timings(result: Any, imported: float, written: float) -> None:
    """Print where the time went."""
    print(f"{'stage':<12}{'seconds':>9}{'of these compiling':>21}")
    print(f"{'import':<12}{imported:>9.2f}{0:>21.2f}")
    for stage, seconds in result.timings["seconds"].items():
        print(f"{stage:<12}{seconds:>9.2f}{result.timings['compiling'][stage]:>21.2f}")
    print(f"{'write':<12}{written:>9.2f}{0:>21.2f}")
    print(f"{'total':<12}{time.perf_counter() - BEGAN:>9.2f}")


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
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 140  # a pipe or a file has no width
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
