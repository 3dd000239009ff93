"""Formulas: what the parameters of a row depend on, as matrices of numbers with names (by formulaic).

A formula such as ``visits ~ age + C(clinic) + offset(log(days))`` names the response, if it has one, and the terms of a
linear predictor. Factors, interactions, splines and functions are formulaic's; ``offset(...)`` is a term whose
coefficient is 1; ``lag(...)`` and ``season(...)`` are explained in `data.series`.
"""

from __future__ import annotations

import copy
import keyword
import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from .._util.resources import require_matrix
from ..errors import DataError, SettingError, require_known
from .grammar import (
    NAMESPACES,
    RESERVED,
    WORDS,
    Content,
    calls_of,
    context,
    is_called,
    name_in,
    read,
    split,
    tokens_of,
    written,
)
from .read.columns import are_durations, are_nested
from .read.reading import require_names, usual
from .series import lag_calls

if TYPE_CHECKING:
    from formulaic import ModelSpec

OWN_SCALE = ("bs(", "cr(", "cc(", "cs(", "poly(", "center(", "scale(", "standardize(", "lag(")  # depend on all rows
MIN_ROWS_TO_COUNT = 200_000  # from which a formula sees equal rows once; fewer it evaluates in a tenth of a second
INTERCEPT = "Intercept"
NUMBER_OF_IT = "make a number of it, such as the days since the first"
FAR_FROM_ZERO = 1e4  # standard deviations, from which sums of squares about zero have lost half of their digits
_NAUGHT = "_naught"  # a column of zeros: with it added an offset is arithmetic, and one value for each row


def _is_plain(name: str) -> bool:
    """Whether a column's name can stand in a formula as it is, and is not to be taken for anything else."""
    word = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name
    return word and name not in (*RESERVED, INTERCEPT) and not name.startswith("_")


def _alias(name: str) -> str:
    """A column's name in letters that a formula can hold, another one for every name; a plain name as it is.

    No plain name begins with a line, and all that is no letter or digit of ASCII stands between two, so that no alias
    is the name of a column, nor that of another.
    """
    if _is_plain(name):
        return name
    return "_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)


def plainly(right: str, frame: pd.DataFrame) -> tuple[str, pd.DataFrame, dict[str, str]]:
    """A right side and a frame whose names are words, as formulaic needs them, and what the words stand for.

    R's names such as ``body.mass`` may stand in a formula as they are, or between backticks; a lag is the column that
    `series` makes of it.
    """
    names = list(map(str, frame.columns))
    odd = {name: _alias(name) for name in names if not _is_plain(name)}
    tokens, parts, done = tokens_of(right), [], 0
    lags = {begin: (end, lag.name) for begin, end, lag in lag_calls(right, tokens)}
    i = 0
    while i < len(tokens):
        own, (end, name) = tokens[i], lags.get(i, (i + 1, tokens[i].value))
        bare = own.kind == "name" and name in odd and not is_called(tokens, i) and not _is_word(name)
        if i in lags or own.kind == "quoted" or bare:
            odd |= {} if _is_plain(name) else {name: _alias(name)}
            parts += [right[done : own.begin], _alias(name)]
            done = tokens[end - 1].end
        i = end
    frame = frame.set_axis([odd.get(name, name) for name in names], axis=1)
    return "".join([*parts, right[done:]]), frame, {alias: name for name, alias in odd.items()}


def _is_word(name: str) -> bool:
    """Whether a bare name means something in formulas that is no column."""
    space, _, function = name.partition(".")
    return name in WORDS or function in NAMESPACES.get(space, ())


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
        if "" in offsets:
            raise SettingError(f"offset() is empty in '~ {right}'; it holds what is added, such as offset(log(days))")
        offsets = tuple(f"0 + I(({part}) + {_NAUGHT})" for part in offsets)
        try:
            parts = [read(terms, right), *(read(part, right) for part in offsets)]
        except SettingError as problem:
            said = str(problem).replace(f" + {_NAUGHT}", "")
            raise SettingError(_in_names(said, odd)) from problem.__cause__
        names, numbers = (part.names for part in parts), (part.numbers for part in parts)
        own = {_NAUGHT}
        content = Content(frozenset().union(*names) - own, parts[0].alone, frozenset().union(*numbers) - own)
        used = {name: usual(frame[name]) for name in content.names if name in frame}
        return cls(terms, offsets, frame.assign(**used, **({_NAUGHT: 0.0} if offsets else {})), odd, content)


def parse(formula: str, name: str = "formula") -> tuple[tuple[str, ...], str]:
    """The response's columns (none where there is no left side), and the right side."""
    sides = split("~", tokens_of(formula), formula) if isinstance(formula, str) else []
    if len(sides) < 2:
        what = "" if name == "formula" else f"'{name}' is no setting of fit; if it is a parameter, its formula "
        what = what or f"formula is {formula!r}; it "
        raise SettingError(f"{what}must look like 'y ~ x1 + x2', or '~ x1' without a response")
    if len(sides) > 2:
        raise SettingError(f"{name} is {formula!r}; it has more than one '~'")
    (_, left), (_, right) = sides
    return tuple(name_in(*part) for part in split("+", tokens_of(left), left) if part[1]), right or "1"


def split_offsets(right: str) -> tuple[str, tuple[str, ...]]:
    """A right side without its ``offset(...)`` terms, and what these hold."""
    tokens = tokens_of(right)
    calls = calls_of("offset", tokens, right)
    if not calls:
        return right, ()
    offsets, kept, done = [], [], 0
    for call in calls:
        offsets.append(right[tokens[call.begin + 1].end : tokens[call.end - 1].begin].strip())
        before, after = (tokens[call.begin - 1] if call.begin else None), [*tokens, None][call.end]
        added = (before is None or before.value == "+") and (after is None or after.value in ("+", "-"))
        if call.depth or not added:
            raise SettingError(
                f"an offset is a term of its own that is added, and in '~ {right}' it is not. What to do: write '... + "
                f"offset({offsets[-1]})', with the sign inside its brackets."
            )
        kept.append(right[done : (tokens[call.begin] if before is None else before).begin].strip())
        done = tokens[call.end - 1].end
    left = " ".join([*kept, right[done:].strip()]).strip()
    return left.removeprefix("+").strip() or "1", tuple(offsets)


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
    shift, scale : tuple of float
        What is taken off each column of the matrix, and what it is divided by, where one is so far from zero or of such
        a size that digits would be lost; nothing for ordinary numbers.
    levels : mapping
        The levels of factors that are columns of the data, as the fit has seen them.
    numbers : set of str
        The columns (as words of ``spec``) that were numbers.
    """

    parameter: str
    right: str
    labels: tuple[str, ...]
    spec: ModelSpec
    offsets: tuple[ModelSpec, ...]
    names: Mapping[str, str]
    shift: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    levels: Mapping[str, list[Any]] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, parameter: str, right: str, frame: pd.DataFrame, coded: bool = False, counts: np.ndarray | None = None
    ) -> tuple[Design, np.ndarray, np.ndarray | None]:
        """A design on data, its matrix, and the sum of its offsets (None without any).

        With ``coded`` columns far from zero, or of an unusual size, are centred and scaled; else they are refused.
        With ``counts``, how many rows stand behind each line, a factor with a level for each row is refused.
        """
        import formulaic  # not before a formula is given: it takes a while

        asked = _Right.of(right, frame)
        _require_columns(parameter, right, asked)
        names = asked.odd
        if counts is not None:
            _require_repeated(parameter, right, asked, counts)
        _require_room(parameter, asked.terms, asked.frame, names)

        def matrix_of(text: str) -> Any:
            return formulaic.model_matrix(text, asked.frame, context=context(), output="pandas", na_action="raise")

        levels = (
            f"the levels listed in the formula of {parameter}, '~ {right}', leave out {{levels}}. What to do: list "
            "what is left out, or leave such rows out of the data."
        )
        with _in_our_words(f"the formula of {parameter}, '~ {right}', cannot be computed on these data", levels, names):
            found, apart = matrix_of(asked.terms), [matrix_of(part) for part in asked.offsets]
        labels = _labels([str(column) for column in found.columns], names)
        matrix, offset = _finite(parameter, labels, found, apart)
        shift, scale = _coding(matrix, labels)
        if scale and not coded:
            column = int(np.argmax((np.array(shift) != 0.0) | (np.array(scale) != 1.0)))
            raise DataError(
                f"'{labels[column]}' of {parameter} is about {shift[column]:.3g} ± {scale[column]:.3g}: hardly any "
                "digits are left where it is multiplied. What to do: subtract its mean, and divide it by its standard "
                "deviation, before the fit."
            )
        specs = tuple(part.model_spec for part in apart)
        numbers = frozenset(name for name in asked.content.names if pd.api.types.is_numeric_dtype(asked.frame[name]))
        seen = _levels(found.model_spec)
        made = cls(parameter, right, labels, found.model_spec, specs, names, shift, scale, seen, numbers)
        if not labels:
            raise DataError(f"the formula of {parameter} has no terms; write '~ 1' for a constant")
        made._require_used_levels(asked.frame)
        return made, made.code(matrix), offset

    @property
    def intercept(self) -> int | None:
        """The place of the constant among the terms; None without one."""
        return self.labels.index(INTERCEPT) if INTERCEPT in self.labels else None

    @property
    def slopes(self) -> tuple[str, ...]:
        """The terms but the intercept."""
        return tuple(label for label in self.labels if label != INTERCEPT)

    def code(self, matrix: np.ndarray) -> np.ndarray:
        """The matrix with columns centred and scaled, where that is needed."""
        return (matrix - self.shift) / self.scale if self.scale else matrix

    def as_given(self, matrix: np.ndarray) -> np.ndarray:
        """Back from `code`."""
        return matrix * self.scale + self.shift if self.scale else matrix

    def to_data_scale(self, lines: np.ndarray) -> np.ndarray:
        """Coefficients (..., terms, entries) of the terms as they are, from those of the matrix."""
        return self._recoded(lines, np.reciprocal(self.scale), -1.0) if self.scale else lines

    def from_data_scale(self, lines: np.ndarray) -> np.ndarray:
        """Coefficients of the matrix from those of the terms as they are."""
        return self._recoded(lines, np.array(self.scale), 1.0) if self.scale else lines

    def _recoded(self, lines: np.ndarray, factor: np.ndarray, sign: float) -> np.ndarray:
        found = lines * factor[:, None]
        if self.intercept is not None:
            slopes = found if sign < 0 else lines  # those of the terms as they are
            found[..., self.intercept, :] += sign * np.einsum("k,...ke->...e", np.array(self.shift), slopes)
        return found

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
        frame = frame.assign(**{name: self._as_fitted(frame[name], name) for name in asked.content.names})
        formula = f"the formula of {self.parameter}, '~ {self.right}',"
        levels = (
            f"the new data have {{levels}} where {formula} has other levels. What to do: use levels that the fit has "
            "seen, or fit again with rows of that level."
        )
        with _in_our_words(f"{formula} cannot be computed there", levels, names):
            found, apart = _again(self.spec, frame), [_again(part, frame) for part in self.offsets]
        matrix, offset = _finite(self.parameter, self.labels, found, apart)
        return self.code(matrix), offset

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

    def _as_fitted(self, column: pd.Series, name: str) -> pd.Series:
        """A column of new data in the kind that the fit's was: a factor or a number, whatever holds its values."""
        if name in self.spec.encoder_state and name in self.levels:
            return column.astype(object)
        if name not in self.numbers or pd.api.types.is_numeric_dtype(column):
            return column
        found = column.astype(object).infer_objects()
        if not pd.api.types.is_numeric_dtype(found):
            own = self.names.get(name, name)
            raise DataError(
                f"'{own}' is {column.iloc[0]!r} in the new data, and was a number in the fit. What to do: make it a "
                f"number, for example by pandas.to_numeric(frame[{own!r}])."
            )
        return found

    def _require_used_levels(self, frame: pd.DataFrame) -> None:
        """Refuse a level that no row has: nothing is known of it, or of any other where it is the reference."""
        for name, levels in self.levels.items():
            if name not in frame:
                continue
            own, seen = self.names.get(name, name), list(frame[name].unique())
            unused = [level for level in levels if level not in seen]
            if unused:
                listed = not isinstance(frame[name].dtype, pd.CategoricalDtype)
                remedy = "leave it out of levels=[...]" if listed else (
                    f"remove the empty level (frame[{own!r}].cat.remove_unused_categories()) or the term"
                )  # fmt: skip
                raise DataError(
                    f"no row has '{own}={unused[0]}', so the data say nothing of its effect on {self.parameter}. What "
                    f"to do: {remedy}."
                )

    def term_of(self, place: int) -> str:
        """The term that a column of the matrix is of, as it is written in the formula."""
        term = next(term for term, places in self.spec.term_indices.items() if place in places)
        return _in_names(str(term), {alias: written(name) for alias, name in self.names.items()})

    def reference(self, label: str) -> str:
        """The level that a level of a factor, ``clinic=B``, is compared with; empty where it is not one."""
        name = label.partition("=")[0]
        levels = {self.names.get(alias, alias): own for alias, own in self.levels.items()}.get(name, [])
        left = [str(level) for level in levels if f"{name}={level}" not in self.labels]
        return left[0] if len(left) == 1 and ":" not in label else ""

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
                f"C({written(factor)}), and fit again, if its values are groups."
            )
        if mixed:
            raise SettingError(
                f"the effect of '{factor}' on {self.parameter} depends on other variables (the term '{mixed[0]}'), so "
                "that there is not one difference between its levels. What to do: fit again without that term."
            )
        lines = pd.DataFrame({alias: pd.Series(levels, dtype=object)})
        matrix = _again(self.spec.subset(own), lines).to_numpy(dtype=float)
        order = np.argsort(matrix.any(axis=1), kind="stable")
        places = [place for term in own for place in self.spec.term_indices[term]]
        return tuple(levels[i] for i in order), places, matrix[order]


def _coding(matrix: np.ndarray, labels: tuple[str, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What to take off every column and what to divide it by; nothing where no column needs it."""
    largest = np.maximum(np.abs(matrix).max(axis=0, initial=0.0), np.finfo(float).tiny)
    unit = matrix / largest  # whose squares are numbers
    mean, sd = unit.mean(axis=0) if len(unit) else 0.0 * largest, unit.std(axis=0) if len(unit) else 0.0 * largest
    free = sd > np.finfo(float).eps
    far = free & (np.abs(mean) > FAR_FROM_ZERO * sd) & (INTERCEPT in labels)
    size = np.where(far, sd, np.maximum(sd, np.abs(mean))) * largest
    # Within these sizes of a covariate slopes of a loss are neither tiny nor huge.
    unusual = free & ((size < 1e-6) | (size > 1e6))
    if not (far | unusual).any():
        return (), ()
    centred = (far | unusual) & (INTERCEPT in labels)
    shift = np.where(centred, mean * largest, 0.0)
    scale = np.where(centred, sd * largest, np.where(unusual, size, 1.0))
    return tuple(shift.tolist()), tuple(scale.tolist())


@contextmanager
def _in_our_words(what: str, levels: str, names: Mapping[str, str]) -> Iterator[None]:
    """What formulaic cannot compute as `DataError`: why ``what`` is so, or ``levels``, with those that are unknown.

    Formulaic only warns of levels that it does not know, and takes them for the reference level.
    """
    from formulaic.errors import DataMismatchWarning

    try:
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error", DataMismatchWarning)
            yield
    except DataMismatchWarning as problem:
        found = re.search(r"\{(.*?)\}", str(problem))
        unknown = "a level" if found is None else re.sub(r"np\.\w+\((.*?)\)", r"\1", found[1])
        raise DataError(levels.replace("{levels}", unknown)) from problem
    except Exception as problem:
        said = (str(problem).splitlines() or [""])[0]
        null = re.search(r"`([^`]*)` contains null values", said)
        if null is not None:
            said = f"'{null[1]}' is no number in some rows (of zero or a negative value, a logarithm or a root is none)"
        raise DataError(f"{what}: {_in_names(said, names)}") from problem


def _finite(
    parameter: str, labels: Sequence[str], found: pd.DataFrame, apart: Sequence[pd.DataFrame]
) -> tuple[np.ndarray, np.ndarray | None]:
    """A matrix and the sum of its offsets, all of which are numbers."""
    matrix = found.to_numpy(dtype=float)
    for row, column in np.argwhere(~np.isfinite(matrix))[:1]:
        raise DataError(
            f"row {row + 1}: the term '{labels[column]}' of {parameter} is {matrix[row, column]} (a logarithm of zero "
            "or less?). Correct the row or the formula."
        )
    if not apart:
        return matrix, None
    offset = np.sum([part.to_numpy(dtype=float).sum(axis=1) for part in apart], axis=0)
    for row in np.flatnonzero(~np.isfinite(offset))[:1]:
        raise DataError(
            f"row {row + 1}: the offset of {parameter} is {offset[row]} (a logarithm of zero or less?). Correct the "
            "row or leave it out."
        )
    return matrix, offset


def _again(spec: ModelSpec, frame: pd.DataFrame) -> pd.DataFrame:
    """The matrix of other data; formulaic writes what it meets into what it remembers, so that it gets a copy."""
    states = {name: copy.deepcopy(getattr(spec, name)) for name in ("transform_state", "encoder_state")}
    return replace(spec, **states).get_model_matrix(frame, context(), na_action="raise")


def _levels(spec: ModelSpec) -> dict[str, list[Any]]:
    """The levels of factors that are columns of the data."""
    found = {}
    for expression, state in spec.encoder_state.items():
        inside = re.fullmatch(r"C\(\s*`?([\w. ]+)`?\s*[,)].*", f"{expression}")
        name = inside.group(1) if inside else str(expression)
        kept = state[1].get("categories") if isinstance(state, tuple) and isinstance(state[1], Mapping) else None
        if kept is not None:
            found[name] = list(kept)
    return found


def _in_names(text: str, names: Mapping[str, str]) -> str:
    """A text of formulaic's with the names of columns for the words that stand for them."""
    return re.sub(r"\w+", lambda word: names.get(word.group(), word.group()), text)


def _labels(columns: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Names of terms, no two the same: a column that is called like another term stands between backticks."""
    found = [readable(column, names) for column in columns]
    twice = {INTERCEPT, *(label for label in found if found.count(label) > 1)}
    return tuple(
        f"`{label}`" if label in twice and column in names else label
        for column, label in zip(columns, found, strict=True)
    )


def readable(label: str, names: Mapping[str, str]) -> str:
    """The name of a term as people would write it: ``clinic=B`` for formulaic's ``C(clinic)[T.B]``."""
    label = re.sub(r"C\(\s*`?([^,()`]+?)`?\s*(,[^()]*(\([^()]*\))?[^()]*)?\)(?=\[)", r"\1", label)
    label = re.sub(r"(?<=\w)\[(T\.)?([^\]]*)\]", r"=\2", label)
    return _in_names(label, names)


def counted(frame: pd.DataFrame, rights: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray | None, np.ndarray | None]:
    """Distinct rows, how often each occurs, and which one each row is, where rows are very many.

    As they are where there is nothing to gain, or where formulas do not treat each alone.
    """
    if len(frame) < MIN_ROWS_TO_COUNT or any(word in right for right in rights for word in OWN_SCALE):
        return frame, None, None
    if any(frame[name].nunique() > MIN_ROWS_TO_COUNT // 100 for name in frame.columns):  # nothing to gain
        return frame, None, None
    groups = frame.groupby(list(frame.columns), sort=True, dropna=False, observed=True)
    found = groups.size()
    return found.index.to_frame(index=False), found.to_numpy(dtype=float), groups.ngroup().to_numpy()


def _require_repeated(parameter: str, right: str, asked: _Right, counts: np.ndarray) -> None:
    """Refuse a factor with a level for each row: it reproduces every row, and nothing tells how rows vary."""
    import formulaic

    frame, rows = asked.frame[counts > 0], int(counts.sum())
    if rows < 2:
        return
    for term in formulaic.Formula(asked.terms):
        for own in (_factor(frame, factor) for factor in term.factors):
            if own is not None and frame[own].nunique() == rows:
                name, kind = asked.odd.get(own, own), frame[own].dtype
                number = f"{NUMBER_OF_IT}; " if pd.api.types.is_datetime64_any_dtype(kind) else ""
                raise DataError(
                    f"'{name}' has a level of its own for each of {rows} rows, and the formula of {parameter}, "
                    f"'~ {right}', takes it for a factor: it would reproduce every row, and nothing would tell how "
                    f"rows vary. What to do: leave it out of the formula; {number}or join its levels to groups of "
                    "several rows."
                )


def _factor(frame: pd.DataFrame, factor: Any) -> str | None:
    """The column whose levels a factor of a term is, as it stands or in ``C(...)``; None for numbers and functions."""
    own = re.sub(r"^C\(\s*(\w+)\s*(,.*)?\)$", r"\1", factor.expr)
    is_factor = own in frame and (own != factor.expr or not pd.api.types.is_numeric_dtype(frame[own]))
    return own if is_factor else None


def _require_room(parameter: str, terms: str, frame: pd.DataFrame, names: Mapping[str, str]) -> None:
    """Refuse factors with so many levels that their columns would not fit into memory."""
    import formulaic

    if not len(frame):
        return
    levels: dict[str, int] = {}
    columns, widest = 0, ("", 0)
    for term in formulaic.Formula(terms):  # read once already, in `_Right.of`
        width = 1
        for factor in term.factors:
            own = _factor(frame, factor)
            if own is not None:
                levels[own] = levels.get(own) or frame[own].nunique()
                width *= max(levels[own] - 1, 1)
                widest = max(widest, (names.get(own, own), levels[own]), key=lambda one: one[1])
        columns += width
    require_matrix(
        len(frame), columns, f"the formula of {parameter} is too large ('{widest[0]}' has {widest[1]} levels)"
    )


def variables(right: str, frame: pd.DataFrame) -> tuple[str, ...]:
    """The columns of a frame that a right side names."""
    asked = _Right.of(right, frame.iloc[:0])
    used = {asked.odd.get(name, name) for name in asked.content.names}
    for name in sorted(used):
        require_known(name, frame.columns, f"the formula names '{name}', which is not a column")
    return tuple(name for name in map(str, frame.columns) if name in used)


def spelled(formula: Any, frame: pd.DataFrame) -> Any:
    """A formula with the names of columns as these have them: an accent may be part of its letter, or follow it."""
    names = {unicodedata.normalize("NFC", name): name for name in reversed(list(map(str, frame.columns)))}
    for token in reversed(tokens_of(formula) if isinstance(formula, str) else []):
        name = names.get(unicodedata.normalize("NFC", token.value), token.value)
        if token.is_name and name != token.value and token.value not in frame:
            formula = f"{formula[: token.begin]}{written(name)}{formula[token.end :]}"
    return formula


def alone(right: str, frame: pd.DataFrame) -> tuple[str, ...]:
    """The columns that a right side has as they are, and never inside a function such as ``C(...)`` or ``log(...)``."""
    asked = _Right.of(right, frame.iloc[:0])
    bare = {asked.odd.get(name, name) for name in asked.content.alone}
    return tuple(name for name in map(str, frame.columns) if name in bare)


def as_factor(right: str, name: str) -> str:
    """A right side with ``C(name)`` in place of a column that stands there as it is, and never inside a function."""
    for token in reversed(tokens_of(right)):
        if token.is_name and token.value == name:
            right = f"{right[: token.begin]}C({written(name)}){right[token.end :]}"
    return right


def _require_columns(
    parameter: str, right: str, asked: _Right,
    remedy: str = "Pass missing='drop' (on the command line: --missing drop) to leave them out.",
) -> None:  # fmt: skip
    """Refuse a formula that names no column, one in which values are missing, or that reckons with texts."""
    frame, odd = asked.frame, asked.odd
    needed = asked.content.names
    known = [odd.get(c, c) for c in map(str, frame.columns)]
    for name in sorted(odd.get(name, name) for name in needed):
        require_known(name, known, f"the formula of {parameter} names '{name}', which is not a column")
    for name in sorted(needed):
        if name not in frame:  # a column of that name is there, under another word
            raise SettingError(
                f"'{name}' in the formula of {parameter} is no name as it stands. What to do: write `{name}`, between "
                "backticks."
            )
        lost = int(frame[name].isna().sum())
        if lost:
            row = int(np.argmax(frame[name].isna().to_numpy())) + 1
            raise DataError(
                f"{lost} of {len(frame)} rows have no '{odd.get(name, name)}' (first: row {row}), which the formula of "
                f"{parameter} needs. {remedy}"
            )
        texts = [value for value in _distinct_values(frame[name]) if isinstance(value, (str, bytes))]
        require_names(texts, f"level of '{odd.get(name, name)}'")
        objects = pd.unique(frame[name]) if frame[name].dtype == object else ()
        if pd.api.types.is_complex_dtype(frame[name]) or any(isinstance(own, complex) for own in objects):
            raise DataError(
                f"'{odd.get(name, name)}' holds complex numbers. What to do: make columns of what is meant, for "
                "example of their real and imaginary parts, or their absolute values."
            )
        if are_nested(frame[name]):
            raise DataError(f"'{odd.get(name, name)}' holds several values in each row, so it is no covariate")
        if name in asked.content.alone | asked.content.numbers and are_durations(frame[name]):
            own = odd.get(name, name)
            raise DataError(
                f"'{own}' holds durations, which are numbers only in a unit. What to do: make them numbers of days, "
                f"frame['{own}'] / pandas.Timedelta(days=1), or of what suits them."
            )
    for name in sorted(asked.content.alone):
        kind, own = frame[name].dtype, odd.get(name, name)
        groups = pd.api.types.is_object_dtype(kind) or isinstance(kind, (pd.CategoricalDtype, pd.StringDtype))
        if not (groups or pd.api.types.is_numeric_dtype(kind)):
            write_it = (
                "" if frame[name].is_unique else f"write C({written(own)}) in the formula if its values are groups; or "
            )
            raise DataError(
                f"'{own}' holds {kind}, and a term is of numbers or of groups. What to do: {write_it}{NUMBER_OF_IT}."
            )
    for name in sorted(asked.content.numbers):
        kind = frame[name].dtype
        if isinstance(kind, pd.CategoricalDtype) and pd.api.types.is_numeric_dtype(kind.categories.dtype):
            raise DataError(
                f"the formula of {parameter}, '~ {right}', reckons with '{odd.get(name, name)}', which holds "
                "categories. What to do: make numbers of them, frame["
                f"{odd.get(name, name)!r}].astype(float)."
            )
        if any(isinstance(value, (str, bytes)) for value in _distinct_values(frame[name])):
            raise DataError(
                f"the formula of {parameter}, '~ {right}', reckons with '{odd.get(name, name)}', which holds texts"
            )


def _distinct_values(column: pd.Series) -> Sequence[Any]:
    """The distinct values of a column that may hold others than numbers."""
    return [] if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufcmM" else list(column.unique())


def require_full_rank(
    parameter: str, matrix: Float[np.ndarray, "u k"], labels: Sequence[str], weights: Float[np.ndarray, " u"]
) -> None:
    """Refuse terms that nothing was observed of, or that others determine; name them and the remedy."""
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
        remedy = "leave one of them out of the formula"
        term = labels[column].rpartition("[")[0]
        if term.endswith(")") and {label.rpartition("[")[0] for label in others if label != INTERCEPT} == {term}:
            remedy = f"write {term[:-1]}, constraints='center'), which leaves the constant to the intercept"
        raise DataError(
            f"'{labels[column]}' of {parameter} is determined by {_listed(others) or 'the other terms'} (collinear): "
            f"their effects cannot be told apart. What to do: {remedy}."
        )


def _takes_part(matrix: np.ndarray, i: int, column: int) -> bool:
    coefficients = np.linalg.lstsq(matrix[:, :column], matrix[:, column], rcond=None)[0]
    return bool(abs(coefficients[i]) > 1e-6)


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(f"'{label}'" for label in labels[:5])
