"""The answer first: two or three sentences that a reader can repeat, from a fit of any model.

Each family of models says in one place what its fits found: a function of this folder, and a line of `FAMILIES`, under
the name that its models declare as ``answers``. What all fits have in common (missing entries, clusters, whether the
model reproduces the data) is said here after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..results.words import counted
from .counts.narrative import counts, mixture, share
from .graph.narrative import graph, size
from .lattice.narrative import lattice
from .map.narrative import of_map, sites
from .network.narrative import network
from .own.narrative import own
from .regression_narrative import regression

if TYPE_CHECKING:
    from ..results.fitted import Fitted


class Family(NamedTuple):
    """What is told of fits of some models: the sentences, and the name of the picture in `plots` that shows them.

    ``checked`` says that the picture is of the fit's checks, which a fit may lack. ``size`` says how much was observed.
    """

    sentences: Callable[[Fitted], list[str]]
    picture: str = "posterior"
    checked: bool = False
    size: Callable[[Fitted], str] = lambda fit: counted(fit.data.n, "observation")


FAMILIES = {
    "counts": Family(counts, "predictive", checked=True),
    "graph": Family(graph, "graph_goodness", checked=True, size=size),
    "lattice": Family(lattice),
    "map": Family(of_map, "sites", checked=True, size=sites),
    "mixture": Family(mixture, "predictive", checked=True),
    "network": Family(network, "network"),
    "own": Family(own),
    "regression": Family(regression, "ratios"),
    "share": Family(share),
}


def family_of(fit: Fitted) -> Family:
    """Who speaks for a fit; a loaded one without its model is told parameter by parameter."""
    return FAMILIES["own" if fit.model is None else fit.model.answers]


def answer(fit: Fitted) -> tuple[str, ...]:
    """What was found, what missing entries and clusters cost, and whether the model reproduces the data.

    Of chains that did not converge there is no answer, and nothing else is said.
    """
    return (*findings(fit), *(costs(fit) + reproduces(fit) if fit.converged else []))


def findings(fit: Fitted) -> list[str]:
    """What was found, by the model's family; that there is nothing, and why, where the chains did not converge."""
    if not fit.converged:
        return [f"There is no answer: the chains did not converge ({fit.not_converged}). {remedy_of(fit)}"]
    return family_of(fit).sentences(fit)


def remedy_of(fit: Fitted) -> str:
    """What to do about chains that did not converge."""
    draws, sampler = 4 * int(fit.settings["draws"]), fit.settings["sampler"]
    longer = f"draws={draws} (--draws {draws})"
    if sampler not in ("nuts", "hmc"):  # those begin each draw anew, or walk at random
        longer = f"sampler='nuts' (--sampler nuts) and {longer}"
    return (
        "What to do: look at the warnings first. Columns that number the rows, hardly vary or repeat others leave a "
        "posterior that no sampler can follow: leave them out (columns=[...], --columns), or give parameters a tighter "
        f"prior={{...}}. Where nothing of that is the case, ask for more: {longer}."
    )


def costs(fit: Fitted) -> list[str]:
    """What incomplete or dependent rows cost, where there are any."""
    told = []
    if fit.data.dropped:
        told.append(f"{counted(fit.data.dropped, 'row')} with missing values {_were(fit.data.dropped)} left out.")
    if fit.imputation is not None:
        lost = np.array(list(fit.imputation.lost.values()))
        mean, most = 100.0 * lost.mean(), 100.0 * lost.max()
        of = "none" if most < 0.5 else f"{mean:.0f} % on average and at most {most:.0f} %"
        told.append(
            f"{counted(fit.imputation.entries, 'missing entry', 'missing entries')} cost {of} of what complete data "
            "would have told about a parameter."
        )
    if fit.clusters is not None:
        told.append(
            f"The {fit.clusters.rows:.0f} observations in {fit.clusters.number} clusters tell as much as "
            f"{fit.clusters.worth:.0f} independent ones would."
        )
    return told


def reproduces(fit: Fitted) -> list[str]:
    """Whether data such as these could come from the model, as far as it was checked."""
    return [] if fit.checks is None else [fit.checks.sentence]


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
