"""Finished parts of a run, kept in a folder: a run that was interrupted goes on from there.

Every part is a pure function of the run's settings, so one that is found need not be computed again, and a resumed run
gives the same numbers as one that was never interrupted. Parts are written completely or not at all, and hold numbers
only: reading them executes nothing.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .errors import SettingError
from .files import write_atomically

Arrays = Mapping[str, np.ndarray]


class State(Protocol):
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
        kept = self._about()
        if kept is None:
            write_atomically(self.path / "about.json", lambda scratch: scratch.write_text(json.dumps(now)))
        elif kept != now:
            differing = [key for key in now | kept if now.get(key) != kept.get(key)]
            raise SettingError(
                f"'{self.path}' keeps an unfinished run that differs in {', '.join(differing)}. What to do: repeat "
                "that run's settings, leave out --resume to begin anew, or choose another folder."
            )

    def _about(self) -> dict[str, Any] | None:
        try:
            return json.loads((self.path / "about.json").read_text())
        except (OSError, ValueError):
            return None

    def part(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        file = self.path / f"{name}.npz"
        try:
            with np.load(file, allow_pickle=False) as kept:
                return dict(kept)
        except (OSError, ValueError, zipfile.BadZipFile):
            pass
        found = compute()

        def write(scratch: Path) -> None:
            with scratch.open("wb") as out:
                np.savez(out, allow_pickle=False, **{key: np.asarray(value) for key, value in found.items()})

        write_atomically(file, write)
        return found


def forget(path: str | Path) -> None:
    """Remove what a run kept."""
    shutil.rmtree(path, ignore_errors=True)
