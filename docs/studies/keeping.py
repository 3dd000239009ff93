"""Replicates of a study, kept as they are made: a run that was interrupted, or ended after some minutes, goes on."""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Study:
    """Replicates in runs/NAME, one file for each key and one line for each seed, and a table in docs/tables/NAME.md."""

    name: str

    @property
    def folder(self) -> Path:
        return ROOT / "runs" / self.name

    def results(self, *key: Any) -> list[dict[str, Any]]:
        """What is there, one result for each seed."""
        path = self._path(key)
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
        return list({line["seed"]: line for line in lines}.values())

    def run(self, jobs: Iterable[tuple[Any, ...]], replicate: Callable[..., dict[str, Any]], end: float) -> None:
        """Every job (key, ..., seed) that is not there, by ``replicate(key, ..., seed)``, until a time."""
        warnings.simplefilter("ignore")
        self.folder.mkdir(parents=True, exist_ok=True)
        done: dict[tuple[Any, ...], set[int]] = {}
        for *key, seed in jobs:
            if time.time() > end:
                break
            there = done.setdefault(tuple(key), set()) or {one["seed"] for one in self.results(*key)}
            done[tuple(key)] = there
            if seed not in there:
                line = json.dumps({"seed": seed} | replicate(*key, seed))
                with self._path(tuple(key)).open("a") as file:
                    file.write(line + "\n")
                there.add(seed)

    def write(self, text: str) -> None:
        """The table."""
        (ROOT / "docs" / "tables" / f"{self.name}.md").write_text(text.rstrip("\n") + "\n")

    def _path(self, key: tuple[Any, ...]) -> Path:
        return self.folder / f"{' '.join(map(str, key))}.jsonl"


def arguments(doc: str | None, names: Iterable[str], replicates: int, **more: int) -> argparse.Namespace:
    """What was asked for: cases (all, unless named), how many replicates, and ``end``, the time to stop at."""
    known = list(names)
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(known)}")
    for name, default in {"replicates": replicates, **more}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    asked = parser.parse_args()
    if unknown := [name for name in asked.cases if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}")
    asked.cases = [name for name in known if not asked.cases or name in asked.cases]
    asked.end = time.time() + 60 * asked.minutes
    return asked
