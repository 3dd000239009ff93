"""Compiled code that outlives a command."""

from __future__ import annotations

import os
from pathlib import Path


def keep_compiled_code() -> None:
    """Let JAX keep what it compiles in the user's cache folder, so that the next process starts fast."""
    import jax

    if not getattr(jax.config, "jax_compilation_cache_dir", None):  # the user has not chosen one
        folder = _own_folder()
        if folder is None:
            return
        jax.config.update("jax_compilation_cache_dir", str(folder))
    # A fit compiles few functions, of a tenth of a second to a second each: all of them are kept.
    for name, least in (("min_compile_time_secs", 0.0), ("min_entry_size_bytes", -1)):
        if f"JAX_PERSISTENT_CACHE_{name}".upper() not in os.environ:
            jax.config.update(f"jax_persistent_cache_{name}", least)


def _own_folder() -> Path | None:
    """The package's folder in the user's cache; None where others may write there, whose code is not to be run."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dfdbayes" / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = folder.stat()
    except OSError:
        return None
    ours = not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & 0o022)
    return folder if ours and os.access(folder, os.W_OK) else None
