"""The pictures of the README. Run: python docs/make_images.py"""

from pathlib import Path

import dfdbayes as dfd
from dfdbayes import plots

fit = dfd.fit(dfd.models.ConwayMaxwellPoisson(), dfd.datasets.sales(), seed=0)
plots.posterior(fit).savefig(Path(__file__).parent / "images" / "sales-posterior.png", dpi=110)
