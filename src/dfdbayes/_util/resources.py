"""What a run takes of the machine: a process that JAX can live in, memory, and time by stage."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.monitoring
import numpy as np

from ..errors import ProcessError, SettingError

NUMBERS_AT_ONCE = 2**22  # in one piece of work, 32 MiB: larger pieces of a table are read no faster, as measured
OPERATIONS_PER_SECOND = 2e10  # multiplications and additions, measured on two cores with networks of 30 to 60 nodes

# -- the process -------------------------------------------------------------------------------

_used_in: list[int] = []
_kept: dict[str, Any] = {}


def require_unforked() -> None:
    """Refuse to compute in a process forked from one that has computed: JAX's threads are not there, and it hangs."""
    if not _used_in:
        _used_in.append(os.getpid())
    elif _used_in[0] != os.getpid():
        raise ProcessError(
            "this process was forked from one that has already fitted or simulated, and would wait for threads that do "
            "not exist here. What to do: multiprocessing.get_context('spawn'), or client= with Dask."
        )


def require_seed(seed: Any) -> None:
    """Refuse a seed that is not a whole number >= 0."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise SettingError(f"the seed is {seed!r}; it must be a whole number >= 0")


def kept(token: str, value: Any) -> Any:
    """The first value that this process was given under a name: code compiled for it is used again."""
    return _kept.setdefault(token, value)


def threads() -> str:
    """How many threads numbers are computed by: sums are added up in another order by others, and rounded otherwise."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")  # that users set
    return " ".join([str(usable), *(f"{name}={os.environ[name]}" for name in limits if os.environ.get(name))])


# -- memory, before a run begins ---------------------------------------------------------------


@dataclass(frozen=True)
class Needs:
    """An estimate, right to a factor of two or three."""

    parameters: int
    memory: float
    seconds: float

    @property
    def is_long(self) -> bool:
        """Whether the run's length is told beforehand."""
        return self.seconds > 60.0

    def __str__(self) -> str:
        minutes = self.seconds / 60
        time = f"{minutes / 60:.1f} hours" if minutes > 120 else f"{minutes:.0f} minutes" if minutes > 2 else "a minute"
        return f"{self.parameters} parameters, about {time} and {self.memory / 2**30:.1f} GiB"


def estimate(
    parameters: int, columns: int, rows: int, cells: int, bootstrap: int, transitions: int, gradients: float = 0.0
) -> Needs:
    """What a run with so many bootstrap fits and transitions of all chains needs.

    ``rows`` are distinct, ``cells`` the numbers in the table that a loss is evaluated on, and ``gradients`` what a
    transition takes.
    """
    square = 8.0 * parameters**2
    memory = 2.0 * square * (bootstrap + 8) + 6 * 8.0 * cells
    memory += 8.0 * bootstrap * (rows + 4 * parameters) + 4 * 8.0 * transitions * (parameters + 8)
    wide = parameters > 2 * columns  # a parameter for every pair: each row meets each of them
    gradient = 4.0 * cells * (columns if wide else 1)
    newton_step = parameters**3 / 3 + 2.0 * cells * columns * (columns if wide else 1)
    operations = (bootstrap + 1) * 8 * newton_step + transitions * gradients * gradient  # about 8 steps to a minimum
    return Needs(parameters, memory, operations / OPERATIONS_PER_SECOND)


def require_memory(needs: Needs) -> None:
    """Refuse a run that would fill the machine's memory."""
    if not fits_memory(needs.memory):
        raise SettingError(
            f"this model has {needs.parameters} parameters, and its calibration and draws would need about "
            f"{needs.memory / 2**30:.0f} GiB of memory; the machine has {memory() / 2**30:.0f} GiB. What to do: fewer "
            "columns (columns=[...]), a graph with fewer edges, a smaller bootstrap, or fewer draws."
        )


def require_matrix(rows: int, columns: int, what: str) -> None:
    """Refuse a matrix of covariates that would fill the machine's memory, before it is made."""
    # Reading the matrix, its rank and its gradients by row were measured to take 9 copies of it.
    needed = 10 * 8.0 * rows * columns + estimate(columns, 1, rows, 0, 0, 0).memory
    if not fits_memory(needed):
        raise SettingError(
            f"{what}: {columns} coefficients for {rows} rows would need about {needed / 2**30:.0f} GiB of memory; the "
            f"machine has {memory() / 2**30:.0f} GiB. What to do: join rare levels, leave the factor out, or name it "
            "with cluster=... (--cluster) if its levels are groups of rows that belong together."
        )


def fits_memory(needed: float) -> bool:
    """Whether so many bytes leave a fifth of the machine's memory to all else."""
    return needed <= 0.8 * memory()


def memory() -> float:
    """Bytes of memory that this process may use."""
    try:
        there = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        there = 16.0 * 2**30
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            there = min(there, float((Path("/sys/fs/cgroup") / name).read_text()))
        except (OSError, ValueError):
            continue
    return there


# -- time, and compiled code -------------------------------------------------------------------

MAX_COMPILED_FUNCTIONS = 400  # that stay in memory: each takes 2 to 6 megabytes (24 regressions took 570 megabytes)
_compiled = {"seconds": 0.0, "functions": 0}


def _listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event.startswith("/jax/core/compile/"):
        _compiled["seconds"] += duration_secs
    if event.endswith("/backend_compile_duration"):
        _compiled["functions"] += 1


jax.monitoring.register_event_duration_secs_listener(_listen)


def compiled() -> int:
    """How many functions were compiled, or read from a cache of files, since all were forgotten."""
    return int(_compiled["functions"])


def forget_compiled() -> None:
    """Free what was compiled where it has become much: JAX itself keeps thousands of functions, one for each shape."""
    if compiled() > MAX_COMPILED_FUNCTIONS:
        jax.clear_caches()
        _compiled["functions"] = 0


@dataclass
class Clock:
    """Seconds and seconds of compilation, by the name of a stage."""

    seconds: dict[str, float] = field(default_factory=dict)
    compiling: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began, compiling = time.perf_counter(), _compiled["seconds"]
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
            self.compiling[name] = self.compiling.get(name, 0.0) + _compiled["seconds"] - compiling
