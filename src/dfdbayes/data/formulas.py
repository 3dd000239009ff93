"""Formulas: what the parameters of a row depend on, as matrices of numbers with names (by formulaic).

A formula such as ``visits ~ age + C(clinic) + offset(log(days))`` names the response, if it has one, and the terms of a
linear predictor. Factors, interactions, splines and functions are formulaic's; ``offset(...)`` is a term whose
coefficient is 1; ``lag(...)`` and ``season(...)`` are explained in `data.series`.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..errors import DataError, SettingError, close, some
from .grammar import RESERVED, Content, context, read
from .identifiers import are_durations, are_nested
from .reading import table_of

if TYPE_CHECKING:
    from formulaic import ModelSpec

OWN_SCALE = ("bs(", "cr(", "cc(", "cs(", "poly(", "center(", "scale(", "standardize(", "lag(")  # depend on all rows
LARGE = 200_000  # rows from which equal ones are counted before a formula is evaluated
INTERCEPT = "Intercept"
_NUMBER = re.compile(r"[0-9.]+([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[^\W\d]")


def _is_plain(name: str) -> bool:
    """Whether a column's name can stand in a formula as it is, and is not to be taken for anything else."""
    word = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name
    return word and name not in RESERVED and not name.startswith("_")


def _alias(name: str) -> str:
    """A column's name in letters that a formula can hold, another one for every name; a plain name as it is."""
    if _is_plain(name):
        return name
    return "_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)


def plainly(right: str, frame: pd.DataFrame) -> tuple[str, pd.DataFrame, dict[str, str]]:
    """A right side and a frame whose names are words, as formulaic needs them, and what the words stand for.

    R's names such as ``body.mass`` may stand in a formula as they are, or between backticks.
    """
    names = list(map(str, frame.columns))
    odd = {name: _alias(name) for name in names if not _is_plain(name)}
    apart = [name for name in odd if name in right and name == name.strip() and _WORD.search(name)]
    bare = [
        re.escape(name) + (r"(?!\s*\()" if name in RESERVED else "")
        for name in sorted(apart, key=len, reverse=True)
        if not _NUMBER.fullmatch(name)  # a number is one, unless it is between backticks
    ]
    word = rf"(?<![\w.%])(?:{'|'.join(bare)})(?![\w.%])" if bare else r"(?!)"
    known = set(names)

    def written(part: re.Match[str]) -> str:
        text, between = part[0], part["between"]
        if part["quoted"] is not None:
            return text
        return odd.get(text, text) if between is None else _alias(between) if between in known else text

    right = re.sub(rf"(?P<quoted>'[^']*'|\"[^\"]*\")|`(?P<between>[^`]*)`|{word}", written, right)
    frame = frame.set_axis([odd.get(name, name) for name in names], axis=1)
    return right, frame, {alias: name for name, alias in odd.items()}


@dataclass(frozen=True)
class _Right:
    """A right side as formulaic gets it: nothing in it that formulas do not hold.

    Attributes
    ----------
    terms : str
    offsets : tuple of str
    frame : DataFrame
        The data, with columns whose names are words.
    odd : dict
        The names that words stand for.
    content : Content
    """

    terms: str
    offsets: tuple[str, ...]
    frame: pd.DataFrame
    odd: dict[str, str]
    content: Content

    @classmethod
    def of(cls, right: str, frame: pd.DataFrame) -> _Right:
        """The only way of a text to formulaic."""
        plain, frame, odd = plainly(right, frame)
        terms, offsets = split_offsets(plain)
        offsets = tuple(f"0 + {part}" for part in offsets)
        parts = [read(terms, right), *(read(part, right) for part in offsets)]
        names, numbers = (part.names for part in parts), (part.numbers for part in parts)
        content = Content(frozenset().union(*names), parts[0].alone, frozenset().union(*numbers))
        return cls(terms, offsets, frame, odd, content)


def parse(formula: str, name: str = "formula") -> tuple[tuple[str, ...], str]:
    """The response's columns (none where there is no left side), and the right side."""
    if not isinstance(formula, str) or "~" not in formula:
        what = "" if name == "formula" else f"'{name}' is no setting of fit; if it is a parameter, its formula "
        what = what or f"formula is {formula!r}; it "
        raise SettingError(f"{what}must look like 'y ~ x1 + x2', or '~ x1' without a response")
    left, _, right = formula.partition("~")
    if "~" in right:
        raise SettingError(f"{name} is {formula!r}; it has more than one '~'")
    return tuple(part.strip().strip("`") for part in left.split("+") if part.strip()), right.strip() or "1"


def split_offsets(right: str) -> tuple[str, tuple[str, ...]]:
    """A right side without its ``offset(...)`` terms, and what these hold."""
    offsets = []
    while (found := re.search(r"(?<![\w.])offset\s*\(", right)) is not None:
        depth, end = 1, found.end()
        while depth and end < len(right):
            depth += {"(": 1, ")": -1}.get(right[end], 0)
            end += 1
        if depth:
            raise SettingError(f"a bracket of offset(...) is not closed in '{right}'")
        offsets.append(right[found.end() : end - 1].strip())
        before, after = right[: found.start()].rstrip(), right[end:].lstrip()
        if before.endswith("+"):
            before = before[:-1].rstrip()
        elif after.startswith("+"):
            after = after[1:].lstrip()
        right = f"{before} {after}".strip() or "1"
    return right, tuple(offsets)


@dataclass(frozen=True)
class Design:
    """The linear predictor of one parameter.

    Attributes
    ----------
    parameter : str
    right : str
        The right side of its formula.
    labels : tuple of str
        The names of its terms: ``Intercept``, ``age``, ``clinic=B``.
    spec : ModelSpec
        How formulaic makes the matrix, also of new data.
    offsets : tuple of ModelSpec
    names : mapping
        The columns that words of ``spec`` stand for, where a formula cannot hold their names.
    """

    parameter: str
    right: str
    labels: tuple[str, ...]
    spec: ModelSpec
    offsets: tuple[ModelSpec, ...]
    names: Mapping[str, str]

    @classmethod
    def of(cls, parameter: str, right: str, frame: pd.DataFrame) -> tuple[Design, np.ndarray, np.ndarray | None]:
        """A design on data, its matrix, and the sum of its offsets (None without any)."""
        import formulaic  # not before a formula is given: it takes a while

        asked = _Right.of(right, frame)
        _require_columns(parameter, right, asked)
        names = asked.odd

        def matrix_of(text: str) -> Any:
            return formulaic.model_matrix(text, asked.frame, context=context(), output="pandas", na_action="raise")

        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                found, apart = matrix_of(asked.terms), [matrix_of(part) for part in asked.offsets]
        except Exception as problem:
            raise DataError(
                f"the formula of {parameter}, '~ {right}', cannot be computed on these data: {_said(problem)}"
            ) from problem
        matrix = found.to_numpy(dtype=float)
        labels = tuple(readable(str(column), names) for column in found.columns)
        offset = np.sum([part.to_numpy(dtype=float).sum(axis=1) for part in apart], axis=0) if apart else None
        _require_finite(parameter, matrix, labels)
        _require_finite_offset(parameter, offset)
        made = cls(parameter, right, labels, found.model_spec, tuple(part.model_spec for part in apart), names)
        return made, matrix, offset

    def matrix(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray | None]:
        """Matrix and offset of new data."""
        asked = _Right.of(self.right, frame)
        frame, names = asked.frame, asked.odd
        lacking = sorted(asked.content.names - set(frame.columns))
        if lacking:
            have = ", ".join(names.get(c, c) for c in map(str, frame.columns[:12]))
            raise DataError(
                f"the new data lack '{names.get(lacking[0], lacking[0])}', which the formula of {self.parameter} "
                f"needs; their columns are {have}"
            )
        remedy = "Fill them in, or leave these rows out of the new data."
        _require_columns(self.parameter, self.right, asked, remedy)
        self._require_known_levels(frame, names)
        try:
            found = self.spec.get_model_matrix(frame, context(), na_action="raise").to_numpy(dtype=float)
            parts = [part.get_model_matrix(frame, context(), na_action="raise") for part in self.offsets]
        except Exception as problem:
            raise DataError(
                f"the formula of {self.parameter}, '~ {self.right}', cannot be computed there: {_said(problem)}"
            ) from problem
        offset = np.sum([part.to_numpy(dtype=float).sum(axis=1) for part in parts], axis=0) if parts else None
        _require_finite(self.parameter, found, self.labels)
        _require_finite_offset(self.parameter, offset)
        return found, offset

    def _require_known_levels(self, frame: pd.DataFrame, names: Mapping[str, str]) -> None:
        """Refuse a level of a factor that the fit has not seen, which formulaic would make the reference level."""
        for name, levels in self.levels.items():
            if name in frame and not set(frame[name].unique()) <= set(levels):
                new = next(value for value in frame[name].unique() if value not in levels)
                raise DataError(
                    f"'{names.get(name, name)}' is {new!r} in the new data; the fit has seen "
                    f"{', '.join(map(str, levels[:8]))}. What to do: use one of these, or fit again with rows of that "
                    "level."
                )

    def term_of(self, place: int) -> str:
        """The term that a column of the matrix is of, as it is written in the formula."""
        term = next(term for term, places in self.spec.term_indices.items() if place in places)
        return re.sub(r"\w+", lambda word: self.names.get(word.group(), word.group()), str(term))

    def reference(self, label: str) -> str:
        """The level that a level of a factor, ``clinic=B``, is compared with; empty where it is not one."""
        name = label.partition("=")[0]
        levels = {self.names.get(alias, alias): own for alias, own in self.levels.items()}.get(name, [])
        left = [str(level) for level in levels if f"{name}={level}" not in self.labels]
        return left[0] if len(left) == 1 and ":" not in label else ""

    @property
    def levels(self) -> dict[str, list[Any]]:
        """The levels of factors that are columns of the data."""
        found = {}
        for expression, state in self.spec.encoder_state.items():
            inside = re.fullmatch(r"C\(\s*`?([\w. ]+)`?\s*[,)].*", f"{expression}")
            name = inside.group(1) if inside else str(expression)
            kept = state[1].get("categories") if isinstance(state, tuple) and isinstance(state[1], Mapping) else None
            if kept is not None:
                found[name] = list(kept)
        return found

    @property
    def factors(self) -> tuple[str, ...]:
        """The columns whose levels have terms of their own, and no others."""
        alone = [name for name in self.levels if self._terms_of(name)[0] and not self._terms_of(name)[1]]
        return tuple(self.names.get(name, name) for name in alone)

    def _terms_of(self, name: str) -> tuple[list[Any], list[Any]]:
        """Terms of a variable alone, and those of it and others."""
        used = {
            term: {str(variable) for variable in variables if variable.source == "data"}
            for term, variables in self.spec.term_variables.items()
        }
        ours = [term for term, names in used.items() if name in names]
        return [term for term in ours if len(used[term]) == 1], [term for term in ours if len(used[term]) > 1]

    def of_levels(self, factor: str) -> tuple[tuple[Any, ...], list[int], Float[np.ndarray, "levels k"]]:
        """A factor's levels, the reference first; which terms are the factor's own, and what these are at each level.

        The reference is the level at which these terms are zero, or the first.
        """
        alias = _alias(factor)
        levels, (own, mixed) = self.levels.get(alias), self._terms_of(alias)
        if not own and not mixed:
            raise SettingError(f"'{factor}' is not in the formula of {self.parameter}, '~ {self.right}'")
        if levels is None:
            raise SettingError(
                f"'{factor}' is a number in the formula of {self.parameter}, '~ {self.right}'. What to do: write "
                f"C({factor}), and fit again, if its values are groups."
            )
        if mixed:
            raise SettingError(
                f"the effect of '{factor}' on {self.parameter} depends on other variables (the term '{mixed[0]}'), so "
                "that there is not one difference between its levels. What to do: fit again without that term."
            )
        matrix = self.spec.subset(own).get_model_matrix(pd.DataFrame({alias: levels}), context()).to_numpy(dtype=float)
        order = np.argsort(matrix.any(axis=1), kind="stable")
        places = [place for term in own for place in self.spec.term_indices[term]]
        return tuple(levels[i] for i in order), places, matrix[order]


def readable(label: str, names: Mapping[str, str]) -> str:
    """The name of a term as people would write it: ``clinic=B`` for formulaic's ``C(clinic)[T.B]``."""
    label = re.sub(r"C\(\s*`?([^,()`]+?)`?\s*(,[^()]*(\([^()]*\))?[^()]*)?\)(?=\[)", r"\1", label)
    label = re.sub(r"(?<=\w)\[(T\.)?([^\]]*)\]", r"=\2", label)
    return re.sub(r"\w+", lambda word: names.get(word.group(), word.group()), label)


def frame_of(source: Any) -> pd.DataFrame:
    """All rows of what a user has, as a frame."""
    if isinstance(source, pd.DataFrame):
        return source
    if isinstance(source, Mapping) and source and all(map(pd.api.types.is_scalar, source.values())):
        return pd.DataFrame([dict(source)])
    if isinstance(source, (str, Path)) or not hasattr(source, "to_pandas"):
        table = table_of(source)
        if not table.named:
            raise DataError("a formula needs columns with names: give a frame, a mapping of names to values, or a file")
        return table.frame()
    return source.to_pandas()


def counted(frame: pd.DataFrame, rights: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray | None, np.ndarray | None]:
    """Distinct rows, how often each occurs, and which one each row is, where rows are very many.

    As they are where there is nothing to gain, or where formulas do not treat each alone.
    """
    if len(frame) < LARGE or any(word in right for right in rights for word in OWN_SCALE):
        return frame, None, None
    if any(frame[name].nunique() > LARGE // 100 for name in frame.columns):  # nothing to gain
        return frame, None, None
    groups = frame.groupby(list(frame.columns), sort=True, dropna=False, observed=True)
    found = groups.size()
    return found.index.to_frame(index=False), found.to_numpy(dtype=float), groups.ngroup().to_numpy()


def variables(right: str, frame: pd.DataFrame) -> tuple[str, ...]:
    """The columns of a frame that a right side names."""
    asked = _Right.of(right, frame.iloc[:0])
    used = {asked.odd.get(name, name) for name in asked.content.names}
    _require_known("a parameter", used, list(map(str, frame.columns)))
    return tuple(name for name in map(str, frame.columns) if name in used)


def alone(right: str, frame: pd.DataFrame) -> tuple[str, ...]:
    """The columns that a right side has as they are, and never inside a function such as ``C(...)`` or ``log(...)``."""
    bare = _Right.of(right, frame.iloc[:0]).content.alone
    return tuple(name for name in map(str, frame.columns) if name in bare)


def as_factor(right: str, name: str) -> str:
    """A right side with ``C(name)`` in place of a column that stands there as it is."""
    return re.sub(rf"(?<![\w.(`]){name}(?![\w.)`(])", f"C({name})", right)


def _said(problem: Exception) -> str:
    """What formulaic says, in our words where it is about numbers that are none."""
    said = (str(problem).splitlines() or [""])[0]
    found = re.search(r"`([^`]*)` contains null values", said)
    if found is None:
        return said
    return f"'{found[1]}' is no number in some rows (of zero or a negative value, a logarithm or a root is none)"


def _require_known(parameter: str, needed: set[str], names: list[str]) -> None:
    for name in sorted(needed - set(names)):
        named = "the formula" if parameter in ("formula", "a parameter") else f"the formula of {parameter}"
        raise DataError(
            f"{named} names '{name}', which is not a column{close(name, names) or '.'} The columns are {some(names)}."
        )


def _require_columns(
    parameter: str, right: str, asked: _Right,
    remedy: str = "Pass missing='drop' (on the command line: --missing drop) to leave them out.",
) -> None:  # fmt: skip
    """Refuse a formula that names no column, one in which values are missing, or that reckons with texts."""
    frame, odd = asked.frame, asked.odd
    needed = asked.content.names
    _require_known(
        parameter, {odd.get(name, name) for name in needed}, [odd.get(c, c) for c in map(str, frame.columns)]
    )
    for name in sorted(needed):
        lost = int(frame[name].isna().sum())
        if lost:
            row = int(np.argmax(frame[name].isna().to_numpy())) + 1
            raise DataError(
                f"{lost} of {len(frame)} rows have no '{odd.get(name, name)}' (first: row {row}), which the formula of "
                f"{parameter} needs. {remedy}"
            )
        if are_nested(frame[name]):
            raise DataError(f"'{odd.get(name, name)}' holds several values in each row, so it is no covariate")
        if name in asked.content.alone | asked.content.numbers and are_durations(frame[name]):
            own = odd.get(name, name)
            raise DataError(
                f"'{own}' holds durations, which are numbers only in a unit. What to do: make them numbers of days, "
                f"frame['{own}'] / pandas.Timedelta(days=1), or of what suits them."
            )
    for name in sorted(asked.content.numbers):
        if any(isinstance(value, (str, bytes)) for value in pd.unique(frame[name])):
            raise DataError(
                f"the formula of {parameter}, '~ {right}', reckons with '{odd.get(name, name)}', which holds texts"
            )


def _require_finite(parameter: str, matrix: np.ndarray, labels: Sequence[str]) -> None:
    bad = ~np.isfinite(matrix)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"row {row + 1}: the term '{labels[column]}' of {parameter} is {matrix[row, column]} (a logarithm of zero "
            "or less?). Correct the row or the formula."
        )


def _require_finite_offset(parameter: str, offset: np.ndarray | None) -> None:
    if offset is not None and not np.isfinite(offset).all():
        row = int(np.argmin(np.isfinite(offset)))
        raise DataError(
            f"row {row + 1}: the offset of {parameter} is {offset[row]} (a logarithm of zero or less?). Correct the "
            "row or leave it out."
        )


def require_full_rank(
    parameter: str, matrix: Float[np.ndarray, "u k"], labels: Sequence[str], weights: Float[np.ndarray, " u"]
) -> None:
    """Refuse terms that nothing was observed of, or that others determine; name them and the remedy."""
    if not matrix.shape[1]:
        raise DataError(f"the formula of {parameter} has no terms; write '~ 1' for a constant")
    used = matrix[weights > 0]
    empty = [label for label, column in zip(labels, used.T, strict=True) if not column.any()]
    if empty:
        raise DataError(
            f"no row has {_listed(empty)}, so the data say nothing of its effect on {parameter}. What to do: remove "
            "the empty level (frame['x'].cat.remove_unused_categories()) or the term."
        )
    scale = np.abs(used).max(axis=0)
    _, triangle = np.linalg.qr(used / scale)
    weak = np.abs(np.diag(triangle)) < 1e-9 * np.sqrt(len(used))
    if weak.any() or len(used) < used.shape[1]:
        column = int(np.argmax(weak))
        others = [label for i, label in enumerate(labels[:column]) if _takes_part(used / scale, i, column)]
        raise DataError(
            f"'{labels[column]}' of {parameter} is determined by {_listed(others) or 'the other terms'} (collinear): "
            "their effects cannot be told apart. What to do: leave one of them out of the formula."
        )


def _takes_part(matrix: np.ndarray, i: int, column: int) -> bool:
    coefficients = np.linalg.lstsq(matrix[:, :column], matrix[:, column], rcond=None)[0]
    return bool(abs(coefficients[i]) > 1e-6)


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(f"'{label}'" for label in labels[:5])
