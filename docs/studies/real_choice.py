"""The paper's models of the sales and of the gene data, compared by what they say of rows left out.

    python docs/studies/real_choice.py

Writes docs/tables/real-choice.md. The gene data (brca_10.csv) are looked for in the folder DFDBAYES_DATA.
"""

import os
import warnings
from pathlib import Path

import dfdbayes as dfd

TABLE = Path(__file__).parents[1] / "tables" / "real-choice.md"
GRAPHICAL = ("poisson-graphical", "cmp-graphical")
HEAD = """# The paper's models of real data, compared

Made by `python docs/studies/real_choice.py`: `dfd.compare_models` with ten folds, default losses and priors. `loss` is
the mean score of a row left out, `worse_by` the sum over all rows, beside its paired standard error.
"""


def told(title: str, data: object, models: list[str], **settings: object) -> str:
    found = dfd.compare_models(models, data, sampler="laplace", progress=False, **settings)
    lines = [f"\n## {title}\n", f"Score: {found.score}; {found.verdict}.\n"]
    lines += ["| model | loss | worse by | standard error | parameters |", "|---|---|---|---|---|"]
    for name, row in found.table.iterrows():
        numbers = f"{row['loss']:.3f} | {row['worse_by']:.1f} | {row['standard_error']:.1f} | {row['parameters']:.0f}"
        lines.append(f"| {name} | {numbers} |")
    lines.append("")
    lines += [f"- {name}: {fit.checks.sentence}" for name, fit in found.fits.items() if fit.checks is not None]
    return "\n".join(lines) + "\n"


def main() -> None:
    warnings.simplefilter("ignore")
    text = HEAD + told("Sales (3168 months)", dfd.datasets.sales(), ["poisson", "cmp"])
    genes = Path(os.environ.get("DFDBAYES_DATA", "data")) / "brca_10.csv"
    TABLE.write_text(text)
    print(text, flush=True)
    if genes.is_file():  # pseudo-likelihoods of large counts take long, ratio matching does not
        told_of = told("Ten genes, 878 patients", str(genes), list(GRAPHICAL), score="ratio", check=False)
        TABLE.write_text(text + told_of)
        print(told_of)


if __name__ == "__main__":
    main()
