"""Random mass functions on every kind of domain, and models that have them."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import dfdbayes as dfd
import oracles

# On unbounded domains the window is wide enough for the mass outside it not to matter at 1e-10.
CASES = {
    "finite": (dfd.Finite(1, 5), 0),
    "levels": (dfd.Finite(1, (1, 4, 9)), 0),
    "ordinal": (dfd.Ordinal(1, 5), 0),
    "two by three": (dfd.Ordinal(1, 2) * dfd.Ordinal(1, 3), 0),
    "ordinal and counts": (dfd.Ordinal(1, 4) * dfd.Counts(1), 40),
    "categories": (dfd.Categories(1, "abcd"), 0),
    "two categories": (dfd.Categories(2, "ab"), 0),
    "categories among others": (dfd.Ordinal(1, 3) * dfd.Categories(2, "abc") * dfd.Categories(1, "abcd"), 0),
    "categories and counts": (dfd.Categories(1, "abc") * dfd.Counts(1), 40),
    "binary": (dfd.Binary(3), 0),
    "spins": (dfd.Spins(2), 0),
    "counts": (dfd.Counts(1), 40),
    "counts from 2": (dfd.Counts(1, minimum=2), 40),
    "mirrored": (dfd.CountsBelow(1, maximum=-1), 40),
    "integers": (dfd.Integers(1), 61),
    "mixed": (dfd.Counts(1) * dfd.Binary(1) * dfd.Finite(1, 3), 40),
    "mixed unbounded": (dfd.CountsBelow(1) * dfd.Integers(1), 61),
}


def random_mass(domain, size, rng):
    """A positive mass function with random ratios; on unbounded axes its tails fall like x^2 exponents."""
    points = oracles.points(domain, size)
    log = 0.5 * rng.standard_normal(len(points))
    for j in range(domain.d):
        if domain.coordinate(j).kind != "finite":
            axis = np.array([p[j] for p in points], float)
            origin = domain.coordinate(j).end or 0
            log -= 0.35 * np.abs(axis - origin) ** 1.5
    weights = np.exp(log - log.max())
    return dict(zip(points, weights / weights.sum(), strict=True))


def table_model(domain, log_table):
    """A model whose log mass is read from a table: any positive mass function."""
    points = sorted(log_table)
    low = np.array(points).min(axis=0)
    span = np.array(points).max(axis=0) - low + 1
    strides = np.append(np.cumprod(span[::-1])[::-1][1:], 1)
    values = np.zeros(int(span.prod()))
    for point in points:
        values[int((np.array(point) - low) @ strides)] = log_table[point]
    table = jnp.asarray(values)

    def log_mass(theta, x):
        index = jnp.dot(x - low, strides.astype(float)).astype(int)
        return theta["scale"] * table[index]

    return dfd.Model(log_mass, domain, {"scale": dist.Normal(0.0, 1.0)})


def pair(name, seed):
    domain, size = CASES[name]
    rng = np.random.default_rng(seed)
    p = random_mass(domain, size + 2, rng)
    q = random_mass(domain, size, rng)
    return domain, p, q
