"""Where the time of a run goes: seconds by stage, and how much of each was compilation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import jax.monitoring

_compiled = [0.0]


def _listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event.startswith("/jax/core/compile/"):
        _compiled[0] += duration_secs


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
