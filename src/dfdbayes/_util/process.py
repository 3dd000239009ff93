"""Processes that JAX can live in."""

from __future__ import annotations

import os

from ..errors import ProcessError

_used_in: list[int] = []


def require_unforked() -> None:
    """Refuse to compute in a process forked from one that has computed: JAX's threads are not there, and it hangs."""
    if not _used_in:
        _used_in.append(os.getpid())
    elif _used_in[0] != os.getpid():
        raise ProcessError(
            "this process was forked from one that has already fitted or simulated, and would wait for threads that do "
            "not exist here. What to do: multiprocessing.get_context('spawn'), or client= with Dask."
        )
