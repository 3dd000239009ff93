"""A fit as plain text, for a console: the answer, the table, how sure and why, and how it was found."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from ..families.network.evidence import edges_first
from ..results.ratios import ratios

if TYPE_CHECKING:
    from ..results.fitted import Fitted

WIDE = 100  # characters of a line of prose
MOST = 60  # lines of the table; the whole is in the summary


def told(fit: Fitted, interval: float) -> str:
    """What `print(fit)` and the command line show; ``interval`` is the level of the table's intervals."""
    head = f"{fit.settings['model']} fitted to {fit.data.source}: {fit.size}"
    parts = [
        head + _kinds(fit),
        _wrapped(fit.answer),
        table(fit, interval),
        *_ratios(fit, interval),
        *_meanings(fit),
        *_sure(fit),
        "\n".join(_wrapped(line, 2) for line in lines_of(fit)),
    ]
    return "\n\n".join(part for part in parts if part)


def _kinds(fit: Fitted) -> str:
    """What columns were taken for, which is worth a look where it was guessed; how a series is ordered."""
    kinds = fit.settings.get("kinds") or fit.settings.get("series") or ""
    others = "; override with --kinds NAME=KIND,... or options={'kinds': {NAME: KIND}}" if "guessed" in kinds else ""
    return f"\n{_wrapped(kinds + others, 2)}" if kinds else ""


def table(fit: Fitted, interval: float) -> str:
    """The summary as text, in words, without what only diagnostics need."""
    whole = edges_first(fit, fit.summary(interval))
    low, high = (column for column in whole.columns if column.endswith(("_lb", "_ub")))
    level = f"{100 * interval:g} %"
    shown = whole[["mean", "sd"]].assign(**{f"{level} from": whole[low], "to": whole[high]})
    if shown["mean"].isna().any():
        shown.insert(2, "median", whole["median"])
    shown["effective draws"] = whole[["ess_bulk", "ess_tail"]].min(axis=1).round().astype("Int64")
    shown["R-hat"] = whole["r_hat"]
    warned = "" if fit.converged else "(of chains that did not converge: these numbers are no estimates)\n"
    text = warned + shown.iloc[:MOST].to_string(float_format=_number, na_rep="-")
    more = len(shown) - MOST
    return text + (f"\n({more} more rows are in the summary)" if more > 0 else "")


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}" if abs(value) < 1e6 else f"{value:.4g}"


def _ratios(fit: Fitted, interval: float) -> list[str]:
    """The exponentials of coefficients, where these multiply something."""
    found = ratios(fit, interval)
    if found is None:
        return []
    shown = found.iloc[:MOST].set_index("term").rename_axis(None)
    low, high = (str(c) for c in shown.columns if str(c).endswith(("_lb", "_ub")))
    shown = shown.rename(columns={low: f"{100 * interval:g} % from", high: "to"})
    assert fit.model is not None
    return [f"{fit.model.narrative.ratio}, the exponential of a coefficient\n{shown.to_string(float_format=_number)}"]


def _meanings(fit: Fitted) -> list[str]:
    """What the parameters are, a line for each."""
    known = fit.meanings
    wide = max(map(len, known), default=0)
    return ["\n".join(_wrapped(f"{name:<{wide}}  {text}", wide + 2) for name, text in known.items())] if known else []


def _sure(fit: Fitted) -> list[str]:
    """How sure, and why: what was missing, what clusters are worth, and every warning."""
    known = [str(about) for about in (fit.imputation, fit.clusters) if about is not None]
    return ["\n".join(map(_wrapped, [*known, *(f"warning: {text}" for text in fit.warnings)]))]


def lines_of(fit: Fitted) -> list[str]:
    """How it was found: the loss and why, the weight, the draws."""
    s = fit.settings
    why = f" ({s['loss_reason']})" if s["loss_reason"] else ""
    bounds = (
        f"range: far away this loss falls without bound, so parameters were kept to {s['bounds']}"
        if s.get("bounds")
        else ""
    )
    rows = f"robust: {s['loss_weight']}" if s.get("loss_weight") else ""
    found = [f"calibration: {fit.calibration.message}", f"draws: {fit.sampling}"]
    lines = [f"loss: {s['loss']}{why}", rows, *found, bounds]
    return [line for line in lines if line]


def _wrapped(text: str, indent: int = 0) -> str:
    """Prose in lines of a readable length; words are never broken."""
    return textwrap.fill(
        text, WIDE, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
