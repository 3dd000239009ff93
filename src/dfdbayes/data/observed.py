"""The rows that a regression was made of, kept with it, and their values as files can hold them.

A covariate is taken as a file has it: a column of numbers with some texts in it is no factor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._util.codec import UnwritableError, cell_from_plain, cell_to_plain, from_plain, to_plain
from ..core.dataset import Dataset
from ..core.domain import Domain
from ..errors import DataError, Problems
from .grammar import written
from .read.columns import tell_mistakes, tell_unclear
from .read.dataset import read
from .read.reading import FROM_FILE, Table
from .read.text import doubtful, is_number, note, suspected
from .series import Series

_KIND = re.compile(
    r"object|bool|u?int\d+|float\d+|(datetime64|timedelta64|period|interval)\[.*\]"
)  # of columns in files

BESIDE = "\ufdd0"  # begins the names of columns of matrices: a letter that there is not, and that no user's name has


@dataclass(frozen=True)
class Observed:
    """The rows that a regression was made of, to make it again: of a saved fit, or of a run that is repeated.

    Attributes
    ----------
    frame : DataFrame
        The columns that were used, of all rows that were used; equal rows once where ``weights`` count them. Of a
        series all rows in order, also those without a past.
    weights : str or array, optional
        The column of weights, or the weights.
    series : Series, optional
        The order of rows in time, and their lags.
    index : Index, optional
        What the data call their rows, also those that were left out; by default their numbers, from 0.
    place : array, optional
        For every row of the data the one of ``rows`` that it is, -1 where it was left out; by default all as they are.
    cluster : str, optional
        The column that says which rows belong together.
    weighting : str
        What weights are.
    """

    frame: pd.DataFrame
    weights: str | np.ndarray | None = None
    series: Series | None = None
    index: pd.Index | None = None
    place: np.ndarray | None = None
    cluster: str | None = None
    weighting: str = "auto"

    @property
    def rows(self) -> pd.DataFrame:
        """The rows that formulas were evaluated on."""
        return self.frame if self.series is None else self.series.used(self.frame)

    def to_file(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays by column number, and what they are in values JSON can hold."""
        arrays, about = _arrays_of(self.frame, "column")
        by_name = isinstance(self.weights, str)
        if self.weights is not None and not by_name:
            arrays["weights"] = np.asarray(self.weights, float)
        known: dict[str, Any] = {"columns": about, "weights": self.weights if by_name else None}
        known["series"] = to_plain(self.series)
        known |= {"cluster": self.cluster, "weighting": self.weighting}
        if self.place is not None:
            arrays["place"] = self.place
        if self.index is not None:
            levels = self.index.to_frame(index=False)
            parts, known["index"] = _arrays_of(levels.set_axis(range(levels.shape[1]), axis=1), "index")
            arrays |= parts
            known["index_names"] = [name if isinstance(name, str) else None for name in self.index.names]
        return arrays, known

    @classmethod
    def from_file(cls, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> Observed:
        """Back from `to_file`."""
        frame = _frame_of(arrays, about["columns"], "column")
        weights = arrays["weights"] if "weights" in arrays else about["weights"]
        index = None
        if about.get("index"):
            parts, names = _frame_of(arrays, about["index"], "index"), about["index_names"]
            index = (
                pd.MultiIndex.from_frame(parts, names=names)
                if len(names) > 1
                else pd.Index(parts["0"]).rename(names[0])
            )
        made = from_plain(about.get("series"), Series | None)
        more = about.get("cluster"), about.get("weighting", "auto")
        return cls(frame, weights, made, index, arrays.get("place"), *more)

    def apart(self, domain: Domain, columns: Sequence[str]) -> Dataset:
        """Those of ``rows`` that have a value and a weight, equal ones apart, in their order; ``first`` says which."""
        number = f"{BESIDE}row"
        frame = self.rows.assign(**{number: np.arange(len(self.rows), dtype=float)})
        found = read(
            frame, domain, columns=columns, weights=self.weights, given=[number], missing="drop", cluster=self.cluster,
            weighting=self.weighting,
        )  # fmt: skip
        return found.at(np.argsort(found.first))

    def by_row(self, found: pd.DataFrame, known: np.ndarray) -> pd.DataFrame:
        """What was computed for each of ``rows``, for every row of the data; no numbers where one was left out."""
        place = np.arange(len(found)) if self.place is None else self.place
        index = pd.RangeIndex(len(place), name="row") if self.index is None else self.index
        lost = (place < 0) | ~known[place]
        table = found.iloc[np.where(lost, 0, place)].set_axis(index)
        return table.where(np.broadcast_to(~lost[:, None], table.shape)) if lost.any() else table


def _arrays_of(frame: pd.DataFrame, prefix: str) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """Columns as arrays that a file can hold, and what they are."""
    arrays: dict[str, np.ndarray] = {}
    about = []
    for i, (name, column) in enumerate(frame.items()):
        kind: dict[str, Any] = {"name": str(name), "kind": "number"}
        if isinstance(column.dtype, pd.CategoricalDtype):
            levels = column.cat.categories
            kind |= {
                "kind": "category",
                "levels": list(map(cell_to_plain, levels)),
                "ordered": bool(column.cat.ordered),
            }
            kind["type"] = str(levels.dtype)
            values = column.cat.codes.to_numpy()
        elif pd.api.types.is_bool_dtype(column) and not column.hasnans:
            kind["kind"], values = "bool", column.to_numpy(dtype=np.int8)
        elif pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy()
        else:
            values, kind = _coded(column, kind, prefix)
        arrays[f"{prefix}{i}"] = values
        about.append(kind)
    return arrays, about


def _coded(column: pd.Series, kind: dict[str, Any], prefix: str) -> tuple[np.ndarray, dict[str, Any]]:
    """A column of texts, dates or the like, by its distinct values; names of rows that no file keeps become texts."""
    codes, distinct = pd.factorize(column)
    try:
        levels = list(map(cell_to_plain, distinct))
    except UnwritableError:
        if prefix != "index":
            raise
        codes, distinct = pd.factorize(column.map(str))
        levels = list(map(cell_to_plain, distinct))
    if column.dtype == object and (codes >= 0).all() and all(isinstance(level, str) for level in levels):
        return np.array(column.tolist(), dtype="U"), kind | {"kind": "text"}
    return codes, kind | {"kind": "levels", "levels": levels, "type": str(column.dtype)}


def _frame_of(arrays: Mapping[str, np.ndarray], about: list[dict[str, Any]], prefix: str) -> pd.DataFrame:
    """Back from `_arrays_of`."""
    columns: dict[str, Any] = {}
    for i, kind in enumerate(about):
        values: Any = arrays[f"{prefix}{i}"]
        if kind["kind"] == "category":
            levels = _typed([cell_from_plain(level) for level in kind["levels"]], kind.get("type"))
            values = pd.Categorical.from_codes(values.astype(int), pd.Index(levels), ordered=kind["ordered"])
        elif kind["kind"] == "levels":
            distinct = np.empty(len(kind["levels"]) + 1, object)  # the last, -1, is a missing one
            distinct[:-1] = [cell_from_plain(level) for level in kind["levels"]]
            values = _typed(distinct[values.astype(int)], kind["type"])
        elif kind["kind"] == "bool":
            values = values.astype(bool)
        elif kind["kind"] == "text":
            values = values.astype(object)
        elif kind["kind"].startswith("datetime64"):
            values = pd.Series(values.astype(object)).astype(kind["kind"])
        elif kind["kind"] != "number":
            raise ValueError(f"the column '{kind['name']}' is of an unknown kind")
        columns[kind["name"]] = values
    return pd.DataFrame(columns)


def _typed(values: Any, kind: str | None) -> pd.Series:
    """Values in a column of their own type; as they are where pandas knows none of that name."""
    found = pd.Series(values, dtype=object)
    if kind is None or not _KIND.fullmatch(kind):
        return found.infer_objects()
    try:
        return found.astype(kind)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return found.infer_objects()


def require_kept(frame: pd.DataFrame) -> None:
    """Refuse columns whose values a file could not keep as they are."""
    for name, column in frame.items():
        values: Any = column.dtype.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
        if values.dtype.kind in "biufcM":
            continue
        for kind in dict.fromkeys(map(type, values)):
            value = next(own for own in values if type(own) is kind)
            try:
                _ = None if isinstance(value, complex) else cell_to_plain(value)  # which a formula says more of
            except UnwritableError:
                raise DataError(
                    f"'{name}' holds {value!r}, a {kind.__name__}, and what a fit depends on must be numbers, texts, "
                    f"dates, or intervals. What to do: make texts of them, frame[{name!r}].map(str)."
                ) from None


def require_plain(frame: pd.DataFrame, columns: Sequence[str], rights: Sequence[str]) -> None:
    """Refuse columns of a file that would become factors with a level for each number, all of them at once.

    A column that a formula calls ``C(name)`` is a factor whatever it holds.
    """
    problems = Problems(str(frame.attrs.get("name", "the data")))
    there = [name for name in columns if name in frame.columns]
    for name in there if frame.attrs.get(FROM_FILE) else ():
        column = frame[name].to_numpy()
        texts = np.array([isinstance(value, str) for value in column], bool)
        if not texts.any() or any(re.search(rf"C\(\s*`?{re.escape(name)}`?\s*[,)]", right) for right in rights):
            continue
        numbers = np.array([isinstance(value, str) and is_number(value) for value in column], bool)
        unclear = np.array([isinstance(value, str) and doubtful(value) for value in column], bool)
        if 2 * numbers.sum() < texts.sum():
            continue
        tell_unclear(column[unclear], name, np.flatnonzero(unclear), problems)
        wrong, groups = texts & ~numbers, f"write C({written(name)}) in the formula if the values are names of groups"
        tell_mistakes(column[wrong], name, np.flatnonzero(wrong), problems, [groups])
    problems.refuse()


def notes_of(source: Any, frame: pd.DataFrame, covariates: Sequence[str], rights: Sequence[str]) -> tuple[str, ...]:
    """What a user should know of how covariates were read."""
    alone = {part.strip(" `") for right in rights for part in re.split(r"[+*:]", right)}
    told = tuple(frame.attrs.get("notes", ())) + tuple(_like_codes(frame, [c for c in covariates if c in alone]))
    if isinstance(source, Table) and source.codes.given:
        return told
    return told + note(suspected(frame[list(covariates)]))


def _like_codes(frame: pd.DataFrame, covariates: Sequence[str]) -> list[str]:
    """Numbers that may be names of groups, of which there are three to six: 1, 2, 3 and no others."""
    found = []
    for name in covariates:
        seen = frame[name].dropna().unique() if pd.api.types.is_numeric_dtype(frame[name]) else ()
        if 3 <= len(seen) <= 6 and set(seen) == set(range(1, len(seen) + 1)):
            found.append(
                f"'{name}' has the values 1 to {len(seen)} and is taken for a number, with one effect per unit. What "
                f"to do: write C({written(name)}) in the formula if these are codes of groups; nothing if they are "
                "numbers."
            )
    return found
