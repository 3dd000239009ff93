"""A data set as its distinct rows with weights; reading and validation happen here, once.

Whatever a user has (an array, a frame, a frequency table, a file) becomes a `Dataset`. Everything
after that works on distinct rows, so the number of observations no longer matters, and a bootstrap
replicate is a new vector of weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from .domain import Domain
from .errors import DataError, SettingError


@dataclass(frozen=True)
class Dataset:
    """Distinct rows, how often each occurs, and what the columns are called.

    Attributes
    ----------
    rows : (u, d) integers
        The distinct rows, sorted. Labelled categories are stored as 0, 1, ...
    counts : (u,) floats
        Weight of each distinct row: how many observations equal it.
    columns : tuple of str
        The user's names of the coordinates.
    dropped : int
        How many rows were left out because a value was missing.
    source : str
        Where the data came from, for messages and reports.
    repeats : (u,) floats, optional
        Only with observation weights: how many observations have this row and weight, which is ``counts / repeats``.
        Otherwise the counts are frequencies, and every observation weighs 1.

    Examples
    --------
    >>> import dfdbayes as dfd
    >>> data = dfd.Dataset.of({0: 514, 1: 503, 2: 457})
    >>> data.n, len(data.rows)
    (1474, 3)
    """

    rows: Int[np.ndarray, "u d"]
    counts: Float[np.ndarray, " u"]
    columns: tuple[str, ...]
    first: Int[np.ndarray, " u"]
    dropped: int = 0
    source: str = "data"
    repeats: Float[np.ndarray, " u"] | None = None

    @classmethod
    def of(
        cls,
        source: Any,
        domain: Domain | None = None,
        *,
        columns: Sequence[str] | None = None,
        weights: Any = None,
        missing: str = "refuse",
    ) -> Dataset:
        """Make a data set from what a user has.

        Parameters
        ----------
        source
            A NumPy array (1-d, or rows by columns), a pandas or polars frame or series, a mapping
            ``{value: count}``, the path of a CSV or Parquet file, or a `Dataset`.
        domain : Domain, optional
            If given, the data are checked against it and labelled categories are read by label.
        columns : sequence of str, optional
            Which columns to use, in this order. All by default.
        weights : str or array, optional
            The column that holds the weights, or the weights themselves. Whole numbers are frequencies: how often a
            row occurs. If any is fractional they are observation weights: each row is one observation that counts so
            much, as in a survey, and a bootstrap draws rows with their weights.
        missing : {"refuse", "drop"}
            What to do with rows that have a missing value.
        """
        if isinstance(source, Dataset):
            data = source
            if columns is not None:
                data = data._select(columns)
            if weights is not None:
                raise SettingError("weights are already part of a Dataset; give them where it is made")
        else:
            data = _from_table(source, domain, columns, weights, missing)
        if domain is not None:
            data.check(domain)
        return data

    @property
    def n(self) -> int:
        """The number of observations."""
        return round(float(self.observations.sum()))

    @property
    def observations(self) -> Float[np.ndarray, " u"]:
        """How many observations stand behind each row."""
        return self.counts if self.repeats is None else self.repeats

    @property
    def d(self) -> int:
        return self.rows.shape[1]

    def check(self, domain: Domain) -> None:
        """Raise `DataError`, naming row, column and remedy, unless every row lies in ``domain``."""
        if self.d != domain.d:
            raise DataError(_wrong_width(self.columns, domain.d))
        outside = ~domain.contains(self.rows)
        if not outside.any():
            return
        bad = np.flatnonzero(outside.any(axis=1))
        worst = bad[np.argmin(self.first[bad])]
        j = int(np.argmax(outside[worst]))
        coordinate = domain.coordinate(j)
        affected = int(self.counts[bad].sum())
        raise DataError(
            f"row {self.first[worst] + 1}, column '{self.columns[j]}' is {self.rows[worst, j]}; "
            f"{coordinate.label} needs {coordinate.needs} ({affected} of {self.n} rows are affected). "
            "Correct or remove those rows, or choose a model whose domain holds them."
        )

    def reweighted(self, counts: np.ndarray) -> Dataset:
        """The same distinct rows under other frequencies; rows of frequency 0 are left out."""
        counts = np.asarray(counts, float)
        kept = counts > 0
        return replace(self, rows=self.rows[kept], counts=counts[kept], first=self.first[kept], repeats=None)

    def _select(self, columns: Sequence[str]) -> Dataset:
        order = [_position(self.columns, name) for name in columns]
        each = None if self.repeats is None else self.counts / self.repeats
        index, inverse = _distinct(self.rows[:, order], each)
        counts = np.bincount(inverse, weights=self.counts)
        repeats = None if self.repeats is None else np.bincount(inverse, weights=self.repeats)
        rows, first = self.rows[index][:, order], self.first[index]
        return Dataset(rows, counts, tuple(columns), first, self.dropped, self.source, repeats)


def _distinct(rows: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct row (with its observation weight, if there are any) first stands, and which one each is."""
    keys = rows
    if weights is not None:
        keys = np.column_stack([rows, np.unique(weights, return_inverse=True)[1]])
    if keys.shape[1] == 1:
        _, index, inverse = np.unique(keys[:, 0], return_index=True, return_inverse=True)
    else:
        _, index, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return index, inverse.reshape(-1)


def _from_table(
    source: Any, domain: Domain | None, columns: Sequence[str] | None, weights: Any, missing: str
) -> Dataset:
    if missing not in ("refuse", "drop"):
        raise SettingError(f"missing must be 'refuse' or 'drop', not {missing!r}")
    table, name, frequencies = _as_columns(source)
    if weights is None:
        weights = frequencies
    if isinstance(weights, str):
        weight_name = _match(weights, table)
        weights = table.pop(weight_name)
    elif weights is not None:
        weight_name, weights = "weights", np.asarray(weights)
    if columns is not None:
        table = {_match(str(c), table): table[_match(str(c), table)] for c in columns}
    total = len(next(iter(table.values()))) if table else 0
    if total == 0:
        raise DataError(f"{name} holds no rows: give at least two observations")
    if domain is not None and len(table) != domain.d:
        raise DataError(_wrong_width(tuple(table), domain.d))

    absent = np.stack([np.asarray(pd.isna(column)) for column in table.values()], axis=1)
    kept = ~absent.any(axis=1)
    dropped = int(total - kept.sum())
    if dropped and missing == "refuse":
        i, j = np.argwhere(absent)[0]
        raise DataError(
            f"{dropped} of {total} rows have missing values (first: row {i + 1}, column "
            f"'{list(table)[j]}'). Pass missing='drop' (on the command line: --missing drop) to leave them out."
        )
    if not kept.any():
        raise DataError(f"every one of the {total} rows of {name} has a missing value: nothing is left to fit")

    where = np.flatnonzero(kept)
    codes = [
        _as_integers(column[where], label, where, domain.coordinate(j) if domain is not None else None)
        for j, (label, column) in enumerate(table.items())
    ]
    rows = np.stack(codes, axis=1)
    if weights is not None:
        frequency = _as_weights(weights, weight_name, total)[where]
        used = frequency > 0
        if not used.any():
            raise DataError(f"all weights in '{weight_name}' are zero: there are no observations")
        rows, where, weights = rows[used], where[used], frequency[used]
    each = None if weights is None or (weights == np.round(weights)).all() else weights
    index, inverse = _distinct(rows, each)
    counts = np.bincount(inverse, weights=weights).astype(float)
    repeats = None if each is None else np.bincount(inverse).astype(float)
    return Dataset(rows[index], counts, tuple(table), where[index], dropped, name, repeats)


def _as_columns(source: Any) -> tuple[dict[str, np.ndarray], str, np.ndarray | None]:
    """Columns by name, a name for the source, and frequencies if the source holds its own."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        return _named(_read(path)), path.name, None
    if isinstance(source, Mapping):
        values = np.asarray(list(source))
        return {"value": values}, "frequency table", np.asarray(list(source.values()))
    if isinstance(source, pd.DataFrame):
        return _named(source), "data frame", None
    if isinstance(source, pd.Series):
        return {str(source.name or "x"): source.to_numpy()}, "series", None
    if type(source).__module__.startswith("polars"):
        if hasattr(source, "columns"):
            return {str(c): source[c].to_numpy() for c in source.columns}, "data frame", None
        return {source.name or "x": source.to_numpy()}, "series", None
    array = np.asarray(source)
    if array.ndim == 0 or array.ndim > 2:
        raise DataError(f"data must be a vector or rows by columns, not an array of shape {array.shape}")
    if array.ndim == 1:
        return {"x": array}, "array", None
    return {f"x{j + 1}": array[:, j] for j in range(array.shape[1])}, "array", None


def _named(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    names = [str(c) for c in frame.columns]
    twice = sorted({c for c in names if names.count(c) > 1})
    if twice:
        raise DataError(f"two columns are called '{twice[0]}': rename one")
    return {name: frame.iloc[:, j].to_numpy() for j, name in enumerate(names)}


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise DataError(f"there is no file '{path}'")
    suffix = path.suffix.lower()
    try:
        if suffix in (".parquet", ".pq"):
            return pd.read_parquet(path)
        if suffix in (".csv", ".tsv", ".txt"):
            return _read_text(path, "\t" if suffix == ".tsv" else ",")
    except (pd.errors.ParserError, UnicodeDecodeError, ValueError, OSError) as problem:
        raise DataError(f"{path.name} cannot be read: {str(problem).splitlines()[0]}") from problem
    raise DataError(f"'{path.name}': files must end in .csv, .tsv, .txt or .parquet")


def _read_text(path: Path, separator: str) -> pd.DataFrame:
    with path.open(encoding="utf-8-sig") as lines:
        heading = lines.readline().strip()
    if not heading:
        raise DataError(f"{path.name} is empty: it needs a line of column names and at least two rows")
    cells = [cell.strip().strip('"') for cell in heading.split(separator)]
    unnamed = all(_is_number(cell) for cell in cells)  # a file without names: its first line is data
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a line longer than the first would lose cells
        try:
            frame = pd.read_csv(
                path, sep=separator, header=None if unnamed else 0, skipinitialspace=True, index_col=False
            )
        except pd.errors.ParserWarning as problem:
            raise DataError(f"{path.name}: a line has more cells than the first line has columns") from problem
    if unnamed:
        frame.columns = pd.Index([f"x{j + 1}" if len(cells) > 1 else "x" for j in range(len(cells))])
    return frame


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_integers(column: np.ndarray, name: str, where: np.ndarray, coordinate: Any) -> np.ndarray:
    """Codes of one column without missing values; every refusal says row, column and remedy."""
    labels = coordinate.labels if coordinate is not None else ()
    if labels:
        codes = pd.Index(labels).get_indexer(pd.Index(column.astype(str)))
        if (codes < 0).any():
            i = int(np.argmax(codes < 0))
            raise DataError(
                f"row {where[i] + 1}, column '{name}' is '{column[i]}'; Categories needs {coordinate.needs}. "
                "Correct the value or add it to the model's labels."
            )
        return codes.astype(np.int64)
    if column.dtype == bool or np.issubdtype(column.dtype, np.integer):
        return column.astype(np.int64)
    numbers = pd.to_numeric(pd.Series(column), errors="coerce").to_numpy(dtype=float)
    if np.isnan(numbers).any():
        i = int(np.argmax(np.isnan(numbers)))
        raise DataError(
            f"row {where[i] + 1}, column '{name}' is the text '{column[i]}'; the model needs whole numbers. "
            "Leave the column out (columns=..., on the command line --columns), or recode it."
        )
    fractional = (numbers != np.round(numbers)) | (np.abs(numbers) > 2**53)
    if fractional.any():
        i = int(np.argmax(fractional))
        raise DataError(
            f"row {where[i] + 1}, column '{name}' is {numbers[i]:g}; discrete data need whole numbers "
            f"({int(fractional.sum())} rows are affected). Round or recode the column, or leave it out."
        )
    return numbers.astype(np.int64)


def _as_weights(weights: np.ndarray, name: str, total: int) -> np.ndarray:
    if len(weights) != total:
        raise DataError(f"there are {len(weights)} weights for {total} rows")
    numbers = pd.to_numeric(pd.Series(np.asarray(weights)), errors="coerce").to_numpy(dtype=float)
    wrong = ~np.isfinite(numbers) | (numbers < 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise DataError(f"row {i + 1}, column '{name}' is {weights[i]}; a weight must be a number >= 0")
    return numbers


def _match(name: str, table: Mapping[str, Any]) -> str:
    if name not in table:
        raise DataError(f"there is no column '{name}'; the columns are {', '.join(map(repr, table))}")
    return name


def _position(columns: tuple[str, ...], name: str) -> int:
    return columns.index(_match(name, dict.fromkeys(columns)))


def _wrong_width(columns: tuple[str, ...], needed: int) -> str:
    shown = ", ".join(f"'{c}'" for c in columns[:8]) + (", ..." if len(columns) > 8 else "")
    text = (
        f"the model needs {needed} column{'s' if needed > 1 else ''}, the data have {len(columns)} ({shown}). "
        "Choose with columns=[...] (on the command line: --columns NAME,...)"
    )
    if len(columns) == needed + 1:
        text += f"; if '{columns[-1]}' holds frequencies, say weights='{columns[-1]}' (--weights {columns[-1]})"
    return text + "."
