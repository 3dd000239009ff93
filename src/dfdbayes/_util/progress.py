"""Progress bars on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Bars:
    """One bar a stage, drawn on standard error; a stage that takes under half a second shows none."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)

    def begin(self, stage: str, total: int) -> Callable[[int], None]:
        if not self._console.is_terminal:
            return lambda done: None
        began, bar, done = time.perf_counter(), None, 0

        def advance(steps: int) -> None:
            nonlocal bar, done
            done += steps
            if bar is None and done < total and time.perf_counter() - began > 0.5:
                columns = (TextColumn(f"{stage:>10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
                bar = Progress(*columns, console=self._console)
                bar.add_task(stage, total=total)
                bar.start()
            if bar is not None:
                bar.update(bar.task_ids[0], completed=min(done, total))
                if done >= total:
                    bar.stop()

        return advance

    def tell(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)


def on_terminal() -> Bars:
    """Bars that draw only if standard error is a terminal."""
    sys.stderr.flush()
    return Bars()
