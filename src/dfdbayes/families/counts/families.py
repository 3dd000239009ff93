"""Families: what a regression needs of a model, given the linear predictors of every row.

A predictor lives on the scale of a link: logarithms of positive parameters, log odds of those between two ends, others
as they are. Most models are families by these links alone (`Linked`). Counts and binary columns have families of their
own, which work with predictors directly and know the constant of every row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float
from scipy import special

from ...core.dataset import Dataset
from ...core.domain import Binary, Counts, Domain
from ...core.model import AbstractModel, Row
from ...core.narrative import Narrative
from ...core.parameters import LOCATION, SHAPE, ZEROS, Parameter, Rows, over_rows
from ...core.starts import logarithmic, logistic
from ...core.terms import MOST_POINTS, softplus
from ...errors import ModelError
from .mean_form import held, of_mean
from .narrative import CountNarrative, ShareNarrative

BINARY, COUNTS = Binary(1), Counts(1)
WEAK = (3.0, 2.5)
"""`Parameter.spread` of log odds and log means."""


class AbstractFamily(ABC):
    """A distribution of rows by their predictors."""

    domain: Domain
    main: str
    """The parameter that a formula without a name is about, the first one if there are several."""

    @property
    def mains(self) -> tuple[str, ...]:
        """All parameters that a formula without a name is about."""
        return (self.main,)

    @property
    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """On their own scale, with the priors that they have without covariates."""

    @abstractmethod
    def of_rows(self, predictors: Rows) -> Rows:
        """What `log_mass_at` needs, for every row."""

    @abstractmethod
    def log_mass_at(self, row: Rows, x: Row) -> Float[Array, ""]:
        """Log of the unnormalised mass of one row."""

    def fixed(self, x: np.ndarray) -> Float[np.ndarray, " u"]:
        """What of the log masses of rows no parameter changes, to be computed once; see `log_masses`."""
        return np.zeros(len(x))

    def log_masses(self, rows: Rows, x: Float[Array, "u d"], fixed: Float[Array, " u"]) -> Float[Array, " u"]:
        """`log_mass_at` of all rows."""
        return over_rows(self.log_mass_at, rows, len(x), self.ranks, x)

    def log_constants(self, rows: Rows, size: int) -> Float[Array, " u"] | None:
        """Log of the sum of all masses for every one of ``size`` rows; None where it cannot be had."""
        return None

    def begin(self, name: str, design: np.ndarray, offset: np.ndarray, data: Dataset) -> np.ndarray | None:
        """Coefficients (terms, entries) to start the search from; None for a constant alone."""
        return None

    def mean(self, rows: Rows, size: int) -> Float[Array, " u"] | None:
        """The expected value of every row of one column."""
        return None

    @property
    def of_the_mean(self) -> tuple[str, ...]:
        """The parameters that the expected value depends on."""
        return tuple(p.name for p in self.parameters)

    narrative: Narrative = Narrative()
    """Who says what a regression found."""

    @property
    def meanings(self) -> Mapping[str, str]:
        """What the coefficients of each parameter do, by its name."""
        return {}

    @property
    def supports_likelihood(self) -> bool:
        return False

    @property
    def ranks(self) -> dict[str, int]:
        """How many axes what one row needs has, by name; none where it is not said."""
        return {}


@dataclass(frozen=True)
class Linked(AbstractFamily):
    """Any model, each of its parameters through the link that its support asks for."""

    base: AbstractModel

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return self.base.domain

    @property
    def main(self) -> str:  # type: ignore[override]
        return self.mains[0]

    @property
    def mains(self) -> tuple[str, ...]:
        return self.base.main_parameters

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.base.space.parameters

    def of_rows(self, predictors: Rows) -> Rows:
        return {p.name: p.from_link(predictors[p.name]) for p in self.parameters}

    def log_mass_at(self, row: Rows, x: Row) -> Float[Array, ""]:
        return self.base.log_mass_at(row, x)

    def log_constants(self, rows: Rows, size: int) -> Float[Array, " u"] | None:
        known = self.base.log_normaliser
        if known is None and self.domain.size > MOST_POINTS:
            return None
        points = None if known is not None else jnp.asarray(self.domain.points(), float)

        def of(row: Rows) -> Array:
            if known is not None:
                return known(row)
            return jax.nn.logsumexp(jax.vmap(lambda x: self.log_mass_at(row, x))(points))

        return over_rows(of, rows, size, self.ranks)

    @property
    def meanings(self) -> Mapping[str, str]:
        return self.base.meanings

    @property
    def supports_likelihood(self) -> bool:
        return self.base.supports("likelihood")

    @property
    def ranks(self) -> dict[str, int]:
        return {p.name: len(p.shape) for p in self.parameters}


@dataclass(frozen=True)
class BinaryFamily(AbstractFamily):
    """One binary column: log odds."""

    domain: Domain = BINARY
    narrative = ShareNarrative()
    main: str = "probability"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        import numpyro.distributions as dist

        return (Parameter("probability", dist.Beta(1.0, 1.0), lower=0.0, upper=1.0, role=LOCATION, spread=WEAK),)

    def of_rows(self, predictors: Rows) -> Rows:
        return {"odds": predictors["probability"]}

    def log_mass_at(self, row: Rows, x: Row) -> Float[Array, ""]:
        return row["odds"] * x[0]

    def log_constants(self, rows: Rows, size: int) -> Float[Array, " u"]:
        return jnp.broadcast_to(softplus(rows["odds"]), (size,))

    def begin(self, name: str, design: np.ndarray, offset: np.ndarray, data: Dataset) -> np.ndarray:
        ones = data.counts * (data.rows[:, 0] == 1)
        return logistic(design, ones, data.counts, ridge=1e-3, offset=offset)[:, None]

    def mean(self, rows: Rows, size: int) -> Float[Array, " u"]:
        return jnp.broadcast_to(jax.nn.sigmoid(rows["odds"]), (size,))

    @property
    def meanings(self) -> Mapping[str, str]:
        return {"probability": "log odds of a 1 (Intercept), and what one unit more of a covariate adds to them"}

    @property
    def supports_likelihood(self) -> bool:
        return True


@dataclass(frozen=True)
class CountFamily(AbstractFamily):
    """One column of counts, Poisson or Conway-Maxwell-Poisson, by its mean or by its location.

    In the location form rate = location^nu, so that log r^- = nu (log x - log location). With ``zeros`` the mass at
    zero has a factor exp(zeros) (a hurdle), and mean and location are those of the distribution without it.
    """

    dispersed: bool
    form: str = "mean"
    hurdle: bool = False
    domain: Domain = COUNTS
    narrative = CountNarrative()

    def __post_init__(self) -> None:
        if self.form not in ("mean", "location"):
            raise ModelError(f"form is {self.form!r}; a count regression has the form 'mean' or 'location'")

    @property
    def main(self) -> str:  # type: ignore[override]
        return self.form

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        import numpyro.distributions as dist

        found = [Parameter(self.form, dist.LogNormal(0.0, 3.0), lower=0.0, role=LOCATION, spread=WEAK)]
        if self.dispersed:
            found.append(Parameter("nu", dist.LogNormal(0.0, 1.5), lower=0.0, role=SHAPE, spread=(1.5, 1.0)))
        if self.hurdle:
            found.append(Parameter("zeros", dist.Normal(0.0, 3.0), role=ZEROS, spread=WEAK))
        return tuple(found)

    def of_rows(self, predictors: Rows) -> Rows:
        """Log rate, nu, the log constants with and without a hurdle; what is not used of them is not computed."""
        log_mean = predictors[self.form]
        if not self.dispersed:
            rows = {"log_rate": log_mean, "nu": jnp.ones(()), "constant": jnp.exp(log_mean)}
        elif self.form == "mean":
            nu = held(predictors["nu"])
            rate, constant = of_mean(log_mean, nu)
            rows = {"log_rate": rate, "nu": nu, "constant": constant}
        else:
            from .normaliser import log_normaliser

            nu = jnp.exp(predictors["nu"])
            rate = nu * log_mean
            rows = {"log_rate": rate, "nu": nu, "constant": log_normaliser(rate, nu)}
        if self.form == "mean" or not self.dispersed:
            rows["log_mean"] = log_mean
        if self.hurdle:
            rows["uninflated"] = rows["constant"]
            others = rows["constant"] + jnp.log(-jnp.expm1(-rows["constant"]))  # all but zero, whose mass was 1
            rows["zeros"] = predictors["zeros"]
            rows["constant"] = jnp.logaddexp(others, predictors["zeros"])
        return rows

    def log_mass_at(self, row: Rows, x: Row) -> Float[Array, ""]:
        value = row["log_rate"] * x[0] - row["nu"] * gammaln(x[0] + 1.0)
        return value + jnp.where(x[0] == 0, row["zeros"], 0.0) if self.hurdle else value

    def fixed(self, x: np.ndarray) -> Float[np.ndarray, " u"]:
        """The log factorials."""
        return special.gammaln(np.asarray(x[:, 0], float) + 1.0)

    def log_masses(self, rows: Rows, x: Float[Array, "u d"], fixed: Float[Array, " u"]) -> Float[Array, " u"]:
        value = rows["log_rate"] * x[:, 0] - rows["nu"] * fixed
        return value + jnp.where(x[:, 0] == 0, rows["zeros"], 0.0) if self.hurdle else value

    def log_constants(self, rows: Rows, size: int) -> Float[Array, " u"]:
        return jnp.broadcast_to(rows["constant"], (size,))

    def mean(self, rows: Rows, size: int) -> Float[Array, " u"]:
        """With a hurdle, the mean without it times what its factor at zero leaves of the other values."""
        if "log_mean" in rows:
            found = jnp.exp(rows["log_mean"])
        else:
            from .normaliser import log_normaliser

            rate, nu = jnp.broadcast_arrays(rows["log_rate"], rows["nu"])
            found = jax.jvp(lambda eta: log_normaliser(eta, nu), (rate,), (jnp.ones_like(rate),))[1]
        if self.hurdle:
            found = found * jnp.exp(rows["uninflated"] - rows["constant"])
        return jnp.broadcast_to(found, (size,))

    @property
    def of_the_mean(self) -> tuple[str, ...]:
        return super().of_the_mean if self.hurdle or self.form != "mean" else (self.main,)

    def begin(self, name: str, design: np.ndarray, offset: np.ndarray, data: Dataset) -> np.ndarray | None:
        if name != self.form:
            return None
        return logarithmic(design, data.rows[:, 0].astype(float), data.counts, offset)[:, None]

    @property
    def meanings(self) -> Mapping[str, str]:
        shape = "below 1 counts vary more than Poisson counts with the same covariates, at 1 alike, above 1 less"
        return {
            "mean": "log of the expected count (Intercept), and what one unit more of a covariate adds to it",
            "location": "log of the location, which is about the expected count, and what a covariate adds to it",
            "nu": f"log of the shape nu ({shape}), and what a covariate adds to it",
            "nu_value": f"the shape nu: {shape}",
            "zeros": "log of what multiplies the odds of a zero that the counts would have without this part, and what "
            "a covariate adds to it",
        }

    @property
    def supports_likelihood(self) -> bool:
        return True
