"""Progress bars on a terminal or in a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from html import escape
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class AbstractBars(ABC):
    """One bar per stage; a stage that takes under half a second shows none."""

    def begin(self, stage: str, total: int) -> Callable[[int], None]:
        began, draw, done = time.perf_counter(), None, 0

        def advance(steps: int) -> None:
            nonlocal draw, done
            done += steps
            if draw is None and done < total and time.perf_counter() - began > 0.5:
                draw = self.bar(stage, total)
            if draw is not None:
                draw(min(done, total))

        return advance

    @abstractmethod
    def bar(self, stage: str, total: int) -> Callable[[int], None]:
        """A bar that is drawn, and what moves it; it goes, or stands still, when it is full."""

    @abstractmethod
    def tell(self, text: str) -> None:
        """Show a line."""


class TerminalBars(AbstractBars):
    """Drawn on standard error, if that is a terminal."""

    def __init__(self) -> None:
        sys.stderr.flush()
        self._console = Console(stderr=True)

    def bar(self, stage: str, total: int) -> Callable[[int], None]:
        if not self._console.is_terminal:
            return lambda done: None
        columns = (TextColumn(f"{stage:>10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        shown = Progress(*columns, console=self._console)
        shown.add_task(stage, total=total)
        shown.start()

        def move(done: int) -> None:
            shown.update(shown.task_ids[0], completed=done)
            if done >= total:
                shown.stop()

        return move

    def tell(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)


class NotebookBars(AbstractBars):
    """Drawn in the output of a notebook's cell, by HTML's own progress bar; a full one disappears."""

    def __init__(self, display: Any) -> None:
        self._display = display

    def bar(self, stage: str, total: int) -> Callable[[int], None]:
        from IPython.display import HTML

        began, last = time.perf_counter(), 0.0
        handle = self._display(HTML(_bar(stage, 0, total, 0.0)), display_id=True)

        def move(done: int) -> None:
            nonlocal last
            now = time.perf_counter()
            if done >= total:
                handle.update(HTML(""))
            elif now - last > 0.1:  # each drawing is a message to the browser
                handle.update(HTML(_bar(stage, done, total, now - began)))
                last = now

        return move

    def tell(self, text: str) -> None:
        from IPython.display import HTML

        self._display(HTML(f"<p>{escape(text)}</p>"))


def _bar(stage: str, done: int, total: int, seconds: float) -> str:
    label = f"{escape(stage)} {done} of {total}, {seconds:.0f} s"
    return f'<label>{label} <progress value="{done}" max="{total}"></progress></label>'


def on_screen() -> AbstractBars:
    """Bars of the notebook that this runs in, or of the terminal."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and hasattr(shell, "kernel"):
        from IPython.display import display

        return NotebookBars(display)
    return TerminalBars()
