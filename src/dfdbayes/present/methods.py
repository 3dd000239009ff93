"""How a fit was made, in words: formulas, the method as a paragraph for a paper, and its references."""

from __future__ import annotations

import re

from markupsafe import escape

from ..core.model import AbstractModel
from ..core.samplers.base import kind_of
from ..results.fitted import Fitted
from ..results.goodness_of_fit import NONE, GoodnessOfFit

REFERENCES = {
    "besag": "Besag, J. (1975). Statistical analysis of non-lattice data. The Statistician 24(3), 179–195.",
    "bissiri": "Bissiri, P. G., Holmes, C. C. and Walker, S. G. (2016). A general framework for updating belief "
    "distributions. Journal of the Royal Statistical Society, Series B 78(5), 1103–1130.",
    "blackjax": "Cabezas, A., Corenflos, A., Lao, J. and Louf, R. (2024). BlackJAX: composable Bayesian inference in "
    "JAX. arXiv:2402.10797.",
    "dunn": "Dunn, P. K. and Smyth, G. K. (1996). Randomized quantile residuals. Journal of Computational and "
    "Graphical Statistics 5(3), 236–244.",
    "efron": "Efron, B. (1979). Bootstrap methods: another look at the jackknife. The Annals of Statistics 7(1), 1–26.",
    "gelman": "Gelman, A., Goodrich, B., Gabry, J. and Vehtari, A. (2019). R-squared for Bayesian regression models. "
    "The American Statistician 73(3), 307–309.",
    "neyman": "Neyman, J. (1959). Optimal asymptotic tests of composite statistical hypotheses. In Probability and "
    "Statistics: The Harald Cramér Volume, 213–234. Almqvist and Wiksell.",
    "shahbaba": "Shahbaba, B., Lan, S., Johnson, W. O. and Neal, R. M. (2014). Split Hamiltonian Monte Carlo. "
    "Statistics and Computing 24.",
    "hoffman": "Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler: adaptively setting path lengths in "
    "Hamiltonian Monte Carlo. Journal of Machine Learning Research 15, 1593–1623.",
    "hyvarinen": "Hyvärinen, A. (2007). Some extensions of score matching. Computational Statistics & Data Analysis "
    "51(5), 2499–2512.",
    "kim": "Kim, J. K. (2011). Parametric fractional imputation for missing data analysis. Biometrika 98(1), 119–132.",
    "kruschke": "Kruschke, J. K. (2018). Rejecting or accepting parameter values in Bayesian estimation. Advances in "
    "Methods and Practices in Psychological Science 1(2), 270–280.",
    "lyddon": "Lyddon, S. P., Holmes, C. C. and Walker, S. G. (2019). General Bayesian updating and the "
    "loss-likelihood bootstrap. Biometrika 106(2), 465–478.",
    "lyu": "Lyu, S. (2009). Interpretation and generalization of score matching. Proceedings of the 25th Conference on "
    "Uncertainty in Artificial Intelligence, 359–366.",
    "matsubara": "Matsubara, T., Knoblauch, J., Briol, F.-X. and Oates, C. J. (2024). Generalised Bayesian Inference "
    "for Discrete Intractable Likelihood. Journal of the American Statistical Association 119(547), 2345–2355. "
    "arXiv:2206.08420.",
    "matsubara 2022": "Matsubara, T., Knoblauch, J., Briol, F.-X. and Oates, C. J. (2022). Robust generalised "
    "Bayesian inference for intractable likelihoods. Journal of the Royal Statistical Society, Series B 84(3), "
    "997–1022.",
    "rubin": "Rubin, D. B. (1981). The Bayesian bootstrap. The Annals of Statistics 9(1), 130–134.",
    "hummel": "Hummel, R. M., Hunter, D. R. and Handcock, M. S. (2012). Improving simulation-based algorithms for "
    "fitting ERGMs. Journal of Computational and Graphical Statistics 21(4), 920–939.",
    "newey": "Newey, W. K. and West, K. D. (1987). A simple, positive semi-definite, heteroskedasticity and "
    "autocorrelation consistent covariance matrix. Econometrica 55(3), 703–708.",
    "chandler": "Chandler, R. E. and Bate, S. (2007). Inference for clustered data using the independence "
    "loglikelihood. Biometrika 94(1), 167–183.",
    "ribatet": "Ribatet, M., Cooley, D. and Davison, A. C. (2012). Bayesian inference from composite likelihoods, "
    "with an application to spatial extremes. Statistica Sinica 22, 813–845.",
    "shaby": "Shaby, B. A. (2014). The open-faced sandwich adjustment for MCMC using estimating functions. Journal of "
    "Computational and Graphical Statistics 23(3), 853–876.",
    "syring": "Syring, N. and Martin, R. (2019). Calibrating general posterior credible regions. Biometrika 106(2), "
    "479–486.",
    "vehtari": "Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021). Rank-normalization, "
    "folding, and localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis 16(2), 667–718.",
    "yang": "Yang, J., Liu, Q., Rao, V. and Neville, J. (2018). Goodness-of-fit testing for discrete distributions via "
    "Stein discrepancy. Proceedings of the 35th International Conference on Machine Learning, 5561–5570.",
    "westfall": "Westfall, P. H. and Young, S. S. (1993). Resampling-Based Multiple Testing. Wiley.",
}  # fmt: skip


def title(fit: Fitted) -> str:
    """What the model is, in a sentence."""
    known = None if fit.model is None else fit.model.title
    return fit.settings["model"] if known in (None, AbstractModel.title) else str(known)


def formula(fit: Fitted) -> str:
    """The model's mass function as HTML, up to its constant."""
    known = "" if fit.model is None else fit.model.formula
    return known or f"log p(x) = {escape(fit.settings['model'])}(θ, x) + constant, &nbsp; a mass function of your own"


def priors(fit: Fitted) -> str:
    """The priors, as one writes them; of a square, the prior is its root's."""
    squares = {p.name for p in fit.model.space.parameters if p.square} if fit.model is not None else set()
    known = fit.settings["priors"].items()
    told = "; ".join(f"{'√' if name in squares else ''}{name} ~ {prior}" for name, prior in known)
    told = re.sub(r", #[0-9a-f]{8}(?=\])", "", told)  # the fingerprints of long arrays are for machines
    return re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number.group()):.3g}", told)


def loss(fit: Fitted) -> str:
    """The loss in words, with its citation."""
    note = f", {fit.settings['loss_note']}" if fit.settings.get("loss_note") else ""
    known = f"the loss '{fit.settings['loss']}'" if fit.loss is None else fit.loss.phrase or fit.loss.title
    return known + note


def citation(fit: Fitted) -> str:
    """How to cite the software."""
    version = fit.versions.get("dfdbayes", "")
    return (
        f"The dfdbayes developers. dfdbayes: calibrated generalised Bayesian inference for discrete data. Python "
        f"package, version {version}."
    )


class Methods:
    """A paragraph about how a fit was made, and the works it cites."""

    def __init__(self, fit: Fitted, diagnostics: str = "", goodness: GoodnessOfFit | None = None) -> None:
        self.cited: set[str] = set()
        self._fit, self._settings = fit, fit.settings
        sentences = [self._model(), self._posterior(), self._weight(), self._sampler(diagnostics)]
        sentences += [self._family(), self._check(goodness)] if fit.converged else [self._no_result()]
        sentences += [self._software()]
        self.text = " ".join(sentence for sentence in sentences if sentence)

    @property
    def references(self) -> list[str]:
        """What the paragraph cites, in the order of authors."""
        return sorted(REFERENCES.get(key, key) for key in self.cited)

    def _cite(self, *keys: str) -> None:
        self.cited |= set(keys)

    @property
    def _standard(self) -> bool:
        shape = self._fit.calibration.curvature
        plain = self._settings["calibration"] == "none" or (shape is not None and shape.unchanged)
        return self._fit.loss is not None and self._fit.loss.normalised and plain

    def _model(self) -> str:
        fit, name = self._fit, self._settings["model"]
        what = title(fit)
        what = f"the model '{name}'" if what == name else what
        size = f"{fit.data.n} observations" if fit.model is None else fit.model.sample_told(fit.data)
        left_out = f" ({fit.data.dropped} with missing values left out)" if fit.data.dropped else ""
        if fit.imputation is not None:
            self._cite("kim")
            left_out = f" ({fit.imputation.entries} missing entries by fractional imputation; Kim, 2011)"
        how = "Bayesian inference" if self._standard else "generalised Bayesian inference"
        if not self._standard:
            self._cite("bissiri", "matsubara")
            how += " (Bissiri et al., 2016; Matsubara et al., 2024)"
        return f"We fitted {what} to {size}{left_out} by {how}."

    def _posterior(self) -> str:
        about = f"Priors were {priors(self._fit)}."
        if self._standard:
            note = self._settings.get("loss_note")
            self._cite(*(["hummel"] if note else []))
            how = f"the likelihood {note} (Hummel et al., 2012)" if note else "the exact likelihood"
            return f"The posterior is the ordinary one, with {how}. {about}"
        used, text = self._fit.loss, loss(self._fit)
        self._cite(*(() if used is None else used.references))
        free = "" if used is None or used.normalised else ", which needs no normalising constant"
        posterior = "The generalised posterior is proportional to the prior times exp(−β D(θ))"
        return f"{posterior}, where the loss D is {text}{free}. {about}"

    def _weight(self) -> str:
        c = self._fit.calibration
        if self._standard:
            return ""
        if c.method in ("none", "given"):
            return f"The weight β = {c.beta:g} was {'not calibrated' if c.method == 'none' else 'chosen by hand'}."
        if c.curvature is not None:
            self._cite("chandler", "ribatet", "shaby")
            units = "" if self._settings["units"] == "rows" else f", with {self._settings['units']} as units"
            if self._settings.get("series") and units.startswith(", with windows"):
                self._cite("newey")
                units += " (their long-run variance; Newey and West, 1987)"
            if c.simulated:
                units = f", from the estimates of {len(c.outcomes)} data sets simulated at the estimate"
            return (
                "The loss was adjusted so that its curvature is the estimator's information (Godambe's) in every "
                f"direction{units}, shrunk to a common weight of β = {c.beta:.4g} and capped (cf. Chandler and Bate, "
                "2007; Ribatet et al., 2012; Shaby, 2014)."
            )
        if c.method == "lyddon":
            self._cite("lyddon")
            return f"The weight β = {c.beta:.4g} matches the loss's information (Lyddon et al., 2019)."
        return (
            f"The weight β = {c.beta:.4g} (Monte-Carlo standard error {c.error:.2g}) was chosen by "
            f"{self._criterion()}, from {len(c.outcomes)} {self._bootstrap()} replicates of the loss's minimiser, of "
            f"which {c.used} were used."
        )

    def _criterion(self) -> str:
        method = self._fit.calibration.method
        if method == "gpc":
            self._cite("syring")
            return "general posterior calibration for the coverage of 95 % credible regions (Syring and Martin, 2019)"
        self._cite("matsubara")
        own = "the score-matching criterion of Matsubara et al. (2024, Theorem 3)"
        if method == "score-matching":
            return own
        return f"{own}, weighted by the bootstrap covariance so that it does not depend on the parameters' units"

    def _bootstrap(self) -> str:
        self._cite("rubin" if self._fit.calibration.resampling == "dirichlet" else "efron")
        units = "" if self._settings["units"] == "rows" else f" (resampling {self._settings['units']})"
        if self._fit.calibration.resampling == "dirichlet":
            return f"Bayesian bootstrap (Rubin, 1981){units}"
        return f"bootstrap (Efron, 1979){units}"

    def _sampler(self, diagnostics: str) -> str:
        s = self._settings
        kind = kind_of(s["sampler"])
        how = kind.phrase or f"{s['sampler']} sampling"
        self._cite(*kind.references)
        if not kind.chained:
            return f"{s['chains'] * s['draws']} draws came from {how}."
        if diagnostics:
            self._cite("vehtari")
            diagnostics = f" ({diagnostics}; Vehtari et al., 2021)"
        length = f"{s['chains']} chains of {s['draws']} draws, after {s['warmup']} for warm-up"
        return f"{length}, came from {how}{diagnostics}."

    def _no_result(self) -> str:
        return f"The chains did not converge ({self._fit.not_converged}), and there is no result to report."

    def _family(self) -> str:
        told, cited = self._fit.narrative.methods(self._fit)
        self._cite(*cited)
        return told

    def _check(self, goodness: GoodnessOfFit | None) -> str:
        if goodness is None or goodness.test == NONE:
            return ""
        self._cite("neyman", "westfall", *(["dunn"] if self._fit.model is not None and self._fit.model.designs else []))
        return (
            "Fit was tested by moments corrected for the estimation of parameters (Neyman, 1959), their distribution "
            "simulated and the smallest p-value adjusted for all (Westfall and Young, 1993): "
            f"{str(goodness).partition(': ')[2]}."
        )

    def _software(self) -> str:
        v, seed = self._fit.versions, self._settings["seed"]
        known = ", ".join(f"{name} {v[name]}" for name in ("jax", "numpyro", "blackjax", "arviz-stats") if name in v)
        edge = ", one-sided where a parameter may lie at the end of its range" if self._fit.edges else ""
        return (
            f"Intervals are equal-tailed 95 % intervals{edge}. Computations used the Python "
            f"package dfdbayes {v.get('dfdbayes', '')} with {known} (seed {seed})."
        )
