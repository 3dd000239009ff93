"""Rare items, pairs that never occur together, levels that two people chose: finite answers as wide as they must be.

The reference is Bayes with the exact likelihood under the same priors, by listing all states: what nobody can do with
twenty items, and anybody with four.
"""

import jax
import numpy as np
import pandas as pd
import pytest

from small_fits import quietly

NARROWEST = 0.75  # of the exact interval's width


def binary_items(n=300):
    """Two items of 3 and 5 %, never together, and two common ones; all independent but for that."""
    x = (np.random.default_rng(0).random((n, 4)) < [0.03, 0.05, 0.5, 0.4]).astype(int)
    x[x[:, 0] == 1, 1] = 0
    return pd.DataFrame(x, columns=["rare", "seldom", "even", "some"])


def ordinal_items(n=300):
    """An item whose highest level two people chose; one that 4 % answer above the lowest, never with 'twice' = 2."""
    rng = np.random.default_rng(0)
    x = rng.choice(4, (n, 3), p=[0.4, 0.3, 0.2, 0.1])
    x[:, 0] = np.minimum(x[:, 0], 2)
    x[[5, 9], 0] = 3
    x[:, 2] = (rng.random(n) < 0.04) * rng.integers(1, 3, n) * (x[:, 0] != 2)
    return pd.DataFrame(x, columns=["twice", "even", "rare"])


def exact_posterior(model, frame, chains=50, steps=4000):
    """Draws under the exact likelihood: random walks from the mode, shaped by the curvature there."""
    states = model.domain.points()

    def log_mass(theta, x):
        return model.log_mass_at(model.space.unflatten(theta), x)

    each = jax.vmap(jax.vmap(log_mass, in_axes=(0, None)), in_axes=(None, 0))  # linear in the parameters
    features = np.asarray(jax.jit(each)(np.eye(model.space.size), states.astype(float)))
    counts = np.array([(frame.to_numpy() == x).all(axis=1).sum() for x in states])
    n, seen = counts.sum(), counts @ features
    precision = np.concatenate([np.full(p.size, float(p.prior.scale)) for p in model.space.parameters]) ** -2.0
    mode = np.zeros(len(seen))
    for _ in range(100):
        mass = np.exp(features @ mode)
        mass /= mass.sum()
        mean = mass @ features
        curvature = n * ((features * mass[:, None]).T @ features - np.outer(mean, mean)) + np.diag(precision)
        step = np.linalg.solve(curvature, n * mean - seen + precision * mode)
        mode = mode - step * min(1.0, 1.0 / np.abs(step).max())
    shape = np.linalg.cholesky(np.linalg.inv(curvature))
    rng = np.random.default_rng(0)

    def log_density(theta):
        return theta @ seen - n * np.log(np.exp(theta @ features.T).sum(axis=1)) - 0.5 * theta**2 @ precision

    theta = mode + rng.standard_normal((chains, len(mode))) @ shape.T
    now, kept = log_density(theta), []
    for t in range(steps):
        proposed = theta + 2.0 / np.sqrt(len(mode)) * rng.standard_normal(theta.shape) @ shape.T
        new = log_density(proposed)
        moved = np.log(rng.random(chains)) < new - now
        theta, now = np.where(moved[:, None], proposed, theta), np.where(moved, new, now)
        if t > steps // 5 and t % 4 == 0:
            kept.append(theta)
    return np.concatenate(kept)


@pytest.mark.parametrize(("frame", "said"), [(binary_items(), "no minimum"), (ordinal_items(), "twice = 3 (2)")])
def test_intervals_are_as_wide_as_with_the_exact_likelihood(frame, said):
    fit = quietly("network", frame, draws=2000, check=False)
    assert any(said in warning for warning in fit.warnings)
    table = fit.summary()
    assert np.isfinite(table.to_numpy(float)).all()
    low, high = np.quantile(exact_posterior(fit.model, frame), [0.025, 0.975], axis=0)
    own_low, own_high = table["eti95_lb"].to_numpy(), table["eti95_ub"].to_numpy()
    ratio = (own_high - own_low) / (high - low)
    assert (ratio > NARROWEST).all() and (ratio < 1.5).all(), dict(zip(table.index, ratio.round(2), strict=True))
    assert (own_low < high).all() and (low < own_high).all()


def test_a_pair_that_never_occurs_together_is_not_decided():
    fit = quietly("network", binary_items(), draws=2000, check=False)
    edges = fit.evidence().set_index(["from", "to"])
    edge = edges.loc[("rare", "seldom")]
    assert edge["evidence"] == "inconclusive" and edge["low"] < 0 < edge["high"]
    assert fit.prior_influence.loc["interaction[rare,seldom]", "from_data"] < 0.5
    intercept = fit.summary().loc["intercept[rare]"]
    assert intercept["eti95_lb"] < np.log(0.03 / 0.97) < intercept["eti95_ub"]


def test_a_level_that_nobody_of_a_group_chose():
    """The difference of that threshold between groups has no minimum: the prior holds it, and the others are sound."""
    frame = ordinal_items(400).assign(group=["x", "y"] * 200)
    frame.loc[(frame["group"] == "y") & (frame["even"] == 3), "even"] = 2
    terms = {"formula": "~ group", "interaction": "~ group"}
    fit = quietly("network", frame, columns=["twice", "even"], check=False, **terms)
    table = fit.summary()
    assert np.isfinite(table.to_numpy(float)).all()
    assert table.loc["threshold[even,3:group=y]", "sd"] > 1.0
    assert table.loc["interaction[twice,even:group=y]", "sd"] < 0.5
