"""One self-contained HTML page about a fit, which also prints, and the same numbers as JSON beside it."""

from __future__ import annotations

import json
from pathlib import Path

from ..._util.files import write_atomically
from ...families.network import evidence
from ...results.fitted import Fitted
from ...results.forecasts import Forecast
from ...results.saving import plain

__all__ = ["render", "write_report"]


def write_report(fit: Fitted, path: str | Path, forecast: Forecast | None = None) -> Path:
    """Write the page, completely or not at all, and beside it a JSON file of the same name (page.html, page.json)."""
    beside = Path(path).with_suffix(".json")
    page, numbers = render(fit, beside.name, forecast), json.dumps(plain(fit), indent=2, allow_nan=False)
    write_atomically(beside, lambda scratch: scratch.write_text(numbers, encoding="utf-8"))
    return write_atomically(path, lambda scratch: scratch.write_text(page, encoding="utf-8"))


def render(fit: Fitted, beside: str = "", forecast: Forecast | None = None) -> str:
    """The page as text; ``beside`` names a file with the same numbers that stands beside it."""
    from ...families.network import report as networks
    from . import html, sections, wording

    summary, network = fit.summary(), evidence.is_network(fit) and fit.converged
    parts = {
        "Warnings": sections.warnings(fit),
        "Forecast": "" if forecast is None else sections.forecast(forecast),
        "Network": networks.network(fit) if network else "",
        "Estimates": sections.estimates(fit, summary),
        "Groups": sections.groups(fit) if fit.converged else "",
        "Coefficients and residuals": sections.regression(fit),
        "Does the model reproduce the data?": sections.predictive(fit) if fit.converged else "",
        "How sure, and why: calibration": sections.calibration(fit),
        "Posterior": sections.posterior(fit),
        "Influence of rows": sections.influence(fit),
        "Data": sections.data(fit),
        "How it was found: model, loss and prior": sections.model(fit),
        "Chains": sections.chains(fit, summary),
        "Seeds, versions and times": sections.reproduce(fit),
        "What to report in a paper": sections.methods(fit, summary),
    }
    what, number = wording.title(fit), len(fit.warnings)
    told = (
        f"There {'is 1 warning' if number == 1 else f'are {number} warnings'}; read {'it' if number == 1 else 'them'}"
    )
    return html.templates().get_template("page.html").render(
        title=f"{fit.settings['model']}: {fit.data.source}",
        heading=f"{fit.settings['model']} fitted to {fit.data.source}",
        intro=f"{what[0].upper()}{what[1:]}, fitted to {fit.size}.",
        answer=fit.answer,
        warnings=f"{told} below." if number else "",
        parts=[{"anchor": _anchor(title), "title": title, "body": body} for title, body in parts.items() if body],
        style=html.text_of("style.css") + (html.text_of("network.css") if network else ""),
        script=html.text_of("network.js") if network else "",
        version=fit.versions.get("dfdbayes", ""),
        beside=beside,
    )  # fmt: skip


def _anchor(title: str) -> str:
    plain = "".join(letter for letter in title.lower() if letter.isalnum() or letter == " ")
    return plain.replace(" ", "-")
