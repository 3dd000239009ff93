"""Maps beside those that a fitted model makes, and how likely each category is at every site."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from ...errors import SettingError
from ...results.predictive import evenly
from ...results.relevance import tail_probability
from .model import Autologistic
from .simulate import Maps, by_colours, simulate_maps

if TYPE_CHECKING:
    from ...results.fitted import Fitted

DRAWS, SWEEPS = 200, 50
LIKE = "neighbours alike"


def simulated_maps(model: Autologistic, thetas: Float[np.ndarray, "all p"], draws: int = 100, seed: int = 0) -> Maps:
    """One map from each of some posterior draws."""
    return simulate_maps(model, evenly(thetas, draws), seed=seed)


def statistics(model: Autologistic, values: Int[np.ndarray, "b n"]) -> dict[str, np.ndarray]:
    """Of each map, over the sites that were observed: the share of each category, and of pairs that are alike."""
    seen, names = model.map, model.map.categories
    shown = range(1, len(names)) if len(names) == 2 else range(len(names))
    found = {f"share of {names[c]}": np.mean(values[:, seen.observed] == c, axis=1) for c in shown}
    i, j = seen.edges[seen.observed[seen.edges].all(axis=1)].T
    return found | {LIKE: np.mean(values[:, i] == values[:, j], axis=1) if len(i) else np.full(len(values), np.nan)}


def beside(maps: Maps) -> pd.DataFrame:
    """Statistics of the observed map and of simulated ones (join counts, as shares), with their tails."""
    own, others = statistics(maps.model, maps.model.map.values[None]), statistics(maps.model, maps.values)
    rows = [
        {"observed": seen, "predicted": drawn.mean(), "sd": drawn.std(), "tail": np.mean(drawn >= seen),
         "p_value": tail_probability(seen, drawn)}
        for seen, drawn in ((own[name][0], drawn) for name, drawn in others.items())
    ]  # fmt: skip
    return pd.DataFrame(rows, index=list(others))


def shares(maps: Maps) -> pd.DataFrame:
    """How often each site has each category but the first in simulated maps: its probability, neighbours unknown."""
    names = maps.model.map.categories
    return pd.DataFrame({names[c]: np.mean(maps.values == c, axis=0) for c in range(1, len(names))})


def site_probabilities(fit: Fitted, interval: float, seed: int = 0) -> pd.DataFrame:
    """See `Fit.predict`."""
    model = fit.model
    assert isinstance(model, Autologistic)
    if not 0 < interval < 1:
        raise SettingError(f"interval is {interval}; it must lie between 0 and 1")
    chance, seen = given_neighbours(model, evenly(fit.joint_draws, DRAWS), seed), model.map
    places = {} if seen.places is None else dict(zip(seen.at, seen.places.T, strict=True))
    names = [*seen.categories, None]
    table = pd.DataFrame(places | {"observed": [names[value] for value in seen.values]})
    ends = [(1.0 - interval) / 2.0, (1.0 + interval) / 2.0]
    for c, name in enumerate(seen.categories[1:], start=1):
        mark = "" if len(seen.categories) == 2 else f"[{name}]"
        table[f"probability{mark}"] = chance[:, :, c].mean(axis=0)
        table[f"low{mark}"], table[f"high{mark}"] = np.quantile(chance[:, :, c], ends, axis=0)
        if fit.checks is not None and fit.checks.sites is not None:
            table[f"marginal{mark}"] = fit.checks.sites.iloc[:, c - 1].to_numpy()
    return table


def given_neighbours(model: Autologistic, thetas: Float[np.ndarray, "c p"], seed: int) -> Float[np.ndarray, "c n k"]:
    """Probabilities of every site's categories given the others; values that nobody observed are drawn."""
    values = np.repeat(model.map.values[None], len(thetas), axis=0)
    if not model.map.observed.all():
        rng = np.random.default_rng([seed, 31])
        begin = np.where(values < 0, rng.integers(model.states, size=values.shape), values)
        values, _ = by_colours(model, thetas, begin, ~model.map.observed, rng, SWEEPS)
    log = model.fields(thetas) + thetas[:, -1, None, None] * model.map.around(values)
    mass = np.exp(log - log.max(axis=2, keepdims=True))
    chance = mass / mass.sum(axis=2, keepdims=True)
    chance[:, ~model.map.known] = np.nan
    return chance
