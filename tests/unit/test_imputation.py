"""Missing entries: fractional imputation against the exact population, and what a fit says of it."""

import itertools

import numpy as np
import pandas as pd
import pytest

import dfdbayes as dfd

INTERCEPT = np.array([-0.8, -0.6, -0.9])
INTERACTION = np.array([0.8, 1.5, 0.5])  # of 1-2, 1-3, 2-3
POINTS = np.array(list(itertools.product([0, 1], repeat=3)))


def population():
    """All eight answers with their probabilities; the third is missing more often where the first is 1."""
    pairs = [(0, 1), (0, 2), (1, 2)]
    log = POINTS @ INTERCEPT + sum(w * POINTS[:, i] * POINTS[:, j] for w, (i, j) in zip(INTERACTION, pairs, strict=True))
    chance = np.exp(log) / np.exp(log).sum()
    gone = np.where(POINTS[:, 0] == 1, 0.8, 0.1)
    whole = pd.DataFrame(POINTS, columns=list("abc")).astype(float).assign(weight=chance * (1 - gone))
    part = whole.assign(c=np.nan, weight=chance * gone)
    frame = pd.concat([whole, part], ignore_index=True)
    return frame.assign(weight=np.round(frame["weight"] * 1e9))


def estimate(frame, loss, missing):
    weak = {"intercept": dfd_normal(100.0), "interaction": dfd_normal(100.0)}
    fit = dfd.fit(
        "ising-network", frame, weights="weight", missing=missing, loss=loss, prior=weak, sampler="laplace",
        progress=False, check=False,
    )  # fmt: skip
    return np.concatenate([fit.minimum.theta["intercept"], fit.minimum.theta["interaction"]])


def dfd_normal(scale):
    import numpyro.distributions as dist

    return dist.Normal(0.0, scale)


@pytest.mark.parametrize("loss", ["pseudo", "ratio", "likelihood", "dfd"])
def test_the_population_is_returned_where_values_are_missing_at_random(loss):
    truth = np.concatenate([INTERCEPT, INTERACTION])
    np.testing.assert_allclose(estimate(population(), loss, "impute"), truth, atol=1e-3)


def test_complete_cases_and_the_observed_margin_are_biased():
    found = estimate(population(), "pseudo", "drop")
    assert abs(found[0] - INTERCEPT[0]) > 1.0  # -2.30 for -0.8
