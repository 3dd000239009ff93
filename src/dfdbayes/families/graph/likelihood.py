"""The likelihood of a random graph whose ties depend on each other: where it is largest, by simulation.

At the maximum graphs simulated from the model have the observed statistics on average. Graphs are simulated at a guess,
the guess is moved by a Newton step (their covariance is the information), and so on; where the observed statistics are
far from the simulated ones, a part of the way (Hummel, Hunter and Handcock, 2012; R's ergm does the same). The prior
takes part in the search, because some graphs have no finite maximum: it ends at the posterior's mode.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.dataset import Dataset
from ...core.losses.simulated import SimulatedLikelihood
from ...core.minimise import interior, prior_at_y
from ...errors import DegeneracyError, MinimiserError
from .degeneracy import require_sound
from .model import RandomGraph
from .simulate import Graphs, simulate_graphs

ROUNDS = 20  # of simulation at most
REACH = 1.5  # standard deviations of simulated statistics that one step goes
NEAR = 3.0  # Monte-Carlo errors of the mode, within which it is found
MANY = 4000  # dyads, from which graphs take long
FEW_GRAPHS, GRAPHS = {False: 200, True: 100}, {False: 1000, True: 400}  # of a round, and of the last; of many dyads
RIDGE = 1e-9  # of variances, where a statistic does not vary


def near_maximum(
    model: RandomGraph, data: Dataset, seed: int = 0, advance: Callable[[int], None] = lambda done: None
) -> SimulatedLikelihood:
    """The likelihood about the posterior's mode.

    ``advance`` is called after each simulation with 1, of `ROUNDS` + 1 that there may be.

    Raises
    ------
    DegeneracyError
        If graphs simulated there, or on the way, are not like the observed one.
    MinimiserError
        If the search did not end.
    """
    space = model.space
    long = len(model.graph_observed.dyads[0]) > MANY
    guess = _start(model, data, FEW_GRAPHS[long], seed)
    for k in range(ROUNDS):
        graphs = simulate_graphs(model, np.asarray(space.from_y(guess)), FEW_GRAPHS[long], seed=_seed(seed, k))
        advance(1)
        require_sound(graphs)
        step, size = _step(graphs, guess, REACH)
        guess = guess + step
        effective = len(graphs) if graphs.mixing is None else float(graphs.mixing.effective.min())
        if size < NEAR * np.sqrt(space.size / effective):
            break
    else:
        raise MinimiserError(
            f"graphs like the observed one were not found in {ROUNDS} rounds of simulation, so its likelihood is not "
            "known. What to do: other terms (a smaller decay, covariates of the nodes), or loss='pseudo'."
        )
    at = np.asarray(space.from_y(guess))
    graphs = simulate_graphs(model, at, GRAPHS[long], seed=_seed(seed, ROUNDS))
    advance(ROUNDS - k)
    require_sound(graphs)
    covariance = np.atleast_2d(np.cov(graphs.statistics.T))
    return SimulatedLikelihood(at, graphs.statistics.mean(axis=0) - graphs.observed, covariance, len(graphs))


def _seed(seed: int, number: int) -> int:
    """Seeds of rounds, apart from those of other stages."""
    return int(np.random.default_rng([seed, 11, number]).integers(2**31))


def _start(model: RandomGraph, data: Dataset, size: int, seed: int) -> np.ndarray:
    """The pseudo-likelihood estimate, or independent ties where graphs simulated there are degenerate."""
    space = model.space
    guess = interior(space, np.asarray(space.flatten(model.start(data))))
    try:
        require_sound(simulate_graphs(model, guess, size // 2, seed=_seed(seed, ROUNDS + 1)))
    except DegeneracyError:
        density = model.graph_observed.ties / len(model.graph_observed.dyads[0])
        alone = [np.log(density / (1.0 - density)) if name == "edges" else 0.0 for name in space.names]
        guess = interior(space, np.array(alone))
    return np.asarray(space.to_y(guess))


def _step(graphs: Graphs, guess: np.ndarray, reach: float) -> tuple[np.ndarray, float]:
    """The next step towards the posterior's mode, and the length of the whole way in posterior standard deviations."""
    space = graphs.model.space
    slope, _ = space.slopes_of_y(guess)
    _, force, bend = prior_at_y(space, guess)
    covariance = np.atleast_2d(np.cov(graphs.statistics.T))
    covariance = covariance + np.diag(RIDGE + RIDGE * np.diag(covariance))
    missing = graphs.observed - graphs.statistics.mean(axis=0)
    distance = np.sqrt(missing @ np.linalg.solve(covariance, missing))
    posterior = slope[:, None] * covariance * slope - bend
    whole = np.linalg.solve(posterior, slope * missing + force)
    part = min(1.0, reach / max(distance, 1e-12))
    return np.linalg.solve(posterior, slope * part * missing + force), float(np.sqrt(whole @ posterior @ whole))
