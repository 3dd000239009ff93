"""What a run will need, before it starts: parameters, memory, time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import SettingError

SPEED = 2e10  # multiplications and additions a second, as measured on two cores with networks of 30 to 60 nodes
NEWTON = 8  # steps of a minimisation
SHARE = 0.8  # of the machine's memory that a run may need
LONG = 60.0  # seconds from which a run's length is told beforehand
COPIES = 10  # of a matrix of covariates that reading it, its rank and gradients by row take; 9 were measured


@dataclass(frozen=True)
class Needs:
    """An estimate, right to a factor of two or three."""

    parameters: int
    memory: float
    seconds: float

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
    newton = parameters**3 / 3 + 2.0 * cells * columns * (columns if wide else 1)
    seconds = ((bootstrap + 1) * NEWTON * newton + transitions * gradients * gradient) / SPEED
    return Needs(parameters, memory, seconds)


def require_memory(needs: Needs) -> None:
    """Refuse a run that would fill the machine's memory."""
    there = memory()
    if needs.memory > SHARE * there:
        raise SettingError(
            f"this model has {needs.parameters} parameters, and its calibration and draws would need about "
            f"{needs.memory / 2**30:.0f} GiB of memory; the machine has {there / 2**30:.0f} GiB. What to do: fewer "
            "columns (columns=[...]), a graph with fewer edges, a smaller bootstrap, or fewer draws."
        )


def require_matrix(rows: int, columns: int, what: str) -> None:
    """Refuse a matrix of covariates that would fill the machine's memory, before it is made."""
    there = memory()
    needed = COPIES * 8.0 * rows * columns + estimate(columns, 1, rows, 0, 0, 0).memory
    if needed > SHARE * there:
        raise SettingError(
            f"{what}: {columns} coefficients for {rows} rows would need about {needed / 2**30:.0f} GiB of memory; the "
            f"machine has {there / 2**30:.0f} GiB. What to do: join rare levels, leave the factor out, or name it with "
            "cluster=... (--cluster) if its levels are groups of rows that belong together."
        )


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
