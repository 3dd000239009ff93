"""Files that appear complete or not at all, and folders that one process uses at a time."""

from __future__ import annotations

import errno
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

from ..errors import OutputError, SettingError, close

try:
    import fcntl
except ImportError:  # Windows: folders are not locked there
    fcntl = None  # type: ignore[assignment]

_SCRATCH = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.part")  # as `_written` calls its temporary files


def misspelt(path: str | os.PathLike[str]) -> str:
    """A question, "; did you mean 'visits.csv'?", where a file that is not there has nearly the name of another."""
    with suppress(OSError, ValueError):
        beside = islice(Path(path).parent.glob("*"), 1000)  # a folder may have millions of files
        return close(path, map(str, beside))
    return ""


def write_atomically(path: str | os.PathLike[str], write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it into place.

    If anything fails, the temporary file is removed and what was at ``path`` stays as it was. What is in place is on
    the disk: it survives the machine's going down.
    """
    target = Path(path)
    with _written(target, write) as scratch:
        _move(scratch, target)
    return target


def write_together(folder: Path, files: Mapping[str, bytes], mark: str) -> None:
    """Write several files that belong together: all, or none; or the folder holds a file ``mark`` that says otherwise.

    The mark is there only while files are moved into place, when all of them are on the disk already.
    """
    with ExitStack() as stack:
        made = {
            name: stack.enter_context(_written(folder / name, partial(Path.write_bytes, data=content)))
            for name, content in files.items()
        }
        write_atomically(folder / mark, lambda scratch: scratch.write_text("files are being replaced here\n"))
        for name, scratch in made.items():
            _move(scratch, folder / name)
        (folder / mark).unlink()


@contextmanager
def _written(target: Path, write: Callable[[Path], object]) -> Iterator[Path]:
    """A temporary file with what belongs at ``target``; removed at the end if it is still there."""
    scratch = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.close(
                os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            )  # the system takes the umask away; asking for it would set it
            write(scratch)
            _to_disk(scratch)
        except (OSError, ValueError) as problem:  # of which the latter are paths that no system has
            raise OutputError(f"cannot write '{target}': {getattr(problem, 'strerror', None) or problem}") from problem
        yield scratch
    finally:
        with suppress(OSError, ValueError):
            scratch.unlink(missing_ok=True)


def leftovers(folder: Path, names: Container[str] | None = None) -> list[Path]:
    """Temporary files that killed processes left in a folder, of files with these names or of all.

    Only who holds the folder alone (`alone_in`) may remove them: another process may be writing them.
    """
    if not folder.is_dir():
        return []
    found = [(file, _SCRATCH.fullmatch(file.name)) for file in folder.iterdir()]
    return [file for file, match in found if match and (names is None or match["name"] in names)]


def _move(scratch: Path, target: Path) -> None:
    try:
        os.replace(scratch, target)
        _to_disk(target.parent)
    except OSError as problem:
        raise OutputError(f"cannot write '{target}': {problem.strerror or problem}") from problem


def _to_disk(path: Path) -> None:
    if path.is_dir() and os.name != "posix":  # only there can folders be opened
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without it
            raise
    finally:
        os.close(handle)


def require_writable(folder: str | os.PathLike[str]) -> Path:
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


def require_here(path: Path) -> Path:
    """The path of what a folder holds; an error where it is a link, and writing there would be writing elsewhere."""
    if path.is_symlink():
        raise OutputError(
            f"'{path}' is a link to somewhere else, where nothing is written. What to do: remove the link, or choose "
            "another folder with --out."
        )
    return path


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder against other runs until the end; a lock goes with its process, however that ends."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            if problem.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise SettingError(
                    f"another run is using the folder '{folder}'. What to do: wait until it has ended, or choose "
                    "another folder."
                ) from None
            # a file system without locks: parts of runs still know which run they belong to
        yield
    finally:
        os.close(handle)
