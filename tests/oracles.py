"""The quantities of the method written the slow, obvious way, straight from their definitions."""

import itertools
import math

import numpy as np

STAR = None


def decrement(coordinate, value):
    if coordinate.kind == "integers":
        return value - 1
    if coordinate.kind == "above":
        return STAR if value == coordinate.end else value - 1
    if coordinate.kind == "below":
        return STAR if value == coordinate.end else value + 1
    levels = sorted(coordinate.levels)
    if coordinate.ordered and len(levels) > 2 and value == levels[0]:
        return STAR
    return levels[levels.index(value) - 1]


def increment(coordinate, value):
    if coordinate.kind in ("integers", "above"):
        return value + 1
    if coordinate.kind == "below":
        return value - 1
    levels = sorted(coordinate.levels)
    if coordinate.ordered and len(levels) > 2 and value == levels[-1]:
        return STAR
    return levels[(levels.index(value) + 1) % len(levels)]


def decrements(coordinate, value):
    """Values that a decrement leads to: every other one where labels have no order, else one or none."""
    if coordinate.neighbours == "pairs":
        return [other for other in coordinate.levels if other != value]
    before = decrement(coordinate, value)
    return [] if before is STAR else [before]


def increments(coordinate, value):
    if coordinate.neighbours == "pairs":
        return [other for other in coordinate.levels if other != value]
    after = increment(coordinate, value)
    return [] if after is STAR else [after]


def moved(x, j, value):
    return (*x[:j], value, *x[j + 1 :])


def mass(p, x):
    """A mass function as a dict; zero at star and where nothing is stored."""
    return 0.0 if STAR in x else p.get(x, 0.0)


def divergence(p, q, domain):
    """Definition: E_q | grad^- p / p - grad^- q / q |^2, over all decrements; at star both gradients are one."""
    total = 0.0
    for x, weight in q.items():
        for j in range(domain.d):
            for before in decrements(domain.coordinate(j), x[j]):
                there = moved(x, j, before)
                score_p = (p[x] - mass(p, there)) / p[x]
                score_q = (q[x] - mass(q, there)) / q[x]
                total += weight * (score_p - score_q) ** 2
    return total


def constant(q, domain):
    """C(q) of Proposition 1: E_q (q(x^-) / q(x))^2."""
    total = 0.0
    for x, weight in q.items():
        for j in range(domain.d):
            for before in decrements(domain.coordinate(j), x[j]):
                total += weight * (mass(q, moved(x, j, before)) / q[x]) ** 2
    return total


def fisher_loss(log_mass, rows, counts, domain):
    """D_n: sum of (p(x^-)/p(x))^2 - 2 p(x)/p(x^+) over data, coordinates and their neighbours."""
    total = 0.0
    for row, count in zip(rows, counts, strict=True):
        x = tuple(int(v) for v in row)
        here = log_mass(x)
        for j in range(domain.d):
            for before in decrements(domain.coordinate(j), x[j]):
                total += count * math.exp(2 * (log_mass(moved(x, j, before)) - here))
            for after in increments(domain.coordinate(j), x[j]):
                total -= count * 2 * math.exp(here - log_mass(moved(x, j, after)))
    return total


def ratio_loss(log_mass, rows, counts, domain):
    """Generalised ratio matching: of each pair (x, x^+) the chance s of x; x has s^2 - 2 s of it, and x^+ has s^2."""

    def s(x, after):
        return 1 / (1 + math.exp(log_mass(after) - log_mass(x)))

    total = 0.0
    for row, count in zip(rows, counts, strict=True):
        x = tuple(int(v) for v in row)
        for j in range(domain.d):
            for before in decrements(domain.coordinate(j), x[j]):
                total += count * s(moved(x, j, before), x) ** 2
            for after in increments(domain.coordinate(j), x[j]):
                chance = s(x, moved(x, j, after))
                total += count * (chance**2 - 2 * chance)
    return total


def weighted(loss, m, rows, counts, domain):
    """A robust loss by its definition: every pair (x, y = x^+) has the weight m(y), or (m(x) m(y))^(1/2) of `ratio`.

    ``loss`` gives f and g of log p(x) / p(y), by two points.
    """
    f, g, both = loss
    weight = (lambda x, y: math.sqrt(m(x) * m(y))) if both else (lambda x, y: m(y))
    total = 0.0
    for row, count in zip(rows, counts, strict=True):
        x = tuple(int(v) for v in row)
        for j in range(domain.d):
            for before in (moved(x, j, value) for value in decrements(domain.coordinate(j), x[j])):
                total += count * weight(before, x) * f(before, x)
            for after in (moved(x, j, value) for value in increments(domain.coordinate(j), x[j])):
                total += count * weight(x, after) * g(x, after)
    return total


def pseudo_loss(log_mass, rows, counts, domain):
    """Minus the sum of log p(x_j | the rest) over data and coordinates of a finite domain."""
    total = 0.0
    for row, count in zip(rows, counts, strict=True):
        x = tuple(int(v) for v in row)
        for j in range(domain.d):
            others = [log_mass(moved(x, j, value)) for value in domain.coordinate(j).levels]
            total += count * (np.logaddexp.reduce(others) - log_mass(x))
    return total


def finite_difference(function, theta, step=1e-6):
    theta = np.asarray(theta, float)
    gradient = np.empty_like(theta)
    for i in range(len(theta)):
        h = np.zeros_like(theta)
        h[i] = step * max(1.0, abs(theta[i]))
        gradient[i] = (function(theta + h) - function(theta - h)) / (2 * h[i])
    return gradient


def window(coordinate, size):
    """The first values of a coordinate (all of them, if finite), in its own order."""
    if coordinate.kind == "finite":
        return sorted(coordinate.levels)
    if coordinate.kind == "above":
        return [coordinate.end + i for i in range(size)]
    if coordinate.kind == "below":
        return [coordinate.end - i for i in range(size)]
    return list(range(-size // 2, size - size // 2))


def points(domain, size):
    return list(itertools.product(*[window(domain.coordinate(j), size) for j in range(domain.d)]))
