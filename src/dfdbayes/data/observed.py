"""The rows that a regression was made of, kept with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .series import Series


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
    """

    frame: pd.DataFrame
    weights: str | np.ndarray | None = None
    series: Series | None = None

    @property
    def rows(self) -> pd.DataFrame:
        """The rows that formulas were evaluated on."""
        return self.frame if self.series is None else self.series.used(self.frame)

    def plain(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays by column number, and what they are in values JSON can hold."""
        arrays, about = {}, []
        for i, (name, column) in enumerate(self.frame.items()):
            kind: dict[str, Any] = {"name": str(name), "kind": "number"}
            if isinstance(column.dtype, pd.CategoricalDtype):
                levels = column.cat.categories
                kind |= {"kind": "category", "levels": levels.tolist(), "ordered": bool(column.cat.ordered)}
                values = column.cat.codes.to_numpy()
            elif pd.api.types.is_bool_dtype(column):
                kind["kind"], values = "bool", column.to_numpy(dtype=np.int8)
            elif pd.api.types.is_numeric_dtype(column):
                values = column.to_numpy()
            else:
                kind["kind"], values = "text", np.array([str(value) for value in column], dtype="U")
            arrays[f"column{i}"] = values
            about.append(kind)
        by_name = isinstance(self.weights, str)
        if self.weights is not None and not by_name:
            arrays["weights"] = np.asarray(self.weights, float)
        series = None if self.series is None else self.series.plain()
        return arrays, {"columns": about, "weights": self.weights if by_name else None, "series": series}

    @classmethod
    def of_plain(cls, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> Observed:
        """Back from `plain`."""
        columns: dict[str, Any] = {}
        for i, kind in enumerate(about["columns"]):
            values: Any = arrays[f"column{i}"]
            if kind["kind"] == "category":
                values = pd.Categorical.from_codes(values.astype(int), kind["levels"], ordered=kind["ordered"])
            elif kind["kind"] == "bool":
                values = values.astype(bool)
            elif kind["kind"] == "text":
                values = values.astype(object)
            columns[kind["name"]] = values
        weights = arrays["weights"] if "weights" in arrays else about["weights"]
        series = about.get("series")
        return cls(pd.DataFrame(columns), weights, None if series is None else Series.of_plain(series))
