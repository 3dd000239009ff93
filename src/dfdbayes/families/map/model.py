"""Autologistic models: one map whose sites depend on covariates and on their neighbours (Ising, Potts).

Maps are simulated by Gibbs sampling, all at once and one colour of the graph at a time. Chains begin at the observed
map, where its unobserved sites are drawn first, and run until they are much longer than their autocorrelation time or
have run for long: then they say that they have not mixed.

Sites whose values were not observed are drawn from the model, given the others. The estimating equation is the
expectation of the loss's gradient given what was observed (fractional imputation, Kim, 2011). Completions follow from
the parameters and the parameters from the completions: both in turn, until they agree (Wei and Tanner, 1990). In a
parametric bootstrap every simulated map loses the same sites and is completed in the same way, so that what is missing
makes intervals wider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
from jaxtyping import Array, Bool, Float, Int

from ..._util.codec import from_plain
from ..._util.resources import require_seed, require_unforked
from ...core.dataset import Dataset, Sites, Units, blocks_of_rows
from ...core.domain import Binary, Categories, Domain
from ...core.graphs import Graph, of, parse
from ...core.linear import Features
from ...core.losses.base import AbstractLoss
from ...core.minimise import Minima, Minimum, logistic, minimise, mode
from ...core.mixing import evenly
from ...core.model import AbstractModel, Row
from ...core.objective import Objective
from ...core.parameters import NEIGHBOURS, NODE, OTHER, Parameter, Space
from ...core.resampling import Fits
from ...core.simulators.base import Mixing, mixing_of
from ...core.simulators.gibbs import Conditionals, swept
from ...core.terms import Prepared, View, static, terms
from ...errors import DataError, ModelError, SettingError
from ...results.relevance import LIKE, tail_probability
from ..named import GRAPH, WEAK_SD, Options, named
from .narrative import MapNarrative
from .observed import CONSTANT, ObservedMap

COMPLETIONS = 40  # of the observed map; the tests compare many with all there are


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
    usual_replicates = 2000  # widths rest on them alone: then these are known to 2 % (see `core.resampling.noise`)
    narrative = MapNarrative()
    single_observation = True
    reads = ("formula", "missing")
    accessors = ("map",)
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
        told = {
            NODE: "log odds of a site where covariates are zero and its neighbours balance each other",
            NEIGHBOURS: "what one more neighbour of a kind adds to the log odds of that kind",
            OTHER: "what one more of the covariate adds to the log odds, given the neighbours",
        }
        return {p.name: told[p.role] for p in self.space.parameters}

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

    @property
    def has_likelihood(self) -> bool:
        return self.independent

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

    def blocks(self, side: int | None = None) -> Units:
        """Blocks of the sites that losses have a term of, as units."""
        if self.map.missing == "impute":
            raise ModelError(
                "blocks of sites do not say what missing values cost. What to do: leave out resampling=, or use "
                "missing='drop'."
            )
        graph = self.graph
        assert isinstance(graph, Graph)
        owner = graph.grown(None if side is None else side**2)[self.map.used]
        return blocks_of_rows(np.unique(owner, return_inverse=True)[1].reshape(-1))

    def simulate(
        self,
        theta: Any,
        size: int | None = None,
        *,
        method: str | None = None,
        seed: int = 0,
        sweeps: int | None = None,
    ) -> Maps:
        """Maps at given coefficients, on the sites of the map that the model was bound to.

        Sites whose covariates are unknown keep their observed values.

        Parameters
        ----------
        theta : dict, vector, or one vector for each map
        size : int, optional
            How many maps; as many as there are vectors.
        method : {"gibbs"}, optional
        seed : int
        sweeps : int, optional
            Length of the chains, each a map; by default until they have mixed.

        Examples
        --------
        >>> import dfdbayes as dfd, numpy as np
        >>> image = np.random.default_rng(0).integers(0, 2, (8, 8))
        >>> _, model = dfd.models.Autologistic().observe(image)
        >>> maps = model.simulate({"intercept": 0.0, "interaction": 0.5}, 20)
        >>> maps.values.shape, maps.mixing.good
        ((20, 64), True)
        """
        require_unforked()
        require_seed(seed)
        if method not in (None, "gibbs"):
            raise SettingError(f"maps are simulated by Gibbs sampling; leave out method={method!r}")
        if np.ndim(theta) == 2:
            thetas = np.asarray(theta, float)
            size = len(thetas)
        else:
            thetas = np.asarray(self.space.flatten(theta), float)[None]
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise SettingError(f"the number of maps is {size!r}; it must be a whole number from 1 on")
        if not np.isfinite(thetas).all():
            raise SettingError("maps cannot be simulated at coefficients that are not finite numbers")
        rng = np.random.default_rng([seed, 19])
        seen = self.map
        begin = np.repeat(seen.values[None], size, axis=0)
        begin = np.where(begin < 0, rng.integers(self.states, size=begin.shape), begin)
        values, mixing = by_colours(self, thetas, begin, seen.known, rng, sweeps)
        return Maps(self, values, mixing)

    def replicate(
        self, thetas: Float[np.ndarray, "all p"], draws: int, size: int | None, method: str | None, seed: int
    ) -> Maps:
        """A map at each of ``draws`` of the posterior draws ``thetas``."""
        if draws < 1:
            raise SettingError("draws must be at least 1")
        if size not in (None, 1):
            raise SettingError("the data are one map, and so is a replicate: leave out size=, and ask for more draws")
        return self.simulate(evenly(thetas, draws), method=method, seed=seed)

    def check(self, thetas: Float[np.ndarray, "all p"], seed: int, by_likelihood: bool) -> dict[str, Any]:
        maps = self.simulate(evenly(thetas, 100), seed=seed)
        return {
            "equal": maps.compared(), "sites": maps.shares(), "sets": len(maps), "size": 1, "method": "gibbs",
            "mixed": bool(maps.mixing.good), "remedy": self._remedy,
        }  # fmt: skip

    @property
    def _remedy(self) -> str:
        """What the model may lack, and never what it has."""
        lacks = "a covariate may be missing (dfd.plots.sites(fit) shows where)"
        if self.map.cells is None or self.neighbours != 4:
            return lacks
        own = {"at": list(self.at)} if self.at else {}
        return f"{lacks}, or corners may join cells, too: options={own | {'neighbours': 8}} (--neighbours 8)"

    def predict(
        self, draws: Float[np.ndarray, "all p"], interval: float, marginal: pd.DataFrame | None = None, seed: int = 0
    ) -> pd.DataFrame:
        """Each site: what was observed, and its category's chance given its neighbours; see `Fit.predict`."""
        if not 0 < interval < 1:
            raise SettingError(f"interval is {interval}; it must lie between 0 and 1")
        chance, seen = self._given_neighbours(evenly(draws, 200), seed), self.map
        places = {} if seen.places is None else dict(zip(seen.at, seen.places.T, strict=True))
        names = [*seen.categories, None]
        table = pd.DataFrame(places | {"observed": [names[value] for value in seen.values]})
        ends = [(1.0 - interval) / 2.0, (1.0 + interval) / 2.0]
        for c, name in enumerate(seen.categories[1:], start=1):
            mark = "" if len(seen.categories) == 2 else f"[{name}]"
            table[f"probability{mark}"] = chance[:, :, c].mean(axis=0)
            table[f"low{mark}"], table[f"high{mark}"] = np.quantile(chance[:, :, c], ends, axis=0)
            if marginal is not None:
                table[f"marginal{mark}"] = marginal.iloc[:, c - 1].to_numpy()
        return table

    def _given_neighbours(self, thetas: Float[np.ndarray, "c p"], seed: int) -> Float[np.ndarray, "c n k"]:
        """Probabilities of every site's categories given the others; values that nobody observed are drawn."""
        values = np.repeat(self.map.values[None], len(thetas), axis=0)
        if not self.map.observed.all():
            rng = np.random.default_rng([seed, 31])
            begin = np.where(values < 0, rng.integers(self.states, size=values.shape), values)
            values, _ = by_colours(self, thetas, begin, ~self.map.observed, rng, 50)
        log = self.fields(thetas) + thetas[:, -1, None, None] * self.map.around(values)
        mass = np.exp(log - log.max(axis=2, keepdims=True))
        chance = mass / mass.sum(axis=2, keepdims=True)
        chance[:, ~self.map.known] = np.nan
        return chance

    # -- sites without a value -------------------------------------------------------------------

    @property
    def _open(self) -> Bool[np.ndarray, " n"]:
        """Sites whose values are to be drawn."""
        return ~self.map.observed & (self.map.missing == "impute")

    def complete(self, data: Dataset, loss: AbstractLoss, seed: int) -> Dataset:
        """Completions of the map, drawn at parameters that agree with them and the prior."""
        if not self._open.any():
            return data
        rng = np.random.default_rng([seed, 23])
        values = self._filled(np.repeat(self.map.values[None], COMPLETIONS, axis=0), rng)
        objective = Objective(self, self.map.dataset(values), loss)
        minimum = minimise(objective)
        y = objective.space.to_y(minimum.vector)
        for _ in range(12):  # times completions and parameters follow each other
            y = mode(objective, 1.0, minimum, y)
            theta = np.asarray(objective.space.from_y(y))[None]
            values, _ = by_colours(self, theta, values, self._open, rng, 10)
            objective = replace(objective, data=self.map.dataset(values))
        return objective.data

    def refit_simulated(
        self, objective: Objective, theta: np.ndarray, around: Minimum, size: int, seed: int, fits: Fits
    ) -> Minima:
        """Estimates of simulated maps; where sites lack values, each map loses these and has them drawn anew."""
        maps = self.simulate(theta, size, seed=seed)
        if not self._open.any():
            return fits.refit(objective, list(maps.datasets()), around)
        rng, each = np.random.default_rng([seed, 29]), 3  # completions, and below as few rounds: there are many maps
        values = self._filled(np.repeat(np.where(self.map.observed, maps.values, -1), each, axis=0), rng)
        thetas = np.repeat(around.vector[None], len(maps), axis=0)
        for _ in range(4):
            values, _ = by_colours(self, np.repeat(thetas, each, axis=0), values, self._open, rng, 10)
            sets = [self.map.dataset(part) for part in values.reshape(-1, each, values.shape[1])]
            found = fits.refit(objective, sets, around)
            thetas = np.where(found.usable[:, None], found.vectors, around.vector)
        return found

    def _filled(self, values: Int[np.ndarray, "b n"], rng: np.random.Generator) -> np.ndarray:
        """Any value where there is none: by the observed shares."""
        seen = self.map.values[self.map.observed]
        shares: Float[np.ndarray, " k"] = np.bincount(seen, minlength=self.states) / len(seen)
        return np.where(values < 0, rng.choice(self.states, size=values.shape, p=shares), values)


def _space(seen: ObservedMap) -> Space:
    """A parameter for each covariate, and the interaction, with weak priors.

    A coefficient is N(0, 3 / scale): the scale of a covariate that is not just 0 or 1 is its standard deviation over
    sites. The intercept's prior is as much wider as covariates that are far from zero make it.
    """
    degree = max(1.0, 2.0 * len(seen.edges) / seen.n)  # all neighbours together move log odds by about 6
    neighbours = Parameter("interaction", dist.Normal(0.0, 6.0 / degree), role=NEIGHBOURS)
    if neighbours.name in seen.labels:
        raise DataError(f"a covariate cannot be called '{neighbours.name}', which is what neighbours do; rename it")
    z = seen.matrix[seen.known]
    mean, sd = z.mean(axis=0), z.std(axis=0)
    binary = ((z == 0.0) | (z == 1.0)).all(axis=0)
    scale = np.where(binary | (sd == 0.0), 1.0, np.where(sd > 0, sd, 1.0))
    away = float(np.sum(np.where(binary, 0.0, mean / scale) ** 2))
    several = len(seen.categories) > 2
    shape, labels = ((len(seen.categories) - 1,), seen.categories[1:]) if several else ((), ())
    found = []
    for label, s in zip(seen.labels, scale, strict=True):
        own = label == CONSTANT
        width = WEAK_SD * np.sqrt(1.0 + away) if own else WEAK_SD / s
        role = NODE if own else OTHER
        found.append(Parameter(label, dist.Normal(0.0, float(width)), shape=shape, labels=labels, role=role))
    return Space((*found, neighbours))


@dataclass(frozen=True, eq=False)
class Maps:
    """Simulated maps on the sites of an observed one.

    Attributes
    ----------
    model : Autologistic
    values : (size, n) integers
        The category of every site of each map, in the order of the data's rows.
    mixing : Mixing
        Of the number of like neighbours and of the shares of categories, whichever is slower.
    """

    model: Autologistic
    values: Int[np.ndarray, "size n"]
    mixing: Mixing

    def __len__(self) -> int:
        return len(self.values)

    def datasets(self) -> Iterator[Dataset]:
        """For each map its sites, as `Autologistic.observe` gives them: those that lack a term there lack it here."""
        return (self.model.map.dataset(values[None]) for values in self.values)

    def statistics(self, values: Int[np.ndarray, "b n"]) -> dict[str, np.ndarray]:
        """Of each map, over the sites that were observed: the share of each category, and of pairs that are alike."""
        seen, names = self.model.map, self.model.map.categories
        shown = range(1, len(names)) if len(names) == 2 else range(len(names))
        found = {f"share of {names[c]}": np.mean(values[:, seen.observed] == c, axis=1) for c in shown}
        i, j = seen.edges[seen.observed[seen.edges].all(axis=1)].T
        return found | {LIKE: np.mean(values[:, i] == values[:, j], axis=1) if len(i) else np.full(len(values), np.nan)}

    def compared(self) -> pd.DataFrame:
        """Statistics of the observed map and of simulated ones (join counts, as shares), with their tails."""
        own, others = self.statistics(self.model.map.values[None]), self.statistics(self.values)
        rows = [
            {"observed": seen, "predicted": drawn.mean(), "sd": drawn.std(), "tail": np.mean(drawn >= seen),
             "p_value": tail_probability(seen, drawn)}
            for seen, drawn in ((own[name][0], drawn) for name, drawn in others.items())
        ]  # fmt: skip
        return pd.DataFrame(rows, index=list(others))

    def shares(self) -> pd.DataFrame:
        """How often each site has each category but the first: its probability, neighbours unknown."""
        names = self.model.map.categories
        return pd.DataFrame({names[c]: np.mean(self.values == c, axis=0) for c in range(1, len(names))})


def by_colours(
    model: Autologistic, thetas: Float[np.ndarray, "c p"], begin: Int[np.ndarray, "b n"], free: Bool[np.ndarray, " n"],
    rng: np.random.Generator, sweeps: int | None = None,
) -> tuple[Int[np.ndarray, "b n"], Mixing]:  # fmt: skip
    """Maps whose ``free`` sites were drawn given the others, each at its own parameters or all at the same."""
    sites = _Sites.of(model, thetas, free)
    x = jnp.asarray(np.concatenate([begin, np.full((len(begin), 1), -1)], axis=1).T.astype(np.int32))
    key = jax.random.key(int(rng.integers(2**31)))
    traces: list[np.ndarray] = []
    while True:
        key, own = jax.random.split(key)
        x, _, trace = swept(sites, 64 if sweeps is None else sweeps, own, x)  # so many at a time
        traces.append(np.asarray(trace))
        watched = np.concatenate(traces)
        found = max((mixing_of(watched[:, j]) for j in range(watched.shape[1])), key=lambda m: m.autocorrelation_time)
        if sweeps is not None or found.good or len(watched) >= 1024:  # then they say that they have not mixed
            return np.asarray(x[:-1]).T.astype(np.int64), found


@terms
class _Sites(Conditionals):
    """Sites of one colour together; states are (sites + 1, maps), the last site being no neighbour of any category.

    Attributes
    ----------
    colours : (colours, w) integers
        Free sites of each colour; the number after the last site stands for none.
    around : (sites + 1, k) integers
        The neighbours of each.
    """

    states: int = static()
    fields: Float[Array, "n k c"]
    strength: Float[Array, " c"]
    colours: Int[Array, "colours w"]
    around: Int[Array, "n neighbours"]
    edges: Int[Array, "e 2"]

    @classmethod
    def of(cls, model: Autologistic, thetas: Float[np.ndarray, "c p"], free: Bool[np.ndarray, " n"]) -> _Sites:
        """Those of a map whose ``free`` sites are drawn."""
        graph, fields = model.graph, model.fields(thetas)
        nodes, _, present = graph.neighbours
        around = np.concatenate([np.where(present > 0, nodes, graph.size), np.full((1, nodes.shape[1]), graph.size)])
        classes = [sites[free[sites]] for sites in graph.colours if free[sites].any()]
        width = max(map(len, classes), default=1)
        padded = np.array([np.pad(sites, (0, width - len(sites)), constant_values=graph.size) for sites in classes])
        edges = graph.edges if len(graph.edges) else np.zeros((1, 2), int)
        bordered = np.concatenate([fields, np.zeros_like(fields[:, :1])], axis=1).transpose(1, 2, 0)
        arrays = (bordered, thetas[:, -1], padded.reshape(-1, width), around, edges)
        return cls(model.states, *map(jnp.asarray, arrays))

    @property
    def blocks(self) -> Array:
        return self.colours

    def keys(self, key: Array) -> Array:
        """Each split off the last: maps were drawn so before, and a seed gives the same ones."""
        return jax.lax.scan(lambda key, _: tuple(jax.random.split(key)), key, None, length=len(self.blocks))[1]

    def log_masses(self, x: Array, sites: Array) -> Float[Array, "w maps k"]:
        seen, each = x[self.around[sites]], range(self.states)  # (w, neighbours, maps)
        pull = [self.strength[None] * jnp.sum(seen == c, axis=1) for c in each]
        return jnp.stack([self.fields[sites, c] + pull[c] for c in each], axis=-1)

    def put(self, x: Array, sites: Array, place: Array) -> Array:
        return x.at[sites].set(place.astype(x.dtype)).at[-1].set(-1)  # noqa: PD008

    def watched(self, x: Array) -> Array:
        """How many neighbours are alike, and how many sites have each category but the first."""
        like = jnp.sum(x[self.edges[:, 0]] == x[self.edges[:, 1]], axis=0)
        shares = [jnp.sum(x == c, axis=0) for c in range(1, self.states)]
        return jnp.stack([like, *shares]).astype(float)


@named("autologistic", takes=("at", "neighbours", GRAPH, "observed"), model=Autologistic, whole=True)
def _autologistic(columns: int, options: Options) -> AbstractModel:
    """A model of maps; one that was bound to a map where options hold that, as a saved fit has it."""
    own = {name: value for name in ("at", "neighbours", "graph") if (value := options.get(name)) is not None}
    model, seen = Autologistic(**own), options.get("observed")
    return model if seen is None else model.bound(from_plain(seen, ObservedMap))
