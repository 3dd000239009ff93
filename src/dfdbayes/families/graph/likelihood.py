"""The likelihood of a random graph whose ties depend on each other: where it is largest, by simulation.

At the maximum graphs simulated from the model have the observed statistics on average. Graphs are simulated at a guess,
the guess is moved by a Newton step (their covariance is the information), and so on; where the observed statistics are
far from the simulated ones, a part of the way (Hummel, Hunter and Handcock, 2012; R's ergm does the same). The prior
takes part in the search, because some graphs have no finite maximum: it ends at the posterior's mode.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from ...core.losses.simulated import SimulatedLikelihood
from ...core.minimise import interior, prior_at_y
from ...core.parameters import Space
from ...errors import DegeneracyError, MinimiserError
from .chains import Graphs
from .observed import ObservedGraph

MAX_ROUNDS = 20  # of simulation at most, after which a search is said not to have ended
MAX_ERRORS_FROM_MODE = 3.0  # Monte-Carlo errors of the mode, within which it is found; the last step is the loss's own
Simulate = Callable[[np.ndarray, int, int], Graphs]


def near_maximum(
    space: Space,
    graph: ObservedGraph,
    start: Float[np.ndarray, " p"],
    simulate: Simulate,
    seed: int,
    advance: Callable[[int], None],
) -> SimulatedLikelihood:
    """The likelihood about the posterior's mode.

    Parameters
    ----------
    space : Space
        The coefficients, with their priors.
    graph : ObservedGraph
    start : (p,) floats
        A first guess, that of the pseudo-likelihood.
    simulate : callable
        ``simulate(theta, size, seed)`` gives so many graphs.
    seed : int
    advance : callable
        Called after each simulation with 1, of `MAX_ROUNDS` + 1 that there may be.

    Raises
    ------
    DegeneracyError
        If graphs simulated there, or on the way, are not like the observed one.
    MinimiserError
        If the search did not end.
    """
    few, last = (100, 400) if len(graph.dyads[0]) > 4000 else (200, 1000)  # graphs of a round; many dyads take long

    def sound(theta: np.ndarray, size: int, number: int) -> Graphs:
        """Simulated graphs, by a seed of their own apart from those of other stages."""
        graphs = simulate(theta, size, int(np.random.default_rng([seed, 11, number]).integers(2**31)))
        graphs.require_sound()
        return graphs

    theta = interior(space, start)
    try:
        sound(theta, few // 2, MAX_ROUNDS + 1)
    except DegeneracyError:  # then from independent ties
        density = graph.ties / len(graph.dyads[0])
        theta = interior(space, np.where(np.array(space.names) == "edges", np.log(density / (1.0 - density)), 0.0))
    guess = np.asarray(space.to_y(theta))
    for k in range(MAX_ROUNDS):
        graphs = sound(np.asarray(space.from_y(guess)), few, k)
        advance(1)
        step, size = _step(space, graphs, guess)
        guess = guess + step
        effective = len(graphs) if graphs.mixing is None else float(graphs.mixing.effective.min())
        if size < MAX_ERRORS_FROM_MODE * np.sqrt(space.size / effective):
            break
    else:
        raise MinimiserError(
            f"graphs like the observed one were not found in {MAX_ROUNDS} rounds of simulation, so its likelihood is "
            "not known. What to do: other terms (a smaller decay, covariates of the nodes), or loss='pseudo'."
        )
    at = np.asarray(space.from_y(guess))
    graphs = sound(at, last, MAX_ROUNDS)
    advance(MAX_ROUNDS - k)
    covariance = np.atleast_2d(np.cov(graphs.statistics.T))
    return SimulatedLikelihood(at, graphs.statistics.mean(axis=0) - graphs.observed, covariance, len(graphs))


def _step(space: Space, graphs: Graphs, guess: np.ndarray) -> tuple[np.ndarray, float]:
    """The next step towards the posterior's mode, and the length of the whole way in posterior standard deviations."""
    slope, _ = space.slopes_of_y(guess)
    _, force, bend = prior_at_y(space, guess)
    covariance = np.atleast_2d(np.cov(graphs.statistics.T))
    covariance = covariance + 1e-9 * np.diag(1.0 + np.diag(covariance))
    missing = graphs.observed - graphs.statistics.mean(axis=0)
    distance = np.sqrt(missing @ np.linalg.solve(covariance, missing))
    posterior = slope[:, None] * covariance * slope - bend
    whole = np.linalg.solve(posterior, slope * missing + force)
    part = min(1.0, 1.5 / max(distance, 1e-12))  # standard deviations of statistics that one step goes
    return np.linalg.solve(posterior, slope * part * missing + force), float(np.sqrt(whole @ posterior @ whole))
