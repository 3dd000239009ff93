"""`describe`: what a table holds, what is wrong with it, and which call fits it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.dataset import Dataset
from ..data.read.dataset import opened
from ..data.read.profile import Profile, profiles
from ..data.read.reading import ROWS_AT_ONCE, table_of
from ..data.read.text import Ragged, note
from ..errors import Problems
from ..families.graph.observed import ObservedGraph
from ..families.graph.read import is_networkx
from .advice import About, Suggestion, of_graph, of_raster, suggestions_for
from .table_layout import is_raster

KINDS = {
    "binary": "two values",
    "ordinal": "short scale",
    "count": "counts",
    "whole": "whole numbers",
    "continuous": "continuous",
    "text": "texts",
    "id": "id",
    "group": "id that repeats",
    "date": "dates or times",
    "duration": "durations",
    "nested": "lists or tables",
    "constant": "constant",
    "empty": "empty",
    "mixed": "unclear numbers",
}
USES = {
    "binary": "bernoulli, network, or a covariate",
    "groups": "a covariate (two groups), or network",
    "ordinal": "network, or a covariate",
    "count": "cmp or poisson, network, or a covariate",
    "whole": "a covariate",
    "continuous": "a covariate",
    "text": "a covariate (factor)",
    "id": "leave out",
    "group": "cluster, or leave out",
    "date": "leave out, or recode",
    "duration": "recode",
    "nested": "leave out",
    "constant": "leave out",
    "empty": "leave out",
    "mixed": "say decimal=",
}


@dataclass(frozen=True)
class Description:
    """What `describe` found.

    Attributes
    ----------
    source : str
        Where the data came from.
    written : str
        How a text file is written: separator, decimal mark, encoding.
    n : int
        Observations.
    columns : tuple of Profile
        What each column is.
    problems : tuple of str
        What is wrong, all of it, each with row and column and what to do.
    suggestions : tuple of Suggestion
        Calls to make, the first one first: ``why``, ``python`` and ``command``.
    notes : tuple of str
        What to know about how the data were read.
    """

    source: str
    written: str
    n: int
    columns: tuple[Profile, ...]
    problems: tuple[str, ...]
    suggestions: tuple[Suggestion, ...]
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row for each column: its kind, its values, how many are missing, what it is for, what to look at."""
        times = [one.time for one in self.suggestions]
        rows = [
            {
                "column": own.name,
                "kind": KINDS[own.kind],
                "values": own.values,
                "missing": own.missing / max(own.n + own.missing, 1),
                "for": "time" if own.name in times else USES[_use(own)],
                "look at": "; ".join(own.notes),
            }
            for own in self.columns
        ]
        return pd.DataFrame(rows, columns=["column", "kind", "values", "missing", "for", "look at"]).set_index("column")

    @property
    def shown(self) -> pd.DataFrame:
        """The table as people read it: without columns that say nothing."""
        found = self.table.reset_index()
        found["missing"] = found["missing"].map(share)
        return found.loc[:, (found != "").any()] if len(found) else found

    @property
    def title(self) -> str:
        """The first line."""
        columns = f"{len(self.columns)} column{'s' * (len(self.columns) != 1)}"
        written = f" ({self.written})" if self.written else ""
        return f"{self.source}: {self.n} row{'s' * (self.n != 1)}, {columns}{written}"

    def __str__(self) -> str:
        lines = [self.title, *(["", *_aligned(self.shown)] if self.columns else [])]
        if self.problems or self.notes:
            lines += ["", "What to look at:", *(f"- {text}" for text in (*self.problems, *self.notes))]
        if self.suggestions:
            lines += ["", "What to call:"]
        for one in self.suggestions:
            lines += [f"- {one.why}", *(f"    {line}" for line in one.python.splitlines())]
            lines += [f"    $ {one.command}"] if one.command else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        parts = [f"<p>{html.escape(self.title)}</p>", self.shown.to_html(index=False)]
        if self.problems or self.notes:
            items = "".join(f"<li>{html.escape(text)}</li>" for text in (*self.problems, *self.notes))
            parts.append(f"<p>What to look at:</p><ul>{items}</ul>")
        for one in self.suggestions:
            code = "\n".join([one.python, *([f"$ {one.command}"] if one.command else [])])
            parts.append(f"<p>{html.escape(one.why)}</p><pre>{html.escape(code)}</pre>")
        return "".join(parts)

    def plain(self) -> dict[str, Any]:
        """The same in values that JSON can hold."""
        table = self.table.reset_index().to_dict("records")
        return {
            "source": self.source, "written": self.written, "rows": self.n,
            "columns": [row | {"kind": own.kind} for row, own in zip(table, self.columns, strict=True)],
            "problems": list(self.problems), "notes": list(self.notes),
            "suggestions": [asdict(one) for one in self.suggestions],
        }  # fmt: skip


def _use(own: Profile) -> str:
    return "groups" if own.kind == "binary" and not own.zero_one else own.kind


def _aligned(table: pd.DataFrame) -> list[str]:
    """The lines of a table of texts, each column as wide as it needs."""
    cells = [list(map(str, table.columns)), *([str(cell) for cell in row] for row in table.to_numpy())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def share(value: float) -> str:
    """A share as people read it."""
    return "" if value == 0 else "<1 %" if value < 0.01 else f"{value:.0%}".replace("%", " %")


def describe(data: Any, *, missing_codes: Any = None, decimal: str | None = None) -> Description:
    """What each column of a table is, what is wrong with it, and the call to make.

    Parameters
    ----------
    data
        Anything `Dataset.of` reads. Of more than a million rows the first million is looked at. Of a graph (networkx,
        or `ObservedGraph`) the columns are the attributes of its nodes.
    missing_codes, decimal
        As for `Dataset.of`.

    Returns
    -------
    Description
        With a table of the columns, ``problems``, and ``suggestions``.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> found = dfd.describe({"visits": [0, 1, 5, 2, 0, 12, 3, 0, 1, 2, 4, 1], "clinic": list("ABABABABABAB")})
    >>> found.table["kind"].tolist()
    ['counts', 'texts']
    >>> found.suggestions[0].python
    'dfd.fit("cmp", data, formula="visits ~ clinic")'
    """
    if isinstance(data, ObservedGraph) or is_networkx(data):
        return _of_graph(ObservedGraph.of(data))
    if isinstance(opened(data, missing_codes, decimal), Dataset):
        rows = {name: data.rows[:, j] for j, name in enumerate(data.columns)}
        table = replace(table_of(rows), name=data.source, frequencies=data.counts, named=data.named, notes=data.notes)
    else:
        table = table_of(data, decimal, missing_codes)
    ragged, notes = Ragged(), table.notes
    frame, weights = table.frame(ROWS_AT_ONCE, ragged), table.frequencies
    if len(frame) == ROWS_AT_ONCE:
        notes += (f"only the first {ROWS_AT_ONCE} rows were looked at",)
    if len(table.columns) > len(table.nameless):
        frame = frame.drop(columns=list(table.nameless))
    problems = Problems(table.name)
    ragged.tell(problems, len(table.columns))
    found = profiles(frame, weights, table.labels, table.scales, problems)
    told = [str(problem) for problem in problems.found]
    if missing_codes is None:
        told += note({own.name: tuple(c for c in own.codes if not isinstance(c, str)) for own in found})
    n = int(len(frame) if weights is None else round(float(np.sum(weights))))
    lacking = [own.name for own in found if own.missing > 0 and own.kind != "empty"]
    incomplete = frame[lacking].isna().any(axis=1).to_numpy()
    short = round(float(incomplete.sum() if weights is None else weights[incomplete].sum()))
    path = str(data) if isinstance(data, (str, Path)) else None
    about = About(found, frame, path, table.named, weights is not None)
    calls = suggestions_for(about)
    told += _of_columns(found, n, short, [one.time for one in calls])
    if isinstance(data, np.ndarray) and is_raster(data):
        calls = (of_raster(), *calls)
    return Description(table.name, table.written, n, found, tuple(told), calls, notes)


def _of_graph(graph: ObservedGraph) -> Description:
    """One graph: the attributes of its nodes, and a call."""
    problems = Problems(graph.source)
    found = profiles(pd.DataFrame(dict(graph.attributes)), None, {}, {}, problems)
    told = tuple(str(problem) for problem in problems.found)
    written = f"one row for each node; {graph.ties} ties, {'directed' if graph.directed else 'undirected'}"
    return Description(graph.source, written, graph.n, found, told, (of_graph(found, graph.directed),))


def suggest(data: Any, *, missing_codes: Any = None, decimal: str | None = None) -> tuple[Suggestion, ...]:
    """The calls that fit a table, the first one first: the last part of what `describe` says.

    Parameters
    ----------
    data, missing_codes, decimal
        As for `describe`.

    Returns
    -------
    tuple of Suggestion
        Each with ``why``, ``python`` and, for files, ``command``. Empty where nothing in the table can be modelled.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> for call in dfd.suggest({"visits": [0, 1, 5, 2, 0, 12, 3, 0, 1, 2, 4, 1]}):
    ...     print(call.python)
    dfd.fit("cmp", data)
    """
    return describe(data, missing_codes=missing_codes, decimal=decimal).suggestions


def _of_columns(found: tuple[Profile, ...], n: int, rows: int, times: Sequence[str | None]) -> list[str]:
    """What is wrong with whole columns, but for those of times; so many of n rows lack a value."""
    told = []
    for kind, one, many in (
        ("empty", "has no value", "have no value"),
        ("constant", "has the same value in every row", "have the same value in every row"),
        ("date", "holds dates or times", "hold dates or times"),
        ("duration", "holds durations", "hold durations"),
        ("nested", "holds several values in each row", "hold several values in each row"),
    ):
        names = [f"'{own.name}'" for own in found if own.kind == kind and own.name not in times]
        if names:
            shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
            several = len(names) > 1
            told.append(
                f"column{'s' * several} {shown} {many if several else one}: leave {'them' if several else 'it'} out"
                f"{', or recode' if kind in ('date', 'duration') else ''}."
            )
    twins = [f"'{own.name}' tells the same as '{own.same_as}'" for own in found if own.same_as]
    if twins:
        told.append(f"{'; '.join(twins[:6])}{'; ...' if len(twins) > 6 else ''}. Use one of each.")
    lacking = [own for own in found if own.missing > 0 and own.kind != "empty"]
    if lacking:
        worst = max(lacking, key=lambda own: own.missing)
        told.append(
            f"values are missing in {len(lacking)} column{'s' * (len(lacking) > 1)} (most in '{worst.name}': "
            f"{share(worst.missing / (worst.n + worst.missing))}), and {rows} of {n} rows lack one or more "
            f"({share(rows / max(n, 1))}). missing='drop' leaves these rows out, which is right where values are "
            "missing completely at random; missing='impute' keeps them, and fills each gap with every value that it "
            "may have, by how likely the model finds it (columns of a formula must be complete)."
        )
    return told
