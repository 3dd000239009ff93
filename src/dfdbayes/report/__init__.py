"""One self-contained HTML page about a fit, which also prints."""

from __future__ import annotations

from html import escape
from pathlib import Path

from .._util.files import write_atomically
from ..results import evidence
from ..results.fit_result import Fit

__all__ = ["render", "write_report"]


def write_report(fit: Fit, path: str | Path) -> Path:
    """Write the page, completely or not at all."""
    page = render(fit)
    return write_atomically(path, lambda scratch: scratch.write_text(page, encoding="utf-8"))


def render(fit: Fit) -> str:
    """The page as text."""
    from . import (  # not before a page is wanted: pictures take a while to import
        html,
        interactive,
        networks,
        sections,
        wording,
    )

    name = fit.settings["model"]
    summary = fit.summary()
    network = evidence.is_network(fit)
    parts = {
        "Warnings": sections.warnings(fit),
        "Data": sections.data(fit),
        "What was fitted and how": sections.model(fit),
        "Estimates": sections.estimates(fit, summary),
        "Coefficients and residuals": sections.regression(fit),
        "Network": networks.network(fit) if network else "",
        "Groups": sections.groups(fit),
        "Posterior": sections.posterior(fit),
        "Calibration": sections.calibration(fit),
        "Chains": sections.chains(fit, summary),
        "Predictive checks": sections.predictive(fit),
        "Seeds, versions and times": sections.reproduce(fit),
        "Method, for a paper": sections.methods(fit, summary),
    }
    parts = {title: text for title, text in parts.items() if text}
    links = " ".join(f"<a href='#{_anchor(title)}'>{escape(title)}</a>" for title in parts)
    what = wording.title(fit)
    size = f"{fit.data.n} observations" if fit.model is None else fit.model.sample_told(fit.data)
    intro = f"{what[0].upper()}{what[1:]} fitted to {size}"
    body = "\n".join(
        f"<section id='{_anchor(title)}'><h2>{title}</h2>\n{text}</section>" for title, text in parts.items()
    )
    heading = f"<h1>{escape(name)} fitted to {escape(fit.data.source)}</h1>"
    whole = f"{heading}{html.paragraph(f'{intro}.', 'quiet')}<nav>{links}</nav>\n{body}"
    more = (interactive.STYLE, interactive.script()) if network else ("", "")
    return html.page(f"{name}: {fit.data.source}", whole, *more)


def _anchor(title: str) -> str:
    return title.partition(",")[0].lower().replace(" ", "-")
