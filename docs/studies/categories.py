"""What neighbours do to columns of unordered labels: asymptotic standard deviations, exactly, by listing all points.

    python docs/studies/categories.py

Two columns of four labels, with a parameter for each label but the first and one for equal labels. On a cycle the
result depends on the order of the labels, so all six are tried. Writes docs/tables/categories.md; takes a minute.
"""

import itertools
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import dfdbayes as dfd
from dfdbayes.core.simulators.exact import probabilities

HAT, COAT, ALIKE = np.array([-1.0, -2.0, -2.5]), np.array([-0.5, -1.5, -3.0]), 0.8


def model(domain: dfd.Domain, order: tuple[int, ...]) -> dfd.Model:
    """Label ``order[x]`` has the code x."""
    labels = jnp.asarray(order)

    def log_mass(theta, x):
        hat, coat = labels[x.astype(int)]
        own = jnp.concatenate([jnp.zeros(1), theta["hat"]])[hat] + jnp.concatenate([jnp.zeros(1), theta["coat"]])[coat]
        return own + theta["alike"] * (hat == coat)

    normal = dist.Normal(jnp.zeros(3), 1.0)
    return dfd.Model(log_mass, domain, {"hat": normal, "coat": normal, "alike": dist.Normal(0.0, 1.0)})


def deviation(domain: dfd.Domain, theta: dict, loss: str, order: tuple[int, ...] = (0, 1, 2, 3)) -> float:
    """The sandwich's standard deviation of ``alike`` for one observation from the model itself."""
    made = model(domain, order)
    points, chance = probabilities(made, theta)
    data = dfd.Dataset(points, chance, ("hat", "coat"), np.arange(len(points)))
    objective = dfd.objective(made, data, loss)
    bread, (_, _, squares) = np.linalg.inv(objective.hessian(theta)), objective.moments(theta)
    return float(np.sqrt((bread @ squares @ bread)[-1, -1]))


def main() -> None:
    lines = [
        "| rarest hat, rarest coat | dfd: all pairs | dfd: cycle | ratio: all pairs | ratio: cycle | pseudo |",
        "|---|---|---|---|---|---|",
    ]
    pairs, cycle = dfd.Categories(2, "0123"), dfd.Finite(2, 4)
    for skew in (0.3, 1.0, 1.7):
        theta = {"hat": skew * HAT, "coat": skew * COAT, "alike": ALIKE}
        points, chance = probabilities(model(pairs, (0, 1, 2, 3)), theta)
        rarest = (100 * min(chance[points[:, j] == s].sum() for s in range(4)) for j in (0, 1))
        best, cells = deviation(pairs, theta, "likelihood"), [", ".join(f"{share:.1f} %" for share in rarest)]
        for loss in ("dfd", "ratio"):
            orders = [(0, *rest) for rest in itertools.permutations((1, 2, 3))]
            found = [deviation(cycle, theta, loss, order) / best for order in orders]
            cells += [f"{deviation(pairs, theta, loss) / best:.2f}", f"{min(found):.2f} to {max(found):.2f}"]
        cells.append(f"{deviation(pairs, theta, 'pseudo') / best:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    text = f"""Asymptotic standard deviation of the association of two columns of four labels, as a multiple of maximum
likelihood's; on a cycle from the best to the worst of the six orders of the labels. Exact; made by
`python docs/studies/categories.py`.

{chr(10).join(lines)}
"""
    (Path(__file__).parents[1] / "tables" / "categories.md").write_text(text)


if __name__ == "__main__":
    main()
