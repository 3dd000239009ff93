"""Where the time of a run goes: seconds by stage, how much of each was compilation, and what that leaves in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import jax
import jax.monitoring

MOST_COMPILED = 400  # functions that stay in memory, which take 2 to 6 megabytes each
_compiled = [0.0]
_functions = [0]


def _listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event.startswith("/jax/core/compile/"):
        _compiled[0] += duration_secs
    if event.endswith("/backend_compile_duration"):
        _functions[0] += 1


def compiled() -> int:
    """How many functions were compiled, or read from a cache of files, since all were forgotten."""
    return _functions[0]


def forget_compiled() -> None:
    """Free what was compiled where it has become much: JAX itself keeps thousands of functions, one for each shape."""
    if _functions[0] > MOST_COMPILED:
        jax.clear_caches()
        _functions[0] = 0


jax.monitoring.register_event_duration_secs_listener(_listen)


@dataclass
class Clock:
    """Seconds and seconds of compilation, by the name of a stage."""

    seconds: dict[str, float] = field(default_factory=dict)
    compiling: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began, compiled = time.perf_counter(), _compiled[0]
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
            self.compiling[name] = self.compiling.get(name, 0.0) + _compiled[0] - compiled
