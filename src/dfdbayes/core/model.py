"""What a model is: a domain, named parameters, and a mass function known up to its constant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Self, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from .._util.identity import code, fingerprint
from ..errors import ModelError
from .dataset import Dataset, Sites, Units, blocks_of
from .domain import Domain
from .graphs import Graph
from .linear import LinearLikelihood
from .log_mass_checks import MAX_COLUMNS_TRIED, endless, require_possible, require_sound
from .log_mass_errors import in_words, no_real_number, require_entries, require_order, returned, told
from .narrative import Narrative
from .parameters import Parameter, Predictor, Rows, Space, Theta, over_rows
from .simulators.base import Interactions, Sample
from .simulators.draw import draw
from .simulators.gibbs import by_log_mass
from .terms import MAX_LISTED_POINTS, Conditionals, Likelihood, Neighbours, Prepared, View, listing

Row = Float[Array, " d"]
_sound: set[str] = set()  # what functions compute that have been looked at


class AbstractModel(ABC):
    """The part of a model that the road from data to posterior relies on.

    A model's only duty is its log mass. Everything else has an answer that follows from it: the terms that losses
    need of it are those of `terms.py`, unless a family has faster ones.
    """

    domain: Domain
    name: str
    title: str = "a model of one's own"
    """What it is, in a sentence: "a Poisson model"."""
    formula: str = ""
    """Its mass function in HTML, for reports; nothing of a user's enters it."""
    narrative: Narrative = Narrative()
    """Who says what a fit found, and which picture shows it."""
    meanings: Mapping[str, str] = MappingProxyType({})
    """What parameters and derived quantities are, by name, each a clause that ends without a full stop."""
    space: Space
    start: Callable[[Dataset], dict[str, Any]] | None
    derived: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None
    interactions: Callable[[dict[str, np.ndarray]], Interactions | None] | None
    log_normaliser: Callable[[dict[str, Array]], Array] | None
    options: Mapping[str, Any]
    # -- rows with their contexts ----------------------------------------------------------------

    @abstractmethod
    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        """Log of the unnormalised mass of one row, at what `at_rows` gives for it."""

    def at_rows(self, theta: Rows, context: Float[Array, "u q"] | None) -> Rows:
        """What `log_mass_at` takes for every row, from parameters by name and the context (covariates) of rows.

        Entries that rows share have no leading axis.
        """
        return self.space.at_rows(theta, context) if self.space.designs else theta

    @property
    def ranks(self) -> dict[str, int]:
        """How many axes the entries of `at_rows` have for one row, by name; none where it is not said."""
        return {p.name: len(p.shape) for p in self.row_space.parameters}

    def log_masses(
        self, theta: Float[Array, " p"], rows: Float[Array, "u d"], context: Float[Array, "u q"] | None = None
    ) -> Float[Array, " u"]:
        """`log_mass_at` of many rows, at a flat vector of parameters; with covariates where the model has some."""
        at = self.at_rows(self.space.unflatten(theta), context)
        return over_rows(self.log_mass_at, at, len(rows), self.ranks, rows)

    def fixed(self, x: np.ndarray) -> Float[np.ndarray, " u"]:
        """What of the log masses of rows no parameter changes, to be computed once; see `log_masses_at`."""
        return np.zeros(len(x))

    def log_masses_at(self, at: Rows, x: Float[Array, "u d"], fixed: Float[Array, " u"]) -> Float[Array, " u"]:
        """`log_mass_at` of all rows."""
        return over_rows(self.log_mass_at, at, len(x), self.ranks, x)

    def log_constants(self, at: Rows, size: int) -> Float[Array, " u"] | None:
        """Log of the sum of all masses for every one of ``size`` rows; None where it cannot be had."""
        known = self.log_normaliser
        if known is None and self.domain.size > MAX_LISTED_POINTS:
            return None
        points = None if known is not None else jnp.asarray(self.domain.points(), float)

        def of(row: Rows) -> Array:
            if known is not None:
                return known(row)
            return jax.nn.logsumexp(jax.vmap(lambda x: self.log_mass_at(row, x))(points))

        return over_rows(of, at, size, self.ranks)

    def means_at(self, at: Rows, size: int) -> Float[Array, " u"] | None:
        """The expected value of every row of one column, where there is a formula."""
        return None

    @property
    def mean_parameters(self) -> tuple[str, ...]:
        """The parameters that the expected value of one column depends on."""
        return tuple(p.name for p in self.row_space.parameters)

    # -- what losses are made of ------------------------------------------------------------------

    def coefficients(self, theta: Theta) -> Array:
        """What the predictors of terms are linear in: natural parameters, where there are such."""
        return theta

    def terms_at(self, sites: Sites, view: View) -> Prepared:
        """What a loss is made of at the data (`core/terms.py`): by default from the log mass, by differentiation."""
        if view is View.NEIGHBOURS:
            return Neighbours.of(self, sites)
        known = self.has_likelihood if self.varying else self.log_normaliser is not None or self.domain.is_finite
        if view is View.CONDITIONALS and self.domain.d == 1 and known:  # the conditional is the distribution
            return self.terms_at(sites, View.LIKELIHOOD)
        if view is View.CONDITIONALS:
            return Conditionals.of(self, sites)
        return (LinearLikelihood if self.is_linear else Likelihood).of(self, sites)

    def distinct_decrements(self, sites: Sites) -> Any:
        """Few distinct ratios to decrements, and which of them each site has; None where they are not few."""
        return None

    @property
    def compresses(self) -> bool:
        """Whether its table of log-ratios stays small however many distinct rows there are."""
        return False

    @property
    def has_likelihood(self) -> bool:
        """Whether the constant of every row is known, or a sum over few enough points."""
        return self.log_normaliser is not None or self.domain.size <= MAX_LISTED_POINTS

    @property
    def can_simulate(self) -> bool:
        """Whether data can be simulated: not on all integers, where no sum of masses ends."""
        return not self.domain.has_integers

    # -- simulation ------------------------------------------------------------------------------

    has_clusters: bool = False
    """Whether clusters of equal neighbours can change at once (Swendsen-Wang): nothing favours a value by itself."""

    def draw(
        self, thetas: Float[np.ndarray, "c p"], size: int, rng: np.random.Generator, *,
        context: Float[np.ndarray, "size q"] | None = None, method: str | None = None, sweeps: int | None = None,
    ) -> Sample:  # fmt: skip
        """``size`` rows (c, size, d) at each of many parameters: one for each row of the context where there is one."""
        return draw(self, thetas, size, rng, context=context, method=method, sweeps=sweeps)

    def context_of(self, data: Dataset) -> Float[np.ndarray, "n q"] | None:
        """The covariates of every observation where rows depend on some: what `draw` takes."""
        if not self.designs or data.given is None:
            return None
        return np.repeat(data.given, np.round(data.observations).astype(int), axis=0)

    def gibbs(
        self, thetas: np.ndarray, size: int, rng: np.random.Generator, sweeps: int, context: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows (c, size, d) from chains of their own, and the trace of what mixing is judged by."""
        return by_log_mass(self, thetas, size, rng, sweeps, context)

    def simulate(
        self, theta: Any, size: int, *, method: str | None = None, seed: int = 0, sweeps: int | None = None
    ) -> Any:
        """Independent observations at parameters by name or flat; see `dfdbayes.simulate`."""
        thetas = np.asarray(self.space.flatten(theta))[None]
        found = self.draw(thetas, size, np.random.default_rng([seed, 7]), method=method, sweeps=sweeps)
        return replace(found, rows=found.rows[0])

    # -- covariates ------------------------------------------------------------------------------

    @property
    def row_space(self) -> Space:
        """The parameters of the distribution of one row: the model's own, where none depends on covariates."""
        return self.space.of_row

    @property
    def plain(self) -> Self:
        """The model without covariates."""
        return self.with_space(self.space.of_row)

    @property
    def designs(self) -> tuple[Any, ...]:
        """The formulas of parameters that have one, in the order of the parameters, for new data."""
        return tuple(design.formula for design in self.space.designs)

    @property
    def observed(self) -> Any:
        """The rows that the formulas' matrices were made of."""
        return self.space.designs[0].observed if self.space.designs else None

    @property
    def series_told(self) -> str | None:
        """The order of rows in time in a sentence, where they have one."""
        series = self.observed.series if self.space.designs else None
        return None if series is None else series.told

    @property
    def formulas(self) -> Mapping[str, str]:
        """By parameter, as `fit` takes them."""
        return {design.parameter: f"~ {design.right}" for design in self.designs}

    @property
    def varying(self) -> frozenset[str]:
        """Parameters that have a formula."""
        return frozenset(design.of.name for design in self.space.designs)

    def design(self, name: str) -> Any:
        """The formula of a parameter that has one."""
        return self.space.predictor(name).formula

    def of_predictors(self, predictors: Rows) -> Rows:
        """What `at_rows` gives, from the parameters of rows on the scale of their links."""
        return {p.name: p.from_link(predictors[p.name]) for p in self.row_space.parameters}

    @property
    def is_linear(self) -> bool:
        """Whether all that the distribution of a row depends on are numbers with a formula each."""
        return all(p.design is not None and not p.design.of.shape for p in self.space.parameters)

    def covariate(self, column: int) -> tuple[str, str]:
        """The name of a column of the covariates, ``clinic=B``, and its term, ``clinic``, which offsets do not have."""
        for design in self.space.designs:
            if design.first <= column < design.first + design.terms:
                return design.formula.labels[column - design.first], design.formula.term_of(column - design.first)
        return "the offset", ""

    def as_given(self, context: np.ndarray) -> np.ndarray:
        """Covariates as formulas make them, from those that are centred and scaled inside."""
        found = np.array(context)
        for design in self.space.designs:
            found[:, design.columns] = design.formula.as_given(found[:, design.columns])
        return found

    def parameter_at(self, name: str, coefficients: np.ndarray, terms: np.ndarray, offset: float = 0.0) -> np.ndarray:
        """A parameter where its formula's terms are ``terms``, from draws (..., k) of its coefficients."""
        if name not in self.varying:
            return coefficients
        own = self.space.predictor(name).of
        lines = coefficients.reshape(*coefficients.shape[:-1], len(terms), own.size)
        return own.from_link(np.einsum("q,...qe->...e", terms, lines) + offset)

    def average(self, name: str, data: Dataset) -> tuple[np.ndarray, float]:
        """The average of a parameter's terms over the data, and that of its offset."""
        if name not in self.varying or data.given is None:
            return np.ones(1), 0.0
        design, mean = self.space.predictor(name), np.average(data.given, axis=0, weights=data.counts)
        return mean[design.columns], 0.0 if design.offset is None else float(mean[design.offset])

    def for_covariates(self, form: str | None, hurdle: bool) -> AbstractModel:
        """The model whose parameters formulas are about: this one, unless it has a form that serves covariates."""
        if hurdle:
            raise ModelError("zeros= is for models 'poisson' and 'cmp'")
        return self

    formula_for_all: bool = False
    """Whether parameters that nobody wrote a formula for have one all the same, a constant."""
    has_means: bool = False
    """Whether `means_at` has a formula."""
    mode_inside: bool = False
    """Whether masses of one count rise and fall again, with nothing special about the first value."""
    takes_zeros: bool = False
    """Whether zeros may have a parameter of their own (`for_covariates`)."""
    freer: str = ""
    """The name of the built-in model that is like this one, with a shape that is free; empty where there is none."""
    kin: str = ""
    """What models have in common whose regressions may be nested; models without one are nested in models like them."""

    def with_designs(self, formulas: Sequence[Any], data: Dataset, observed: Any) -> Self:
        """A regression: the same model with coefficients in place of the parameters that have a formula.

        The data's covariates are the formulas' matrices side by side, offsets after each.
        """
        assert data.given is not None
        own, found, first = {p.name: p for p in self.space.parameters}, {}, 0
        for formula in formulas:
            k = len(formula.labels)
            offset = first + k if formula.offsets else None
            shift = np.zeros(len(data.given)) if offset is None else data.given[:, offset]
            matrix = data.given[:, first : first + k]
            begin = self.begin(own[formula.parameter], formula, matrix, shift, data)
            constant = k == 1 and formula.intercept == 0
            design = Predictor(own[formula.parameter], first, k, offset, constant, formula, observed, begin)
            found[formula.parameter] = self._coefficients(design, matrix, shift, data)
            first += k + (offset is not None)
        plain = {} if self.start is None else dict(self.start(data.thinned()))
        made = Space(tuple(found.get(name, p) for name, p in own.items()))
        starts = {name: plain.get(name, np.zeros(p.shape)) for name, p in own.items()}
        return self.regression_on(made, starts | {design.of.name: design.begin for design in made.designs})

    def begin(
        self, parameter: Parameter, formula: Any, matrix: np.ndarray, offset: np.ndarray, data: Dataset
    ) -> Float[np.ndarray, " k"]:
        """Coefficients of a parameter to start the search from: a constant alone, where there is no better guess."""
        found = np.zeros((len(formula.labels), parameter.size))
        if formula.intercept is not None:
            found[formula.intercept] = self.margin(parameter, data) - float(np.average(offset, weights=data.counts))
        return found.reshape(-1)

    def margin(self, parameter: Parameter, data: Dataset) -> Float[np.ndarray, " e"]:
        """A parameter's value without covariates, on the scale of its link."""
        guess = None if self.start is None else self.start(data.thinned()).get(parameter.name)
        if guess is None:
            return np.zeros(parameter.size)
        value = np.broadcast_to(guess, parameter.shape).astype(float)
        return np.nan_to_num(np.asarray(parameter.to_link(value)).reshape(-1))

    def _coefficients(self, design: Predictor, matrix: np.ndarray, offset: np.ndarray, data: Dataset) -> Parameter:
        """A parameter's coefficients with weak priors.

        A slope is N(0, s / scale) for the scale of its term: a standard deviation, or 1 for terms that are 0 or 1. A
        constant is about its margin, and as much wider as slopes of terms that are far from zero make it. It is about
        the first quartile of the parameter's own prior where that may be zero, and is only searched for from next to
        there.
        """
        own, place = design.of, design.formula.intercept
        of_constant, of_slope = own.spread
        weights = data.counts / data.counts.sum()
        mean = weights @ matrix
        sd = np.sqrt(np.maximum(weights @ (matrix - mean) ** 2, 0.0))
        binary = ((matrix == 0.0) | (matrix == 1.0)).all(axis=0)
        # A covariate that hardly varies has some spread; smaller ones are scaled before.
        widths = of_slope / np.where(binary, 1.0, np.maximum(sd, 1e-12))
        centres = np.zeros((len(mean), own.size))
        if place is not None:
            far = np.where(np.arange(len(mean)) == place, 0.0, np.where(binary, 0.0, mean) * widths)
            widths[place] = np.sqrt(of_constant**2 + np.sum(far**2))
            quartile = Space((own,)).prior_quantiles([0.25])[0] if own.closed else None
            expected = self.margin(own, data) if quartile is None else np.asarray(own.to_link(quartile))
            centres[place] = expected - float(weights @ offset)
        prior = dist.Normal(centres.reshape(-1), np.repeat(widths, own.size))
        design, labels = design.named(own.labels)
        return Parameter(own.name, prior, shape=(len(labels),), labels=labels, role=own.role, design=design)

    def regression_on(self, space: Space, starts: Mapping[str, np.ndarray]) -> Self:
        """The same model on a space with designs, as it is told of and started then."""
        return self.with_space(space).changed(
            start=lambda data: dict(starts), title=f"{self.title} with covariates",
            formulas={design.of.name: f"~ {design.formula.right}" for design in space.designs},
            derived=None, interactions=None,
            meanings={name: text + against(space, name) for name, text in self.meanings.items()},
        )  # fmt: skip

    @property
    def accessors(self) -> tuple[str, ...]:
        """What fits offer beyond what all fits have, by names in the table of `results/accessor.py`."""
        if not self.designs or self.domain.d > 1:
            return ()
        return ("regression",) if self.observed.series is None else ("regression", "series")

    without_formulas: str = (
        "this fit has no covariates. Fit a formula, as in formula='y ~ x'; fit.replicate() gives data from any fitted "
        "model."
    )
    """Why there are no predictions, residuals or effects where there are no formulas, and what there is instead."""

    def changed(self, **parts: Any) -> Self:
        """The same model with other values in those of its fields that it has; nothing is checked or traced again."""
        made = object.__new__(type(self))
        for part in fields(self):  # type: ignore[arg-type]
            object.__setattr__(made, part.name, parts.get(part.name, getattr(self, part.name)))
        return made

    @abstractmethod
    def with_space(self, space: Space) -> Self:
        """The same model with parameters of the same names and shapes."""

    def with_priors(self, priors: Mapping[str, Any] | None) -> Self:
        """The same model under other priors, given by parameter name."""
        for design in self.designs:
            if design.scale and design.parameter in (priors or {}):
                coding = zip(design.labels, design.shift, design.scale, strict=True)
                coded = [label for label, shift, scale in coding if shift != 0.0 or scale != 1.0]
                raise ModelError(
                    f"a prior of {design.parameter} is for its coefficients as they are, and '{coded[0]}' is so far "
                    "from zero, or of such a size, that it is centred and scaled inside. What to do: subtract its mean "
                    "and divide it by its standard deviation before the fit, and give the prior for that; or leave out "
                    "the prior."
                )
        return self.with_space(self.space.with_priors(priors)) if priors else self

    @abstractmethod
    def labelled(self, columns: Sequence[str]) -> Self:
        """The same model with its parameters' entries named after the columns of the data."""

    def observe(self, source: Any) -> tuple[Dataset, AbstractModel] | None:
        """Data that are not rows (one graph): what stands for them, and the model for it; None where data are rows."""
        return None

    def source_of(self, data: Dataset) -> Any:
        """What `fit` takes to fit the same data again: of what is not rows, the observation itself."""
        return data

    def declared(self, data: Dataset) -> dict[str, Any]:
        """Options without which these data would be read in another way; none where they are as they were observed."""
        return {}

    # -- data that are one observation (a graph, a map) ------------------------------------------

    @property
    def paper_priors(self) -> dict[str, Any]:
        """The priors of Matsubara et al. (2024), where the model's own are not theirs."""
        return {}

    single_observation: bool = False
    """Whether the data are one observation, of which the rows that losses sum over are parts: the dyads of a graph, the
    sites of a map. These may be ``independent`` (a graph without triangles) or not, and ``sampled`` (sites, whose
    spread says how estimates vary) or not (the dyads of one graph)."""

    @property
    def independent(self) -> bool:
        """Whether the rows that losses sum over are independent; the dyads of a random graph need not be."""
        return True

    usual_replicates: int = 400
    """Bootstrap fits where nobody says otherwise."""
    sampled: bool = True
    """Whether rows are a sample, whose spread says how estimates vary; the dyads of one graph are not."""

    def prepare_loss(
        self, loss: Any, data: Dataset, seed: int, begin: Callable[[str, int], Callable[[int], None]]
    ) -> Any:
        """The loss as it is minimised: a likelihood that has to be simulated becomes what simulations say of it.

        ``begin(text, total)`` shows that something takes time, and gives what is called with how much is done.
        """
        return loss

    def complete(self, data: Dataset, loss: Any, seed: int) -> Dataset:
        """The data with what nobody observed of the one observation drawn from the model."""
        return data

    def refit_simulated(self, objective: Any, theta: np.ndarray, around: Any, size: int, seed: int, fits: Any) -> Any:
        """Minimisers on ``size`` simulated observations, which have parts of their own."""
        raise ModelError(f"'{self.name}' is a model of rows: data sets are simulated row by row")

    def blocks(self, side: int | None) -> Units:
        """Blocks of sites of the one observation as units, about ``side`` cells a side."""
        if self.graph is None:
            raise ModelError("blocks of sites can be resampled where there is one observation of a model on a grid")
        return blocks_of(self.graph.blocks(side))

    def replicate(self, thetas: np.ndarray, draws: int, size: int | None, method: str | None, seed: int) -> Any:
        """One simulated observation at each of so many posterior draws."""
        raise ModelError(f"'{self.name}' is a model of rows: dfd.simulate draws them")

    def check(self, thetas: np.ndarray, seed: int, by_likelihood: bool) -> dict[str, Any]:
        """The observation beside simulated ones: entries of `Checks` by name."""
        raise ModelError(f"'{self.name}' is a model of rows, whose checks are those of rows")

    reads: tuple[str, ...] = ()
    """Settings of `fit` that `observe` takes."""

    @property
    def user_written(self) -> bool:
        """Whether the mass function is a user's own, so that it may be wrong and may be changed."""
        return False

    def endless(self, theta: Float[np.ndarray, " p"], data: Dataset) -> str:
        """Columns along which the mass has no end at these parameters, in words; none in a distribution."""
        return ""

    def require_possible(self, data: Dataset, neighbours: str) -> None:
        """Refuse data that a mass function of the user's own gives probability zero."""
        if self.varying:
            self.plain.require_possible(data, neighbours)
            return
        if self.user_written and self.domain.d <= MAX_COLUMNS_TRIED:
            require_possible(self.name, self.log_mass_at, self.space, self.domain, data, neighbours)

    def advise(self, data: Dataset) -> tuple[str, str]:
        """The loss that serves this model best on these data, by name, and why (docs/how-to/choose-a-loss.md)."""
        if self.varying and self.domain.d == 1 and self.has_likelihood:
            return (
                "likelihood",
                "for one column it makes the most of the data, and its width is calibrated all the same",
            )
        if self.domain.d == 1 and self.domain.is_binary:
            return "likelihood", "for one binary column all losses agree, and this one has the steadiest curvature"
        if self.domain.has_categories:
            return _of_rare_values(self.domain, data)
        extreme = _extreme(data) if self.domain.d == 1 and self.domain.coordinate(0).kind == "above" else ""
        if extreme:
            if self.log_normaliser is not None:
                return "likelihood", f"{extreme}, and the constant is known"
            return "ratio", f"{extreme}, and ratio matching is steadier there"
        return "dfd", "the discrete Fisher divergence needs no normalising constant"

    @property
    def main_parameters(self) -> tuple[str, ...]:
        """The parameters that a formula without a name is about: the first one."""
        return (self.space.parameters[0].name,)

    def columns_told(self, columns: Sequence[str]) -> str:
        """What the model took the data's columns for, as a sentence; empty where it had no choice."""
        return ""

    def sample_told(self, data: Dataset) -> str:
        """What was observed, as a paper says it."""
        rows, columns = "s" if data.n != 1 else "", "s" if data.d != 1 else ""
        return f"{data.n} observation{rows} of {data.d} variable{columns}"

    def remarks(self, data: Dataset) -> Sequence[str]:
        """What a user should know about these data under this model, each with what to do."""
        return ()

    remedies: Mapping[str, str] = MappingProxyType({})
    """What to try where data and model differ, by kind of statistic (`results.test_statistics`); ``{graph}`` in it
    stands for the call that makes the model's graph."""

    @property
    def graph(self) -> Graph | None:
        """The graph that the model is on, if it is on one."""
        return self.options.get("graph")

    @property
    def node_names(self) -> tuple[str, ...]:
        """The columns that the model's nodes stand for, where they have names."""
        return () if self.graph is None else self.graph.names

    def current(self) -> AbstractModel:
        """The same model with its functions as they are now: what they refer to may have changed."""
        return self

    @property
    def identity(self) -> dict[str, Any]:
        """What numbers computed with this model depend on, in values JSON can hold."""
        priors = {p.name: fingerprint(p.prior) for p in self.space.parameters}
        structure = [[p.name, list(p.shape), repr(p.support), p.closed, p.square] for p in self.space.parameters]
        options = {key: fingerprint(value) for key, value in self.options.items()}
        about = {
            "model": self.name, "domain": fingerprint(self.domain), "parameters": structure, "priors": priors,
            "options": options, "code": "" if self.varying else getattr(self, "traced", ""),
        }  # fmt: skip
        return about | {"formulas": dict(self.formulas), "base": self.base_identity} if self.varying else about

    @property
    def base_identity(self) -> dict[str, Any] | None:
        """That of the model without covariates; None where what has covariates is a form of its own."""
        return self.plain.identity


def _of_rare_values(domain: Domain, data: Dataset) -> tuple[str, str]:
    """A loss that squares no ratio to a rare value."""
    if domain.d == 1 and domain.is_finite:
        return "likelihood", "for one column of few values the constant is a short sum"
    # 2 million values, over all rows and columns, are listed in a second
    if domain.is_finite or (not domain.has_integers and listing(domain, data.rows) <= 2**21):
        return "pseudo", "each column given the others has a constant that is a short sum; rare values do not decide"
    return "ratio", "ratio matching is bounded, so that rare values do not decide"


def _extreme(data: Dataset) -> str:
    """Why far ratios of counts are hardly observed, and would decide everything; nothing where they are not."""
    x = data.rows[:, 0].astype(float)
    mean = np.average(x, weights=data.counts)
    variance = np.average((x - mean) ** 2, weights=data.counts)
    # of small counts, and of such as vary less than Poisson's, far ratios are hardly observed
    if mean < 2.0 or (variance < mean and mean < 5.0):
        return "counts are low or vary little"
    return "counts vary more than a geometric distribution's" if variance > mean * (1.0 + mean) else ""


def space_of(parameters: Mapping[str, Any] | Sequence[Parameter] | Space) -> Space:
    """Parameters as a user declares them, in order."""
    if isinstance(parameters, Space):
        return parameters
    if isinstance(parameters, Mapping):
        parameters = [
            Parameter(name, prior, shape=tuple(prior.batch_shape + prior.event_shape))
            if isinstance(getattr(prior, "batch_shape", None), tuple)
            else Parameter(name, prior)
            for name, prior in parameters.items()
        ]
    if not parameters:
        raise ModelError("a model needs at least one parameter")
    if not all(isinstance(p, Parameter) for p in parameters):
        raise ModelError(
            f"parameters are {in_words(parameters)}; give each a prior by name, as in "
            "parameters={'rate': dist.Normal(0, 1)}"
        )
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        raise ModelError(f"two parameters share a name: {', '.join(names)}")
    return Space(tuple(parameters))


@dataclass(frozen=True)
class Model(AbstractModel):
    """Any model whose unnormalised log mass JAX can evaluate.

    Parameters
    ----------
    log_mass : callable
        ``log_mass(theta, x)`` of a dict of named parameters and one row ``x`` (a vector of floats, the first column is
        ``x[0]``), up to a constant that does not depend on ``x``. Written with jax.numpy and jax.scipy.special.
    domain : Domain
    parameters : mapping of name to prior, or sequence of Parameter
        NumPyro distributions; an array-valued prior makes an array parameter.
    name : str
    start : callable, optional
        ``start(data)`` gives a consistent first guess by name. Without it the minimiser starts
        from the ratio-matching estimate.
    derived : callable, optional
        ``derived(theta)`` of named draws gives further quantities to summarise.
    interactions : callable, optional
        ``interactions(theta)`` gives the `Interactions` for fast simulation.
    log_normaliser : callable, optional
        ``log_normaliser(theta)``, the log of the sum of all masses, where it is known: ``lambda theta: 0.0`` if
        ``log_mass`` is the log of a probability as it stands. ``loss="likelihood"`` needs it where the domain is not
        finite.
    options : mapping, optional
        What the model was made with, in values JSON can hold.
    title, formula : str, optional
        What it is, in a sentence, and its mass function in HTML; for reports.
    narrative : Narrative, optional
        Who says what a fit found; one's own model is told parameter by parameter.
    meanings : mapping, optional
        What parameters and derived quantities are, by name: ``{"rate": "births per day"}``.
    formulas : mapping, optional
        What parameters depend on, by name: ``{"rate": "~ age"}``. Positive parameters through logarithms, those between
        two ends through log odds, others as they are.

    Examples
    --------
    >>> import dfdbayes as dfd, numpyro.distributions as dist
    >>> from jax.scipy.special import gammaln
    >>> def log_mass(theta, x):
    ...     return theta["rate"] * x[0] - theta["shape"] * gammaln(x[0] + 1)
    >>> model = dfd.Model(
    ...     log_mass,
    ...     domain=dfd.Counts(1),
    ...     parameters={"rate": dist.Normal(0, 1), "shape": dist.HalfNormal(1)},
    ... )
    >>> model.space.names
    ('rate', 'shape')
    """

    log_mass: Callable[[dict[str, Array], Row], Float[Array, ""]] = field(compare=False)
    domain: Domain
    parameters: Any = field(compare=False)
    name: str = "custom"
    start: Callable[[Dataset], dict[str, Any]] | None = field(default=None, compare=False)
    derived: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None = field(default=None, compare=False)
    interactions: Callable[[dict[str, np.ndarray]], Interactions] | None = field(default=None, compare=False)
    log_normaliser: Callable[[dict[str, Array]], Array] | None = field(default=None, compare=False)
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    title: str = field(default=AbstractModel.title, compare=False)
    formula: str = field(default="", compare=False)
    narrative: Narrative = field(default=AbstractModel.narrative, compare=False)
    meanings: Mapping[str, str] = field(default_factory=dict, compare=False)
    formulas: Mapping[str, str] = field(default=cast("Mapping[str, str]", None), compare=False)  # over a property
    space: Space = field(init=False)
    traced: str = field(init=False)
    """What the functions compute. Models are equal, and share compiled code, where they compute the same."""

    def __post_init__(self) -> None:
        require_order(self.log_mass, self.domain, self.parameters)
        object.__setattr__(self, "space", space_of(self.parameters))
        object.__setattr__(self, "formulas", dict(self.formulas or {}))
        require_scalar(self, self.log_mass)
        object.__setattr__(self, "traced", fingerprint([code(self.log_mass, *arguments_of(self)), of_constant(self)]))
        if not is_own(self.log_mass) and self.traced not in _sound:
            require_entries(self.name, self.log_mass, arguments_of(self)[0], self.domain)
            require_sound(self.name, self.log_mass, self.space, self.domain)
            _sound.add(self.traced)

    def __repr__(self) -> str:
        return f"Model '{self.name}' on {self.domain!r} with the parameters {', '.join(self.space.names[:8])}"

    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        return jnp.asarray(self.log_mass(theta, x))

    @property
    def user_written(self) -> bool:
        return not is_own(self.log_mass)

    def advise(self, data: Dataset) -> tuple[str, str]:
        listable = self.domain.is_finite and self.has_likelihood and not self.varying
        if self.domain.d > 1 or listable:
            return _of_rare_values(self.domain, data)
        return super().advise(data)

    def endless(self, theta: Float[np.ndarray, " p"], data: Dataset) -> str:
        """Of a function of the user's own: along which columns its mass does not fall, and so has no finite sum."""
        if not self.user_written or self.varying:
            return ""
        named = self.space.unflatten(jnp.asarray(theta))
        found = endless(lambda rows: jax.vmap(lambda x: self.log_mass_at(named, x))(rows), self.domain, data.rows)
        return "" if found is None else ", ".join(f"x[{j}] ({data.columns[j]})" for j in found)

    def with_space(self, space: Space) -> Model:
        return self.changed(space=space, parameters=space)

    def labelled(self, columns: Sequence[str]) -> Model:
        return self

    def current(self) -> Model:
        return replace(self) if self.user_written and not self.varying else self


def against(space: Space, name: str) -> str:
    """The levels that those of factors in a parameter's formula are compared with."""
    found = [design.formula for design in space.designs if design.of.name == name]
    levels = {label.partition("=")[0]: one.reference(label) for one in found for label in one.labels}
    known = {factor: level for factor, level in levels.items() if level}
    return f"; levels are against {', '.join(f'{one}={level}' for one, level in known.items())}" * bool(known)


def is_own(function: Callable[..., Any]) -> bool:
    """Whether a function is this package's, which refers to nothing that may change."""
    package = __package__.rpartition(".")[0]
    return (getattr(function, "__module__", None) or "").startswith((f"{package}.core.", f"{package}.families."))


def arguments_of(model: AbstractModel) -> tuple[dict[str, Any], Any]:
    """The shapes of what a mass function is called with: parameters by name, and one row."""
    theta = {p.name: jax.ShapeDtypeStruct(p.shape, jnp.float64) for p in model.space.parameters}
    return theta, jax.ShapeDtypeStruct((model.domain.d,), jnp.float64)


def of_constant(model: AbstractModel) -> str:
    """The identity of the model's formula for its constant."""
    known = model.log_normaliser
    if known is None:
        return ""
    try:
        shape = jnp.shape(jax.eval_shape(lambda theta: jnp.asarray(known(theta), float), arguments_of(model)[0]))
        said = "" if shape == () else f"it returns an array of shape {shape}"
    except Exception as problem:
        said = f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0]}"
    if said:
        raise ModelError(
            f"the log_normaliser of '{model.name}' must be a function of the parameters by name that gives one number, "
            f"such as lambda theta: 0.0 ({said})"
        )
    return code(known, arguments_of(model)[0])


def require_scalar(model: AbstractModel, log_mass: Callable[..., Any]) -> None:
    """Trace the mass function once, so that a slip in it is reported where the model is made."""
    if not isinstance(model.domain, Domain):
        raise ModelError(
            f"the domain of '{model.name}' is {in_words(model.domain)}; give one such as dfd.Counts(1), dfd.Binary(3) "
            "or dfd.Ordinal(2, 5), with how many columns it has"
        )
    arguments, declared = arguments_of(model), [p.name for p in model.space.parameters]
    try:
        value = jax.eval_shape(lambda theta, x: log_mass(theta, x), *arguments)
    except Exception as problem:
        raise ModelError(told(model.name, log_mass, problem, declared, model.domain.d)) from None
    if getattr(value, "shape", None) != ():
        raise ModelError(returned(model.name, value, model.domain.d))
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise ModelError(no_real_number(model.name, value.dtype))
