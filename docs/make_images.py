"""The pictures of the README. Run: python docs/make_images.py"""

import re
from pathlib import Path

from matplotlib.figure import Figure

import dfdbayes as dfd

HERE = Path(__file__).parent
INK, GREY, BLUE, ORANGE = "#22303c", "#8a9aa5", "#2a6f97", "#d1495b"
# What stands in the picture: its two labels; where the two numbers are: table, words of the row, number of the column.
ROWS = (
    ("over-dispersed counts in a Poisson regression", "the likelihood as it is",
     ("regression-coverage", ("negative binomial counts, n = 1000",), 4),
     ("regression-coverage", ("negative binomial counts, n = 1000",), 6)),
    ("network of 6 yes/no items, 300 people", "pseudo-likelihood as it is",
     ("coverage", ("network d = 6, n = 300",), 4), ("coverage", ("network d = 6, n = 300",), 6)),
    ("network of 6 items of 7 levels, 1000 people", "pseudo-likelihood as it is",
     ("network-coverage", ("7 levels, n = 1000",), 4), ("network-coverage", ("7 levels, n = 1000",), 6)),
    ("a fifth of the answers missing", "filled with the commonest answer",
     ("field-coverage", ("6 binary", "| impute |"), 4), ("field-coverage", ("6 binary", "| commonest"), 4)),
    ("regression, rows in 50 clusters", "rows taken for independent",
     ("field-coverage", ("50 clusters", "by cluster"), 4), ("field-coverage", ("50 clusters", "independent"), 4)),
    ("one graph of 40 nodes, shared partners", "dyads taken for independent",
     ("graph-coverage", ("40 nodes", "| gwesp"), 5), ("graph-coverage", ("40 nodes", "| gwesp"), 6)),
    ("one series of 200 counts, a lag too few", "the likelihood as it is",
     ("series-coverage", ("AR(2)", "windows"), 5), ("series-coverage", ("AR(2)", "| uncalibrated"), 5)),
    ("one map of 30 x 30 sites, interaction", "pseudo-likelihood as it is",
     ("map-coverage", ("parametric bootstrap (default) | 1",), 6), ("map-coverage", ("naive",), 6)),
)  # fmt: skip


def cell(table: str, words: tuple[str, ...], column: int) -> float:
    """A number of a table, from the first row with these words."""
    for line in (HERE / "tables" / f"{table}.md").read_text().splitlines():
        if line.startswith("|") and all(word in line for word in words):
            found = re.search(r"\d+(\.\d+)?", line.split("|")[column])
            assert found is not None, line
            return float(found[0])
    raise LookupError(f"{table} has no row with {words}")


def coverage() -> Figure:
    """How many of 100 intervals held the truth: calibrated, and as people do it otherwise."""
    figure = Figure(figsize=(9.2, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(93, 97, color=BLUE, alpha=0.10, lw=0)
    axes.axvline(95, color=INK, lw=0.8, ls=":")
    for place, (_, other, ours, theirs) in enumerate(ROWS):
        y, calibrated, plain = len(ROWS) - 1 - place, cell(*ours), cell(*theirs)
        axes.plot([plain, calibrated], [y, y], color=GREY, lw=1)
        axes.plot(plain, y, "o", color=ORANGE, ms=7, label=None if place else "as usually done")
        axes.plot(calibrated, y, "o", color=BLUE, ms=7, label=None if place else "dfdbayes, by default")
        axes.text(plain - 0.5, y, f"{other} {plain:.0f}", ha="right", va="center", fontsize=8, color=ORANGE)
        axes.text(max(calibrated, plain) + 0.6, y, f"{calibrated:.0f}", va="center", fontsize=8, color=BLUE)
    axes.set_yticks(range(len(ROWS)), [row[0] for row in reversed(ROWS)], fontsize=9, color=INK)
    axes.set_xlim(62, 100)
    axes.set_ylim(-0.6, len(ROWS) + 0.2)
    axes.set_xlabel("of 100 intervals of 95 %, so many held the truth", fontsize=9, color=INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", colors=INK, labelsize=8)
    axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    return figure


def main() -> None:
    images = HERE / "images"
    coverage().savefig(images / "coverage.png", dpi=130)
    fit = dfd.fit("cmp", dfd.datasets.sales(), progress=False)
    fit.plot().savefig(images / "sales.png", dpi=110)


if __name__ == "__main__":
    main()
