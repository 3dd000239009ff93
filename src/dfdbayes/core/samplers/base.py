"""What all samplers share. A sampler sees a log density of z and its inputs, never a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import jax
import numpy as np
from jaxtyping import Array, Float

from ..._util.checkpoint import NOTHING, Checkpoint
from ...errors import SettingError
from ..linalg import inverse
from ..registry import Registry

MODE_TOLERANCE = 1e-4  # how much higher the log density may be at its mode


class LogDensity(Protocol):
    """A log density of z given its inputs, the same at many points, and on the host with gradient and Hessian.

    `fold` maps z to one chosen point among those of equal density; `straighten` gives coordinates in which the density
    is nearer to a normal one next to an edge, with the log of how they stretch z, and `bend` goes back.
    """

    def __call__(self, z: Array, inputs: Any) -> Array: ...

    def many(self, z: Array, inputs: Any, at_once: int) -> Array: ...

    def second_order(self, z: np.ndarray, inputs: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

    def fold(self, z: np.ndarray) -> np.ndarray: ...

    def straighten(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...

    def bend(self, s: np.ndarray) -> np.ndarray: ...


Advance = Callable[[int], None]


@dataclass(frozen=True)
class Draws:
    """Draws of z by chain, and what the sampler has to say about each."""

    z: Float[np.ndarray, "chains draws p"]
    stats: dict[str, np.ndarray]
    sampler: str
    """The name of the sampler that drew them."""
    warmup: int = 0
    """Transitions of each chain before them."""

    @property
    def about(self) -> dict[str, Any]:
        """How they were drawn, in values JSON can hold; ``pareto_k`` only where proposals were weighed."""
        k = self.stats.get("pareto_k")
        return {
            "sampler": self.sampler,
            "chains": self.z.shape[0],
            "draws": self.z.shape[1],
            "warmup": self.warmup,
            "pareto_k": None if k is None or not np.isfinite(k[0, 0]) else float(k[0, 0]),
        }


@dataclass(frozen=True)
class Centre:
    """The posterior's mode and the Cholesky factor of its normal approximation's covariance."""

    mode: Float[np.ndarray, " p"]
    factor: Float[np.ndarray, "p p"]


@dataclass(frozen=True)
class Task:
    """What a sampler is asked to draw from, where that lies, and how it tells and keeps what it has done."""

    log_density: LogDensity
    inputs: Any
    around: Centre
    seed: int
    advance: Advance = lambda done: None
    checkpoint: Checkpoint = NOTHING


class AbstractSampler(ABC):
    """A way to draw from a log density: a frozen dataclass whose fields are its settings.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> dfd.samplers.by_name("laplace", draws=200).draws
    200
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    """What draws come by; its name where nothing is said."""
    phrase: ClassVar[str] = ""
    """The same as a paper says it, with its citation."""
    references: ClassVar[tuple[str, ...]] = ()
    """The works that the phrase cites: keys of `REFERENCES` in `present.methods`, or the works themselves."""
    chained: ClassVar[bool] = True
    """Whether draws follow one another in chains; otherwise they are independent, and of a known distribution."""
    by_gradients: ClassVar[bool] = False
    """Whether chains follow gradients wherever the posterior leads them."""
    gradients: ClassVar[float] = 1.0
    """Of the loss, that a transition takes as a rule: for a guess of how long a run will take."""
    when_bounded: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Settings where it is given by name and the loss is bounded below, which has no steep walls."""
    draws: int
    warmup: int
    chains: int

    @abstractmethod
    def run(self, task: Task) -> Draws:
        """Draw by chain; `Task.advance` is told of transitions that are done."""

    @property
    def transitions(self) -> int:
        """How many steps each chain goes."""
        return self.draws


def in_blocks(warmup: int, draws: int, block: int) -> int:
    """Transitions of a run whose warm-up and draws are made in blocks of one size."""
    return block * (max(1, -(-warmup // block)) + -(-draws // block))


SAMPLERS: Registry[type[AbstractSampler]] = Registry("sampler")


def kind_of(name: str) -> type[AbstractSampler]:
    """The class of a name that a fit has; one that says nothing where nobody registered that."""
    return SAMPLERS.by_name(name) if name in SAMPLERS else AbstractSampler


def by_name(
    sampler: Any,
    draws: int | None = None,
    warmup: int | None = None,
    chains: int | None = None,
    *,
    bounded: bool = False,
) -> Any:
    """The sampler that a word names (or the given one) with these lengths, where they are given.

    A loss that is ``bounded`` below has no steep walls, so that some samplers take longer steps.
    """
    if isinstance(sampler, str):
        kind = SAMPLERS.by_name(sampler)
        sampler = kind(**kind.when_bounded) if bounded else kind()
    if not hasattr(sampler, "run"):
        raise SettingError(
            f"{sampler!r} is not a sampler; give a word ({', '.join(SAMPLERS)}) or a dfd.samplers object"
        )
    lengths = {"draws": draws, "warmup": warmup, "chains": chains}
    for name, value in lengths.items():
        least = 0 if name == "warmup" else (1 if name == "chains" else 4)
        if value is not None and value < least:
            raise SettingError(f"{name} is {value}; it must be at least {least}")
    given: dict[str, float] = {name: value for name, value in lengths.items() if value is not None}
    if draws is not None and hasattr(sampler, "enough"):
        given["enough"] = float("inf")  # so many, and not as many as are enough
    return replace(sampler, **given)


@partial(jax.jit, static_argnums=0)
def _value(log_density: LogDensity, z: Array, inputs: Any) -> Array:
    return log_density(z, inputs)


def centre(log_density: LogDensity, inputs: Any, start: np.ndarray, steps: int = 50) -> Centre:
    """The mode, by damped Newton steps from a point near it, and the normal approximation there."""

    def evaluate(z: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(-part for part in log_density.second_order(z, inputs))

    mode, (value, gradient, hessian) = start, evaluate(start)
    for _ in range(steps):
        move = -_covariance(hessian) @ gradient
        gain = -0.5 * gradient @ move
        # what a step gains below the digits of a log density is not seen
        if gain < 1e-13 * (1.0 + abs(value)):
            if gain < MODE_TOLERANCE:  # no value can judge it; without it half of the mode's digits depend on rounding
                mode = mode + move
            break
        for shrink in 0.5 ** np.arange(12):
            trial = evaluate(mode + shrink * move)
            if trial[0] < value and all(np.isfinite(part).all() for part in trial):
                break
        else:
            break
        gained, mode, (value, gradient, hessian) = value - trial[0], mode + shrink * move, trial
        if gained < MODE_TOLERANCE:
            break
    return Centre(mode, np.linalg.cholesky(_covariance(hessian)))


def _covariance(hessian: np.ndarray) -> np.ndarray:
    """The inverse of a Hessian; flat or upward directions are given a little curvature first."""
    # curvature of a direction, as a share of its parameters' own: below that it is flat
    return inverse(hessian, 1e-9) if np.isfinite(hessian).all() else 0.01 * np.eye(len(hessian))


def cells(terms: Any) -> int:
    """How many numbers stand behind a density."""
    return sum(np.size(leaf) for leaf in jax.tree.leaves(terms))


def at_once(terms: Any) -> int:
    """How many densities to evaluate side by side, so that what they need of the data stays near the processor.

    Terms that are worked on in blocks may say it themselves.
    """
    # at most 64 side by side, and as many as have their terms in the cache together
    return getattr(terms, "at_once", None) or min(64, max(1, 2**16 // max(cells(terms), 1)))


def scattered(
    log_density: LogDensity, inputs: Any, around: Centre, chains: int, rng: np.random.Generator
) -> Float[np.ndarray, "chains p"]:
    """Starting points wider than the normal approximation, each with a finite density."""
    points = []
    for noise in rng.standard_normal((chains, len(around.mode))):
        width = 1.5
        while width > 1e-6:
            point = around.mode + width * around.factor @ noise
            if np.isfinite(_value(log_density, point, inputs)):
                break
            width /= 2
        points.append(point)
    return np.stack(points)
