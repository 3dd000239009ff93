"""Who is told how far a run has come: a terminal or notebook, nobody, or an object of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """What shows progress: `begin` a stage of so many steps and call what it returns with steps done; `tell` a line."""

    def begin(self, stage: str, total: int) -> Callable[[int], None]: ...

    def tell(self, text: str) -> None: ...


class Silent:
    """No progress shown."""

    def begin(self, stage: str, total: int) -> Callable[[int], None]:
        return lambda done: None

    def tell(self, text: str) -> None:
        pass


def by_percent(advance: Callable[[int], None]) -> Callable[[int, int], None]:
    """Progress in percent from how much of how much was done."""
    shown = 0

    def of(done: int, total: int) -> None:
        nonlocal shown
        percent = 100 * done // max(total, 1)
        advance(percent - shown)
        shown = percent

    return of


def shown_on(progress: bool | Progress) -> Progress:
    """Bars on a terminal, silence, or what the user gave."""
    if progress is True:
        from .._util.progress import on_screen  # only where bars are wanted

        return on_screen()
    return Silent() if progress is False else progress
