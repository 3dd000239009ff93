"""Finished parts of a run, kept in a folder: a run that was interrupted goes on from there.

Every part is a pure function of the run's settings, so one that is found need not be computed again, and a resumed run
gives the same numbers as one that was never interrupted. Parts are written completely or not at all, carry the
identity of their run, and hold numbers only: reading them executes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import SettingError
from .files import alone_in, leftovers, require_writable, write_atomically
from .identity import fingerprint

ABOUT = "about.json"
FITTED = "unchecked.nc"  # a fit that has yet to be checked; no name that a user would save a fit under
_RUN = re.compile(r"[0-9a-f]{16}")  # what `fingerprint` gives: the run that a part carries inside, whatever its name
MARK = "dfdbayes: finished parts of a run"  # stands in the folders that this module made, and may remove

Arrays = Mapping[str, np.ndarray]


class Checkpoint(Protocol):
    """Gives a part of the run: kept from before, or computed now."""

    def part(self, name: str, compute: Callable[[], Arrays]) -> Arrays: ...


class Nothing:
    """Keeps nothing."""

    def part(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        return compute()


NOTHING = Nothing()


class Folder:
    """Keeps parts in a folder, for one run that ``about`` describes.

    Parameters
    ----------
    path : path
    about : mapping
        What the run depends on, in values JSON can hold. A folder of another run is refused.
    """

    def __init__(self, path: str | Path, about: Mapping[str, Any]) -> None:
        self.path = Path(path)
        now = json.loads(json.dumps(about))
        self._run = fingerprint(now)
        if self.path.is_dir() and _alien(self.path):
            raise SettingError(
                f"the folder '{self.path}' holds files that are not a run's parts ({_alien(self.path)[0]}); nothing "
                "was touched. What to do: choose another folder, or move them away."
            )
        for scratch in leftovers(self.path):
            scratch.unlink(missing_ok=True)
        kept = _about(self.path) if unfinished(self.path) else None
        if kept is None:
            described = json.dumps({"mark": MARK, "run": now})
            write_atomically(self.path / ABOUT, lambda scratch: scratch.write_text(described))
        elif kept != now:
            differing = [key for key in now | kept if now.get(key) != kept.get(key)]
            raise SettingError(
                f"'{self.path}' keeps an unfinished run that differs in {', '.join(differing)}. What to do: repeat "
                "that run's settings, begin anew (on the command line: --force), or choose another folder."
            )

    def part(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        file = self.path / f"{name}.npz"
        kept, run = _part(file)
        if run == self._run:
            return kept
        made = {key: np.asarray(value) for key, value in compute().items()}

        def write(scratch: Path) -> None:
            with scratch.open("wb") as out:
                np.savez(out, allow_pickle=False, run=np.array(self._run), **made)

        write_atomically(file, write)
        return made


@contextmanager
def keeping(
    path: str | Path | None, about: Callable[[], Mapping[str, Any]], resume: bool = True
) -> Iterator[Checkpoint]:
    """What keeps the parts of a run, alone in its folder until the end; without a path nothing is kept.

    Without ``resume`` an earlier run's parts are removed first.
    """
    if path is None:
        yield NOTHING
        return
    with alone_in(require_writable(path)):
        if not resume:
            forget(Path(path), itself=False)
        yield Folder(path, about())


def unfinished(path: Path) -> bool:
    """Whether a folder keeps parts of a run that was interrupted."""
    return _about(path) is not None and any(map(_is_part, path.iterdir()))


def forget(path: Path, itself: bool = True) -> None:
    """Remove what a run kept, and nothing else: a folder without the mark, and other files, stay.

    The mark stays where the folder ``itself`` does, so that it is known as ours beside a user's files.
    """
    if path.is_symlink() or _about(path) is None:
        return
    for file in [path / FITTED, *leftovers(path), *filter(_is_part, path.iterdir())]:
        file.unlink(missing_ok=True)
    if itself:
        (path / ABOUT).unlink(missing_ok=True)  # last: until then the folder is known as ours
        if not any(path.iterdir()):
            path.rmdir()


def _about(path: Path) -> dict[str, Any] | None:
    """What the run of a folder depends on; None if there is no folder of ours that can be read."""
    try:
        found = json.loads((path / ABOUT).read_text())
        return found["run"] if found["mark"] == MARK and isinstance(found["run"], dict) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_part(file: Path) -> bool:
    """Whether a file is a finished part of a run, of any: it carries the run that it belongs to."""
    return file.suffix == ".npz" and _RUN.fullmatch(_part(file, ("run",))[1]) is not None


def _part(file: Path, names: Sequence[str] | None = None) -> tuple[dict[str, np.ndarray], str]:
    """What a file holds, or what of it has these names, and the run that it belongs to; nothing where it is no part."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as found:
            held = {name: found[name] for name in names or found}
        return held, str(held.pop("run"))
    except Exception:  # whatever is wrong with a file that somebody else may have written
        return {}, ""


def _alien(path: Path) -> list[str]:
    """Names of files in a folder that no run keeps there; none in a folder that carries our mark, where they may be."""
    if _about(path) is not None:
        return []
    left = set(leftovers(path))
    names = sorted(file.name for file in path.iterdir() if file not in left and not _is_part(file))
    try:
        json.loads((path / ABOUT).read_text())
    except (OSError, ValueError):  # none, or one that a crash left: ours as far as anybody can tell
        return [name for name in names if name != ABOUT]
    return names
