"""What is read for a model, and the model for what was read.

Rows of columns that the model takes (`read_rows`); a response and the matrices that parameters depend on, where there
are formulas (`read_regression`); or one observation, a graph as its dyads, a map as its sites (`read_whole`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from .. import families as models
from .._util.resources import estimate, require_memory
from ..backends.local import Backend, InMemory, Source
from ..core.dataset import PLACE, Units, match
from ..core.graphs import of as graph_of
from ..core.log_mass_errors import in_words
from ..core.model import AbstractModel
from ..core.objective import Objective
from ..core.parameters import EDGE, ZEROS
from ..data.formulas import (
    Design,
    alone,
    as_factor,
    counted,
    parse,
    require_full_rank,
    spelled,
    split_offsets,
    variables,
)
from ..data.grammar import written
from ..data.observed import BESIDE, Observed, notes_of, require_kept, require_plain
from ..data.read import profile as scales
from ..data.read.columns import listed, require_column, weights_for, without_identifiers
from ..data.read.dataset import read
from ..data.read.profile import domain_of
from ..data.read.reading import Table, frame_of, name_of, table_of
from ..data.read.text import ROWS_LOOKED_AT, are_numbers
from ..data.series import Ordered, canonical, lags_of, ordered
from ..errors import DataError, ModelError, SettingError, close, require_known, some
from ..families.named import how_to_make
from .plan import Plan, Progress, by_percent


def read_rows(
    backend: Backend, model: AbstractModel | str, data: Any, options: Mapping[str, Any] | None,
    prior: Mapping[str, Any] | str | None, reading: dict[str, Any], plan: Plan, shown: Progress,
) -> tuple[Source, AbstractModel]:  # fmt: skip
    """The data, and the model for them; a model that would not fit into memory is refused before any row is read."""

    @cache
    def of_width(d: int) -> AbstractModel:
        found = models.by_name(model, d, options, prior) if isinstance(model, str) else model.current()
        require_memory(estimate(found.space.size, d, 0, 0, plan.fits, 0))
        return found

    if isinstance(prior, str) and prior != "paper":
        raise SettingError(f"prior is {prior!r}; give priors by parameter name, or the word 'paper'")
    named = isinstance(model, str)
    if not named and not isinstance(model, AbstractModel):
        what = how_to_make(model)
        order = " The model comes first, the data second." if isinstance(data, (str, AbstractModel)) else ""
        raise ModelError(f"the model is {in_words(model)}; {what}.{order}")
    if options is not None and not isinstance(options, Mapping):
        raise SettingError(f"options must be a mapping such as {{'graph': dfd.graphs.grid(6, 6)}}, not {options!r}")
    if not named and any(value is not None for value in (options or {}).values()):
        raise SettingError("options belong to a model given by name; this one was made with its own")
    graph = (options or {}).get("graph") if isinstance(model, str) else None
    names = (
        (() if graph is None or isinstance(graph, str) else graph_of(graph).names) if named else of_width(0).node_names
    )
    reading = reading | {"columns": (names or None) if reading["columns"] is None else reading["columns"]}
    own = options or {}
    needed = isinstance(model, str) and models.named_model(model).needs_data(own)
    scales = domain_of(data, reading, own.get("levels"), own.get("kinds")) if needed else None
    domain = scales or ((lambda d: of_width(d).domain) if named else of_width(0).domain)
    source = backend.read(data, domain, advance=by_percent(shown.begin("reading", 100)), **reading)
    of_data = models.named_model(model).of_data if isinstance(model, str) and scales else None
    found = of_data(source.data, own, scales) if of_data and scales else of_width(source.data.d * named)
    source = source.arranged(found)
    given = models.paper_priors(found) if isinstance(prior, str) else prior
    return source, found.with_priors(given).labelled(source.data.columns)


def read_regression(
    backend: Backend, model: AbstractModel | str, data: Any, options: Mapping[str, Any] | None, formula: str | None,
    formulas: Mapping[str, str], reading: dict[str, Any], advance: Callable[[int, int], None],
) -> tuple[Source, AbstractModel]:  # fmt: skip
    """The data with a matrix for every formula, and the regression on them."""
    reading, time = {name: value for name, value in reading.items() if name != "time"}, reading.get("time")
    _parsed(formula, formulas)  # what is no formula is told before any data are read
    frame = frame_of(data)
    own = None if formula is None else spelled(formula, frame)
    response, right, asked = _parsed(own, {name: spelled(text, frame) for name, text in formulas.items()})
    reading["weights"] = weights_for(frame, reading["weights"])
    require_column(reading["cluster"], frame)
    asked, right, grouped = _grouped(frame, asked, right)
    rights = [*asked.values(), *([] if right is None else [right])]
    timed, index = _in_time(frame, rights, time, reading), frame.index
    origin, frame = (np.arange(len(frame)), frame) if timed is None else (timed.origin, timed.rows)
    covariates = tuple(dict.fromkeys(name for text in rights for name in variables(text, frame)))
    twice = next((name for name in response if name in covariates), None)
    if twice is not None:
        raise SettingError(
            f"'{twice}' is on both sides of the formula: it would be explained by itself. What to do: leave it out "
            f"on the right; of a series, lag({written(twice)}) is its earlier value."
        )
    columns, left_out = _responses(frame, response, covariates, reading, () if timed is None else timed.aside)
    require_plain(frame, (*columns, *covariates), rights)
    kept, used, line, weights = _rows(frame, columns, covariates, reading, None if timed is not None else rights)
    if weights is not None and reading["weights"] is None:  # equal rows were counted here
        reading = reading | {"weighting": "frequency"}
    require_kept(kept[list(covariates)])
    base = _base(model, columns, options, kept, reading | {"weights": weights})
    base = base.for_covariates((options or {}).get("form"), ZEROS in asked)
    if len(columns) > base.domain.d == 1:
        raise SettingError(
            f"the formula has no response, and {', '.join(columns[:6])} are left over. What to do: name the one "
            f"that is modelled left of the tilde: '{columns[0]} ~ {right or '1'}'"
        )
    asked, followed = _complete(base, asked, right)
    designs, given = matrices(base, asked, kept, _behind(kept, line, None if reading["weights"] is None else weights))
    if timed is not None:
        given[PLACE] = kept[PLACE].to_numpy()
    table = pd.concat([kept[list(_beside(columns, reading))].reset_index(drop=True), pd.DataFrame(given)], axis=1)
    settings = reading | {"columns": list(columns), "weights": weights, "given": list(given)}
    said: Any = [] if isinstance(data, Table) and data.codes.given else None  # codes are out of the frame by now
    source = backend.read(table_of(table, codes=said), base.domain, advance=advance, **settings)
    found = source.data
    first = 0
    for design in designs:
        assert found.given is not None
        k = len(design.labels)
        require_full_rank(design.parameter, found.given[:, first : first + k], design.labels, found.counts)
        first += k + bool(design.offsets)
    names = [f"{d.parameter}:{label}" for d in designs for label in (*d.labels, *(["offset"] if d.offsets else []))]
    names += [] if timed is None else [PLACE]
    place = np.full(len(index), -1)
    place[origin[used]] = line
    found = replace(
        found, first=_first(place, len(kept))[found.first], dropped=found.dropped + len(frame) - len(used),
        given_columns=tuple(names), source=name_of(data, found.source),
        notes=(
            notes_of(data, frame, covariates, rights) + (() if timed is None else timed.notes) + found.notes + left_out
            + grouped + followed
        ),
    )  # fmt: skip
    rows, own, series = (kept, weights, None) if timed is None else (
        timed.kept((*columns, *covariates)), None, timed.series
    )  # fmt: skip
    plain = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index))) and index.name is None
    as_they_are = np.array_equal(place, np.arange(len(kept)))
    observed = Observed(
        rows, own, series, None if plain else index, None if as_they_are else place, reading["cluster"],
        reading.get("weighting", "auto"),
    )  # fmt: skip
    return replace(source, data=found), base.with_designs(designs, found, observed)  # type: ignore[type-var]


def _in_time(frame: pd.DataFrame, rights: list[str], time: str | None, reading: dict[str, Any]) -> Ordered | None:
    """The rows in the order of time, with lags; None where neither a time nor a lag is named."""
    lags = lags_of(rights)
    if time is None and not lags:
        return None
    if reading["weights"] is not None:
        raise SettingError(
            "rows of a series occur once and have no weights. What to do: leave out weights=; how much was observed "
            "(exposure) enters as offset(log(...)) of the formula."
        )
    return ordered(frame, lags, time, reading["cluster"], reading["missing"])


def own_priors(prior: Mapping[str, Any] | str | None) -> Mapping[str, Any] | None:
    """Priors by name, of a model that the paper has none for."""
    if isinstance(prior, str):
        raise SettingError(
            "the paper has no priors for regressions, nor for graphs; give priors by parameter name, for example "
            "prior={'mean': dist.Normal(0, 2)} for all coefficients of the mean of a regression"
        )
    return prior


def matrices(
    model: AbstractModel, asked: Mapping[str, str], frame: pd.DataFrame, counts: np.ndarray | None = None
) -> tuple[list[Design], dict[str, np.ndarray]]:
    """A design for every formula, in the order of the model's parameters, and their columns side by side.

    ``counts`` are how many rows stand behind the lines of the frame, to refuse factors with a level for each.
    """
    designs, given = [], {}
    for parameter in model.space.parameters:
        if parameter.name in asked:
            one = model.domain.d == 1
            design, matrix, offset = Design.of(parameter.name, asked[parameter.name], frame, coded=one, counts=counts)
            designs.append(design)
            for i, part in enumerate(matrix.T if offset is None else [*matrix.T, offset]):
                given[f"{BESIDE}{parameter.name} {i}"] = part
    return designs, given


def _parsed(formula: str | None, formulas: Mapping[str, str]) -> tuple[tuple[str, ...], str | None, dict[str, str]]:
    """The response, the right side that all parameters share, and those of parameters by name."""
    response, right = ((), None) if formula is None else parse(formula)
    return response, None if right is None else canonical(right), {n: _right(text, n) for n, text in formulas.items()}


def _right(text: Any, name: str) -> str:
    left, right = parse(text, name)
    if left:
        raise SettingError(f"{name} is {text!r}; the formula of a parameter has no left side: {name}='~ {right}'")
    return canonical(right)


def _grouped(
    frame: pd.DataFrame, asked: dict[str, str], right: str | None
) -> tuple[dict[str, str], str | None, tuple[str, ...]]:
    """Formulas in which a number with two values that edges depend on is a factor, and what to say of that."""
    notes = []
    of_edges = asked.get("interaction")
    if of_edges is None:
        return asked, right, ()
    for name in alone(of_edges, frame):
        values = frame[name].dropna()
        if not are_numbers(values) or values.nunique() != 2:
            continue
        asked = {parameter: as_factor(text, name) for parameter, text in asked.items()}
        right = None if right is None else as_factor(right, name)
        notes.append(
            f"'{name}' has two values, and is taken for two groups, C({written(name)}). What to do: nothing; write "
            f"I({written(name)}) if it is a number."
        )
    return asked, right, tuple(notes)


def _responses(
    frame: pd.DataFrame, response: tuple[str, ...], covariates: tuple[str, ...], reading: dict[str, Any],
    others: tuple[str, ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:  # fmt: skip
    """The columns that are modelled: those left of the formula, those asked for, or all that are no covariates.

    Of all columns identifiers are left out; what to say of these comes second.
    """
    if response and reading["columns"] is not None and tuple(listed(reading["columns"])) != response:
        raise SettingError(
            f"the formula is about {', '.join(response)}, and columns= names others; leave out one of them"
        )
    if response:
        names = list(map(str, frame.columns))
        for name in response:
            require_known(name, names, f"the response '{name}' is not a column")
        return response, ()
    if reading["columns"] is not None:
        return tuple(map(str, listed(reading["columns"]))), ()
    aside = {
        *covariates,
        *others,
        reading["weights"] if isinstance(reading["weights"], str) else None,
        reading["cluster"],
    }
    names = [name for name in map(str, frame.columns) if name not in aside]
    first = frame.iloc[:ROWS_LOOKED_AT].set_axis(list(map(str, frame.columns)), axis=1)
    return without_identifiers({name: first[name].to_numpy() for name in names}, reading["weights"] is not None)


def _base(
    model: AbstractModel | str, columns: tuple[str, ...], options: Mapping[str, Any] | None, frame: pd.DataFrame,
    reading: dict[str, Any],
) -> AbstractModel:  # fmt: skip
    """The model; a network given by name looks at its columns first, to see what they are."""
    if not isinstance(model, str):
        return model.current()
    named = models.named_model(model)
    own = {name: value for name, value in (options or {}).items() if name not in named.with_formula}
    if named.of_data is None or not named.needs_data(own):
        return named(len(columns), own)
    settings = reading | {"columns": list(columns)}
    domain = scales.domain_of(frame, settings, own.get("levels"), own.get("kinds"))
    return named.of_data(read(frame, domain, **settings), own, domain)


def _complete(model: AbstractModel, asked: dict[str, str], right: str | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """A formula for every parameter that has one, and what to say of those that nobody wrote.

    Counts and binary columns have constants where none is given. What the edges of a network depend on, its nodes do
    too: where groups differ in their means alone, constant nodes would make that a difference between edges.
    """
    known, mains = [p.name for p in model.space.parameters], model.main_parameters
    edges = next((p.name for p in model.space.of_role(EDGE) if p.name in asked), None)
    for name in asked:
        what = f"'{name}' is neither a setting nor a parameter of this model"
        require_known(name, known, what, "Its parameters:", SettingError)
    if right is not None:
        about = [name for name in mains if name not in asked]
        if not about:
            raise SettingError(f"formula= is about {mains[0]}, which has a formula of its own; give one of the two")
        asked = dict.fromkeys(about, right) | asked
    followed = [] if edges is None else [name for name in mains if name not in asked]
    if model.formula_for_all:
        asked = dict.fromkeys(known, "1") | asked
    if edges is None or not followed:
        return asked, ()
    own = split_offsets(asked[edges])[0]
    asked |= dict.fromkeys(followed, own)
    names, verb = " and ".join(followed), "depends" if len(followed) == 1 else "depend"
    told = f"{names} {verb} on the same as the edges, '~ {own}', as no formula= says otherwise. "
    told += "What to do: nothing; formula='~ 1' (on the command line: --formula) keeps them constant."
    return asked, (told,)


def _beside(columns: tuple[str, ...], reading: dict[str, Any]) -> tuple[str, ...]:
    """Columns that are read as they are."""
    more = (reading["weights"] if isinstance(reading["weights"], str) else None, reading["cluster"])
    return tuple(dict.fromkeys([*columns, *(name for name in more if name is not None)]))


def _rows(
    frame: pd.DataFrame,
    columns: tuple[str, ...],
    covariates: tuple[str, ...],
    reading: dict[str, Any],
    rights: list[str] | None,
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, Any]:
    """The rows to use, which have all covariates, which line of the first each is, and weights.

    Equal rows are one line where they are many.

    Rows of a series, for which there are no ``rights`` here, stay apart and in order.
    """
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    complete_in = list(covariates) if rights is not None else [*columns, *covariates]
    needed = list(dict.fromkeys([*_beside(columns, reading), *covariates, *([PLACE] if rights is None else [])]))
    for name in needed:
        match(name, list(frame.columns))
    kept, weights, used = frame[needed].reset_index(drop=True), reading["weights"], np.arange(len(frame))
    if rights is not None and reading["missing"] in ("refuse", "impute"):
        _require_covariates(kept, covariates, columns, needed)
    if reading["missing"] == "drop":
        complete = kept[complete_in].notna().all(axis=1).to_numpy()
        used = np.flatnonzero(complete)
        kept = kept[complete].reset_index(drop=True)
        weights = weights if weights is None or isinstance(weights, str) else weights[complete]
    line = None
    if weights is None and reading["cluster"] is None and rights is not None:
        kept, weights, line = counted(kept, rights)
    return kept, used, np.arange(len(kept)) if line is None else line, weights


def _behind(kept: pd.DataFrame, line: np.ndarray, weights: Any) -> np.ndarray:
    """How many rows stand behind each line; none where its weight is none, or is refused when it is read."""
    if weights is None:
        return np.bincount(line, minlength=len(kept))
    given = kept[weights] if isinstance(weights, str) else pd.Series(weights)
    positive = (pd.to_numeric(given, errors="coerce") > 0).to_numpy(dtype=int)
    return positive if len(positive) == len(kept) else np.zeros(len(kept), int)


def _first(place: np.ndarray, lines: int) -> np.ndarray:
    """The first row of the data that each line is."""
    found = np.zeros(lines, np.int64)
    rows = np.flatnonzero(place >= 0)[::-1]
    found[place[rows]] = rows  # of several the last written stays: the first row
    return found


def _require_covariates(
    frame: pd.DataFrame, covariates: tuple[str, ...], columns: tuple[str, ...], needed: Sequence[str]
) -> None:
    """Refuse rows without a covariate, which is never imputed; say which they are and what leaving them out costs."""
    lacking = [name for name in covariates if frame[name].isna().any()]
    if not lacking:
        return
    without, incomplete = (frame[list(names)].isna().any(axis=1).to_numpy() for names in (lacking, needed))
    lost, every, first = int(without.sum()), int(incomplete.sum()), int(np.argmax(without)) + 1
    remedy = f"missing='drop' (--missing drop) leaves out {_counted_rows(every)} that lack{'s' * (every == 1)} anything"
    if len(columns) > 1 and every > lost:
        remedy = (
            f"leave {'this row' if lost == 1 else 'these rows'} out of the data, frame.dropna(subset={lacking}), with "
            f"missing='impute' (--missing impute) for the others; {remedy}"
        )
    raise DataError(
        f"{lost} of {len(frame)} rows have no {some(map(repr, lacking), 4)} (first: row {first}), "
        f"and covariates of a formula are not imputed. What to do: {remedy}."
    )


def _counted_rows(number: int) -> str:
    """How many rows, in words that go with "leaves out"."""
    return "the 1 row" if number == 1 else f"the {number} rows"


ROWS = ("columns", "weights", "weighting", "missing", "cluster", "time", "formula")  # settings about rows
USUAL = {"missing": "refuse", "weighting": "auto"}  # what settings about rows are, unless a user gives them


def read_whole(
    model: AbstractModel | str, data: Any, options: Mapping[str, Any] | None, prior: Mapping[str, Any] | str | None,
    reading: dict[str, Any],
) -> tuple[Source, AbstractModel] | None:  # fmt: skip
    """What stands for the data, and the model for it; None where data are rows. ``reading`` is about rows."""
    if isinstance(model, str) and model in models.MODELS and models.MODELS.by_name(model).whole:
        model, given, options = models.by_name(model, 0, options), dict(options or {}), None
        reading = {name: given[name] for name in model.reads if name in given} | reading
    if not isinstance(model, AbstractModel):
        return None
    observe: Callable[..., Any] = model.observe
    seen = observe(data, **{name: reading[name] for name in model.reads if name in reading})
    if seen is None:
        return None
    told = {name: value for name, value in reading.items() if value is not None and name not in model.reads}
    unusual = [name for name, value in told.items() if not (isinstance(value, str) and value == USUAL.get(name))]
    unknown = [name for name in unusual if name not in ROWS]
    if unknown:
        raise SettingError(
            f"there is no setting '{unknown[0]}' for a graph or a map{close(unknown[0], ['nodes', *ROWS])}"
        )
    if unusual or options:
        raise SettingError(
            f"{(unusual or ['options'])[0]}= is about rows, and the data are one observation: a graph, a map. What to "
            "do: leave it out; attributes of nodes enter by terms of the model, such as nodecov('age'), those of sites "
            "by formula='present ~ altitude'."
        )
    return InMemory(seen[0]), seen[1].with_priors(own_priors(prior))


def objective_of(source: Source, model: AbstractModel, plan: Plan, units: Units | None, shown: Progress) -> Objective:
    """The loss on complete data, and what has to be simulated for it: a likelihood, sites that nobody observed."""
    loss = model.prepare_loss(plan.loss, source.data, plan.seed, shown.begin)
    data = model.complete(source.data, plan.loss, plan.seed)
    return (source if data is source.data else InMemory(data)).objective(model, loss, units)
