"""Compiled code that outlives a command."""

from __future__ import annotations

import os
import stat
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
    """The package's folder in the user's cache; None where others may put code there, which is not to be run."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
    folder = cache / "dfdbayes" / "compiled"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        for own in (folder.parent, folder):
            own.mkdir(exist_ok=True, mode=0o700)
        ours = _is_ours(folder)
    except OSError:
        return None
    return folder if ours and os.access(folder, os.W_OK) else None


def _is_ours(path: Path) -> bool:
    """Whether nobody else can put anything at a path: neither there, nor in place of a folder that leads there.

    In a folder such as /tmp, which is sticky, others can put things, and not move those of others away.
    """
    if not hasattr(os, "getuid"):  # not a POSIX system
        return True
    for part in (path, *path.parents):
        about = part.lstat()
        if about.st_uid not in (0, os.getuid()):
            return False
        if stat.S_ISLNK(about.st_mode):
            if not _is_ours(Path(os.path.normpath(part.parent / part.readlink()))):
                return False
            continue
        others = about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and not _is_private(about.st_gid))
        if others and (part == path or not about.st_mode & stat.S_ISVTX):
            return False
    return True


def _is_private(group: int) -> bool:
    """Whether a group is the user's alone, as many systems give one to each user."""
    import grp
    import pwd

    try:
        name, found = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == name and set(found.gr_mem) <= {name}
