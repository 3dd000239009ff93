"""Where a run's heavy work is done: reading, evaluating the loss, bootstrap fits, replicates of a study.

`fit` and `coverage` see a `Backend` and never ask which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

from .._util.checkpoint import Checkpoint
from ..core.dataset import Dataset, Units
from ..core.domain import Domain
from ..core.losses.base import AbstractLoss
from ..core.minimise import Minimum
from ..core.model import AbstractModel
from ..core.objective import Objective, arranged
from ..core.replicates import minimise_many
from ..core.resampling import AbstractResampling, Bootstrap, Fits
from ..data.read.dataset import read

Advance = Callable[[int], None]
Reader = Callable[[int, int], None]


class Source(Protocol):
    """Data that have been read, wherever they are."""

    @property
    def data(self) -> Dataset:
        """The data, or a sample that stands for them where they are elsewhere."""

    def arranged(self, model: AbstractModel) -> Source:
        """The same, ready for a model: columns in its order, and here if its table is small in any case."""

    def objective(self, model: AbstractModel, loss: AbstractLoss, units: Units | None) -> Objective: ...


class Backend(Protocol):
    """A machine, or many."""

    def read(self, source: Any, domain: Domain | Callable[[int], Domain], *, advance: Reader, **reading: Any) -> Source:
        """Read data as `Dataset.of` does."""

    def bootstrap(
        self, how: AbstractResampling, objective: Objective, minimum: Minimum, size: int, *, seed: int,
        advance: Advance, checkpoint: Checkpoint,
    ) -> Bootstrap: ...  # fmt: skip

    def each(self, function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[Any]:
        """The function's result for every job, in order."""

    def watched(self, kept: str = "") -> AbstractContextManager[Any]:
        """Work that may need machines that go away: then an error says so, and ``kept`` is what is there already."""


@dataclass(frozen=True)
class InMemory:
    """Data on this machine."""

    data: Dataset

    def arranged(self, model: AbstractModel) -> InMemory:
        return replace(self, data=arranged(model, self.data))

    def objective(self, model: AbstractModel, loss: AbstractLoss, units: Units | None) -> Objective:
        return Objective(model, self.data, loss, units)


@dataclass(frozen=True)
class Local:
    """The machine at hand; ``workers`` jobs at a time, in threads."""

    workers: int = 2

    def read(
        self, source: Any, domain: Domain | Callable[[int], Domain], *, advance: Reader, **reading: Any
    ) -> InMemory:
        return InMemory(read(source, domain, advance=advance, **reading))

    def bootstrap(
        self, how: AbstractResampling, objective: Objective, minimum: Minimum, size: int, *, seed: int,
        advance: Advance, checkpoint: Checkpoint,
    ) -> Bootstrap:  # fmt: skip
        return how(objective, minimum, size, seed, Fits(minimise_many, checkpoint, advance))

    def each(self, function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[Any]:
        if jobs:
            yield function(jobs[0])  # compiles alone; the others share what it compiled
        with ThreadPoolExecutor(self.workers) as pool:
            yield from pool.map(function, jobs[1:])

    def watched(self, kept: str = "") -> AbstractContextManager[Any]:
        return nullcontext()


__all__ = ["Backend", "InMemory", "Iterable", "Local", "Source"]
