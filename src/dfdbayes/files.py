"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from .errors import OutputError


def write_atomically(path: str | os.PathLike, write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it into place.

    If anything fails, the temporary file is removed and what was at ``path`` stays as it was.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
    except OSError as problem:
        raise OutputError(f"cannot write '{target}': {problem.strerror or problem}") from problem
    scratch = Path(name)
    try:
        write(scratch)
        os.chmod(scratch, 0o666 & ~_umask())
        os.replace(scratch, target)
    except OSError as problem:
        raise OutputError(f"cannot write '{target}': {problem.strerror or problem}") from problem
    finally:
        scratch.unlink(missing_ok=True)
    return target


def require_writable(folder: str | os.PathLike) -> Path:
    """The folder, made if need be; an error at once if results could not be written there later."""
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target):
            pass
    except OSError as problem:
        raise OutputError(
            f"cannot write to the folder '{target}': {problem.strerror or problem}. Choose another with --out."
        ) from problem
    return target


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
