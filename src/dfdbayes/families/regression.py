"""Regression: any parameter of any model may depend on covariates, through a linear predictor for every row.

theta_i = link^-1(Z_i B + offset_i). The coefficients B are the parameters of the regression, one for each term of a
formula and each entry of the parameter; parameters without a formula stay what they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from ..core.dataset import Dataset
from ..core.domain import Domain
from ..core.graphs import Graph
from ..core.model import AbstractModel, Row
from ..core.narrative import Narrative
from ..core.parameters import Parameter, Rows, Space
from ..core.sites import Sites
from ..core.terms import FlipConditionals, LikelihoodConditionals, Prepared
from ..data.formulas import INTERCEPT, Design
from ..data.observed import Observed
from ..errors import ModelError
from .counts.families import AbstractFamily, CountFamily, Linked
from .network.covariate_terms import LevelRegressionConditionals, PairwiseRegressionTable
from .network.model import Pairwise
from .network.simulate import by_levels_given
from .regression_terms import RegressionConditionals, RegressionLikelihood, RegressionTable

LEAST_SCALE = 1e-12  # of a covariate that hardly varies; smaller ones are scaled before


@dataclass(frozen=True)
class Term:
    """How the predictor of one parameter is made: which covariates, and how many coefficients there are for each."""

    parameter: str
    first: int
    terms: int
    entries: int
    shape: tuple[int, ...]
    offset: int | None
    """The covariate that is added as it is."""

    def predictor(self, coefficients: Array, given: Float[Array, "u q"]) -> Array:
        """One for each row; without a leading axis where all rows have the same."""
        lines = coefficients.reshape(self.terms, self.entries)
        if not self.terms:
            value = jnp.zeros((given.shape[0], self.entries))
        else:
            value = given[:, self.first : self.first + self.terms] @ lines
        if self.offset is not None:
            value = value + given[:, self.offset][:, None]
        return value.reshape(given.shape[0], *self.shape)


@dataclass(frozen=True)
class Regression(AbstractModel):
    """A family of distributions whose parameters depend on covariates. Made by `dfd.fit` from formulas.

    Attributes
    ----------
    family : AbstractFamily
    terms : tuple of Term
        One for each parameter with a formula.
    constant : frozenset of str
        Parameters whose formula is '~ 1': their predictor is one number for all rows.
    designs : tuple of Design
        The formulas, for new data.
    observed : Observed
        The rows that they were made of.
    """

    family: AbstractFamily = field()
    terms: tuple[Term, ...]
    constant: frozenset[str]
    space: Space
    name: str
    designs: tuple[Design, ...] = field(compare=False)
    begin: Mapping[str, np.ndarray] = field(compare=False)
    options: Mapping[str, Any] = field(compare=False)
    observed: Observed = field(compare=False)
    title: str = field(default="a regression", compare=False)
    formula: str = field(default="", compare=False)
    interactions: None = None
    log_normaliser: None = None

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return self.family.domain

    @property
    def narrative(self) -> Narrative:  # type: ignore[override]
        return self.family.narrative if self.base is None else self.base.narrative

    @property
    def meanings(self) -> Mapping[str, str]:  # type: ignore[override]
        return {name: text + self._against(name) for name, text in self.family.meanings.items()}

    def _against(self, name: str) -> str:
        """The levels that those of factors are compared with."""
        if name not in self.varying:
            return ""
        design = self.design(name)
        known = {label.partition("=")[0]: level for label in design.labels if (level := design.reference(label))}
        return f"; levels are against {', '.join(f'{one}={level}' for one, level in known.items())}" * bool(known)

    @property
    def formulas(self) -> Mapping[str, str]:  # type: ignore[override]
        return {design.parameter: f"~ {design.right}" for design in self.designs}

    @property
    def base(self) -> AbstractModel | None:
        """The model whose parameters these are, where it is one by itself."""
        return self.family.base if isinstance(self.family, Linked) else None

    @property
    def graph(self) -> Graph | None:
        return None if self.base is None else self.base.graph

    @property
    def series_told(self) -> str | None:  # type: ignore[override]
        return None if self.observed.series is None else self.observed.series.told

    def covariate(self, column: int) -> tuple[str, str]:
        """The name of a column of the covariates, ``clinic=B``, and its term, ``clinic``, which offsets do not have."""
        for term, design in zip(self.terms, self.designs, strict=True):
            if term.first <= column < term.first + term.terms:
                return design.labels[column - term.first], design.term_of(column - term.first)
        return "the offset", ""

    @property
    def is_linear(self) -> bool:
        """Whether all that the distribution of a row depends on are numbers with a formula each."""
        return all(p.name in self.varying and not p.shape for p in self.family.parameters)

    @property
    def row_space(self) -> Space:
        return Space(self.family.parameters)

    @property
    def main_parameters(self) -> tuple[str, ...]:
        return self.family.mains

    @property
    def mean_parameters(self) -> tuple[str, ...]:
        return self.family.of_the_mean

    @property
    def ranks(self) -> dict[str, int]:
        return self.family.ranks

    def at_rows(self, theta: Rows, context: Float[Array, "u q"] | None) -> Rows:
        assert context is not None
        return self.of_predictors(self.predictors(theta, context))

    def of_predictors(self, predictors: Rows) -> Rows:
        """What `at_rows` gives, from the predictors of rows."""
        return self.family.of_rows(predictors)

    def fixed(self, x: np.ndarray) -> Float[np.ndarray, " u"]:
        return self.family.fixed(x)

    def log_masses_at(self, at: Rows, x: Float[Array, "u d"], fixed: Float[Array, " u"]) -> Float[Array, " u"]:
        return self.family.log_masses(at, x, fixed)

    def log_constants(self, at: Rows, size: int) -> Float[Array, " u"] | None:
        return self.family.log_constants(at, size)

    def means_at(self, at: Rows, size: int) -> Float[Array, " u"] | None:
        return self.family.mean(at, size)

    def predictors(self, named: dict[str, Array], given: Float[Array, "u q"]) -> Rows:
        """By parameter: one for each row, or one without a leading axis that all rows share."""
        predictors: Rows = {}
        known = {term.parameter: term for term in self.terms}
        for parameter in self.family.parameters:
            name = parameter.name
            if name not in known:
                predictors[name] = parameter.to_link(named[name])
            elif name in self.constant and known[name].offset is None:
                predictors[name] = named[name].reshape(parameter.shape)
            else:
                predictors[name] = known[name].predictor(named[name], given)
        return predictors

    def matrices(self, given: Float[Array, "u q"]) -> list[Float[Array, "u k"]]:
        """By parameter, in the order of the coefficients: what they are multiplied with."""
        known = {term.parameter: term for term in self.terms}
        parts = [known[parameter.name] for parameter in self.family.parameters]
        return [given[:, part.first : part.first + part.terms] for part in parts]

    def log_mass_at(self, theta: dict[str, Array], x: Row) -> Float[Array, ""]:
        return self.family.log_mass_at(theta, x)

    def start(self, data: Dataset) -> dict[str, Any]:
        return dict(self.begin)

    @property
    def derived(self) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None:  # type: ignore[override]
        return _nu if "nu" in self.constant and isinstance(self.family, CountFamily) else None

    def gibbs(
        self, thetas: np.ndarray, size: int, rng: np.random.Generator, sweeps: int, context: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.base, Pairwise) and context is not None:
            return by_levels_given(self, self.base, thetas, context, rng, sweeps)
        return super().gibbs(thetas, size, rng, sweeps, context)

    @property
    def rises_and_falls(self) -> bool:  # type: ignore[override]
        return isinstance(self.family, CountFamily) and not self.family.hurdle

    def with_space(self, space: Space) -> Regression:
        return replace(self, space=space)

    def labelled(self, columns: Sequence[str]) -> Regression:
        if not isinstance(self.family, Linked):
            return self
        base = self.family.base.labelled(columns)
        labels = {p.name: p.labels for p in base.space.parameters}
        for design in self.designs:
            own = next(p for p in base.space.parameters if p.name == design.parameter)
            labels[design.parameter] = labels_of(own, design.labels)
        return replace(self, family=Linked(base), space=self.space.labelled(labels))

    def to_data_scale(self, theta: np.ndarray) -> np.ndarray:
        return self._recoded(theta, Design.to_data_scale)

    def from_data_scale(self, theta: np.ndarray) -> np.ndarray:
        return self._recoded(theta, Design.from_data_scale)

    def _recoded(self, theta: np.ndarray, how: Callable[[Design, np.ndarray], np.ndarray]) -> np.ndarray:
        if not any(design.scale for design in self.designs):
            return theta
        found = np.array(theta)
        for term, design in zip(self.terms, self.designs, strict=True):
            first = self.space.first[term.parameter]
            place = slice(first, first + term.terms * term.entries)
            lines = found[..., place].reshape(*found.shape[:-1], term.terms, term.entries)
            found[..., place] = how(design, lines).reshape(*found.shape[:-1], -1)
        return found

    def as_given(self, given: np.ndarray) -> np.ndarray:
        """Covariates as formulas make them, from those that are centred and scaled inside."""
        found = np.array(given)
        for term, design in zip(self.terms, self.designs, strict=True):
            place = slice(term.first, term.first + term.terms)
            found[:, place] = design.as_given(found[:, place])
        return found

    def with_priors(self, priors: Mapping[str, Any] | None) -> Regression:
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
        return super().with_priors(priors)

    def at(self, name: str, coefficients: np.ndarray, terms: np.ndarray, offset: float = 0.0) -> np.ndarray:
        """A parameter where its formula's terms are ``terms``, from draws (..., k) of its coefficients."""
        own = next(p for p in self.family.parameters if p.name == name)
        if name not in self.varying:
            return coefficients
        lines = coefficients.reshape(*coefficients.shape[:-1], len(terms), own.size)
        return own.from_link(np.einsum("q,...qe->...e", terms, lines) + offset)

    def average(self, name: str, data: Dataset) -> tuple[np.ndarray, float]:
        """The average of a parameter's terms over the data, and that of its offset."""
        term = next((term for term in self.terms if term.parameter == name), None)
        if term is None or data.given is None:
            return np.ones(1), 0.0
        mean = np.average(data.given, axis=0, weights=data.counts)
        return mean[term.first : term.first + term.terms], 0.0 if term.offset is None else float(mean[term.offset])

    @property
    def pairwise(self) -> Pairwise | None:
        """The base, if it has a parameter for every node and edge, and predictors are these parameters themselves."""
        bent = [p for p in self.family.parameters if p.name in self.varying and np.isfinite(p.support).any()]
        return self.base if isinstance(self.base, Pairwise) and not bent else None

    def table(self, sites: Sites) -> Prepared:
        if self.pairwise is not None:
            return PairwiseRegressionTable.of(self, self.pairwise, sites)
        return RegressionTable.of(self, sites)

    def conditionals(self, sites: Sites) -> Prepared:
        if self.domain.is_binary:
            return FlipConditionals.of(self, self.table(sites))
        if self.domain.d == 1 and self.family.supports_likelihood:
            return LikelihoodConditionals.of(self, self.likelihood(sites))
        if self.pairwise is not None:
            return LevelRegressionConditionals.of(self, self.pairwise, sites)
        return RegressionConditionals.of(self, sites)

    def require_possible(self, data: Dataset, neighbours: str) -> None:
        base = getattr(self.family, "base", None)
        if base is not None:
            base.require_possible(data, neighbours)

    def likelihood(self, sites: Sites) -> Prepared:
        return RegressionLikelihood.of(self, sites)

    def supports(self, what: str) -> bool:
        if what == "likelihood":
            return self.family.supports_likelihood
        return False if what == "blocks" else super().supports(what)

    def advise(self, data: Dataset) -> tuple[str, str]:
        if self.domain.d == 1 and self.family.supports_likelihood:
            return (
                "likelihood",
                "for one column it makes the most of the data, and its width is calibrated all the same",
            )
        return super().advise(data) if self.base is None else self.base.advise(data)

    def columns_told(self, columns: Sequence[str]) -> str:
        return "" if self.base is None else self.base.columns_told(columns)

    def remarks(self, data: Dataset) -> Sequence[str]:
        return () if self.base is None else self.base.remarks(data)

    @property
    def identity(self) -> dict[str, Any]:
        own = super().identity
        base = None if self.base is None else self.base.identity
        return own | {"formulas": self.formulas, "base": base}


def _nu(theta: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Nu itself, where it is the same for all rows."""
    return {"nu_value": np.exp(theta["nu"][..., 0])}


def family_of(model: AbstractModel, options: Mapping[str, Any], hurdle: bool) -> AbstractFamily:
    """The family that a regression with this model uses: the model's own, if it has one for these values."""
    own = None if isinstance(model, Regression) or model.family is None else model.family
    if own is not None and own.domain != model.domain:  # a changed copy of a built-in model
        own = None
    if isinstance(own, CountFamily):
        return replace(own, form=options.get("form") or "mean", hurdle=hurdle)
    if hurdle:
        raise ModelError("zeros= is for models 'poisson' and 'cmp'")
    return Linked(model) if own is None else own


def labels_of(parameter: Parameter, terms: Sequence[str]) -> tuple[str, ...]:
    """Names of coefficients: those of the terms, or of each entry and, but for constants, the term."""
    if not parameter.shape:
        return tuple(terms)
    own = [re.sub(r"^[^\[]*\[(.*)\]$", r"\1", entry) for entry in parameter.entries]
    return tuple(label if term == INTERCEPT else f"{label}:{term}" for term in terms for label in own)


def regression(
    model: AbstractModel, family: AbstractFamily, designs: Sequence[Design], data: Dataset, observed: Observed
) -> Regression:
    """A regression on data whose covariates are the designs' matrices side by side, offsets after each."""
    assert data.given is not None
    known = {p.name: p for p in family.parameters}
    terms, parameters, first = [], [], 0
    begin: dict[str, np.ndarray] = {}
    formulas = {design.parameter: design for design in designs}
    for parameter in family.parameters:
        if parameter.name not in formulas:
            parameters.append(parameter)
    for design in designs:
        own, k = known[design.parameter], len(design.labels)
        offset = first + k if design.offsets else None
        matrix = data.given[:, first : first + k]
        shift = data.given[:, offset] if offset is not None else np.zeros(len(matrix))
        terms.append(Term(own.name, first, k, own.size, own.shape, offset))
        begin[own.name] = _begin(family, own, design, matrix, shift, data)
        parameters.append(_coefficients(family, own, design, matrix, shift, data))
        first += k + (offset is not None)
    order = [p.name for p in family.parameters]
    space = Space(tuple(sorted(parameters, key=lambda p: order.index(p.name))))
    plain = {} if model.start is None else dict(model.start(data.thinned()))
    start = {p.name: begin.get(p.name, plain.get(p.name, np.zeros(p.shape))) for p in parameters}
    constant = frozenset(design.parameter for design in designs if design.labels == (INTERCEPT,))
    return Regression(
        family, tuple(terms), constant, space, model.name, tuple(designs), start,
        dict(model.options) | ({"form": family.form} if isinstance(family, CountFamily) else {}), observed,
        title=f"{model.title} with covariates", formula=model.formula,
    )  # fmt: skip


def _begin(
    family: AbstractFamily, own: Parameter, design: Design, matrix: np.ndarray, shift: np.ndarray, data: Dataset
) -> np.ndarray:
    """Where the search starts: the family's own first guess, or a constant alone."""
    found = family.begin(own.name, matrix, shift, data)
    if found is None:
        found = np.zeros((len(design.labels), own.size))
        if INTERCEPT in design.labels:
            found[design.labels.index(INTERCEPT)] = _margin(family, own, data) - float(
                np.average(shift, weights=data.counts)
            )
    return found.reshape(-1)


def _margin(family: AbstractFamily, own: Parameter, data: Dataset) -> np.ndarray:
    """A parameter's value without covariates, on the scale of its link."""
    if isinstance(family, CountFamily):
        x = data.rows[:, 0].astype(float)
        mean = np.average(x, weights=data.counts)
        if own.name == "nu":
            variance = max(np.average((x - mean) ** 2, weights=data.counts), 1e-3)
            return np.full(own.size, np.log(np.clip(mean / variance, 0.3, 3.0)))
        return np.zeros(own.size) if own.name == "zeros" else np.full(own.size, np.log(max(mean, 0.05)))
    if isinstance(family, Linked) and family.base.start is not None:
        guess = family.base.start(data.thinned()).get(own.name)
        if guess is not None:
            return np.nan_to_num(np.asarray(own.to_link(np.broadcast_to(guess, own.shape).astype(float))).reshape(-1))
    return np.zeros(own.size)


def _expected(family: AbstractFamily, own: Parameter, data: Dataset) -> np.ndarray:
    """Where the prior of a constant is centred: at the margin, or at the first quartile of the parameter's own prior.

    The latter where a parameter that may be zero is only searched for from next to there.
    """
    if isinstance(family, Linked) and own.closed:
        return np.asarray(own.to_link(Space((own,)).prior_quantiles([0.25])[0]))
    return _margin(family, own, data)


def _coefficients(
    family: AbstractFamily, own: Parameter, design: Design, matrix: np.ndarray, shift: np.ndarray, data: Dataset
) -> Parameter:
    """A parameter's coefficients with weak priors.

    A slope is N(0, s / scale) for the scale of its term: a standard deviation, or 1 for terms that are 0 or 1. A
    constant is about its margin, and as much wider as slopes of terms that are far from zero make it.
    """
    of_constant, of_slope = own.spread
    weights = data.counts / data.counts.sum()
    mean = weights @ matrix
    sd = np.sqrt(np.maximum(weights @ (matrix - mean) ** 2, 0.0))
    binary = ((matrix == 0.0) | (matrix == 1.0)).all(axis=0)
    scale = np.where(binary, 1.0, np.maximum(sd, LEAST_SCALE))
    widths, centres = of_slope / scale, np.zeros((len(design.labels), own.size))
    if INTERCEPT in design.labels:
        place = design.labels.index(INTERCEPT)
        far = np.where(np.arange(len(mean)) == place, 0.0, np.where(binary, 0.0, mean) * widths)
        widths[place] = np.sqrt(of_constant**2 + np.sum(far**2))
        centres[place] = _expected(family, own, data) - float(weights @ shift)
    prior = dist.Normal(centres.reshape(-1), np.repeat(widths, own.size))
    return Parameter(
        own.name, prior, shape=(len(design.labels) * own.size,), labels=labels_of(own, design.labels), role=own.role
    )
