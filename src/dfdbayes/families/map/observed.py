"""One observed map: a value at every site, covariates there, and which sites are neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy import sparse

from ...core.dataset import Dataset, match
from ...data.formulas import INTERCEPT, Design, parse, require_full_rank, variables
from ...data.read.columns import require_missing
from ...errors import DataError, SettingError
from .read import cells_of, coded, named_edges, neighbours_of, sites_of

CONSTANT = INTERCEPT.lower()  # what a map calls it


@dataclass(frozen=True, eq=False)
class ObservedMap:
    """Values of a map and what a model needs to know of its sites.

    Attributes
    ----------
    values : (n,) integers
        The category of every site as 0, 1, ...; -1 where none was observed.
    categories : tuple of str
        What these are called; the first is the reference.
    matrix : (n, k) floats
        Covariates called ``labels``; NaN at sites where one is not known.
    offset : (n,) floats or None
    edges : (e, 2) integers
        Pairs of neighbours, each once.
    places : (n, 2) floats or None
        Coordinates of sites on a grid, called ``at``.
    cells : (n, 2) integers or None
        The same as rows and columns.
    missing : {"refuse", "drop", "impute"}
    """

    values: Int[np.ndarray, " n"]
    categories: tuple[str, ...]
    matrix: Float[np.ndarray, "n k"]
    labels: tuple[str, ...]
    offset: Float[np.ndarray, " n"] | None
    edges: Int[np.ndarray, "e 2"]
    places: Float[np.ndarray, "n 2"] | None
    cells: Int[np.ndarray, "n 2"] | None
    at: tuple[str, ...]
    response: str
    source: str
    missing: str = "refuse"

    @classmethod
    def of(
        cls, source: Any, formula: str | None, at: tuple[str, ...], neighbours: int,
        graph: tuple[tuple[str, ...], np.ndarray, int] | None, missing: str,
    ) -> ObservedMap:  # fmt: skip
        """Read a map; ``graph`` are the names, the edges and the number of nodes of a graph that sites are on."""
        require_missing(missing)
        sites = sites_of(source, at)
        frame, at = sites.frame, sites.at
        response, right = _response(formula, frame, at)
        values, categories = coded(frame[response])
        for name in at:
            match(name, list(frame.columns))
        if graph is None and len(at) != 2:
            raise SettingError(
                "say where the sites are: at=('row', 'col'), two columns with the coordinates of a grid, or graph= "
                "for sites of any other kind"
            )
        cells = cells_of(frame, at) if graph is None else None
        edges = neighbours_of(cells, neighbours) if cells is not None else named_edges(frame, at, *(graph or ()))
        known = frame[list(variables(right, frame))].notna().all(axis=1).to_numpy()
        unknown = _refused(values < 0, ~known, missing)
        if unknown:
            raise DataError(unknown)
        design, own, shift = Design.of(
            response, right, frame[known].reset_index(drop=True), counts=np.ones(known.sum())
        )
        require_full_rank(response, own, design.labels, np.ones(len(own)))
        matrix, offset = np.full((len(frame), own.shape[1]), np.nan), None
        matrix[known] = own
        if shift is not None:
            offset = np.zeros(len(frame))
            offset[known] = shift
        places = None if cells is None else frame[list(at)].to_numpy(dtype=float)
        labels = tuple(map(_plain, design.labels))
        return cls(
            values, categories, matrix, labels, offset, edges, places, cells, at, response, sites.source, missing
        )

    @property
    def n(self) -> int:
        """The number of sites."""
        return len(self.values)

    @cached_property
    def adjacency(self) -> sparse.csr_matrix:
        i, j = self.edges.T if len(self.edges) else np.empty((2, 0), int)
        return sparse.csr_matrix((np.ones(2 * len(i)), (np.r_[i, j], np.r_[j, i])), shape=(self.n, self.n))

    @cached_property
    def observed(self) -> Bool[np.ndarray, " n"]:
        """Where a value was observed."""
        return self.values >= 0

    @cached_property
    def known(self) -> Bool[np.ndarray, " n"]:
        """Where all covariates are known: the sites that the model is of; the others are given."""
        return np.asarray(np.isfinite(self.matrix).all(axis=1))

    @cached_property
    def used(self) -> Int[np.ndarray, " u"]:
        """The sites that losses have a term of: all covariates, the value and those of all neighbours are known.

        With ``missing="impute"`` values need not be.
        """
        complete = self.known.copy()
        if self.missing != "impute":
            complete &= self.observed & (self.adjacency @ (~self.observed).astype(float) == 0)
        return np.flatnonzero(complete)

    def around(self, values: Int[np.ndarray, "b n"]) -> Float[np.ndarray, "b n k"]:
        """How many neighbours of each site have each category."""
        of = [np.asarray((values == k).astype(float) @ self.adjacency) for k in range(len(self.categories))]
        return np.stack(of, axis=-1)

    @cached_property
    def _open(self) -> Bool[np.ndarray, " u"]:
        """Which of the used sites, or of their neighbours, have no value."""
        lost = (~self.observed).astype(float)
        return np.asarray(lost + self.adjacency @ lost > 0)[self.used]

    def dataset(self, values: Int[np.ndarray, "b n"]) -> Dataset:
        """The sites that count, each with its covariates and how many neighbours have each category.

        Of several completions of one map, sites that differ between them are there once for each, and share their
        weight.
        """
        terms = [self.matrix] if self.offset is None else [self.matrix, self.offset[:, None]]
        known = np.concatenate(terms, axis=1)
        number = len(values)
        copy = np.repeat(np.arange(number), [len(self.used), *[int(self._open.sum())] * (number - 1)])
        site = np.concatenate([self.used, *[self.used[self._open]] * (number - 1)])
        weights = np.where(np.concatenate([self._open, *[self._open[self._open]] * (number - 1)]), 1.0 / number, 1.0)
        given = np.concatenate([known[site], self.around(values)[copy, site]], axis=1)
        names = (*self.labels, *([] if self.offset is None else ["offset"]), *self.categories)
        return Dataset(
            values[copy, site][:, None], weights, (self.response,), site, source=self.source, given=given,
            given_columns=names, notes=self._notes,
        )  # fmt: skip

    @property
    def _notes(self) -> tuple[str, ...]:
        unseen = int((~self.observed).sum())
        if self.missing == "impute" and unseen:
            return (
                f"{unseen} of {self.n} sites have no value: they were drawn from the model given the others, again and "
                "again, which is right where what is missing does not depend on the missing values themselves",
            )
        if len(self.used) == self.n:
            return ()
        return (
            f"{len(self.used)} of {self.n} sites have a term: {unseen} have no value, and sites next to them, or "
            "without a covariate, are left out as well but serve as neighbours; right where what is missing does not "
            "depend on the values",
        )

    def __repr__(self) -> str:
        lost = int((~self.observed).sum())
        told = f", {lost} without a value" if lost else ""
        return f"ObservedMap({self.n} sites{told}, {len(self.edges)} pairs of neighbours)"


def _response(formula: str | None, frame: pd.DataFrame, at: tuple[str, ...]) -> tuple[str, str]:
    """The column that is mapped, and the right side of the formula; without one, the only column there is."""
    if formula is not None:
        left, right = parse(formula)
        if len(left) != 1:
            raise SettingError(
                f"the formula is {formula!r}; write the column that is mapped on its left: 'present ~ x'"
            )
        return match(left[0], list(frame.columns)), right
    others = [name for name in frame.columns if name not in at]
    if len(others) != 1:
        raise SettingError(
            f"say which of {', '.join(others[:8])} is mapped, and what explains it: formula='present ~ altitude', or "
            "'present ~ 1'"
        )
    return others[0], "1"


def _refused(lost: np.ndarray, unknown: np.ndarray, missing: str) -> str:
    """What is wrong with missing values; nothing where it is said what to do with them."""
    both = int((lost & unknown).sum())
    if both:
        return (
            f"{both} sites have neither a value nor all covariates (first: row {int(np.argmax(lost & unknown)) + 1}). "
            "What to do: leave out rows of sites that are not there, such as cells in the sea; for others find the "
            "covariates."
        )
    if missing == "refuse" and lost.any():
        return (
            f"{int(lost.sum())} of {len(lost)} sites have no value (first: row {int(np.argmax(lost)) + 1}). What to "
            "do: missing='impute' draws them from the model, given the others; missing='drop' leaves out these sites "
            "and the terms of their neighbours. Leave out rows (or mask cells) of sites that are not there at all."
        )
    if missing == "impute" and unknown.any():
        return (
            f"{int(unknown.sum())} of {len(lost)} sites lack a covariate (first: row {int(np.argmax(unknown)) + 1}), "
            "and only values are imputed. What to do: find these, or missing='drop'."
        )
    return ""


def _plain(label: str) -> str:
    """A term's name as a parameter may be called: brackets and strokes have a meaning in results."""
    if label in (INTERCEPT, CONSTANT):
        return CONSTANT if label == INTERCEPT else f"`{label}`"
    return label.replace("[", "(").replace("]", ")").replace("/", "∕")
