"""What a user should be told about a run that finished: each warning says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import special
from scipy.sparse.csgraph import connected_components

from .._util.tables import Table
from ..errors import (
    BoundaryWarning,
    CalibrationWarning,
    ConvergenceWarning,
    DataWarning,
    DfdbayesWarning,
    DivergenceWarning,
    DroppedRowsWarning,
    EscapedError,
    EstimatedLossWarning,
    IdentificationWarning,
    ModelWarning,
    NonFiniteError,
    NonFiniteWarning,
    PriorWarning,
    UnboundedLossWarning,
)
from .calibration import Calibration
from .dataset import CLUSTERS, Dataset, far_values
from .linalg import cholesky
from .minimise import Minimum, Outcome, evaluate, flat_parameters, flatness, interior, prior_at_y
from .mixing import MAX_R_HAT, MIN_EFFECTIVE, bulk_size, entries_of, r_hat, stacked, tail_size
from .model import AbstractModel
from .objective import Objective
from .parameters import Space
from .posterior import ERRORS_BEYOND_EDGE


def warnings_of(
    objective: Objective,
    minimum: Minimum,
    calibration: Calibration,
    stats: dict[str, Any],
    posterior: Table,
    target: float | None = None,
) -> list[DfdbayesWarning]:
    """Everything worth a warning, in the order of the road; ``target`` is the acceptance rate that was asked for."""
    found: list[DfdbayesWarning] = [DataWarning(note) for note in objective.data.notes]
    found += _of_columns(objective.data, objective.space.size)
    if not objective.elsewhere:
        found += [DataWarning(remark) for remark in objective.model.remarks(objective.observed)]
    if objective.data.dropped:
        found.append(
            DroppedRowsWarning(
                f"{objective.data.dropped} rows with missing values were left out, as asked. What to do: nothing, "
                f"if values are missing completely at random; otherwise {_kept(objective.data)}."
            )
        )
    if objective.note and not objective.loss.separable:
        found.append(
            EstimatedLossWarning(
                f"the {objective.loss.title} was {objective.note}, as all pairs are too many. What to do: nothing; or "
                "use loss='dfd' or 'ratio', which need no pairs."
            )
        )
    space = objective.space
    cut = [name for name in minimum.edges if name not in _continued(space, calibration)]
    if minimum.outcome is Outcome.BOUNDARY and cut:
        found.append(
            BoundaryWarning(
                f"the minimiser is at the boundary of {_listed(cut)}: intervals next to a boundary are one-sided. What "
                "to do: read them as upper (or lower) limits, or leave the parameter out of the model."
            )
        )
    found += _of_contradictions(space, calibration)
    flat = flat_parameters(objective, minimum)
    if flat:
        found.append(IdentificationWarning(_with_remedy(flatness(flat))))
    if minimum.usable:
        found += _of_ridges(ridges(objective, minimum, calibration.beta))
    found += _of_sums(objective, minimum)
    found += _of_calibration(calibration, objective.loss.bounded)
    found += _of_dependence(objective, calibration)
    if not minimum.usable:
        found.append(
            IdentificationWarning(
                f"the loss alone has no minimum: {minimum.message.removeprefix('escaped: ')}. The prior holds what the "
                "data do not say. What to do: read the intervals of these parameters as the prior's opinion, give a "
                "prior that you can defend, or use a simpler model."
            )
        )
    p, n = objective.space.size, len(calibration.outcomes) if calibration.simulated else objective.size
    if calibration.curvature is not None and p >= n:
        found.append(
            CalibrationWarning(
                f"there are {p} parameters and {n:.0f} observations, too few to weigh directions one by one: all have "
                "one weight, and joint statements about many parameters are not calibrated. What to do: use a simpler "
                "model, or a graph with fewer edges."
            )
        )
    entries = entries_of(posterior)
    found += _of_prior(objective.model, space, posterior, objective.loss.name)
    if not cut:  # there the edge holds an estimate, and not the prior
        found += _of_influence(calibration)
    found += _of_means(entries, objective.loss.name)
    found += _of_chains(stats, posterior, entries, space, target)
    return found


def _kept(data: Dataset) -> str:
    """How to keep rows with missing values: entries are imputed, covariates are not."""
    if data.given is None:
        return "missing='impute' (--missing impute) keeps them"
    return "fill in the covariates that are missing, which are not imputed"


def _continued(space: Space, calibration: Calibration) -> set[str]:
    """Entries whose losses were calibrated beyond the edge of their support."""
    return {name for name, one in zip(space.names, space.beyond, strict=True) if one and calibration.curvature}


def _of_contradictions(space: Space, calibration: Calibration) -> list[DfdbayesWarning]:
    """Estimates that lie beyond the edge of their support by more than chance explains."""
    shape = calibration.curvature
    if shape is None:
        return []
    low, high = np.where(space.beyond, space.lower, -np.inf), np.where(space.beyond, space.upper, np.inf)
    far = np.maximum(low - shape.centre, shape.centre - high) / np.sqrt(np.diag(shape.covariance))
    names = np.array(space.names, dtype=object)[far > ERRORS_BEYOND_EDGE]
    if not len(names):
        return []
    return [
        BoundaryWarning(
            f"the data ask for values of {_listed(names)} that the model does not allow (by up to {far.max():.1f} "
            "standard deviations); they are held at the edge. What to do: take what is said about these as 'none', and "
            "look at the predictive checks, or use a model that allows such values."
        )
    ]


def _of_columns(data: Dataset, parameters: int) -> list[DfdbayesWarning]:
    """Values far from all others, and columns that do not vary, where columns have parameters of their own."""
    found: list[DfdbayesWarning] = [
        DataWarning(
            f"row {row}: '{name}' is {value}, and elsewhere at most {others:.0f}. What to do: check that row; one such "
            "value can decide everything."
        )
        for name, row, value, others in far_values(data)
        if abs(value) > 10**6
    ]
    constant = [name for name, spread in zip(data.columns, np.ptp(data.rows, axis=0), strict=True) if not spread]
    if constant and data.n > 1 and parameters >= data.d:
        found.append(
            IdentificationWarning(
                f"{_listed(constant)} {'has' if len(constant) == 1 else 'have'} the same value in every row, so the "
                "data cannot say how that goes with the others: what is reported about it comes from the prior or from "
                "the limits of the search. What to do: "
                "leave the column out (columns=[...])."
            )
        )
    return found


def _of_sums(objective: Objective, minimum: Minimum) -> list[DfdbayesWarning]:
    """Masses that have no finite sum at the estimate, which losses of ratios do not notice."""
    along = "" if objective.elsewhere else objective.model.endless(minimum.vector, objective.data)
    if not along:
        return []
    return [
        ModelWarning(
            f"at the estimate the mass function of '{objective.model.name}' has no finite sum: it does not fall at "
            f"large values of {along}, so it is no distribution and its parameters mean nothing. What to do: make sure "
            "that the function returns the logarithm of the mass, and that it falls, for example by a term "
            "-gammaln(x[0] + 1)."
        )
    ]


def _of_ridges(groups: list[list[str]]) -> list[DfdbayesWarning]:
    """Parameters that only the prior tells apart."""
    return [
        IdentificationWarning(
            f"the data know only a combination of {_listed(names)}, such as their sum or product: the prior alone "
            "tells them apart, and their intervals are its opinion. What to do: fix one of them, or write the model in "
            "terms of that combination; in a regression, see whether all rows of a level have the same response."
        )
        for names in groups
    ]


def _on_edge(space: Space, posterior: Table) -> set[str]:
    """Entries all of whose draws lie on the edge of their support."""
    draws = _flat(space, posterior)
    constant = (draws == draws[0]).all(axis=0) & ((draws[0] == space.lower) | (draws[0] == space.upper))
    return {name for name, one in zip(space.names, constant, strict=True) if one}


def _flat(space: Space, posterior: Table) -> np.ndarray:
    """Draws of all parameters, one line each."""
    return np.concatenate([posterior.arrays[p.name].reshape(-1, p.size) for p in space.parameters], axis=1)


def _another_loss(used: str, *names: str) -> str:
    """Losses to try, never the one in use: "loss='ratio' or 'likelihood', "; empty where there is no other."""
    others = [repr(name) for name in names if name != used]
    return f"loss={' or '.join(others)}, " if others else ""


def _of_prior(model: AbstractModel, space: Space, posterior: Table, loss: str) -> list[DfdbayesWarning]:
    """Posteriors that are wider than their priors, which no data can make them, or that are the priors."""
    draws = model.space.from_data_scale(_flat(space, posterior))
    levels = [0.05, 0.5, 0.95]
    before, after = space.prior_quantiles(levels), np.quantile(draws, levels, axis=0)
    width = before[2] - before[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, moved = (after[2] - after[0]) / width, np.abs(after[1] - before[1]) / width
    names = np.array(space.names, dtype=object)
    wider, same = (
        names[ratio > 1.1],
        names[(ratio > 0.9) & (ratio <= 1.1) & (moved < 0.1)],
    )  # a tenth is the noise of draws
    found: list[DfdbayesWarning] = []
    if len(wider):
        found.append(
            PriorWarning(
                f"the posterior of {_listed(wider)} is wider than its prior (by up to {np.nanmax(ratio):.1f} times): "
                "the loss bends the wrong way there, and the intervals are not to be used as they are. What to do: use "
                f"{_another_loss(loss, 'ratio')}a simpler model or more data."
            )
        )
    if len(same):
        found.append(
            PriorWarning(
                f"the posterior of {_listed(same)} is its prior: the data say nothing about it, and its interval is "
                "the prior's. What to do: use another loss, or more data."
            )
        )
    return found


def _of_influence(calibration: Calibration) -> list[DfdbayesWarning]:
    """Parameters that the prior moved by more than half a standard deviation, though the data speak about them."""
    shape = calibration.curvature
    if shape is None:
        return []
    names, moved = np.array(calibration.names, dtype=object), np.abs(shape.moved)
    far = (moved > 0.5) & (shape.from_data > 0.5)
    if not far.any():
        return []
    order = np.argsort(-np.where(far, moved, 0.0))[: int(far.sum())]
    return [
        PriorWarning(
            f"the prior moved {_listed(names[order])} by more than half a standard deviation (at most "
            f"{moved[order[0]]:.1f}). What to do: make sure that you mean that prior; fit.prior_influence has the "
            "shifts of all parameters, and prior={...} takes a wider one."
        )
    ]


def useless_means(entries: dict[str, np.ndarray]) -> list[str]:
    """Entries whose mean lies outside their 95 % interval: a few draws, as large as numbers go, decide it."""
    flat = stacked(entries).reshape(-1, len(entries))
    low, high = np.quantile(flat, [0.025, 0.975], axis=0)
    mean = flat.mean(axis=0)
    on_edge = (flat == flat.min(axis=0)).mean(axis=0) > 0.5
    useless = ~((low <= mean) & (mean <= high)) & (high > low) & ~on_edge
    return [name for name, one in zip(entries, useless, strict=True) if one]


def _of_means(entries: dict[str, np.ndarray], loss: str) -> list[DfdbayesWarning]:
    names = useless_means(entries)
    if not names:
        return []
    return [
        NonFiniteWarning(
            f"{_listed(names)} has no usable posterior mean: in a few draws it is larger by orders of magnitude. The "
            "summary gives its median and interval instead, and a posterior that reaches so far is not to be relied on "
            f"there. What to do: use {_another_loss(loss, 'ratio', 'likelihood')}a tighter prior, or more data."
        )
    ]


def _of_calibration(calibration: Calibration, bounded: bool) -> list[DfdbayesWarning]:
    found: list[DfdbayesWarning] = []
    bad = {k: v for k, v in calibration.tally.items() if k not in (Outcome.CONVERGED, Outcome.BOUNDARY)}
    if bad:
        listed = ", ".join(f"{count} {outcome}" for outcome, count in bad.items())
        kind = CalibrationWarning if bounded or Outcome.ESCAPED not in bad else UnboundedLossWarning
        found.append(
            kind(
                f"of {len(calibration.outcomes)} bootstrap fits, {listed}; they were left out of the calibration. "
                f"What to do: more data{' or' if bounded else ','} a simpler model"
                f"{'' if bounded else ' or loss=' + repr('ratio')} make this rarer."
            )
        )
    if calibration.degenerate:
        found.append(
            CalibrationWarning(
                f"in {calibration.degenerate} of {len(calibration.outcomes)} resamples a column that varies in the "
                "data is constant. What to do: resampling='dirichlet' leaves no value out; more data make this rarer."
            )
        )
    if calibration.instead_of:
        asked = calibration.instead_of.partition(":")[0]
        found.append(
            CalibrationWarning(
                f"the calibration '{asked}' has no positive beta here, so '{calibration.method}' stands in for it "
                f"(on_failure='fallback'). The reason: {calibration.instead_of.partition(': ')[2]}"
            )
        )
    on_edge = sum(calibration.tally.get(o, 0) for o in (Outcome.CONVERGED, Outcome.BOUNDARY)) - calibration.used
    if calibration.how.resamples and on_edge > 0:
        found.append(
            CalibrationWarning(
                f"{on_edge} bootstrap minimisers lie on the boundary, where the prior has no finite slope; they were "
                "left out of the calibration. What to do: a prior with a finite slope there would use them."
            )
        )
    if calibration.error > 0.25 * calibration.beta:
        found.append(
            CalibrationWarning(
                f"beta = {calibration.beta:.3g} has a Monte-Carlo error of {calibration.error:.2g}. "
                f"What to do: raise bootstrap to {4 * len(calibration.outcomes)} or more to halve it."
            )
        )
    return found


def _of_dependence(objective: Objective, calibration: Calibration) -> list[DfdbayesWarning]:
    """A width that takes rows for independent which are not."""
    by_rows = calibration.how.adjusts and calibration.resampling != "parametric"
    known = objective.loss.normalised and not objective.model.sampled  # a likelihood of the whole
    if objective.model.independent or known or not by_rows or objective.units.kind == CLUSTERS:
        return []
    return [
        CalibrationWarning(
            "the ties of the graph, or the sites of the map, depend on each other, and the posterior's width was "
            "calibrated as if they did not: intervals may be too narrow. What to do: use resampling='parametric', "
            "which simulates graphs or maps."
        )
    ]


def require_in_basin(objective: Objective, minimum: Minimum, theta: np.ndarray) -> None:
    """Refuse draws with a loss below the minimum they should surround: a loss may fall without bound far away."""
    if objective.loss.bounded:
        return
    space, flat = objective.space, theta.reshape(-1, theta.shape[-1])
    flat = flat[((flat >= space.lower) & (flat <= space.upper)).all(axis=1)]  # beyond an edge a loss may well be less
    if not len(flat):
        return
    values = objective.values(flat[:: max(1, len(flat) // 2000)])
    below = int(np.sum(values < minimum.value - 1e-6 * max(1.0, abs(minimum.value))))
    if below:
        raise EscapedError(
            f"{below} of {len(values)} checked draws have a loss below the minimum they should surround: this loss is "
            f"unbounded below, chains escaped within {bounds_of(minimum)}, and the posterior means nothing. What to "
            "do: use loss='ratio', which is bounded below, a tighter prior, or more data."
        )


def require_finite(named: dict[str, np.ndarray], space: Space) -> tuple[dict[str, np.ndarray], list[DfdbayesWarning]]:
    """Draws that are numbers all: derived quantities that are not are left out, with a warning; parameters may not."""
    bad = [name for name, values in named.items() if not np.isfinite(values).all()]
    lost = [p.name for p in space.parameters if p.name in bad]
    if lost:
        share = float(np.mean(~np.isfinite(named[lost[0]])))
        raise NonFiniteError(
            f"{share:.1%} of the draws of {_listed(lost)} are not finite: the posterior is too wide for the numbers of "
            "this machine. What to do: use a tighter prior, loss='ratio', or more data."
        )
    warned: list[DfdbayesWarning] = [
        NonFiniteWarning(
            f"{name} is not finite in {float(np.mean(~np.isfinite(named[name]))):.1%} of the draws and was left out. "
            "What to do: use a tighter prior or more data; the parameters themselves are sound."
        )
        for name in bad
    ]
    return {name: values for name, values in named.items() if name not in bad}, warned


def bounds_of(minimum: Minimum, most: int = 4) -> str:
    """The parameter space of a loss that is unbounded below, as text."""
    shown = [f"{name} in [{low:.3g}, {high:.3g}]" for name, (low, high) in list(minimum.bounds.items())[:most]]
    more = len(minimum.names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _of_chains(
    stats: dict[str, Any], posterior: Table, entries: dict[str, np.ndarray], space: Space, target: float | None
) -> list[DfdbayesWarning]:
    found: list[DfdbayesWarning] = []
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    if "diverging" in stats and stats["diverging"].mean() > 1e-3:  # fewer leave no trace in a summary
        found.append(
            DivergenceWarning(
                f"{int(stats['diverging'].sum())} of {chains * draws} transitions diverged: the sampler met a sharp "
                f"corner of the posterior. What to do: {_smaller_steps(target)}."
            )
        )
    table = _diagnostics(entries)
    unusable = table.index[table[["ess_bulk", "r_hat"] if chains > 1 else ["ess_bulk"]].isna().any(axis=1)]
    varying = set(space.names) - _on_edge(space, posterior)  # a derived quantity may be constant
    unusable = unusable[[name in varying for name in unusable]]
    table = table.loc[table["ess_bulk"].notna()]
    if len(unusable):
        raise NonFiniteError(
            f"the draws of {_listed(unusable)} do not vary, or are too large for their variance to be a number, so "
            "they cannot be summarised. What to do: use a tighter prior, more data, or another loss."
        )
    least = table[["ess_bulk", "ess_tail"]].min(axis=1)
    enough = (
        draws * int(np.clip(np.ceil(1.5 * MIN_EFFECTIVE / max(float(least.min()), 1.0)), 2, 20))
        if len(least)
        else 2 * draws
    )
    if chains > 1 and draws >= 4:
        rough = table.index[~(table["r_hat"] <= MAX_R_HAT)]
        if len(rough):
            worst = table["r_hat"].idxmax()
            found.append(
                ConvergenceWarning(
                    f"R-hat of {_listed(rough)} exceeds {MAX_R_HAT} (worst {table['r_hat'].max():.3f} for {worst}): "
                    f"the chains disagree. What to do: ask for more draws, draws={enough} (--draws {enough})."
                )
            )
    few = table.index[~(least >= MIN_EFFECTIVE)]
    if len(few) and chains * draws >= 2 * MIN_EFFECTIVE:
        found.append(
            ConvergenceWarning(
                f"{_listed(few)} {'has' if len(few) == 1 else 'have'} few effective draws (smallest {least.min():.0f}; "
                f"{MIN_EFFECTIVE:.0f} are wanted). What to do: ask for more draws, draws={enough} (--draws {enough})."
            )
        )
    return found


def _smaller_steps(target: float | None) -> str:
    """What to do about transitions that diverge: a higher target than the sampler had, as long as there is one."""
    higher = next((value for value in (0.95, 0.99) if target is None or value > target), None)
    if higher is None:
        return "use a tighter prior, or a model whose parameters the data tell apart"
    return f"raise the target, sampler=dfd.samplers.NUTS(target={higher})"


def why_not_converged(stats: Mapping[str, Any], table: pd.DataFrame, draws: int) -> str:
    """Why draws are no sample of the posterior, in words; empty where they may be.

    Parameters
    ----------
    stats : dict
        Of the sampler; independent draws have none, and no chain that could fail.
    table : pandas.DataFrame
        A summary, with ``ess_bulk``, ``ess_tail`` and ``r_hat``; what does not vary has no R-hat.
    draws : int
        How many there are in all.
    """
    if not stats:
        return ""
    told = []
    diverged = np.asarray(stats.get("diverging", np.zeros(1)), float)
    if diverged.mean() > 0.5:  # most of what was proposed is not of the posterior
        told.append(f"{int(diverged.sum())} of {diverged.size} transitions diverged")
    r_hat = table["r_hat"].dropna()
    if (r_hat > 1.1).any():  # Gelman and Rubin's (1992) bound: chains are of different places, and their mean of none
        worst = float(r_hat.max())
        size = f"{worst:.2f}" if np.isfinite(worst) else "infinite"
        told.append(f"R-hat of {r_hat.idxmax()} is {size}, where 1.01 is wanted")
    least = table[["ess_bulk", "ess_tail"]].min(axis=1).dropna()
    if len(least) and least.min() < min(40.0, 0.5 * draws):  # one of 40 lies beyond each end of a 95 % interval
        told.append(f"{least.idxmin()} has {least.min():.0f} effective draws, where {MIN_EFFECTIVE:.0f} are wanted")
    return "; ".join(told)


def _diagnostics(entries: dict[str, np.ndarray]) -> pd.DataFrame:
    """Effective sizes and R-hat of every scalar entry."""
    draws = stacked(entries)
    columns = {"ess_bulk": bulk_size(draws), "ess_tail": tail_size(draws), "r_hat": r_hat(draws)}
    return pd.DataFrame(columns, index=list(entries))


def _listed(names: Any) -> str:
    return ", ".join(map(str, names[:4])) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _with_remedy(text: str) -> str:
    """A message whose last sentence says what to do, with that sentence marked."""
    if "What to do" in text:
        return text
    happened, _, remedy = text.rstrip().rpartition(". ")
    return f"{happened}. What to do: {remedy[:1].lower()}{remedy[1:]}"


# -- what the data leave to the prior ------------------------------------------------------------


def ridges(objective: Objective, minimum: Minimum, beta: float) -> list[list[str]]:
    """Groups of parameters of which the loss knows a combination only: along the others it is flat, and so is no prior.

    A direction counts where the loss bends far less than along its single parameters, and the prior more than the
    loss: then the prior alone tells these parameters apart.
    """
    space = objective.space
    y = space.to_y(interior(space, minimum.vector))
    hessian, precision = evaluate(objective, y)[2], -prior_at_y(space, y)[2]
    curvature = np.diag(hessian)
    free = np.flatnonzero((curvature > 0) & ~np.isin(space.names, minimum.edges))
    if len(free) < 2 or not (np.isfinite(hessian).all() and np.isfinite(precision).all()):
        return []
    scale = 1.0 / np.sqrt(curvature[free])
    scaled, prior = (part[np.ix_(free, free)] * scale * scale[:, None] for part in (hessian, precision))
    if cholesky(scaled - 1e-3 * np.eye(len(free))) is not None:
        return []
    values, vectors = np.linalg.eigh(scaled)
    known = beta * np.where(values < 1e-9, 0.0, values)  # below it is rounding
    held = np.einsum("ik,ij,jk->k", vectors, prior, vectors)
    flat = vectors[:, (values < 1e-3) & (known <= 0.05 * (known + np.abs(held)))]  # the data give less than a twentieth
    together = np.abs(flat @ flat.T) > 0.05  # of a direction, from which a parameter takes part in it
    groups = connected_components(together, directed=False)[1]
    members = [free[(groups == one) & together.any(axis=1)] for one in np.unique(groups)]
    return [[space.names[i] for i in group] for group in members if len(group) > 1]


def held_by_prior(
    objective: Objective, minimum: Minimum, calibration: Calibration, draws: Float[np.ndarray, "all p"]
) -> bool:
    """Whether the prior holds the posterior at parameters that the data contradict.

    The posterior mean is further from the minimiser than estimates vary, by the loss itself and by the information that
    it was calibrated to: either alone is misled, by weights that differ between directions or by a loss far from
    quadratic.
    """
    if not minimum.usable:
        return False
    space = objective.space
    y, mean = space.to_y(interior(space, minimum.vector)), space.to_y(draws).mean(axis=0)
    at, best = objective.values(np.stack([space.from_y(mean), minimum.vector]))
    further = 2.0 * calibration.beta * (at - best)
    if calibration.curvature is not None:
        away = mean - y
        further = min(further, away @ calibration.curvature.information @ away)
    return bool(further > special.chdtri(space.size, 0.01))
