"""What a failed check means in words, and which model has the missing piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, xlogy

from ..core.dataset import Dataset
from ..core.graphs import Graph, grid
from ..core.model import AbstractModel
from ..core.parameters import SHAPE, ZEROS, Parameter
from ..data.formulas import INTERCEPT
from . import test_statistics as features
from .goodness_of_fit import Finding
from .relevance import VARIANCE, statistic_matters

SPREAD, GROUPS, INFLATED = "spread", "groups", "zeros"
ROUNDS = 200  # of the EM algorithm
_HURDLE = "(a hurdle)"


@dataclass(frozen=True)
class Misfit:
    """What differs between model and data, and what to try.

    Attributes
    ----------
    sentence : str
        "the model predicts a variance of 3.1, the data have 11.3"
    remedy : str
        "try model='cmp' (--model cmp), whose spread is a parameter"
    finding : Finding
        The statistic, with both numbers and its p-value.
    """

    sentence: str
    remedy: str
    finding: Finding

    @property
    def advice(self) -> str:
        """The remedy as a sentence."""
        return f"{self.remedy[0].upper()}{self.remedy[1:]}."


def misfits(
    model: AbstractModel, data: Dataset, findings: Sequence[Finding], at: Float[np.ndarray, " p"] | None = None
) -> tuple[Misfit, ...]:
    """Findings of the test of fit that matter as sentences, each with a model that has the missing piece.

    ``at`` are the parameters that were tested, where they are known.
    """
    told = [one for one in findings if _matters(one, model, data)]
    found = [Misfit(said(one, model, data), _remedy(one, model, data, findings, at), one) for one in told]
    return tuple(sorted(found, key=lambda one: _later(one, model)))


def _matters(finding: Finding, model: AbstractModel, data: Dataset) -> bool:
    """Whether the two numbers differ by what matters on the scale of the data."""
    spread = 1.0  # of a regression of one column, where statistics are of standardised residuals
    if finding.kind == features.MEAN and not (model.designs and data.d == 1):
        x = data.rows[:, finding.columns[0]].astype(float)
        spread = float(np.sqrt(np.average((x - np.average(x, weights=data.counts)) ** 2, weights=data.counts)))
    return statistic_matters(finding.kind, finding.observed, finding.predicted, spread)


def _later(misfit: Misfit, model: AbstractModel) -> bool:
    """Whether another finding says more: of zeros, or of where counts vary otherwise than their common shape has it."""
    kind, shaped = misfit.finding.kind, _varying(model, SHAPE) is not None
    return (_HURDLE in misfit.remedy and kind != features.ZEROS) or (shaped and kind != features.SPREAD_BY)


def _varying(model: AbstractModel, role: str) -> Parameter | None:
    """The parameter of a role that has a formula."""
    return next((p for p in model.row_space.of_role(role) if p.name in model.varying), None)


def said(finding: Finding, model: AbstractModel, data: Dataset) -> str:
    """A finding in words, with both numbers."""
    observed, predicted = finding.observed, finding.predicted
    names = [f"'{data.columns[j]}'" for j in finding.columns]
    of = f" of {names[0]}" if names and data.d > 1 else ""
    kind = finding.kind
    if model.designs and data.d == 1 and kind != features.ZEROS:
        return _of_residuals(finding, model, data)
    if kind == features.VARIANCE:
        return f"the model predicts a variance{of} of {predicted:.3g}, the data have {observed:.3g}"
    if kind == features.ZEROS:
        what = "zeros" if not any(finding.values) else f"values of {finding.values[0]}"
        return (
            f"the model predicts {predicted:.1%} {what}{f' in {names[0]}' if of else ''}, the data have {observed:.1%}"
        )
    if kind == features.MEAN:
        return f"the model predicts a mean{of} of {predicted:.3g}, the data have {observed:.3g}"
    if kind == features.SKEWNESS:
        return f"the model predicts a skewness{of} of {predicted:.2g}, the data have {observed:.2g}"
    if kind == features.PAIRS:
        between = f"between {names[0]} and {names[1]}"
        return f"the model predicts a correlation of {predicted:.2f} {between}, the data have {observed:.2f}"
    if kind == features.EQUAL:
        return (
            f"the model predicts that {names[0]} and {names[1]} are equal in {predicted:.1%} of observations, "
            f"they are in {observed:.1%}"
        )
    if kind in (features.WRAPPED, features.DIAGONAL, features.TWO_APART):
        which = {
            features.WRAPPED: "sites on opposite sides",
            features.DIAGONAL: "diagonal neighbours",
            features.TWO_APART: "sites two steps apart",
        }[kind]
        return f"the model predicts that {predicted:.1%} of {which} are equal, in the data {observed:.1%} are"
    if kind == features.BALANCE:
        return (
            f"the mean of an observation's sites varies with a standard deviation of {np.sqrt(predicted):.2g} under "
            f"the model, and of {np.sqrt(observed):.2g} in the data"
        )
    return _share(finding)


def _of_residuals(finding: Finding, model: AbstractModel, data: Dataset) -> str:
    """Of a regression: by residuals in the model's standard deviations, which is how they were tested."""
    kind, observed, side = finding.kind, finding.observed, "above" if finding.observed > 0 else "below"
    apart = f"{finding.errors:.2g} standard errors"
    if kind == features.VARIANCE:
        times = f"{observed:.3g} times as much about their expected values as the model predicts"
        return f"the data vary {times} ({apart} from 1)"
    if kind == features.SPREAD_BY:
        where = f"where {_group(model, data, finding.values[0])} as elsewhere ({apart} from 1)"
        return f"compared with what the model predicts, {data.columns[0]} varies {observed:.3g} times as much {where}"
    if kind == features.BEND:
        return f"where the model expects very low or very high values, the data lie {side} it on average, by {apart}"
    if kind == features.MEAN:
        away = f"{abs(observed):.2g} standard deviations of an observation ({apart})"
        return f"the data lie {side} what the model expects on average, by {away}"
    if kind == features.SKEWNESS:
        both = f"{finding.predicted:.2g} about its expected values, the data have {observed:.2g}"
        return f"the model predicts a skewness of {both} ({apart} apart)"
    group, place = finding.values
    return (
        f"values in the {_nth(place)} tenth of what the model expects, in the {_nth(group)} group of expected values: "
        f"the model predicts {finding.predicted:.1%}, the data have {observed:.1%}"
    )


def _group(model: AbstractModel, data: Dataset, column: int) -> str:
    """The rows where a covariate is above its average: those of a level of a factor, where it is one."""
    assert data.given is not None
    label, _ = model.covariate(column)
    values = model.as_given(data.given)[:, column]
    if np.isin(values, (0.0, 1.0)).all():
        name, _, level = label.rpartition("=")
        return f"{name} = {level}" if name and ":" not in label else f"{label} = 1"
    return f"{label} is above {np.average(values, weights=data.observations):.3g}"


def _share(finding: Finding) -> str:
    observed, predicted = finding.observed, finding.predicted
    numbers = f"the model predicts {predicted:.1%}, the data have {observed:.1%}"
    if finding.kind == features.COMBINATIONS:
        return f"some combinations of values occur more often than others by more than chance: of one, {numbers}"
    low, *rest = finding.values
    high = rest[0] if rest else None
    what = "the values of an observation add up to" if finding.kind == features.TOTAL else "values are"
    between = f"{low} or more" if high is None else f"{low}" if low == high else f"{low} to {high}"
    return f"{what} {between}: {numbers}"


def _nth(k: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
    return words[k] if k < len(words) else f"{k + 1}th"


# -- which model has the missing piece ---------------------------------------------------------


def _remedy(
    finding: Finding, model: AbstractModel, data: Dataset, findings: Sequence[Finding], at: np.ndarray | None
) -> str:
    kind = finding.kind
    if kind in model.remedies:
        return model.remedies[kind].replace("{graph}", _written(model.graph))
    if kind in (features.WRAPPED, features.DIAGONAL, features.TWO_APART, features.BALANCE):
        return _of_lattice(finding, model)
    if kind in (features.PAIRS, features.EQUAL):
        return _of_pair(finding, model, data)
    if model.designs and data.d == 1:
        return _of_regression(finding, model, data, findings, at)
    if data.d == 1:
        return _of_counts(model, data, findings)
    if kind in (features.TOTAL, features.COMBINATIONS):
        others = "another" if model.designs else "a"
        return (
            f"observations may come from groups that differ, or three columns may act together: if {others} column "
            "says which group, give it in the formula: formula='~ ...' (on the command line: --formula '~ ...')"
        )
    return "look at the observed and predicted shares of this column's values, in fit.checks.marginals or the report"


def _is_poisson(model: AbstractModel) -> bool:
    """Whether one column is of counts whose spread is no parameter, with covariates or without."""
    return bool(model.freer)


def _of_lattice(finding: Finding, model: AbstractModel) -> str:
    graph = model.graph
    assert graph is not None
    assert graph.shape is not None
    rows, columns = graph.shape
    if finding.kind == features.WRAPPED:
        if finding.observed > finding.predicted:
            return f"a torus, not a grid: try dfd.graphs.grid({rows}, {columns}, periodic=True)"
        return f"a grid, not a torus: try dfd.graphs.grid({rows}, {columns})"
    return "the neighbourhood may be larger than the four next sites: give a graph that has the further edges"


def _written(graph: Graph | None) -> str:
    """The call that makes a lattice; a word where it is another graph."""
    if graph is not None and graph.shape is not None:
        for periodic in (False, True):
            if grid(*graph.shape, periodic=periodic).pairs == graph.pairs:
                return f"dfd.graphs.grid({graph.shape[0]}, {graph.shape[1]}{', periodic=True' * periodic})"
    return "graph"


def _of_pair(finding: Finding, model: AbstractModel, data: Dataset) -> str:
    i, j = finding.columns
    graph = model.graph
    if model.narrative.editable and not model.designs and abs(finding.predicted) < 0.05 < abs(finding.observed):
        return (
            f"the model has hardly any dependence between the two: its log mass lacks a term of both x[{i}] and x[{j}]"
        )
    if graph is None or (i, j) in set(graph.pairs):
        return "the form of the dependence may be another; look at a table of the two columns"
    pair = f"('{data.columns[i]}', '{data.columns[j]}')" if graph.names else f"({i}, {j})"
    return f"an edge is missing: add {pair} to the graph, or leave out the graph to fit all pairs"


def _of_regression(
    finding: Finding, model: AbstractModel, data: Dataset, findings: Sequence[Finding], at: np.ndarray | None
) -> str:
    """Never what the model has already."""
    missing = "a covariate may be missing"
    if finding.kind == features.BEND:
        return "a term is missing: a square, a spline such as bs(x, df=4), or a covariate"
    if finding.kind == features.ZEROS:
        if _varying(model, ZEROS) is not None:
            return "the zeros may depend on another covariate: give it in zeros='~ ...'"
        return f"try zeros='~ 1' (on the command line: --zeros '~ 1'), a part of its own for zeros {_HURDLE}"
    own = _spread_followed(finding, model)
    if own:
        return own
    if _is_beyond(model, data, findings, at):
        return (
            f"{_NO_SUCH_SPREAD} The likelihood's expected values and their intervals do not rest on it (they are "
            f"calibrated), intervals of new observations do; {missing}"
        )
    if _is_poisson(model):
        return f"try model='cmp' (--model cmp), whose spread is a parameter; {missing}, too"
    shape = _varying(model, SHAPE)
    if shape is None:
        return missing
    return f"{missing}, or the spread may depend on another one: give it in {shape.name}='~ ...'"


def _spread_followed(finding: Finding, model: AbstractModel) -> str:
    """The formula that lets the spread depend on the covariate by which it differs, where there is not one yet."""
    shape = _varying(model, SHAPE)
    if finding.kind != features.SPREAD_BY or shape is None:
        return ""
    own = model.design(shape.name)
    label, term = model.covariate(finding.values[0])
    if not term or label in own.labels:
        return ""
    right = term if own.labels == (INTERCEPT,) else f"{own.right} + {term}"
    name = shape.name
    return f"let the spread depend on it: {name}='~ {right}' (on the command line: --{name} '~ {right}')"


def _is_beyond(model: AbstractModel, data: Dataset, findings: Sequence[Finding], at: np.ndarray | None) -> bool:
    """Whether counts vary more than about a geometric distribution at given covariates, the end of a CMP model."""
    times = [one.observed for one in findings if one.kind == features.VARIANCE]  # what the model predicts
    if not times:
        return False
    if _is_poisson(model):
        mean = float(np.average(data.rows[:, 0], weights=data.counts))
        return times[0] > _beyond_geometric(mean) / mean
    shape = _varying(model, SHAPE)
    if at is None or shape is None or model.design(shape.name).labels != (INTERCEPT,):
        return False
    # below nu = 0.05 a CMP distribution of a moderate mean has nine tenths of a geometric one's variance
    return times[0] > 1.0 and at[model.space.first[shape.name]] < np.log(0.05)


def _of_counts(model: AbstractModel, data: Dataset, findings: Sequence[Finding]) -> str:
    if model.domain.coordinate(0).kind != "above" or (model.domain.coordinate(0).end or 0) != 0:
        return _DISTRIBUTION
    x, counts = data.rows[:, 0].astype(float), data.counts
    mean = float(np.average(x, weights=counts))
    variance = float(np.average((x - mean) ** 2, weights=counts))
    tails = [one for one in findings if one.kind in (features.VARIANCE, features.SKEWNESS)]
    if not _is_poisson(model) and any(one.predicted > one.observed for one in tails):
        faster = "let the log mass fall faster at large values, for example by a term -gammaln(x[0] + 1)"
        return f"the model's tail is too long: {faster if model.narrative.editable else _DISTRIBUTION}"
    if variance <= mean:
        return "the counts vary less than Poisson counts: try model='cmp'" if _is_poisson(model) else _DISTRIBUTION
    what, numbers = spread_of(x, counts)
    column = data.columns[0]
    named = "" if data.named else f" (formulas need a name: give the data as {{'{column}': ...}})"
    if what == INFLATED and model.takes_zeros:
        return f"more zeros than the rest has: try formula='{column} ~ 1', zeros='~ 1' {_HURDLE}{named}"
    if what == GROUPS and not model.narrative.grouped:
        rates, shown = (between.join(f"{rate:.3g}" for rate in numbers) for between in (" and ", ", "))
        call = f"dfd.models.PoissonMixture([{shown}]) (--model poisson-mixture --rates {shown.replace(', ', ',')})"
        return f"two groups with means near {rates}: try {call}"
    if variance > _beyond_geometric(mean):
        return (
            f"{_NO_SUCH_SPREAD} The mean and its interval do not need one: model='poisson', formula='{column} ~ 1' has "
            f"them{named}. Intervals of new observations do"
        )
    if _is_poisson(model):
        return "overdispersed: try model='cmp' (--model cmp)"
    if not tails:
        return _DISTRIBUTION
    return f"a longer tail than this model has: a covariate may explain it: formula='{column} ~ ...'{named}"


def _beyond_geometric(mean: float) -> float:
    """A variance beyond a geometric distribution's (mean + mean^2, the largest of a CMP model) by what matters."""
    return float((mean + mean**2) * np.exp(VARIANCE))


_NO_SUCH_SPREAD = "these counts vary more than any family of counts here (at most as a geometric distribution does)."
_DISTRIBUTION = "look at the observed and predicted shares of its values, in fit.checks.marginals or the report"


def spread_of(x: Float[np.ndarray, " u"], counts: Float[np.ndarray, " u"]) -> tuple[str, tuple[float, ...]]:
    """Why counts vary more than Poisson's: plain spread, too many zeros, or two groups, by likelihood and AIC."""
    mean = float(np.average(x, weights=counts))

    def spread(size: float) -> float:
        log = gammaln(x + size) - gammaln(size) - gammaln(x + 1.0) - size * np.log1p(mean / size)
        return float(counts @ (log + x * np.log(mean / (size + mean))))

    sizes = np.exp(np.linspace(-6.0, 8.0, 141))  # of a negative binomial: neighbours differ by 10 %
    plain = -2.0 * max(map(spread, sizes)) + 2.0 * 2
    better = 3.0  # of AIC, by which one explanation must be better than another that is plainer
    (rates, value), (rate, inflated) = _two_groups(x, counts), _inflated(x, counts)
    groups, zeros = -2.0 * value + 2.0 * 3, -2.0 * inflated + 2.0 * 2
    if min(groups, zeros) > plain - better:
        return SPREAD, (mean,)
    return (INFLATED, (rate,)) if zeros <= groups + better else (GROUPS, rates)


def _poisson(x: np.ndarray, rate: np.ndarray | float) -> np.ndarray:
    """Log masses."""
    return np.asarray(xlogy(x, rate) - rate - gammaln(x + 1.0))


def _two_groups(x: np.ndarray, counts: np.ndarray) -> tuple[tuple[float, float], float]:
    """Rates of a mixture of two Poisson distributions by EM, and its log-likelihood."""
    order = np.argsort(x)
    share = np.cumsum(counts[order]) / counts.sum()
    middle = x[order][np.searchsorted(share, 0.5)]
    low = x <= middle
    rates = np.array([np.average(x[part], weights=counts[part]) if part.any() else middle for part in (low, ~low)])
    rates, chance, log = np.maximum(rates, 0.1), 0.5, np.zeros(len(x))
    for _ in range(ROUNDS):
        each = _poisson(x[:, None], rates) + np.log([chance, 1.0 - chance])
        log = np.logaddexp(each[:, 0], each[:, 1])
        own = np.exp(each - log[:, None]) * counts[:, None]
        rates = np.maximum((own * x[:, None]).sum(axis=0) / np.maximum(own.sum(axis=0), 1e-12), 1e-3)
        chance = float(np.clip(own[:, 0].sum() / counts.sum(), 1e-6, 1.0 - 1e-6))
    first, second = sorted(rates.tolist())
    return (first, second), float(counts @ log)


def _inflated(x: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """The rate of a Poisson distribution with zeros of their own, by EM, and its log-likelihood."""
    n, zeros, total = float(counts.sum()), float(counts[x == 0].sum()), float(counts @ x)
    rate, extra = max(total / n, 0.1), 0.1
    for _ in range(ROUNDS):
        beside = zeros * extra / (extra + (1.0 - extra) * np.exp(-rate))
        extra, rate = min(max(beside / n, 1e-9), 1.0 - 1e-9), total / max(n - beside, 1e-9)
    log = np.log1p(-extra) + _poisson(x, rate)
    log = np.where(x == 0, np.logaddexp(np.log(extra), log), log)
    return rate, float(counts @ log)
