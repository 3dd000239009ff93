"""What every fit is made of.

One data set takes this road, each module giving what the next one needs:

    dataset.Dataset           distinct rows with weights and covariates, on a `domain` that says what is next to what
    model.AbstractModel       a log mass and named parameters with priors (`parameters`, `priors`)
    sites.Sites, Units        the moves of every row, and what is resampled
    terms.AbstractTerms       what a loss (`losses`) is a sum of; linear predictors in `linear`
    objective.Objective       D_n(theta; weights) with its derivatives
    minimise.Minimum          its minimiser, by Newton's method (`linalg`)
    calibration.Calibration   how wide the posterior has to be, by the scores of units or by resampling (`resampling`)
    posterior.LogPosterior    the calibrated loss with the prior, as a log density of unconstrained coordinates
    samplers                  draws from it
    diagnostics               what a user should know about the run

Beside the road: `missing` (entries that were not observed), `influence`, `simulators`, and `narrative` (words and
pictures).
"""
