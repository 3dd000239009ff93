"""The document of a fit as plain text, for a console: the answer, the table, how sure and why, how it was found."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd

from .document import Document

LINES = 60  # of a table, about what a screen shows; the whole is in the summary


def rendered(document: Document) -> str:
    """What `print(fit)` and the command line show."""
    parts = [
        f"{document.title}: {document.size}{_kinds(document)}",
        _wrapped(document.answer),
        _table(document),
        _ratios(document),
        _meanings(document.meanings),
        "\n".join(map(_wrapped, [*document.costs, *(f"warning: {text}" for text in document.warnings)])),
        "\n".join(_wrapped(line, 2) for line in document.found),
    ]
    return "\n\n".join(part for part in parts if part)


def _kinds(document: Document) -> str:
    """What columns were taken for, which is worth a look where it was guessed; how a series is ordered."""
    guessed = "guessed" in document.kinds
    others = "; override with --kinds NAME=KIND,... or options={'kinds': {NAME: KIND}}" if guessed else ""
    return f"\n{_wrapped(document.kinds + others, 2)}" if document.kinds else ""


def _table(document: Document) -> str:
    """The summary as text, in words, without what only diagnostics need."""
    whole = document.estimates
    low, high = (column for column in whole.columns if column.endswith(("_lb", "_ub")))
    level = f"{100 * document.interval:g} %"
    shown = whole[["mean", "sd"]].assign(**{f"{level} from": whole[low], "to": whole[high]})
    if shown["mean"].isna().any():
        shown.insert(2, "median", whole["median"])
    shown["effective draws"] = whole[["ess_bulk", "ess_tail"]].min(axis=1).round().astype("Int64")
    shown["R-hat"] = whole["r_hat"]
    warned = "" if document.converged else "(of chains that did not converge: these numbers are no estimates)\n"
    more = len(shown) - LINES
    return warned + _text(shown, na_rep="-") + (f"\n({more} more rows are in the summary)" if more > 0 else "")


def _ratios(document: Document) -> str:
    """The exponentials of coefficients, where these multiply something."""
    found = document.ratios
    if found is None:
        return ""
    shown = found.set_index("term").rename_axis(None)
    low, high = (str(c) for c in shown.columns if str(c).endswith(("_lb", "_ub")))
    shown = shown.rename(columns={low: f"{100 * document.interval:g} % from", high: "to"})
    return f"{document.ratio}, the exponential of a coefficient\n{_text(shown)}"


def _text(table: pd.DataFrame, na_rep: str = "NaN") -> str:
    return table.iloc[:LINES].to_string(float_format=_number, na_rep=na_rep)


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}" if abs(value) < 1e6 else f"{value:.4g}"


def _meanings(known: dict[str, str]) -> str:
    """What the parameters are, a line for each."""
    wide = max(map(len, known), default=0)
    return "\n".join(_wrapped(f"{name:<{wide}}  {text}", wide + 2) for name, text in known.items())


def _wrapped(text: str, indent: int = 0) -> str:
    """Prose in lines of a readable length; words are never broken."""
    return textwrap.fill(
        text, 100, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
