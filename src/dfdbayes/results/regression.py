"""What is asked of a regression after the fit: predictions, residuals and effects."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int
from scipy import special

from .._util.resources import require_seed
from ..core.dataset import PLACE, Dataset
from ..core.mixing import evenly
from ..core.model import AbstractModel
from ..core.narrative import main_of, multiplies
from ..core.parameters import over_rows
from ..core.simulators.given import CELLS, Tails, distributions, tails, width
from ..core.terms import coarse_size, filled
from ..data.formulas import INTERCEPT, Design
from ..data.read.reading import frame_of
from ..errors import DataWarning, ModelError, SettingError, outside
from .accessor import ACCESSORS, AbstractAccessor
from .fitted import Fitted


@ACCESSORS.register("regression")
class RegressionAccessor(AbstractAccessor):
    """``fit.regression``: one column whose distribution depends on covariates."""

    fits = "regressions of one column: fit a formula, as in formula='y ~ x'"

    def predict(self, newdata: Any = None, interval: float = 0.95) -> pd.DataFrame:
        """Expected values and new observations at given covariates; see `Fit.predict`."""
        self._warn_of_draws()
        found = predictions(self.fit, newdata, interval)
        self._warn_of_misfit()
        return found

    def residuals(self, seed: int = 0) -> pd.DataFrame:
        """Randomised quantile residuals; see `Fit.residuals`."""
        return residuals(self.fit, seed)

    def effects(self, interval: float = 0.95) -> pd.DataFrame:
        """What each term of the main parameter does; see `Fit.effects`."""
        self._warn_of_draws()
        return effects(self.fit, interval)


def require_regression(fit: Fitted, what: str) -> AbstractModel:
    """The model of a fit, if it has covariates and one column."""
    if fit.model is None:
        raise ModelError("this fit was loaded without its model; give it: dfd.load(path, model=...)")
    if not fit.model.designs:
        raise SettingError(f"there are no {what}: {fit.model.without_formulas}")
    if fit.data.d > 1:
        raise SettingError(f"{what} are for regressions of one column, and this one has {fit.data.d}")
    return fit.model


def require_level(interval: float) -> tuple[float, float]:
    """The two ends of an interval, as chances."""
    if not 0 < interval < 1:
        raise SettingError(f"interval is {interval}; it must lie between 0 and 1")
    return 0.5 * (1 - interval), 0.5 * (1 + interval)


def covariates(model: AbstractModel, frame: pd.DataFrame) -> Float[np.ndarray, "u q"]:
    """What the formulas make of new data: the matrices side by side, offsets after each."""
    parts = []
    for design in model.designs:
        matrix, offset = design.matrix(frame)
        parts += [matrix] if offset is None else [matrix, offset[:, None]]
    return np.concatenate(parts, axis=1)


# -- Expected values and predictions -----------------------------------------------------------


def _expected(model: AbstractModel, theta: Array, given: Array, points: Array) -> Array:
    """Expected values of rows: by the family's formula, or from the masses of ``points``."""
    rows = model.at_rows(model.space.unflatten(theta), given)
    found = model.means_at(rows, len(given))
    if found is not None:
        return found

    def of_row(row: dict[str, Array], _: Array) -> Array:
        return jax.nn.softmax(jax.vmap(lambda x: model.log_mass_at(row, x))(points)) @ points[:, 0]

    return over_rows(of_row, rows, len(given), model.ranks, jnp.arange(len(given)))


@partial(jax.jit, static_argnums=0)
def _means(model: AbstractModel, thetas: Array, given: Array, points: Array) -> Array:
    return jax.lax.map(lambda theta: _expected(model, theta, given, points), thetas)


@partial(jax.jit, static_argnums=0)
def _slopes(model: AbstractModel, thetas: Array, given: Array, points: Array, along: Array) -> Array:
    """Derivatives of expected values as one covariate of every row grows."""

    def of(theta: Array) -> Array:
        direction = jnp.broadcast_to(along, given.shape)
        return jax.jvp(lambda given: _expected(model, theta, given, points), (given,), (direction,))[1]

    return jax.lax.map(of, thetas)


def _points(model: AbstractModel, thetas: np.ndarray, *givens: np.ndarray) -> Float[np.ndarray, "s 1"]:
    """The values that expected values are summed over; one alone where there is a formula for these."""
    if model.has_means:
        return np.zeros((1, 1))
    few = evenly(thetas, 20)
    found = [part.points for given in givens for part in distributions(model, few, given)]
    return max(found, key=len).astype(float)


def _in_blocks(function: Any, model: AbstractModel, thetas: np.ndarray, given: np.ndarray, *more: Any) -> np.ndarray:
    """A function of parameters and rows, (c, u), rows in blocks of one size."""
    each = max(1, CELLS // len(thetas))
    size = coarse_size(min(each, len(given)))
    parts = [given[k : k + each] for k in range(0, len(given), each)]
    found = [np.asarray(function(model, thetas, filled(part, size), *more))[:, : len(part)] for part in parts]
    return np.concatenate(found, axis=1)


def predictions(fit: Fitted, newdata: Any, interval: float) -> pd.DataFrame:
    """See `Fit.predict`."""
    model, ends = require_regression(fit, "predictions"), require_level(interval)
    if newdata is None:
        _, given, known = rows_of(model, fit.data)
        table = pd.DataFrame(index=pd.RangeIndex(len(given)))
    else:
        frame = frame_of(newdata)
        given, table = covariates(model, frame), pd.DataFrame(index=frame.index)
        _warn_of_far(model, frame)
    distinct, where = np.unique(given, axis=0, return_inverse=True)
    thetas = evenly(fit.joint_draws, 1000)
    values = np.empty((5, len(distinct)))
    typical = width(model, float(np.average(np.abs(fit.data.rows[:, 0]), weights=fit.data.counts)))
    # draws whose distributions are mixed for a new observation: fewer where masses are many
    mixed = int(np.clip(2e8 / (typical * max(len(distinct), 1)), 50, 200))
    for part in distributions(model, evenly(thetas, mixed), distinct):
        points, masses = (part.points[:, 0], part.masses) if _is_rising(part.points) else _turned(part)
        cumulated = np.cumsum(masses, axis=1)
        cumulated /= cumulated[:, -1:]
        for row, end in zip((3, 4), ends, strict=True):
            values[row, part.rows] = points[np.argmax(cumulated >= end, axis=1)]
        values[0, part.rows], values[1:3, part.rows] = _summed(part.means, ends)
    if len(distinct) and model.has_means:  # a formula, so that many draws cost little
        means = _in_blocks(_means, model, thetas, distinct, jnp.zeros((1, 1)))
        values[0], values[1:3] = _summed(means, ends)
    mean, low, high, new_low, new_high = values[:, where.reshape(-1)]
    table = table.assign(mean=mean, mean_low=low, mean_high=high)
    table = table.assign(new_low=new_low.astype(np.int64), new_high=new_high.astype(np.int64))
    return model.observed.by_row(table, known) if newdata is None else table


def rows_of(model: AbstractModel, data: Dataset) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, "n q"], np.ndarray]:
    """Values and covariates of the rows that formulas were evaluated on, and whether each has a value."""
    observed = model.observed
    if observed.series is not None:
        assert data.given is not None
        order = np.argsort(data.given[:, data.given_columns.index(PLACE)])
        return data.rows[order, 0], data.given[order], np.ones(len(order), bool)
    apart, known = observed.apart(model.domain, data.columns), np.zeros(len(observed.rows), bool)
    values = np.zeros(len(known), np.int64)
    values[apart.first], known[apart.first] = apart.rows[:, 0], True
    return values, covariates(model, observed.rows), known


def _warn_of_far(model: AbstractModel, new: pd.DataFrame) -> None:
    """Warn of numbers in terms that are further outside what the fit has seen than half of its range."""
    terms = [(design, names) for design in model.designs for names in design.spec.term_variables.values()]
    used = {design.names.get(name, name) for design, names in terms for name in _of_data(names)}
    seen = model.observed.rows
    for name in [c for c in seen.columns if c in used and c in new and pd.api.types.is_numeric_dtype(seen[c])]:
        low, high = float(seen[name].min()), float(seen[name].max())
        values = pd.to_numeric(new[name], errors="coerce")
        half = 0.5 * (high - low)
        far = values[(values < low - half) | (values > high + half)]
        if len(far):
            warnings.warn(
                f"'{name}' is {far.iloc[0]:g} in the new data, and the fit has seen {low:g} to {high:g}: so far out "
                "predictions rest on the form of the formula alone. What to do: make sure that the number is right.",
                DataWarning,
                stacklevel=outside(),
            )


def _is_rising(points: np.ndarray) -> bool:
    return len(points) < 2 or bool(points[1, 0] > points[0, 0])


def _turned(part: Any) -> tuple[np.ndarray, np.ndarray]:
    return part.points[::-1, 0], part.masses[:, ::-1]


def _summed(means: np.ndarray, ends: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    return means.mean(axis=0), np.quantile(means, ends, axis=0)


def _places(first: np.ndarray) -> pd.Index:
    return pd.Index(first, name="row")


# -- Residuals ---------------------------------------------------------------------------------


def residuals(fit: Fitted, seed: int) -> pd.DataFrame:
    """See `Fit.residuals`."""
    model = require_regression(fit, "residuals")
    require_seed(seed)
    values, given, known = rows_of(model, fit.data)
    distinct, where = np.unique(np.column_stack([values, given]), axis=0, return_inverse=True)
    where, x = where.reshape(-1), distinct[:, 0].astype(np.int64)
    found = tails(model, fit.joint_draws.mean(axis=0), distinct[:, 1:], x)
    table = model.observed.by_row(
        pd.DataFrame({"observed": values, "fitted": found.mean[where], "distinct": where}), known
    )
    left_out = table["distinct"].isna().to_numpy()
    each = table.pop("distinct").fillna(0).to_numpy(dtype=np.int64)
    share = np.random.default_rng([seed, 6]).random(len(each))
    return table.assign(residual=np.where(left_out, np.nan, _quantile_residuals(found, each, share)))


def residuals_of(model: AbstractModel, theta: Float[np.ndarray, " p"], data: Dataset, seed: int = 0) -> pd.DataFrame:
    """Randomised quantile residuals of observations whose counts are whole numbers, at one value of the parameters."""
    assert data.given is not None
    found = tails(model, theta, data.given, data.rows[:, 0])
    each = np.repeat(np.arange(len(data.rows)), data.counts.astype(np.int64))
    share = np.random.default_rng([seed, 6]).random(len(each))
    columns = {
        "observed": data.rows[each, 0],
        "fitted": found.mean[each],
        "residual": _quantile_residuals(found, each, share),
    }
    return pd.DataFrame(columns, index=_places(data.first[each])).sort_index(kind="stable")


def _quantile_residuals(found: Tails, each: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Of rows that are ``each`` of the tails', with a random share of the chance of the value itself."""
    below = found.below[each] + share * found.here[each]
    above = found.above[each] + (1.0 - share) * found.here[each]
    normal = special.ndtri(np.maximum(np.minimum(below, above), 1e-16))  # the smaller tail has all its digits
    return np.where(below <= above, normal, -normal)


# -- Effects -----------------------------------------------------------------------------------


def effects(fit: Fitted, interval: float) -> pd.DataFrame:
    """See `Fit.effects`."""
    model, ends = require_regression(fit, "effects"), require_level(interval)
    design = _main_design(model)
    given, weights = _weighted(fit.data)
    thetas = evenly(fit.joint_draws, int(max(1e7 / len(given), 200)))  # fewer where rows are many
    draws = model.space.to_data_scale(fit.joint_draws)
    at = model.space.first[design.parameter]
    main = main_of(model)
    link = {"logit": "odds_ratio", "log": "ratio"}[main.link] if multiplies(main) else ""
    lines = []
    for place, label in enumerate(design.labels):
        if label == INTERCEPT:
            continue
        coefficient = draws[:, at + place]
        line: dict[str, Any] = {"term": label} | interval_of("coefficient", coefficient, ends)
        if link:
            times = np.exp(np.clip(coefficient, -700.0, 700.0))  # whose exponential is a number
            line |= interval_of(link, times, ends) | {link: float(np.median(times))}
        change, found = _effect(model, design, place, given, weights, thetas)
        lines.append(line | {"change": change} | interval_of("effect", found, ends))
    return pd.DataFrame(lines).set_index("term") if lines else pd.DataFrame(index=pd.Index([], name="term"))


def _main_design(model: AbstractModel) -> Design:
    """The design of the main parameter."""
    main = model.main_parameters[0]
    if main not in model.varying:
        raise SettingError(f"there are no effects: {main} has no formula")
    return model.design(main)


def _weighted(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Distinct covariates, and the share of observations that have them."""
    assert data.given is not None
    distinct, where = np.unique(data.given, axis=0, return_inverse=True)
    return distinct, np.bincount(where.reshape(-1), weights=data.counts) / data.counts.sum()


def interval_of(name: str, draws: np.ndarray | None, ends: tuple[float, float]) -> dict[str, float]:
    """The mean of draws and their interval, as entries of a table; not known without draws."""
    if draws is None:
        return {name: np.nan, f"{name}_low": np.nan, f"{name}_high": np.nan}
    low, high = np.quantile(draws, ends)
    return {name: float(np.mean(draws)), f"{name}_low": float(low), f"{name}_high": float(high)}


def _effect(
    model: AbstractModel, design: Design, place: int, given: np.ndarray, weights: np.ndarray, thetas: np.ndarray
) -> tuple[str, np.ndarray | None]:
    """How a term changes, and draws of what that does to the expected value, averaged over the rows."""
    label = design.labels[place]
    columns, own = _columns_of(model, design, place)
    if not own:
        return "in several terms", None
    switches = bool(np.isin(given[:, columns], (0.0, 1.0)).all())
    if not switches and len(columns) > len(own):  # a spline, say
        return "in several terms", None
    if not switches:
        along = np.zeros(given.shape[1])
        along[own] = 1.0 / design.scale[place] if design.scale else 1.0
        return "per unit", _in_blocks(_slopes, model, thetas, given, _points(model, thetas, given), along) @ weights
    alone = _alone(design, place)
    assert alone is not None
    levels = given[:, [_first_of(model, design) + k for k in alone]]
    if len(alone) > 1 and (levels.sum(axis=1) == 1.0).all():  # all levels, so that none is the reference
        return "no reference level", None
    off = given.copy()
    off[:, columns] = 0.0
    on = off.copy()
    on[:, own] = 1.0
    points = _points(model, thetas, off, on)
    change = _in_blocks(_means, model, thetas, on, points) - _in_blocks(_means, model, thetas, off, points)
    against = design.reference(label)
    return f"{against} to {label.partition('=')[2]}" if against else "0 to 1", change @ weights


def _columns_of(model: AbstractModel, design: Design, place: int) -> tuple[list[int], list[int]]:
    """The covariates of a column's term in all formulas that the expected value depends on, and of the column itself.

    None where the term is not the same in all of them, or a variable of it is in another term too.
    """
    variables = _names_of(design, design.spec.term_variables[_term_at(design, place)])
    labels = {design.labels[k] for k in _alone(design, place) or ()}
    columns: list[int] = []
    own: list[int] = []
    for other in model.designs:
        if other.parameter not in model.mean_parameters:
            continue
        specs = (other.spec, *other.offsets)
        if not any(variables & _names_of(other, used) for spec in specs for used in spec.term_variables.values()):
            continue
        same = other.labels.index(design.labels[place]) if design.labels[place] in other.labels else None
        together = None if same is None else _alone(other, same)
        if same is None or together is None or {other.labels[k] for k in together} != labels:
            return [], []
        first = _first_of(model, other)
        columns += [first + k for k in together]
        own.append(first + same)
    return columns, own


def _first_of(model: AbstractModel, design: Design) -> int:
    """The first covariate of a formula."""
    return model.space.predictor(design.parameter).first


def _term_at(design: Design, place: int) -> Any:
    """The term that a column is of."""
    return next(term for term, columns in design.spec.term_indices.items() if place in columns)


def _names_of(design: Design, variables: Any) -> set[str]:
    """Those among a formula's names that are columns, as the data call them."""
    return {design.names.get(name, name) for name in _of_data(variables)}


def _alone(design: Design, place: int) -> Sequence[int] | None:
    """The columns of a column's term; None where a variable of it is in another term too, or in an offset."""
    term = _term_at(design, place)
    used = [variables for spec in (design.spec, *design.offsets) for variables in spec.term_variables.items()]
    own = _of_data(design.spec.term_variables[term])
    others = [_of_data(variables) for other, variables in used if other is not term]
    return None if any(own & names for names in others) else design.spec.term_indices[term]


def _of_data(variables: Any) -> set[str]:
    """Those among a formula's names that are columns."""
    return {str(variable) for variable in variables if getattr(variable, "source", "data") == "data"}
