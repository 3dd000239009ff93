"""Standard output and error that cannot end a command: what was computed is worth more than what is shown of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


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
