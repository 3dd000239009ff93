"""Which call fits a table: from what its columns are to a line of Python and a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..data.grammar import written
from ..data.read.columns import two_answers
from ..data.read.profile import Profile, profiles
from ..errors import DfdbayesError, Problems
from ..families.graph.observed import ObservedGraph
from ..families.map.read import MAX_CATEGORIES
from .table_layout import frequencies_of, places_of, survey_weights_of, time_of

MOST_LEVELS = 11  # of answers in words
LARGE = 200  # a mean beyond which whole numbers are hardly counts of something
_NO_RESPONSES = {"year", "month", "day", "week", "hour", "minute", "time", "age", "stratum", "strata", "round", "wave",
                 "period", "school", "educ", "education", "grade", "rank", "block", "plot", "row", "col"}  # fmt: skip
_WHO = {"gender", "sex", "female", "male", "group", "condition", "treatment", "treated", "arm"}
_ENDS = (
    {"from", "to"}, {"source", "target"}, {"sender", "receiver"}, {"ego", "alter"}, {"node1", "node2"},
    {"head", "tail"}, {"i", "j"},
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Suggestion:
    """A call to make: why, in Python, and on the command line (empty where there is none)."""

    why: str
    python: str
    command: str = ""
    time: str | None = None
    """The column of times that it uses."""

    def __repr__(self) -> str:
        return "\n    ".join([self.why, *filter(None, [self.python, f"$ {self.command}" if self.command else ""])])


@dataclass(frozen=True)
class About:
    """What is known of a table: its columns, its rows, its file if it is one."""

    columns: tuple[Profile, ...]
    frame: pd.DataFrame
    path: str | None
    named: bool
    weighted: bool
    weights: str | None = None
    """The column of weights, which is none of ``columns``."""
    sampling: bool = False
    """Whether these are a survey's."""

    @property
    def cluster(self) -> str | None:
        """The one column that says which rows belong together."""
        found = [own.name for own in self.columns if own.kind == "group" and not own.missing]
        return found[0] if len(found) == 1 and not self.weighted else None

    def of(self, *kinds: str) -> list[Profile]:
        """The columns of some kinds, each of which tells something that no other does."""
        return [own for own in self.columns if own.kind in kinds and own.same_as is None]


def suggestions_for(table: About) -> tuple[Suggestion, ...]:
    """The calls to make, the best first; a sentence alone where no model takes such a table."""
    edges = _edge_list(table)
    if edges is not None:
        return (edges,)
    of_edges = _beside(table.path, "nodes", "edges") or _beside(table.path, "nodes", "ties")
    if of_edges is not None:
        about = f"The rows may be the nodes of the graph whose edges are in {of_edges}:"
        return (_of_graph(about, of_edges, table.path),)
    special = _special(table)
    if special is not None:
        return special
    plain = _of_rows(table)
    weight = None if table.weighted or not table.named else survey_weights_of(table.columns)
    if weight is None:
        return plain
    survey = _of_rows(_weighted(table, weight, sampling=True))
    why = f"If '{weight.name}' says how many people each row of a survey stands for:"
    return (*plain, *(replace(one, why=f"{why} {one.why}") for one in survey[:1] if one.python))


def _special(table: About) -> tuple[Suggestion, ...] | None:
    """Calls for rows that are frequencies, sites of a map or times of a series; None where they are observations."""
    if table.weighted or not table.named or len(table.columns) < 2:
        return None
    often = frequencies_of(table.columns, table.frame)
    if often is not None:
        found = _of_rows(_weighted(table, often))
        why = f"Each row has other values, and '{often.name}' may say how often these occur. "
        return tuple(replace(one, why=why + one.why) for one in found)
    return _of_map(table) or _of_series(table)


def _weighted(table: About, weights: Profile, sampling: bool = False) -> About:
    """The same table with a column as its weights, under which the others are looked at again."""
    each = pd.to_numeric(table.frame[weights.name]).to_numpy(dtype=float)
    frame = table.frame.drop(columns=weights.name)
    found = profiles(frame, each, {}, {}, Problems("")) if not sampling else table.columns
    kept = tuple(own for own in found if own.name != weights.name)
    return replace(table, columns=kept, weights=weights.name, sampling=sampling, weighted=not sampling)


def _of_map(table: About) -> tuple[Suggestion, ...] | None:
    at = places_of(table.columns, table.frame)
    others = [own for own in table.of("binary", "ordinal", "text", "count") if own.name not in (at or ())]
    mapped = [own for own in others if own.distinct <= MAX_CATEGORIES and _term(own)]
    mapped.sort(key=lambda own: not own.zero_one)
    if at is None or not mapped:
        return None
    response = mapped[0]
    beside = [own for own in table.of("binary", "ordinal", "count", "whole", "continuous") if _term(own)]
    beside = [own for own in beside if own.name not in (*at, response.name) and not own.missing]
    kept = _together(table.frame, response, beside)
    formula = f"{_term(response)} ~ {' + '.join(_term(own) for own in kept) or '1'}"
    why = f"'{at[0]}' and '{at[1]}' say where each row is on a grid: a map of '{response.name}'. Are neighbours alike?"
    lacking = "impute" if response.missing else None
    return (_call(table, why, "autologistic", [response], formula=formula, missing=lacking, beside=kept, at=at),)


def of_raster() -> Suggestion:
    """A call for an array that may be an image."""
    why = "An array with few categories may be a map, each cell a site: are neighbours alike?"
    return Suggestion(why, 'dfd.fit("autologistic", data)')


def _of_series(table: About) -> tuple[Suggestion, ...] | None:
    found = time_of(table.columns, table.frame)
    if found is None or table.cluster is not None:
        return None
    time, calendar = found
    others = [own for own in table.columns if own.name != time]
    counts = [own for own in others if own.zero_one or (own.kind in ("count", "ordinal", "whole") and own.low >= 0)]
    responses = [own for own in counts if own.name.isidentifier() and not own.missing and not _is_time(own.name)]
    responses.sort(key=lambda own: (own.kind != "count", own.mean > LARGE))
    if not responses:
        return None
    response = responses[0]
    lag = f"lag({response.name})"
    terms = [lag if response.zero_one else f"log1p({lag})"]
    years = calendar.kind == "months" and calendar.step == 1.0 and len(table.frame) >= 36  # years that show a season
    terms += [f"season({time}, 12)"] if years and time.isidentifier() else []
    usable = [
        own
        for own in others
        if own is not response and own.kind in ("binary", "ordinal", "count", "whole", "continuous")
    ]
    kept = _together(table.frame, response, [own for own in usable if _term(own) and not own.missing])
    formula = f"{response.name} ~ {' + '.join([*terms, *map(_term, kept)])}"
    why = f"'{time}' has one row for each step of time, a series: do earlier values of '{response.name}' matter?"
    model = "bernoulli" if response.zero_one else "cmp"
    return (_call(table, why, model, [response], formula=formula, beside=kept, time=time),)


def _of_rows(table: About) -> tuple[Suggestion, ...]:
    """The calls for rows that are observations."""
    discrete, given = table.of("binary", "ordinal", "count"), table.of("whole", "continuous", "text")
    answers_in_words = _answers_in_words(table)
    if len(answers_in_words) >= max(3, len(discrete)):
        return (_of_words(table, answers_in_words),)
    if len(discrete) == 1 and not given:
        return (_alone(table, discrete[0]),)
    responses = [own for own in _responses(discrete, table.of("whole")) if _term(own)]
    groups = _groups(discrete)
    items = [own for own in discrete if own not in groups]
    network = [_network(table, items)] if len(items) >= 3 else []
    answers = not any(own.kind == "count" for own in discrete) and len(given) <= 1 + (len(discrete) > 8)
    if network and (not given or answers) and table.cluster is None:
        return (*network, *_compared(table, items, groups), *_differing(table, items, given))
    if responses:
        return (_regression(table, responses[0], [*discrete, *given], responses[1:]), *network)
    if len(discrete) > 1:
        return (_network(table, discrete),)
    scales = [own for own in discrete if not _is_time(own.name)]
    return (_scale(table, scales[0], given),) if scales else (_nothing(table),)


def _answers_in_words(table: About) -> list[Profile]:
    """The most columns of texts that have the same few levels, such as yes and no."""
    groups: dict[frozenset[str], list[Profile]] = {}
    for own in table.of("text"):
        if own.distinct <= MOST_LEVELS:
            groups.setdefault(frozenset(level for level, _ in own.levels), []).append(own)
    return max(groups.values(), key=len, default=[])


def _of_words(table: About, used: Sequence[Profile]) -> Suggestion:
    """A network of answers in words, whose order only the user knows."""
    levels = sorted({level for own in used for level, _ in own.levels})
    known = two_answers(levels)
    why = f"{len(used)} columns of answers in words: which go together, given all others?"
    why += "" if known else " Write the levels in their order, from the lowest to the highest:"
    return _call(table, why, "network", used, missing="impute", levels=known or levels)


def _responses(discrete: Sequence[Profile], whole: Sequence[Profile]) -> list[Profile]:
    """The columns that a model may explain, the likeliest first: counts with zeros, other counts, yes or no."""
    counts = [own for own in discrete if own.kind == "count"]
    counts = sorted(counts, key=lambda own: (own.low > 0, own.mean > LARGE))
    found = [own for own in (*counts, *(own for own in discrete if own.zero_one)) if not _is_time(own.name)]
    return found or [own for own in whole if own.low >= 0 and own.mean < LARGE and not _is_time(own.name)]


def _is_time(name: str) -> bool:
    """Whether a name says when or where an observation was made."""
    return re.split(r"[._ ]", name.lower())[-1] in _NO_RESPONSES


def _alone(table: About, own: Profile) -> Suggestion:
    if own.kind == "count":
        return _call(table, f"'{own.name}' are counts: how large, and how much do they vary?", "cmp", [own])
    if own.zero_one:
        return _call(table, f"'{own.name}' is yes or no: how likely is 1?", "bernoulli", [own])
    return _scale(table, own, ())


def _scale(table: About, own: Profile, given: Sequence[Profile]) -> Suggestion:
    """One scale, or two values that are not 0 and 1: no model is of one of these alone."""
    if own.kind == "binary":
        low, high = f"{own.low:g}", f"{own.high:g}"
        return Suggestion(
            f"'{own.name}' has the values {low} and {high}, and 'bernoulli' needs 0 and 1. Recode it, for example "
            f"frame[{own.name!r}] = (frame[{own.name!r}] == {high}).astype(int), and describe the frame again.",
            "",
        )
    why = f"'{own.name}' is a short scale, and the models of scales are of several of them (network)."
    if not own.low <= 1:
        return Suggestion(why, "")
    found = _regression(table, own, given, ()) if given else _call(table, "", "cmp", [own])
    return Suggestion(f"{why} If its values are counts:", found.python, found.command)


def _network(table: About, discrete: Sequence[Profile]) -> Suggestion:
    words = {"binary": "yes/no", "ordinal": "scale", "count": "count"}
    tally = {kind: sum(own.kind == kind for own in discrete) for kind in words}
    shown = ", ".join(f"{number} {words[kind]}" for kind, number in tally.items() if number)
    why = f"{len(discrete)} discrete columns ({shown}): which go together, given all others?"
    return _call(table, why, "network", discrete, missing="impute")


def _groups(discrete: Sequence[Profile]) -> list[Profile]:
    """Columns of two values beside at least three scales that say who answered, and are no item themselves."""
    two = [own for own in discrete if own.kind == "binary" and _term(own)]
    groups = [own for own in two if not own.zero_one or own.name.lower() in _WHO]
    scales = sum(own.kind == "ordinal" for own in discrete)
    return groups if scales >= 3 and len(groups) == len(two) <= 2 else []


def _compared(table: About, items: Sequence[Profile], groups: Sequence[Profile]) -> list[Suggestion]:
    """Networks of two groups, for the first column that says who answered."""
    if not groups:
        return []
    why = f"Do the networks of the two groups of '{groups[0].name}' differ?"
    return [_depending(table, why, items, groups[:1], f"~ C({_term(groups[0])})", edges=True)]


def _differing(table: About, discrete: Sequence[Profile], given: Sequence[Profile]) -> list[Suggestion]:
    """A network that depends on covariates."""
    usable = [own for own in given if _term(own)]
    if not usable:
        return []
    formula = f"~ {' + '.join(_term(own) for own in usable)}"
    why = f"The same where each column's own level depends on {_listed([own.name for own in usable])}:"
    return [_depending(table, why, discrete, usable, formula)]


def _depending(
    table: About, why: str, items: Sequence[Profile], given: Sequence[Profile], formula: str, edges: bool = False
) -> Suggestion:
    """A network whose nodes, and perhaps edges, depend on covariates; rows that lack one of these are left out."""
    lacking = "drop" if any(own.missing for own in given) else "impute"
    names = [own.name for own in items]
    return _call(
        table, why, "network", items, formula=formula, missing=lacking, beside=given, columns=names,
        interaction=formula if edges else None,
    )  # fmt: skip


def _regression(table: About, response: Profile, others: Sequence[Profile], rivals: Sequence[Profile]) -> Suggestion:
    model = "bernoulli" if response.kind == "binary" else "cmp"
    usable = [own for own in others if own.name != response.name and _term(own)]
    kept = _together(table.frame, response, usable)
    what = {"count": "holds counts", "binary": "is yes or no", "ordinal": "may hold counts", "whole": "may hold counts"}
    why = f"'{response.name}' {what[response.kind]}, and may depend on other columns"
    if len(usable) > len(kept):
        why += f" (the formula names {len(kept)} of them: choose your own)"
    names = [own.name for own in rivals if own.kind == response.kind]
    why += f"; if you ask about {_listed(names, 'or')}, put it on the left" if names else ""
    why += '. With so many zeros, zeros="~ 1" (a hurdle) may fit better' if response.many_zeros else ""
    formula = f"{written(response.name)} ~ {' + '.join(_term(own) for own in kept) or '1'}"
    lacking = "drop" if any(own.missing for own in (response, *kept)) else None
    return _call(table, f"{why}:", model, [response], formula=formula, missing=lacking, beside=kept)


def _together(frame: pd.DataFrame, response: Profile, usable: Sequence[Profile]) -> list[Profile]:
    """Covariates for one formula: not too many, with values in most of the same rows, none a sum of the others."""
    complete = frame[response.name].notna().to_numpy()
    least = 0.7 * complete.sum()  # a formula must not lose more of the rows than that
    kept: list[Profile] = []
    numbers = np.ones((len(frame), 1))
    for own in usable:
        column = frame[own.name]
        both = complete & column.notna().to_numpy()
        if len(kept) == 8 or both.sum() < least:  # of more covariates a user makes the choice
            continue
        if own.kind != "text":
            values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
            known = values[np.isfinite(values)]
            scaled = (values - known.mean()) / known.std() if len(known) and known.std() > 0 else np.arange(len(values))
            wider = np.column_stack([numbers, np.nan_to_num(scaled)])
            if np.linalg.matrix_rank(wider[both], tol=1e-6 * len(frame)) < wider.shape[1]:
                continue
            numbers = wider
        kept, complete = [*kept, own], both
    return kept


def _nothing(table: About) -> Suggestion:
    texts = [own for own in table.of("text") if own.distinct == 2]
    if texts:
        own, level = texts[0], min(texts[0].levels, key=lambda pair: pair[1])[0]
        many = f" (as are {_listed([other.name for other in texts[1:]])})" if len(texts) > 1 else ""
        return Suggestion(
            f"'{own.name}' is a text of two values{many}, and the models take 0 and 1. Recode what is to be modelled, "
            f"such as frame[{own.name!r}] = (frame[{own.name!r}] == {level!r}).astype(int), and describe the frame.",
            "",
        )
    shown = _listed([own.name for own in table.of("continuous", "whole", "text")][:4])
    given = f" ({shown} can explain other columns)" if shown else ""
    return Suggestion(
        f"No column holds discrete data to model{given}. The models are of counts, yes/no values and short scales.", ""
    )


def _edge_list(table: About) -> Suggestion | None:
    names = [own.name.lower() for own in table.columns[:2]]
    if len(table.columns) not in (2, 3) or set(names) not in _ENDS:
        return None
    first, second = (own.name for own in table.columns[:2])
    why = f"'{first}' and '{second}' look like the two ends of the edges of one graph (an edge list): what makes a tie "
    why += "likely? A table of nodes, one of whose columns has the names that edges use, adds attributes and the nodes "
    why += (
        "without ties, which are not known otherwise: --nodes people.csv, in Python nodes='people.csv'. Edges with a "
    )
    why += "direction: --directed, in Python directed=True:"
    return _of_graph(why, table.path, _beside(table.path, "edges|ties", "nodes"))


def _of_graph(why: str, edges: str | None, nodes: str | None) -> Suggestion:
    """A call for an edge list, with its table of nodes where that is known, and one of its attributes."""
    terms = "edges + gwesp(0.25)"
    if edges is not None and nodes is not None:
        with suppress(DfdbayesError):  # which a fit will tell
            attributes = pd.DataFrame(dict(ObservedGraph.of(edges, nodes=nodes).attributes))
            terms, matter = _terms(profiles(attributes, None, {}, {}, Problems(nodes)), directed=False)
            why = f"{why.rstrip(':')}. {matter}" if matter else why
    python = ["data" if edges is None else _quoted(edges), *([f"nodes={_quoted(nodes)}"] if nodes else [])]
    words = ["dfdbayes", "fit", shlex.quote(edges or ""), "--model", "graph"]
    words += ["--nodes", shlex.quote(nodes)] if nodes else []
    return Suggestion(
        why,
        f'dfd.fit(dfd.models.RandomGraph("{terms}"), dfd.ObservedGraph.of({", ".join(python)}))',
        "" if edges is None else " ".join([*words, "--terms", f'"{terms}"']),
    )


def of_graph(attributes: Sequence[Profile], directed: bool) -> Suggestion:
    """A call for a graph that is at hand."""
    terms, matter = _terms(attributes, directed)
    why = f"One graph: what makes a tie likely (exponential random graph model)? {matter}".strip()
    return Suggestion(why, f'dfd.fit(dfd.models.RandomGraph("{terms}"), data)')


def _terms(attributes: Sequence[Profile], directed: bool) -> tuple[str, str]:
    """Closure, and whether ties join nodes that are alike in an attribute; and a sentence on the others there are."""
    few = [own for own in attributes if own.distinct <= MOST_LEVELS]
    alike = [own.name for own in few if own.kind in ("text", "binary", "ordinal")]
    match = [f"nodematch('{name}')" for name in alike[:1] if not set(name) & set("'\"\\\n")]
    terms = " + ".join(["edges", *(["mutual"] if directed else []), *match, "gwesp(0.25)"])
    return terms, f"Attributes of nodes that may matter: {_listed(alike)}." if len(alike) > 1 else ""


def _beside(path: str | None, word: str, other: str) -> str | None:
    """The file that is called like another but for one word: law_nodes.csv of law_edges.csv."""
    if path is None or not re.search(word, Path(path).name):
        return None
    found = Path(path).with_name(re.sub(word, other, Path(path).name))
    return str(found) if found.is_file() else None


def _term(own: Profile) -> str:
    """A column as a term of a formula; nothing where its name cannot stand in one."""
    return "" if "`" in own.name or not own.name.isprintable() or not own.name.strip() else written(own.name)


def _listed(names: Sequence[str], word: str = "and") -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) > 4:
        quoted = [*quoted[:3], "others"]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}" if quoted else ""


def _quoted(text: str) -> str:
    """A text as Python code, in double quotes where that needs nothing escaped."""
    return f'"{text}"' if text.isprintable() and '"' not in text and "\\" not in text else repr(text)


def _call(
    table: About, why: str, model: str, used: Sequence[Profile], *, formula: str | None = None,
    missing: str | None = None, beside: Sequence[Profile] = (), columns: Sequence[str] | None = None,
    levels: Sequence[str] = (), interaction: str | None = None, at: Sequence[str] = (), time: str | None = None,
) -> Suggestion:  # fmt: skip
    """A call of `fit`, in Python and on the command line."""
    names = [own.name for own in used]
    if missing is None and any(own.missing for own in used):
        missing = "drop"
    elif missing == "impute" and not any(own.missing or own.codes for own in used):
        missing = None
    codes = sorted({code for own in (*used, *beside) for code in own.codes}, key=lambda code: (str(type(code)), code))
    everything, weights = {own.name for own in table.columns} == set(names), table.weights
    if formula is None and not everything:
        columns = names
    shown = [_quoted(code) if isinstance(code, str) else f"{code:g}" for code in codes]
    plain = ",".join(code if isinstance(code, str) else f"{code:g}" for code in codes)
    missing = (missing or "drop") if codes else missing
    python = [_quoted(model), "data" if table.path is None else _quoted(table.path)]
    words = ["dfdbayes", "fit", shlex.quote(table.path or ""), "--model", model]
    if formula is not None:
        python.append(f"formula={_quoted(formula)}")
        words += ["--formula", shlex.quote(formula)]
    if interaction is not None:
        python.append(f"interaction={_quoted(interaction)}")
        words += ["--interaction", shlex.quote(interaction)]
    if columns is not None:
        python.append(f"columns=[{', '.join(map(_quoted, columns))}]")
        words += ["--columns", shlex.quote(",".join(columns))]
    if weights is not None:
        python.append(f"weights={_quoted(weights)}")
        words += ["--weights", shlex.quote(weights)]
    if table.sampling:
        python.append('weighting="sampling"')
        words += ["--weighting", "sampling"]
    if time is not None:
        python.append(f"time={_quoted(time)}")
        words += ["--time", shlex.quote(time)]
    if at:
        python.append(f'options={{"at": [{", ".join(map(_quoted, at))}]}}')
        words += ["--at", shlex.quote(",".join(at))]
    if levels:
        python.append(f'options={{"levels": [{", ".join(map(_quoted, levels))}]}}')
        words += ["--levels", shlex.quote(",".join(levels))]
    if codes:
        python.append(f"missing_codes=[{', '.join(shown)}]")
        words.append(shlex.quote(f"--missing-codes={plain}"))
        stand = "stand" if len(shown) > 1 else "stands"
        why = f"{why.rstrip(':')} (if {' and '.join(shown)} {stand} for missing values):"
    if table.cluster is not None:
        python.append(f"cluster={_quoted(table.cluster)}")
        words += ["--cluster", shlex.quote(table.cluster)]
        ended = why if why.endswith("?") else f"{why.rstrip(':')}."
        why = f"{ended} Rows with the same '{table.cluster}' belong together:"
    if missing is not None:
        python.append(f"missing={_quoted(missing)}")
        words += ["--missing", missing]
    sayable = table.path is not None and not any("," in name for name in (*(columns or ()), *levels))
    return Suggestion(why, f"dfd.fit({', '.join(python)})", " ".join(words) if sayable else "", time)
