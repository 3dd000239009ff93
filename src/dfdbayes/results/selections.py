"""Which of some coefficients are there, as drawn from their posterior: kept with a fit, so that it is drawn once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from .._util.tables import Table

USUAL = (1.0, 0)  # prior odds of an edge and seed, where nobody says otherwise


@dataclass(frozen=True)
class Selection:
    """Graphs drawn from their posterior.

    Attributes
    ----------
    inclusion : (e,) floats
        The probability that each edge is there.
    bayes_factor : (e,) floats
        The inclusion Bayes factor: how much the data raise the odds that it is there, over all graphs.
    present : (s, e) booleans
        Which edges each drawn graph has; none of them where edges were judged one at a time, and of a saved fit.
    """

    inclusion: Float[np.ndarray, " e"]
    bayes_factor: Float[np.ndarray, " e"]
    present: Bool[np.ndarray, "s e"]


def to_table(selections: Mapping[Any, Selection]) -> Table | None:
    """What a file keeps of graphs that were drawn as `fit` does it: all but the graphs themselves."""
    usual = {terms: found for (odds, seed, terms), found in selections.items() if (odds, seed) == USUAL}
    if not usual:
        return None
    size = max(1 if terms is None else len(terms) for terms in usual)
    return Table.of(
        {
            "terms": (("question", "term"), np.array([np.full(size, np.nan) if t is None else t for t in usual])),
            "inclusion": (("question", "edge"), np.array([found.inclusion for found in usual.values()])),
            "bayes_factor": (("question", "edge"), np.array([found.bayes_factor for found in usual.values()])),
        }
    )


def from_table(kept: Table) -> dict[Any, Selection]:
    """Back from `to_table`."""
    found = {}
    parts = (kept.arrays[name] for name in ("terms", "inclusion", "bayes_factor"))
    for terms, inclusion, factor in zip(*parts, strict=True):
        asked = None if np.isnan(terms).any() else tuple(terms)
        found[(*USUAL, asked)] = Selection(inclusion, factor, np.zeros((0, len(factor)), bool))
    return found
