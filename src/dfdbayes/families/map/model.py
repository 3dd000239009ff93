"""Autologistic models: one map whose sites depend on covariates and on their neighbours (Ising, Potts)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from ...core.dataset import Dataset
from ...core.domain import Binary, Categories, Domain
from ...core.graphs import Graph, of, parse
from ...core.linear_terms import Features
from ...core.model import AbstractModel, Row
from ...core.parameters import Parameter, Space
from ...core.sites import Sites
from ...core.starts import logistic
from ...core.terms import Prepared, View
from ...errors import DataError, ModelError
from .narrative import INTERACTION, MapNarrative
from .observed import ObservedMap

WIDTH = 3.0  # standard deviation of a coefficient's prior, for a covariate on the scale of 1
OF_INTERACTION = 6.0  # divided by the number of neighbours: that of the interaction


@dataclass(frozen=True)
class Autologistic(AbstractModel):
    """p(x) proportional to exp(sum over sites of z_i . beta(x_i) + interaction times the number of like neighbours).

    For one map with a value at each site: present or absent, or one of a few categories. Given all others, the log odds
    of a category against the first are linear in the site's covariates, plus the interaction for each neighbour of that
    category less each of the first. With two categories this is the Ising model with a field at each site (an
    interaction of 2 / temperature), with more the Potts model (1 / temperature).

    Parameters
    ----------
    terms : str, optional
        A formula: ``"present ~ altitude + C(soil)"``. `fit` takes it as ``formula=`` too; an image needs none.
    at : str or two of them, optional
        The columns with the coordinates of sites on a grid, whole or regular steps; cells that have no row are not
        there. With a ``graph``, the column that names the sites.
    neighbours : {4, 8}
        Whether cells are neighbours that share a side, or also those that share a corner.
    graph : optional
        Sites that are no grid: a networkx graph, edges between names, or `dfdbayes.graphs.grid` for rows in its order.

    Examples
    --------
    >>> import dfdbayes as dfd, pandas as pd
    >>> frame = pd.DataFrame({"row": [0, 0, 0, 1, 1], "col": [0, 1, 2, 0, 1], "present": [1, 1, 0, 1, 0]})
    >>> objective = dfd.objective(dfd.models.Autologistic("present ~ 1", at=("row", "col")), frame, loss="pseudo")
    >>> objective.model.space.names, objective.data.given[:, 1:].tolist()  # neighbours absent, and present
    (('intercept', 'interaction'), [[0.0, 2.0], [2.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 2.0]])
    """

    terms: str | None = field(default=None, compare=False)
    at: str | Sequence[str] | None = field(default=None, compare=False)
    neighbours: int = field(default=4, compare=False)
    graph: Any = field(default=None, compare=False, repr=False)
    observed: ObservedMap | None = field(default=None, compare=False, repr=False)
    """The map that the model was bound to."""
    space: Space = field(default=Space(()), repr=False)

    name = "autologistic"
    usual_replicates = 2000  # widths rest on them alone: then these are known to 2 % (see `parametric.noise`)
    narrative = MapNarrative()
    reads = ("formula", "missing")
    title = "an autologistic model"
    formula = (
        "p(x) ∝ exp( Σ<sub>i</sub> z<sub>i</sub>·β(x<sub>i</sub>) + interaction × number of pairs of neighbours that "
        "are alike )"
    )
    derived = None
    interactions = None
    log_normaliser = None

    def __post_init__(self) -> None:
        at = () if self.at is None else (self.at,) if isinstance(self.at, str) else tuple(self.at)
        object.__setattr__(self, "at", at)
        if self.graph is not None:
            object.__setattr__(self, "graph", parse(self.graph) if isinstance(self.graph, str) else of(self.graph))

    # -- data ------------------------------------------------------------------------------------

    def observe(self, source: Any, formula: str | None = None, missing: str = "refuse") -> tuple[Dataset, Autologistic]:
        """The sites of a map as data, and the model of these sites."""
        on = None if self.graph is None else (self.graph.names, self.graph.edges, self.graph.size)
        written = self.terms if formula is None else formula
        model = self.bound(ObservedMap.of(source, written, tuple(self.at or ()), self.neighbours, on, missing))
        found = model.map
        if not len(found.used):
            raise DataError("no site has a value while all its neighbours have one; use missing='impute'")
        return found.dataset(np.maximum(found.values, 0)[None]), model

    def bound(self, seen: ObservedMap) -> Autologistic:
        """The same model for the sites of a map: its coefficients have names, and priors on the data's scale."""
        graph = Graph(seen.n, tuple((int(a), int(b)) for a, b in np.unique(np.sort(seen.edges, axis=1), axis=0)))
        return replace(self, observed=seen, graph=graph, space=_space(seen))

    @property
    def map(self) -> ObservedMap:
        """The map that the model was bound to."""
        if self.observed is None:
            raise ModelError("this model has seen no map yet: its coefficients get their names from one")
        return self.observed

    @property
    def states(self) -> int:
        """The number of categories."""
        return 2 if self.observed is None else len(self.observed.categories)

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return Binary(1) if self.states == 2 else Categories(1, self.map.categories)

    @property
    def independent(self) -> bool:
        """Whether no site has a neighbour."""
        return not len(self.map.edges)

    @property
    def meanings(self) -> Mapping[str, str]:  # type: ignore[override]
        own = "log odds of a site where covariates are zero and its neighbours balance each other"
        known = {"intercept": own, INTERACTION: "what one more neighbour of a kind adds to the log odds of that kind"}
        added = "what one more of the covariate adds to the log odds, given the neighbours"
        return {p.name: known.get(p.name, added) for p in self.space.parameters}

    @property
    def options(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"observed": self.observed, "neighbours": self.neighbours}

    # -- what every model has --------------------------------------------------------------------

    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        raise ModelError(
            "an autologistic model has a mass function of the whole map, not of one site. What to do: simulate maps by "
            "dfd.simulate(fit.model, theta, n)."
        )

    def with_space(self, space: Space) -> Autologistic:
        return replace(self, space=space)

    def with_priors(self, priors: Mapping[str, Any] | None) -> Autologistic:
        if priors and self.observed is None:
            raise ModelError("coefficients get their names from the data: give priors to fit(..., prior=...)")
        return super().with_priors(priors)

    def labelled(self, columns: Sequence[str]) -> Autologistic:
        return self

    def features(self, given: Float[np.ndarray, "u q"]) -> Features:
        """What the log mass of each category at a site is linear in, from covariates and neighbours by category."""
        k, terms = self.states, len(self.map.labels)
        found = np.zeros((len(given), k, terms * (k - 1) + 1))
        for c in range(1, k):
            found[:, c, c - 1 : -1 : k - 1] = given[:, :terms]
        found[:, :, -1] = given[:, -k:]
        base = np.zeros((len(given), k))
        if self.map.offset is not None:
            base[:, 1:] = given[:, terms, None]
        return Features(found, base)

    def terms_at(self, sites: Sites, view: View) -> Prepared:
        assert sites.given is not None
        if view is View.LIKELIHOOD and not self.independent:
            raise ModelError(
                "the likelihood of a map whose sites depend on each other needs a sum over all maps. Use "
                "loss='pseudo' or 'ratio', which need no such sum."
            )
        features = self.features(sites.given)
        return features.neighbours(self, sites) if view is View.NEIGHBOURS else features.choices(self, sites)

    def supports(self, what: str) -> bool:
        return self.independent if what == "likelihood" else super().supports(what)

    def start(self, data: Dataset) -> dict[str, Any]:
        """Logistic regressions of each category against the first, held by a small ridge."""
        assert data.given is not None
        k, terms = self.states, len(self.map.labels)
        found, around = np.zeros((terms, k - 1)), data.given[:, -k:]
        slopes = []
        for c in range(1, k):
            among = np.isin(data.rows[:, 0], (0, c))
            design = np.column_stack([data.given[:, :terms], around[:, c] - around[:, 0]])[among]
            shift = 0.0 if self.map.offset is None else data.given[among, terms]
            weight = data.counts[among]
            one = logistic(design, weight * (data.rows[among, 0] == c), weight, offset=shift)
            found[:, c - 1] = one[:-1]
            slopes.append(one[-1])
        return self.space.unflatten(np.concatenate([found.reshape(-1), [float(np.mean(slopes))]]))

    def advise(self, data: Dataset) -> tuple[str, str]:
        return "pseudo", "it needs no sum over all maps: each site given its neighbours is a logistic regression"

    def columns_told(self, columns: Sequence[str]) -> str:
        names = self.map.categories
        if len(names) == 2:
            return f"coefficients are of the log odds of {self.map.response} = {names[1]} rather than {names[0]}"
        return f"coefficients are of the log odds of each {self.map.response} rather than {names[0]}"

    # -- maps ------------------------------------------------------------------------------------

    def fields(self, theta: Float[np.ndarray, "c p"]) -> Float[np.ndarray, "c n k"]:
        """The log mass of each category at every site without its neighbours; zero where covariates are unknown."""
        k, z = self.states, np.nan_to_num(self.map.matrix)
        found = np.zeros((len(theta), self.map.n, k))
        found[:, :, 1:] = np.einsum("nl,clk->cnk", z, theta[:, :-1].reshape(len(theta), -1, k - 1))
        if self.map.offset is not None:
            found[:, :, 1:] += self.map.offset[None, :, None]
        return found

    def blocks(self, side: int | None = None) -> Int[np.ndarray, " u"]:
        """The block of every site that losses have a term of."""
        graph = self.graph
        assert isinstance(graph, Graph)
        owner = graph.grown(None if side is None else side**2)[self.map.used]
        return np.unique(owner, return_inverse=True)[1].reshape(-1)


def _space(seen: ObservedMap) -> Space:
    """A parameter for each covariate, and the interaction, with weak priors.

    A coefficient is N(0, 3 / scale): the scale of a covariate that is not just 0 or 1 is its standard deviation over
    sites. The intercept's prior is as much wider as covariates that are far from zero make it.
    """
    if INTERACTION in seen.labels:
        raise DataError(f"a covariate cannot be called '{INTERACTION}', which is what neighbours do; rename it")
    z = seen.matrix[seen.known]
    mean, sd = z.mean(axis=0), z.std(axis=0)
    binary = ((z == 0.0) | (z == 1.0)).all(axis=0)
    scale = np.where(binary | (sd == 0.0), 1.0, np.where(sd > 0, sd, 1.0))
    away = float(np.sum(np.where(binary, 0.0, mean / scale) ** 2))
    several = len(seen.categories) > 2
    shape, labels = ((len(seen.categories) - 1,), seen.categories[1:]) if several else ((), ())
    found = []
    for label, s in zip(seen.labels, scale, strict=True):
        width = WIDTH * np.sqrt(1.0 + away) if label == "intercept" else WIDTH / s
        found.append(Parameter(label, dist.Normal(0.0, float(width)), shape=shape, labels=labels))
    degree = max(1.0, 2.0 * len(seen.edges) / seen.n)
    return Space((*found, Parameter(INTERACTION, dist.Normal(0.0, OF_INTERACTION / degree))))
