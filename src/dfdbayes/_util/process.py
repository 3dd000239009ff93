"""What any computation needs: a process that JAX can live in, and a seed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..errors import ProcessError, SettingError

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


LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")  # by which users limit threads


def threads() -> str:
    """How many threads numbers are computed by: sums are added up in another order by others, and rounded otherwise."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = [f"{name}={os.environ[name]}" for name in LIMITS if os.environ.get(name)]
    return " ".join([str(usable), *limits])
