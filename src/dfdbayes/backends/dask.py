"""The road on a Dask cluster. The only module that imports Dask.

Three things can run there: the pass over the data, bootstrap fits, and coverage replicates. Data whose distinct rows
are few come back as a data set, and so do those of exponential families, whose tables are small. Where the rows are
many (counts on a graph, say), they stay with the workers: a loss is then a sum over partitions, and so are its gradient
and Hessian.

Rows go to partitions by their values. A partition has its own random numbers, so replicates are the same on one
machine and on many. What a lost worker held is computed anew from the files.
"""

from __future__ import annotations

import asyncio
import operator
import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._util.checkpoint import Checkpoint
from .._util.resources import kept
from ..core.dataset import BUCKETS, Dataset, Sites, Tallies, Tally, Units, bucket_of, merge
from ..core.domain import Domain
from ..core.losses.base import AbstractLoss
from ..core.minimise import Minima, Minimum, Outcome
from ..core.model import AbstractModel
from ..core.objective import Objective, Problem, arranged
from ..core.parameters import Theta
from ..core.replicates import MAX_DATASETS, minimise_many, refit_many
from ..core.resampling import AbstractResampling, Bootstrap, Fits, in_bucket, of_buckets
from ..core.terms import AbstractTerms, Loss, Prepared, SecondOrder, Site, terms
from ..data.read.columns import Reading
from ..data.read.dataset import of_all_rows, of_tally, read
from ..data.read.reading import ROWS_AT_ONCE, Memory, Table, table_of
from ..data.read.text import Ragged
from ..errors import ClusterError, DataError, DfdbayesError, ModelError, SettingError
from .local import Advance, InMemory, Reader, Source

MAX_GATHERED_ROWS = ROWS_AT_ONCE  # distinct ones that come back; more stay with the workers
MAX_SECONDS_ALONE = 120.0  # without any worker: one that is restarted, or replaced by its cluster, is back sooner
SECONDS_BETWEEN_LOOKS = 5.0  # at whether there are workers


@contextmanager
def connected(address: str, patience: float = 10.0) -> Iterator[Any]:
    """A client of the cluster at ``address``, waited for so many seconds; ``"local"`` starts one on this machine."""
    dask = _dask()
    if address == "local":
        from dask import config as dask_config

        # In this process: a scheduler of other processes would take work from whoever can reach it. The web servers
        # that Dask starts in any case have no pages, and are on this machine alone.
        nobody = "127.0.0.1:0"
        settings: dict[str, list[Any]] = {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}
        with (
            dask_config.set(settings),
            dask.LocalCluster(
                os.cpu_count(), processes=False, threads_per_worker=1, dashboard_address=nobody,
                worker_dashboard_address=nobody, scheduler_kwargs={"dashboard": False},
            ) as cluster,
            dask.Client(cluster) as client,
        ):  # fmt: skip
            yield client
        return
    try:
        client = dask.Client(address, timeout=patience)
    except (OSError, ValueError, TimeoutError) as problem:
        raise SettingError(f"there is no Dask scheduler at '{address}': {problem}") from problem
    with client:
        yield client


def _waited(client: Any, tasks: Sequence[Any]) -> list[Any]:
    """Results of tasks in order; an error once there has been no worker for a while, and might never be."""
    gathered = asyncio.run_coroutine_threadsafe(client.gather(list(tasks), asynchronous=True), client.loop.asyncio_loop)
    alone, look = 0.0, min(SECONDS_BETWEEN_LOOKS, MAX_SECONDS_ALONE)
    while True:
        try:
            return gathered.result(timeout=look)
        except TimeoutError:
            if gathered.done():  # it is the work's own
                raise
            alone = 0.0 if client.status == "running" and client.nthreads() else alone + look
            if alone >= MAX_SECONDS_ALONE:
                gathered.cancel()
                raise ClusterError(f"the Dask cluster has had no worker for {alone:.0f} seconds") from None


def _gone(client: Any, problem: Exception) -> str:
    """That a cluster is gone, in words, if that is what went wrong; else nothing."""
    told = re.search(r"ClusterError: (.+)", f"{type(problem).__name__}: {problem}")  # also through compiled code
    if told:
        return told[1]
    if client.status != "running":
        return "the connection to the Dask cluster was closed"
    names = ("KilledWorker", "CancelledError", "CommClosedError")
    lost = next((name for name in names if name in f"{type(problem).__name__}: {problem}"), None)
    return f"the Dask cluster lost its work ({lost}), as where workers have too little memory" if lost else ""


def _dask() -> Any:
    try:
        import distributed
    except ImportError:
        raise SettingError("Dask is not installed. What to do: pip install 'dfdbayes[distributed]'") from None
    return distributed


# -- on the workers ----------------------------------------------------------------------------


def _tally_part(part: Any, reading: Reading) -> Tally:
    found, ragged = Tallies(), Ragged()
    try:
        for chunk, _ in part.chunks(reading.needed, ROWS_AT_ONCE, reading.words, ragged):
            found.add(reading.tally(chunk, part.begins + found.total, ragged))
        ragged.refuse(part.path.name, reading.width)
    except DataError as problem:
        raise DataError(f"{part.path.name}: {problem}") from None
    whole = found.merged()
    if whole is None:
        return reading.tally({name: np.empty(0, int) for name in reading.needed}, 0)
    return replace(whole, first=whole.first - part.begins)


def _split(tally: Tally, groups: int, begins: int = 0) -> list[Tally]:
    """The rows by bucket; those of a part that begins at row ``begins`` of the table."""
    group = bucket_of(tally.columns) % groups
    placed = replace(tally, first=tally.first + begins)
    return [placed.part(group == g) for g in range(groups)]


def _about(tally: Tally) -> tuple[int, int, int]:
    return tally.size, tally.total, tally.dropped


def _merged(*parts: Tally) -> Tally:
    return merge(parts)


def _some(tally: Tally, most: int) -> Tally:
    return tally.part(np.linspace(0, tally.size - 1, min(most, tally.size)).astype(int))


@dataclass(frozen=True)
class Partition:
    """Some of the rows, and their weights in bootstrap replicates once these are drawn."""

    objective: Objective
    weights: np.ndarray | None = None

    @property
    def buckets(self) -> np.ndarray:
        return bucket_of(self.objective.data.rows.T)


def _partition(tally: Tally, reading: Reading, model: AbstractModel, loss: Any, token: str) -> Partition:
    data = of_tally(replace(tally, total=1), "partition", reading)
    data.check(model.domain)
    problem = kept(token, Problem(model, loss))
    return Partition(Objective(problem.model, data, problem.loss))


def _bucket_totals(part: Partition) -> np.ndarray:
    return np.bincount(part.buckets, weights=part.objective.units.observations, minlength=BUCKETS)


def _weighted(part: Partition, seed: int, shares: np.ndarray, kind: str) -> Partition:
    observations, buckets = part.objective.units.observations, part.buckets
    drawn = np.empty((len(shares), len(observations)))
    for bucket in np.unique(buckets):
        inside = buckets == bucket
        drawn[:, inside] = in_bucket(seed, bucket, shares[:, bucket], observations[inside], kind)
    if kind == "multinomial":
        drawn = drawn.astype(np.uint16 if drawn.max() < 2**16 else np.uint32)
    return replace(part, weights=drawn)


@partial(jax.jit, static_argnums=(0, 1))
def _batch(problem: Problem, order: int, thetas: Array, terms: Any, weights: Any) -> tuple[Array, ...]:
    if order == 2:
        return jax.vmap(problem.second_order, in_axes=(0, None, 0))(thetas, terms, weights)
    if order == 1:
        return jax.vmap(jax.value_and_grad(problem.value), in_axes=(0, None, 0))(thetas, terms, weights)
    return (jax.vmap(problem.value, in_axes=(0, None, 0))(thetas, terms, weights),)


def _evaluate(part: Partition, order: int, thetas: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
    """Values, gradients and Hessians at parameters, each under the data's weights (-1) or a replicate's."""
    objective, found = part.objective, []
    size = min(objective.batch, len(thetas))
    for first in range(0, len(thetas), size):
        chosen = np.resize(np.arange(first, min(first + size, len(thetas))), size)
        own = np.repeat(objective.units.weights[None], size, axis=0)
        drawn = own if part.weights is None else part.weights[np.maximum(which[chosen], 0)] * objective.units.each
        weights = objective.weigh(np.where(which[chosen, None] < 0, own, drawn))
        ends = _batch(objective.problem, order, thetas[chosen], objective.terms, weights)
        found.append([np.asarray(end)[: len(thetas) - first] for end in ends])
    return tuple(np.concatenate(end) for end in zip(*found, strict=True))


def _moments(part: Partition, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    return part.objective.moments(theta)


# -- the pass ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """Distinct rows that stay with the workers, in partitions; ``data`` is a sample that stands for them."""

    client: Any
    tallies: tuple[Any, ...]
    reading: Reading
    data: Dataset
    distinct: int
    whole: Callable[[], Dataset]
    """All rows here, for models whose tables are small whatever the number of rows."""

    def arranged(self, model: AbstractModel) -> Source:
        self.data.check(model.domain)
        return InMemory(arranged(model, self.whole())) if model.compresses else self

    def objective(self, model: AbstractModel, loss: AbstractLoss, units: Units | None) -> Objective:
        """The loss as a sum over the partitions."""
        if not loss.separable:
            raise ModelError(f"the {loss.title} needs all of {self.distinct} rows at once; use loss='dfd'")
        token = uuid.uuid4().hex
        submit = partial(self.client.submit, _partition, reading=self.reading, model=model, loss=loss, token=token)
        handle = _Handle(self.client, [submit(tally, pure=False) for tally in self.tallies])
        found = Objective(model, self.data, Summed(loss, handle.number))
        _ = found.terms  # holds on to the handle
        return found


@dataclass(frozen=True)
class Dask:
    """A Dask cluster, by its client."""

    client: Any

    def read(self, source: Any, domain: Domain | Callable[[int], Domain], *, advance: Reader, **reading: Any) -> Source:
        """The pass over a table, part by part on the workers."""
        if isinstance(source, Dataset) or reading.get("missing") == "impute":  # completions are made here
            return InMemory(read(source, domain, advance=advance, **reading))
        table = table_of(source)
        how = Reading.of(source, table, domain, **reading)
        if isinstance(table.parts[0], Memory):
            data = read(source, how.domain, advance=advance, **reading)
            return InMemory(data) if len(data.rows) <= MAX_GATHERED_ROWS else _spread_rows(self.client, data, how)
        if isinstance(how.weights, np.ndarray):
            raise SettingError("with a cluster, weights of files must be a column of theirs: give its name")
        return _read_files(self.client, table, how, advance)

    def bootstrap(
        self, how: AbstractResampling, objective: Objective, minimum: Minimum, size: int, *, seed: int,
        advance: Advance, checkpoint: Checkpoint,
    ) -> Bootstrap:  # fmt: skip
        """Fits on the workers: each batch by one of them, or each evaluation by all that hold partitions."""
        if isinstance(objective.loss, Summed):
            _Handle.of(objective.loss.number).weighted(seed, size, how.kind)
            numbers = np.arange(size, dtype=float)[:, None]
            fits = Fits(minimise_many, checkpoint, advance)
            return Bootstrap(how.kind, numbers, fits(objective, minimum, numbers), 0)
        token, placed = uuid.uuid4().hex, dict[int, tuple[Objective, Any]]()

        def on_workers(objective: Objective) -> Any:
            """The objective on every worker: sent once, under a name of its own, and held until another is sent.

            A name made of what is sent, Dask's default, is shared with what was sent before, and is lost with it.
            """
            if id(objective) not in placed:
                sent = self.client.scatter([_Sent(token, objective)], broadcast=True, hash=False)
                placed.clear()
                placed[id(objective)] = objective, sent[0]
            return placed[id(objective)][1]

        def joined(function: Any, objective: Objective, batches: list[Any], around: Minimum, done: Advance) -> Minima:
            sent, found = on_workers(objective), list[Minima]()
            tasks = [self.client.submit(function, sent, batch, around, pure=False) for batch in batches]
            for task, batch in zip(tasks, batches, strict=True):
                found += _waited(self.client, [task])
                done(len(batch))
            return Minima(
                np.concatenate([part.vectors for part in found]),
                np.concatenate([part.values for part in found]),
                np.concatenate([part.gradient_norms for part in found]),
                tuple(Outcome(outcome) for part in found for outcome in part.outcomes),
            )

        def many(objective: Objective, weights: np.ndarray, around: Minimum, advance: Advance) -> Minima:
            batches = np.array_split(weights, range(objective.batch, len(weights), objective.batch))
            return joined(_minimise_sent, objective, batches, around, advance)

        def refit(objective: Objective, datasets: Sequence[Dataset], around: Minimum) -> Minima:
            batches = [list(datasets[first : first + MAX_DATASETS]) for first in range(0, len(datasets), MAX_DATASETS)]
            return joined(_refit_sent, objective, batches, around, lambda done: None)

        return how(objective, minimum, size, seed, Fits(many, checkpoint, advance, refit))

    def each(self, function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[Any]:
        for task in self.client.map(function, list(jobs), pure=False):
            yield from _waited(self.client, [task])

    @contextmanager
    def watched(self, kept: str = "") -> Iterator[None]:
        try:
            yield
        except Exception as problem:
            told = _gone(self.client, problem)
            if not told or (isinstance(problem, DfdbayesError) and not isinstance(problem, ClusterError)):
                raise
            raise ClusterError(
                f"{told}. What to do: {kept or 'begin again with a cluster that has workers.'}"
            ) from problem


def _partitions(client: Any) -> int:
    """Two for every thread of the workers, so that an uneven share costs little."""
    return min(BUCKETS, max(1, 2 * sum(client.nthreads().values())))


def _read_files(client: Any, table: Table, reading: Reading, advance: Callable[[int, int], None]) -> Source:
    wholes = [client.submit(_tally_part, part, reading, pure=False) for part in table.parts]
    known = []
    for done, about in enumerate(client.map(_about, wholes, pure=False), 1):
        known += _waited(client, [about])
        advance(done, len(wholes))
    sizes, totals, dropped = zip(*known, strict=True)
    begins = np.concatenate([[0], np.cumsum(totals)[:-1]])
    groups = _partitions(client) if sum(sizes) > MAX_GATHERED_ROWS else 1
    pieces = [client.submit(_split, w, groups, int(b), pure=False) for w, b in zip(wholes, begins, strict=True)]
    tallies = []
    for g in range(groups):
        mine = [client.submit(operator.getitem, piece, g, pure=False) for piece in pieces]
        tallies.append(client.submit(_merged, *mine, pure=False))
    distinct = sum(size for size, _, _ in _waited(client, client.map(_about, tallies, pure=False)))

    def counted(found: Tally) -> Tally:
        return replace(found, total=sum(totals), dropped=sum(dropped))

    def whole() -> Dataset:
        found = of_all_rows(counted(merge(_waited(client, tallies))), table.name, reading)
        if reading.domain is not None:
            found.check(reading.domain)
        return found

    if distinct <= MAX_GATHERED_ROWS:
        return InMemory(whole())
    some = _waited(client, [client.submit(_some, tally, 2**16 // groups, pure=False) for tally in tallies])
    sample = of_all_rows(counted(merge(some)), f"{table.name} (shown by a sample of its distinct rows)", reading)
    n = _waited(client, [client.submit(_observations, tally, pure=False) for tally in tallies])
    return Spread(client, tuple(tallies), reading, _standing_for(sample, sum(n)), distinct, whole)


def _observations(tally: Tally) -> float:
    return float(tally.repeats.sum() if tally.weights is None else (tally.repeats * tally.weights).sum())


def _standing_for(sample: Dataset, n: float) -> Dataset:
    scale = n / sample.counts.sum()
    repeats = None if sample.repeats is None else sample.repeats * scale
    return replace(sample, counts=sample.counts * scale, repeats=repeats)


def _spread_rows(client: Any, data: Dataset, reading: Reading) -> Spread:
    """Rows in memory sent to the workers."""
    each = None if data.repeats is None else data.counts / data.repeats
    whole = Tally(np.ascontiguousarray(data.rows.T), data.observations, data.first, each)
    tallies = tuple(client.submit(_merged, part, pure=False) for part in _split(whole, _partitions(client)))
    name = f"{data.source} (shown by a sample of its distinct rows)"
    sample = replace(_standing_for(data.thinned(), float(data.counts.sum())), source=name)
    return Spread(client, tallies, reading, sample, len(data.rows), lambda: data)


# -- a loss whose terms are elsewhere ----------------------------------------------------------


class _Handle:
    """The partitions of one objective, as compiled code finds them: by number."""

    _numbers = count()
    _all: ClassVar[WeakValueDictionary[int, _Handle]] = WeakValueDictionary()

    @classmethod
    def of(cls, number: int) -> _Handle:
        return cls._all[int(number)]

    def __init__(self, client: Any, parts: list[Any]) -> None:
        self.client, self.parts, self.number = client, parts, next(self._numbers)
        self._all[self.number] = self
        self._last: dict[tuple[bytes, bytes], tuple[int, tuple[np.ndarray, ...]]] = {}

    def evaluate(self, order: int, thetas: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        key = (thetas.tobytes(), which.tobytes())
        known, ends = self._last.get(key, (-1, ()))
        if known < order:
            tasks = self.client.map(
                _evaluate, self.parts, order=order, thetas=thetas, which=which, pure=False, batch_size=None
            )
            ends = tuple(sum(end) for end in zip(*_waited(self.client, tasks), strict=True))
            self._last = {key: (order, ends)}
        return ends[: order + 1]

    def moments(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Number, sum and sum of squares of the gradients of single observations."""
        found = _waited(self.client, self.client.map(_moments, self.parts, theta=theta, pure=False))
        size, first, second = (sum(parts) for parts in zip(*found, strict=True))
        return float(size), np.asarray(first), np.asarray(second)

    def weighted(self, seed: int, size: int, kind: str) -> None:
        """Draw the replicates' weights on the workers."""
        totals = sum(_waited(self.client, self.client.map(_bucket_totals, self.parts, pure=False)))
        shares = of_buckets(seed, totals, size, kind)
        self.parts = self.client.map(_weighted, self.parts, seed=seed, shares=shares, kind=kind, pure=False)


@terms
class Remote(AbstractTerms):
    """The number under which the partitions are found."""

    number: Array

    def value(self, loss: Loss, theta: Theta, weights: Any) -> Float[Array, ""]:
        return _value(theta, self.number, weights)

    def second_order(self, loss: Loss, theta: Theta, weights: Any) -> SecondOrder:
        value, gradient, hessian = _asked(2, theta, self.number, weights)
        return value, gradient, hessian


@dataclass(frozen=True)
class Summed(AbstractLoss):
    """A loss summed over partitions on other machines. Its weights are the numbers of replicates; -1 is the data."""

    loss: AbstractLoss
    number: int = field(compare=False)  # of the handle; code compiled for one serves all

    def __getattribute__(self, name: str) -> Any:
        described = ("name", "title", "phrase", "formula", "references", "bounded")
        return getattr(self.loss, name) if name in described else super().__getattribute__(name)

    def prepare(self, model: AbstractModel, sites: Sites) -> Prepared:
        handle = _Handle.of(self.number)

        def term_weights(weights: np.ndarray, holding: _Handle = handle) -> Array:
            return jnp.asarray(weights[..., 0], int)

        def moments(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            return handle.moments(theta)

        return Prepared(
            Remote(jnp.asarray(self.number)), term_weights, np.array([-1.0]), is_remote=True, gradient_moments=moments
        )

    def term(self, u: Array, site: Site | None) -> Array:
        return self.loss.term(u, site)


def _asked(order: int, theta: Array, number: Array, which: Array) -> tuple[Array, ...]:
    p = theta.shape[-1]
    shapes = [jax.ShapeDtypeStruct(shape, float) for shape in ((), (p,), (p, p))[: order + 1]]

    def ask(theta: Array, number: Array, which: Array) -> tuple[np.ndarray, ...]:
        thetas = np.asarray(theta).reshape(-1, p)
        numbers, indices = (np.broadcast_to(np.asarray(a), np.shape(theta)[:-1]).reshape(-1) for a in (number, which))
        ends = _Handle.of(numbers[0]).evaluate(order, thetas, indices)
        return tuple(end.reshape(np.shape(theta)[:-1] + end.shape[1:]) for end in ends)

    return tuple(jax.pure_callback(ask, shapes, theta, number, which, vmap_method="broadcast_all"))


@jax.custom_jvp
def _value(theta: Array, number: Array, which: Array) -> Array:
    return _asked(0, theta, number, which)[0]


@jax.custom_jvp
def _gradient(theta: Array, number: Array, which: Array) -> Array:
    return _asked(1, theta, number, which)[1]


@_value.defjvp
def _value_along(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return _value(*primals), jnp.dot(_gradient(*primals), tangents[0])


@_gradient.defjvp
def _gradient_along(primals: Any, tangents: Any) -> tuple[Array, Array]:
    _, gradient, hessian = _asked(2, *primals)
    return gradient, hessian @ tangents[0]


# -- bootstrap fits ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sent:
    """An objective as it is sent to workers; those of one run bear one token."""

    token: str
    objective: Objective

    @cached_property
    def here(self) -> Objective:
        """The same with the model and the loss of the first that came, for which code is compiled already."""
        objective = self.objective
        problem, coordinates = kept(self.token, (Problem(objective.model, objective.loss), objective.coordinates))
        return replace(objective, model=problem.model, loss=problem.loss, coordinates=coordinates)


def _minimise_sent(sent: _Sent, weights: np.ndarray, around: Minimum) -> Minima:
    return minimise_many(sent.here, weights, around)


def _refit_sent(sent: _Sent, datasets: list[Dataset], around: Minimum) -> Minima:
    return refit_many(sent.here, datasets, around)
