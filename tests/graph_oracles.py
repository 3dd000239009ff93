"""Statistics of graphs by their definitions: sets, loops and no cleverness."""

import itertools
from math import comb, exp

import numpy as np

NODES = {"group": ["a", "b", "a", "c", "b", "a"], "size": [1.5, -2.0, 0.5, 3.0, 0.0, 1.0], "team": [1, 2, 2, 1, 1, 2]}
NEAR = np.array([[abs(i - j) + 0.5 * (i * j % 3) for j in range(6)] for i in range(6)])


def partners(ties, nodes, i, j):
    """Nodes k with ties i to k and k to j."""
    return sum((i, k) in ties and (k, j) in ties for k in nodes if k not in (i, j))


def weight(count, decay):
    return exp(decay) * (1.0 - (1.0 - exp(-decay)) ** count)


def statistics(adjacency, directed):
    """Every term's statistics by label, from one adjacency matrix of at most six nodes."""
    n = len(adjacency)
    nodes = range(n)
    ties = {(i, j) for i in nodes for j in nodes if adjacency[i, j]}
    once = ties if directed else {(i, j) for i, j in ties if i < j}
    group, size, team = (NODES[name] for name in ("group", "size", "team"))
    sent = [sum((i, j) in ties for j in nodes) for i in nodes]
    received = [sum((j, i) in ties for j in nodes) for i in nodes]
    trios = list(itertools.permutations(nodes, 3))
    transitive = sum((i, k) in ties and (k, j) in ties and (i, j) in ties for i, j, k in trios)
    cyclic = sum((i, k) in ties and (k, j) in ties and (j, i) in ties for i, j, k in trios) / 3
    found = {
        "edges": [len(once)],
        "nodecov(size)": [sum(size[i] + size[j] for i, j in once)],
        "nodefactor(group)": [sum((group[i] == level) + (group[j] == level) for i, j in once) for level in "bc"],
        "nodematch(group)": [sum(group[i] == group[j] for i, j in once)],
        "nodematch(team,diff)": [sum(team[i] == level == team[j] for i, j in once) for level in (1, 2)],
        "absdiff(size)": [sum(abs(size[i] - size[j]) for i, j in once)],
        "edgecov(near)": [sum(NEAR[i, j] for i, j in once)],
        "triangle": [transitive + cyclic if directed else transitive / 6],
        "gwesp(0.25)": [sum(weight(partners(ties, nodes, i, j), 0.25) for i, j in once)],
        "gwesp(0)": [sum(weight(partners(ties, nodes, i, j), 0.0) for i, j in once)],
    }
    if directed:
        found |= {
            "mutual": [sum((j, i) in ties for i, j in ties) / 2],
            "ttriple": [transitive],
            "ctriple": [cyclic],
            "ostar(2)": [sum(comb(d, 2) for d in sent)],
            "istar(3)": [sum(comb(d, 3) for d in received)],
            "gwodegree(0.5)": [sum(weight(d, 0.5) for d in sent)],
            "gwidegree(0.5)": [sum(weight(d, 0.5) for d in received)],
        }
    else:
        found |= {
            "kstar(2)": [sum(comb(d, 2) for d in sent)],
            "kstar(3)": [sum(comb(d, 3) for d in sent)],
            "gwdegree(0.7)": [sum(weight(d, 0.7) for d in sent)],
        }
    return found


def terms(directed):
    """All terms as a user writes them, in the order of `statistics`."""
    of_nodes = "edges + nodecov('size') + nodefactor('group') + nodematch('group') + nodematch('team', diff=True)"
    of_pairs = " + absdiff('size') + edgecov('near')"
    closure = " + triangle + gwesp(0.25) + gwesp(0)"
    ways = " + mutual + ttriple + ctriple + ostar(2) + istar(3) + gwodegree(0.5) + gwidegree(0.5)"
    return of_nodes + of_pairs + closure + (ways if directed else " + kstar(2) + kstar(3) + gwdegree(0.7)")


def random_adjacency(rng, n, directed):
    """A graph of a random density."""
    array = rng.random((n, n)) < rng.random()
    np.fill_diagonal(array, False)
    return array if directed else np.triu(array) | np.triu(array).T
