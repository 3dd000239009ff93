"""Models of one count or one binary variable: Bernoulli, Poisson, Conway-Maxwell-Poisson."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float
from scipy import special

from ...core.dataset import Dataset
from ...core.domain import Binary, Counts, beyond, until_negligible
from ...core.exponential import ExponentialFamily
from ...core.linear import softplus
from ...core.minimise import logarithmic, logistic
from ...core.model import Row
from ...core.parameters import LOCATION, SHAPE, ZEROS, Parameter, Rows, Space
from ...errors import ModelError
from ..named import named
from .mean_form import held, of_mean
from .narrative import CountNarrative, ShareNarrative
from .normaliser import log_normaliser

WEAK = (3.0, 2.5)
"""`Parameter.spread` of log odds and log means."""


def _as_any(model: ExponentialFamily) -> ExponentialFamily:
    """A changed copy of a built-in model, which is an exponential family like any other."""
    own = {part.name: getattr(model, part.name) for part in fields(ExponentialFamily) if part.init}
    return ExponentialFamily(**own)


# -- Bernoulli ---------------------------------------------------------------------------------


def _steps_of_counts(rows: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Changes of x and of -log x! with a step of one, exact where log x! itself has lost its digits."""
    step = (moved - rows).astype(float)
    return step, -step * np.log(np.maximum(np.maximum(rows, moved), 1))


def _value(x: Row) -> Float[Array, " 1"]:
    return x


def _logit(theta: dict[str, Array]) -> Float[Array, " 1"]:
    return jnp.stack([jnp.log(theta["probability"]) - jnp.log1p(-theta["probability"])])


def _share_of_ones(data: Dataset) -> dict[str, Any]:
    return {"probability": np.average(data.rows[:, 0], weights=data.counts)}


@dataclass(frozen=True)
class BernoulliModel(ExponentialFamily):
    """One binary column, by the probability of a 1, or by its log odds where these depend on covariates."""

    formula_for_all = True
    has_means = True
    kin = "binary"
    base_identity = None

    def current(self) -> ExponentialFamily:
        found = super().current()
        return self if found is self else _as_any(self)

    def for_covariates(self, form: str | None, hurdle: bool) -> ExponentialFamily:
        super().for_covariates(form, hurdle)
        return self if self.domain == Binary(1) else _as_any(self)

    @property
    def ranks(self) -> dict[str, int]:
        return {}

    def at_rows(self, theta: Rows, context: Float[Array, "u q"] | None) -> Rows:
        return self.of_predictors(self.space.predictors(theta, context)) if self.varying else theta

    def of_predictors(self, predictors: Rows) -> Rows:
        return {"odds": predictors["probability"]}

    def log_mass_at(self, theta: Rows, x: Row) -> Float[Array, ""]:
        return theta["odds"] * x[0] if self.varying else super().log_mass_at(theta, x)

    def log_constants(self, at: Rows, size: int) -> Float[Array, " u"] | None:
        return jnp.broadcast_to(softplus(at["odds"]), (size,)) if self.varying else super().log_constants(at, size)

    def means_at(self, at: Rows, size: int) -> Float[Array, " u"]:
        return jnp.broadcast_to(jax.nn.sigmoid(at["odds"]) if self.varying else at["probability"], (size,))

    def begin(
        self, parameter: Parameter, formula: Any, matrix: np.ndarray, offset: np.ndarray, data: Dataset
    ) -> Float[np.ndarray, " k"]:
        ones = data.counts * (data.rows[:, 0] == 1)
        return logistic(matrix, ones, data.counts, ridge=1e-3, offset=offset)

    def margin(self, parameter: Parameter, data: Dataset) -> Float[np.ndarray, " e"]:
        return np.zeros(parameter.size)

    def regression_on(self, space: Space, starts: Mapping[str, np.ndarray]) -> Self:
        told = "log odds of a 1 (Intercept), and what one unit more of a covariate adds to them"
        return super(BernoulliModel, self.changed(meanings={"probability": told})).regression_on(space, starts)


@named("bernoulli")
def Bernoulli() -> BernoulliModel:
    """p(1) = probability (the paper's theta), for one binary column; uniform prior."""
    return BernoulliModel(
        T=_value,
        b=None,
        eta=_logit,
        domain=Binary(1),
        parameters=[Parameter("probability", dist.Beta(1.0, 1.0), lower=0.0, upper=1.0, role=LOCATION, spread=WEAK)],
        name="bernoulli",
        title="a Bernoulli model",
        formula="p(1) = probability, &nbsp; p(0) = 1 − probability",
        narrative=ShareNarrative(),
        meanings={"probability": "the probability of a 1"},
        start=_share_of_ones,
    )


# -- counts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountModel(ExponentialFamily):
    """One column of counts, Poisson or Conway-Maxwell-Poisson, by its rate, its mean or its location.

    In the location form rate = location^nu, so that log r^- = nu (log x - log location). With a ``hurdle`` the mass at
    zero has a factor exp(zeros), and mean and location are those of the distribution without it.

    Attributes
    ----------
    dispersed : bool
        Whether the shape nu is a parameter; it is 1 otherwise.
    form : {"", "mean", "location"}
        The parameter that says where counts lie; the rate of the mass function where none is said.
    hurdle : bool
        Whether zeros have a parameter of their own.
    """

    dispersed: bool = False
    form: str = ""
    hurdle: bool = False

    formula_for_all = True
    has_means = True
    takes_zeros = True
    base_identity = None

    @property
    def paper_priors(self) -> dict[str, Any]:
        return {p.name: dist.Chi2(3.0) for p in self.space.parameters}

    @property
    def freer(self) -> str:  # type: ignore[override]
        return "" if self.dispersed else "cmp"

    @property
    def kin(self) -> str:  # type: ignore[override]
        return f"counts by {self.form}"

    @property
    def mode_inside(self) -> bool:  # type: ignore[override]
        return not self.hurdle

    def __post_init__(self) -> None:
        if not self.form:
            super().__post_init__()
            return
        object.__setattr__(self, "space", self.parameters)
        object.__setattr__(self, "traced", f"counts by {self.form}")

    def current(self) -> ExponentialFamily:
        found = super().current()
        return self if found is self else _as_any(self)

    def for_covariates(self, form: str | None, hurdle: bool) -> ExponentialFamily:
        if self.domain != Counts(1):
            super().for_covariates(form, hurdle)
            return _as_any(self)
        return self.by(form or self.form or "mean", hurdle or self.hurdle)

    def by(self, form: str, hurdle: bool = False) -> CountModel:
        """The same distributions by their mean or location, with a parameter of its own for zeros or without."""
        if form not in ("mean", "location"):
            raise ModelError(f"form is {form!r}; a count regression has the form 'mean' or 'location'")
        found = [Parameter(form, dist.LogNormal(0.0, 3.0), lower=0.0, role=LOCATION, spread=WEAK)]
        if self.dispersed:
            found.append(Parameter("nu", dist.LogNormal(0.0, 1.5), lower=0.0, role=SHAPE, spread=(1.5, 1.0)))
        if hurdle:
            found.append(Parameter("zeros", dist.Normal(0.0, 3.0), role=ZEROS, spread=WEAK))
        space = Space(tuple(found))
        natural = _Natural(space, form, self.dispersed, hurdle)
        made = self.changed(
            T=_statistics_with_zero if hurdle else _count_and_log_factorial, b=None, eta=natural,
            parameters=space, space=space, traced=f"counts by {form}", form=form, hurdle=hurdle, differences=None,
            log_normaliser=natural.constant, derived=None, meanings=_MEANINGS,
            options=dict(self.options) | {"form": form},
        )  # fmt: skip
        return made.changed(start=made._margins)

    # -- rows ------------------------------------------------------------------------------------

    @property
    def ranks(self) -> dict[str, int]:
        return {}

    def at_rows(self, theta: Rows, context: Float[Array, "u q"] | None) -> Rows:
        return self.of_predictors(self.space.predictors(theta, context)) if self.form else theta

    def of_predictors(self, predictors: Rows) -> Rows:
        return _of_form(predictors, self.form, self.dispersed, self.hurdle)

    def log_mass_at(self, theta: Rows, x: Row) -> Float[Array, ""]:
        if not self.form:
            return super().log_mass_at(theta, x)
        value = theta["log_rate"] * x[0] - theta["nu"] * gammaln(x[0] + 1.0)
        return value + jnp.where(x[0] == 0, theta["zeros"], 0.0) if self.hurdle else value

    def fixed(self, x: np.ndarray) -> Float[np.ndarray, " u"]:
        """The log factorials."""
        return special.gammaln(np.asarray(x[:, 0], float) + 1.0)

    def log_masses_at(self, at: Rows, x: Float[Array, "u d"], fixed: Float[Array, " u"]) -> Float[Array, " u"]:
        if not self.form:
            return super().log_masses_at(at, x, fixed)
        value = at["log_rate"] * x[:, 0] - at["nu"] * fixed
        return value + jnp.where(x[:, 0] == 0, at["zeros"], 0.0) if self.hurdle else value

    def log_constants(self, at: Rows, size: int) -> Float[Array, " u"] | None:
        return super().log_constants(at, size) if not self.form else jnp.broadcast_to(at["constant"], (size,))

    def means_at(self, at: Rows, size: int) -> Float[Array, " u"]:
        """With a hurdle, the mean without it times what its factor at zero leaves of the other values."""
        if not self.form:
            log_rate = jnp.log(at["rate"])
            at = {"log_mean": log_rate} if not self.dispersed else {"log_rate": log_rate, "nu": at["nu"]}
        if "log_mean" in at:
            found = jnp.exp(at["log_mean"])
        else:
            rate, nu = jnp.broadcast_arrays(at["log_rate"], at["nu"])
            found = jax.jvp(lambda eta: log_normaliser(eta, nu), (rate,), (jnp.ones_like(rate),))[1]
        if self.hurdle:
            found = found * jnp.exp(at["uninflated"] - at["constant"])
        return jnp.broadcast_to(found, (size,))

    @property
    def mean_parameters(self) -> tuple[str, ...]:
        return super().mean_parameters if self.hurdle or self.form != "mean" else self.main_parameters

    # -- covariates ------------------------------------------------------------------------------

    def begin(
        self, parameter: Parameter, formula: Any, matrix: np.ndarray, offset: np.ndarray, data: Dataset
    ) -> Float[np.ndarray, " k"]:
        if parameter.role != LOCATION:
            return super().begin(parameter, formula, matrix, offset, data)
        return logarithmic(matrix, data.rows[:, 0].astype(float), data.counts, offset)

    def margin(self, parameter: Parameter, data: Dataset) -> Float[np.ndarray, " e"]:
        x = data.rows[:, 0].astype(float)
        mean = np.average(x, weights=data.counts)
        if parameter.role == SHAPE:
            variance = max(np.average((x - mean) ** 2, weights=data.counts), 1e-3)
            return np.full(parameter.size, np.log(np.clip(mean / variance, 0.3, 3.0)))
        return np.zeros(parameter.size) if parameter.role == ZEROS else np.full(1, np.log(max(mean, 0.05)))

    def _margins(self, data: Dataset) -> dict[str, Any]:
        return {p.name: np.asarray(p.from_link(self.margin(p, data)[0])) for p in self.space.parameters}

    def regression_on(self, space: Space, starts: Mapping[str, np.ndarray]) -> Self:
        shape = next((design for design in space.designs if design.of.role == SHAPE), None)
        made = super().regression_on(space, starts)
        return made.changed(derived=_nu) if shape is not None and shape.constant else made


def _of_form(predictors: Rows, form: str, dispersed: bool, hurdle: bool) -> Rows:
    """Log rate, nu, the log constants with and without a hurdle; what is not used of them is not computed."""
    log_mean = predictors[form]
    if not dispersed:
        rows = {"log_rate": log_mean, "nu": jnp.ones(()), "constant": jnp.exp(log_mean)}
    elif form == "mean":
        nu = held(predictors["nu"])
        rate, constant = of_mean(log_mean, nu)
        rows = {"log_rate": rate, "nu": nu, "constant": constant}
    else:
        nu = jnp.exp(predictors["nu"])
        rate = nu * log_mean
        rows = {"log_rate": rate, "nu": nu, "constant": log_normaliser(rate, nu)}
    if form == "mean" or not dispersed:
        rows["log_mean"] = log_mean
    if hurdle:
        rows["uninflated"] = rows["constant"]
        others = rows["constant"] + jnp.log(-jnp.expm1(-rows["constant"]))  # all but zero, whose mass was 1
        rows["zeros"] = predictors["zeros"]
        rows["constant"] = jnp.logaddexp(others, predictors["zeros"])
    return rows


@dataclass(frozen=True)
class _Natural:
    """Natural parameters of counts by their mean or location, and the log constant there."""

    space: Space
    form: str
    dispersed: bool
    hurdle: bool

    def _at(self, theta: Rows) -> Rows:
        return _of_form(self.space.predictors(theta, None), self.form, self.dispersed, self.hurdle)

    def __call__(self, theta: Rows) -> Float[Array, " k"]:
        at = self._at(theta)
        return jnp.stack([at["log_rate"], at["nu"], *([at["zeros"]] if self.hurdle else [])])

    def constant(self, theta: Rows) -> Float[Array, ""]:
        return self._at(theta)["constant"]


def _nu(theta: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Nu itself, where it is the same for all rows."""
    return {"nu_value": np.exp(theta["nu"][..., 0])}


_SHAPE = "below 1 counts vary more than Poisson counts with the same covariates, at 1 alike, above 1 less"
_MEANINGS = {
    "mean": "log of the expected count (Intercept), and what one unit more of a covariate adds to it",
    "location": "log of the location, which is about the expected count, and what a covariate adds to it",
    "nu": f"log of the shape nu ({_SHAPE}), and what a covariate adds to it",
    "nu_value": f"the shape nu: {_SHAPE}",
    "zeros": "log of what multiplies the odds of a zero that the counts would have without this part, and what "
    "a covariate adds to it",
}
"""What the coefficients of each parameter do."""


# -- Poisson -----------------------------------------------------------------------------------


def _log_factorial(x: Row) -> Float[Array, ""]:
    return -gammaln(x[0] + 1.0)


def _log_rate(theta: dict[str, Array]) -> Float[Array, " 1"]:
    return jnp.stack([jnp.log(theta["rate"])])


def _rate(theta: dict[str, Array]) -> Array:
    return theta["rate"]


def _mean_count(data: Dataset) -> dict[str, Any]:
    return {"rate": np.average(data.rows[:, 0], weights=data.counts)}


def _poisson_differences(rows: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, g = _steps_of_counts(rows, moved)
    return x[..., None], g


@named("poisson", with_formula=("form",))
def Poisson() -> CountModel:
    """p(x) proportional to rate^x / x! (the paper's theta), for one column of counts.

    Its log has a normal prior with standard deviation 3; the paper's is chi-squared(3) for the rate.
    """
    return CountModel(
        T=_value,
        b=_log_factorial,
        eta=_log_rate,
        domain=Counts(1),
        parameters=[Parameter("rate", dist.LogNormal(0.0, 3.0), lower=0.0, role=LOCATION)],
        name="poisson",
        title="a Poisson model",
        formula="p(x) ∝ λ<sup>x</sup> / x!, &nbsp; λ = rate",
        narrative=CountNarrative(),
        meanings={"rate": "the mean count, and its variance too"},
        start=_mean_count,
        differences=_poisson_differences,
        log_normaliser=_rate,
    )


# -- Conway-Maxwell-Poisson --------------------------------------------------------------------


def _count_and_log_factorial(x: Row) -> Float[Array, " 2"]:
    return jnp.stack([x[0], -gammaln(x[0] + 1.0)])


def _statistics_with_zero(x: Row) -> Float[Array, " 3"]:
    return jnp.stack([x[0], -gammaln(x[0] + 1.0), jnp.where(x[0] == 0, 1.0, 0.0)])


def _log_rate_and_nu(theta: dict[str, Array]) -> Float[Array, " 2"]:
    return jnp.stack([jnp.log(theta["rate"]), theta["nu"]])


def _log_constant(theta: dict[str, Array]) -> Array:
    return log_normaliser(jnp.log(theta["rate"]), theta["nu"])


def _regression_of_log_ratios(data: Dataset) -> dict[str, Any]:
    """Fit log p(x-1)/p(x) = nu log x - log rate to the observed frequencies.

    Weighted least squares with the inverse variances of the log ratios; consistent, because observed
    frequencies are. Where too few neighbouring values were seen, the first two moments serve.
    """
    x, counts = data.rows[:, 0], data.counts
    below = np.searchsorted(x, x - 1)
    paired = (below < len(x)) & (x[np.minimum(below, len(x) - 1)] == x - 1) & (x > 0)
    if paired.sum() >= 2:
        here, there = counts[paired], counts[below[paired]]
        weight = here * there / (here + there)
        design = np.stack([np.ones(paired.sum()), np.log(x[paired])], axis=1)
        response = np.log(there / here)
        scaled = design * weight[:, None]
        intercept, slope = np.linalg.lstsq(scaled.T @ design, scaled.T @ response, rcond=None)[0]
        shape, rate = np.clip(slope, 0.01, 30.0), np.exp(np.clip(-intercept, -30.0, 30.0))
        if slope > 0.01:
            return {"rate": rate, "nu": shape}
    mean = np.average(x, weights=counts)
    variance = max(np.average((x - mean) ** 2, weights=counts), 1e-3)
    shape = np.clip(mean / variance, 0.05, 30.0)
    centre = max(mean + (shape - 1.0) / (2.0 * shape), 0.1)
    return {"rate": centre**shape, "nu": shape}


def moments(rate: np.ndarray, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of Conway-Maxwell-Poisson distributions, one for each pair of parameters.

    Sums of the mass function up to where the remaining tail is below 1e-12 of the total; where the
    mode rate^(1/nu) exceeds 10^4, the first terms of its asymptotic expansion, whose relative
    error is then below 1e-8.
    """
    log_rate, shape = np.log(np.ravel(rate)), np.ravel(np.asarray(nu, float))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_mode = np.where(shape > 0, log_rate / np.maximum(shape, 1e-300), np.where(log_rate < 0, -1.0, np.inf))
    far = log_mode > np.log(1e4)
    mean, variance = np.empty_like(shape), np.empty_like(shape)
    if far.any():
        mode = np.exp(np.minimum(log_mode[far], 100.0))  # 1e43 stands for all that is larger
        power = np.maximum(shape[far], 1e-10)
        mean[far] = mode - (power - 1) / (2 * power)
        variance[far] = mode / power
    near = np.flatnonzero(~far)
    for i in np.array_split(near, max(1, len(near) // 256)):
        if len(i):
            mean[i], variance[i] = _summed_moments(log_rate[i], shape[i])
    return mean.reshape(np.shape(rate)), variance.reshape(np.shape(rate))


def _summed_moments(log_rate: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    def attempt(number: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        x = Counts(1).coordinate(0).listed(number).astype(float)
        mass = special.softmax(log_rate[:, None] * x - shape[:, None] * special.gammaln(x + 1.0), axis=1)
        mean = mass @ x
        return (mean, mass @ x**2 - mean**2), number**2 * beyond(mass[:, -1], mass[:, -2])

    return until_negligible(attempt, 64, 2**18, None)


def _mean_and_index(theta: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    mean, variance = moments(theta["rate"], theta["nu"])
    return {"mean": mean, "dispersion_index": variance / mean}


def _cmp_differences(rows: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.stack(_steps_of_counts(rows, moved), axis=-1), np.zeros(rows.shape)


@named("cmp", with_formula=("form",))
def ConwayMaxwellPoisson() -> CountModel:
    """p(x) proportional to rate^x / (x!)^nu, for one column of counts.

    ``nu`` < 1 is over-dispersed, 1 is Poisson, > 1 is under-dispersed; ``nu`` = 0 is geometric.
    In the paper ``rate`` is theta_1 and ``nu`` is theta_2. The log of the rate, which is about the mean to the power
    nu, has a normal prior with standard deviation 5, ``nu`` a chi-squared(3) one, as both have in the paper. Derived
    quantities: ``mean`` and ``dispersion_index`` (the variance divided by the mean).
    """
    return CountModel(
        T=_count_and_log_factorial,
        b=None,
        eta=_log_rate_and_nu,
        domain=Counts(1),
        parameters=[
            Parameter("rate", dist.LogNormal(0.0, 5.0), lower=0.0, role=LOCATION),
            Parameter("nu", dist.Chi2(3.0), lower=0.0, closed=True, role=SHAPE),
        ],
        name="cmp",
        title="a Conway-Maxwell-Poisson model",
        formula="p(x) ∝ λ<sup>x</sup> / (x!)<sup>ν</sup>, &nbsp; λ = rate, ν = nu",
        narrative=CountNarrative(),
        meanings={
            "rate": "lambda of the formula (the paper's theta_1), about the mean to the power nu: read the mean",
            "nu": "the shape (the paper's theta_2): below 1 counts vary more than Poisson's, at 1 alike, above 1 less",
            "mean": "the mean count",
            "dispersion_index": "the variance divided by the mean, which is 1 for Poisson counts",
        },
        start=_regression_of_log_ratios,
        derived=_mean_and_index,
        differences=_cmp_differences,
        log_normaliser=_log_constant,
        dispersed=True,
    )
