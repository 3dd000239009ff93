"""Where the time goes, against a plain version of the method, and how it grows.

Run: python benchmarks/suite.py [cases] [growth]    (ten minutes; writes suite.md and growth.md in benchmarks/results)

Every case runs in a process of its own: a first fit, then a second one of the same shape, whose time is split by
stage. The plain reference does what the paper describes with loops over rows and coordinates: Adam for the fit and for
one bootstrap sample after another, then random-walk chains. It is timed on a few evaluations and scaled up to
1000 Adam steps for each of B + 1 fits and 10 chains of 10,000 steps. The ratios are the result; seconds differ between
machines. The gene data are read from the folder in DFDBAYES_DATA; without it those two cases are left out.
"""

import json
import math
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ADAM, CHAINS, STEPS = 1000, 10, 10_000


def network(d, n):
    import dfdbayes as dfd

    rng, model = np.random.default_rng(8), dfd.models.IsingNetwork(d)
    pairs = d * (d - 1) // 2
    interaction = np.zeros(pairs)
    on = rng.choice(pairs, pairs // 6, replace=False)
    interaction[on] = 0.5 * rng.choice([-1.0, 1.0], len(on))
    theta = {"intercept": 0.3 * rng.standard_normal(d), "interaction": interaction}
    return model, dfd.simulate(model, theta, n, seed=1).rows


def case(name):
    """Model, data and settings of a case."""
    import dfdbayes as dfd

    kind, _, rest = name.partition(" ")
    if kind == "cmp":
        model = dfd.models.ConwayMaxwellPoisson()
        rows = dfd.simulate(model, {"rate": 4.0, "nu": 0.75}, int(rest), seed=0).rows
        return model, rows, {"bootstrap": 100}
    if kind == "ising":
        model = dfd.models.Ising(dfd.graphs.grid(10, 10))
        return model, dfd.simulate(model, {"temperature": 5.0}, 1000, seed=0).rows, {"bootstrap": 100, "loss": rest}
    if kind == "genes":
        data = Path(os.environ["DFDBAYES_DATA"]) / "brca_10.csv"
        made = {"poisson": dfd.models.PoissonGraphical, "cmp": dfd.models.ConwayMaxwellPoissonGraphical}[rest](10)
        return made, data, {"beta": {"poisson": 0.2150, "cmp": 0.9971}[rest]}  # the paper's weights
    if rest == "15":
        return *network(15, 2000), {"loss": "pseudo", "draws": 300, "warmup": 200}
    return *network(30, 10_000), {"loss": "pseudo", "bootstrap": 100, "draws": 150, "warmup": 150}


def measure(name):
    """Two fits of a case in this process, and what they cost."""
    import arviz_stats

    import dfdbayes as dfd

    warnings.simplefilter("ignore")
    model, data, settings = case(name)
    data = dfd.Dataset.of(data)
    seconds = []
    for seed in (0, 1):
        began = time.perf_counter()
        fit = dfd.fit(model, data, seed=seed, progress=False, **settings)
        seconds.append(time.perf_counter() - began)
    ess = float(arviz_stats.summary(fit.tree, kind="diagnostics", round_to="none")["ess_bulk"].min())
    stats = fit.tree["sample_stats"]
    return {
        "cold": seconds[0],
        "warm": seconds[1],
        "stages": fit.timings["seconds"],
        "compiling": fit.timings["compiling"],
        "ess": ess,
        "divergences": int(stats["diverging"].sum()),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "plain": plain_seconds(model, data, settings),
        "beta": fit.beta,
    }


def plain_seconds(model, data, settings):
    """The plain reference: one evaluation of loss and gradient, row by row, times how many there would be."""
    if settings.get("loss") == "ksd" or model.domain.d == 30 or data.n > 10_000:
        return None
    rows = np.repeat(data.rows, data.counts.astype(int), axis=0)[:50]
    theta = np.asarray(model.space.prior_quantiles([0.5])[0]) + 0.1

    def log_mass(theta, x):
        named = model.space.unflatten(theta)
        if model.name == "cmp":
            return x[0] * math.log(named["rate"]) - named["nu"] * math.lgamma(x[0] + 1)
        i, j = model.options["graph"].edges.T
        if model.name == "ising":
            return float(np.dot(x[i], x[j])) / float(named["temperature"])
        values = list(named.values())
        sign = -1.0 if model.name.endswith("graphical") else 1.0
        value = float(np.dot(values[0], x)) + sign * float(np.dot(values[1], x[i] * x[j]))
        if sign < 0:
            power = values[2] if len(values) > 2 else np.ones(len(x))
            value -= sum(c * math.lgamma(a + 1) for c, a in zip(power, x, strict=True))
        return value

    def loss(theta):
        total = 0.0
        for x in rows:
            here = log_mass(theta, x)
            down, exists = model.domain.decrement(x[None])
            up, _ = model.domain.increment(x[None])
            for j in range(len(x)):
                y = x.copy()
                if exists[0, j]:
                    y[j] = down[0, j]
                    total += math.exp(min(2 * (log_mass(theta, y) - here), 300.0))
                y[j] = up[0, j]
                total -= 2 * math.exp(min(here - log_mass(theta, y), 300.0))
        return total

    began = time.perf_counter()
    loss(theta)
    value = (time.perf_counter() - began) * data.n / len(rows)
    gradient = 3 * value  # as reverse differentiation costs; finite differences would cost one value a parameter
    fits = 1 + (0 if "beta" in settings else settings.get("bootstrap", 400))
    return ADAM * fits * gradient + CHAINS * STEPS * value


def exponent(sizes, seconds):
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth():
    """Second fits as data, columns and bootstraps grow."""
    import dfdbayes as dfd

    warnings.simplefilter("ignore")
    found = {}

    def second(model, data, **settings):
        data = dfd.Dataset.of(data)
        times = []
        for seed in (0, 1, 2):
            began = time.perf_counter()
            dfd.fit(model, data, seed=seed, progress=False, **settings)
            times.append(time.perf_counter() - began)
        return min(times[1:])

    cmp = dfd.models.ConwayMaxwellPoisson()
    sizes = [2000, 20_000, 200_000, 2_000_000]
    data = {n: dfd.simulate(cmp, {"rate": 4.0, "nu": 0.75}, n, seed=0).rows for n in sizes}
    found["CMP after the pass, n"] = sizes, [second(cmp, data[n], bootstrap=100) for n in sizes]
    long = np.random.default_rng(0).poisson(4.0, 32_000_000)
    sizes = [2_000_000, 4_000_000, 8_000_000, 16_000_000, 32_000_000]
    passes = []
    for n in sizes:
        times = []
        for _ in range(3):
            began = time.perf_counter()
            dfd.Dataset.of(long[:n])
            times.append(time.perf_counter() - began)
        passes.append(min(times))
    found["the pass, n"] = sizes, passes
    graph = dfd.models.PoissonGraphical(5)
    rng = np.random.default_rng(0)
    sizes = [2000, 4000, 8000, 16_000, 32_000]
    rows = rng.poisson(rng.gamma(3.0, 1.5, (sizes[-1], 5)))
    short = {"loss": "ratio", "bootstrap": 50, "draws": 100, "warmup": 100}
    found["Poisson graphical d = 5, n"] = sizes, [second(graph, rows[:n], **short) for n in sizes]
    sizes = [4, 8, 16]
    found["Ising network n = 1000, d"] = sizes, [second(*network(d, 1000), **short | {"loss": "pseudo"}) for d in sizes]
    sizes = [200, 400, 800, 1600, 3200]
    model, x = network(8, 500)
    times = [second(model, x, loss="pseudo", bootstrap=b, sampler="laplace") for b in sizes]
    found["Ising network d = 8, bootstrap fits B"] = sizes, times
    return found


def evaluation():
    """A loss and gradient of the CMP graphical model, against NumPy's exponentials and matrix products."""
    import jax
    import jax.numpy as jnp

    import dfdbayes as dfd

    rows = np.random.default_rng(0).poisson(5.0, (880, 10))
    model = dfd.models.ConwayMaxwellPoissonGraphical(10)
    objective = dfd.objective(model, rows)
    problem, times = objective.problem, 300

    @jax.jit
    def many(theta, arrays, weights):
        def step(_, theta):
            value, gradient = jax.value_and_grad(problem.value)(theta, arrays, weights)
            return theta + 1e-15 * (gradient + value)

        return jax.lax.fori_loop(0, times, step, theta)

    theta = jnp.asarray(model.space.flatten(model.start(objective.data)))

    def best(function, repeats):
        function()
        taken = []
        for _ in range(repeats):
            began = time.perf_counter()
            function()
            taken.append(time.perf_counter() - began)
        return min(taken)

    weights = objective.own_weights
    ours = best(lambda: jax.block_until_ready(many(theta, objective.table, weights)), 20) / times
    x, w = np.asarray(objective.table.rows), np.random.default_rng(1).normal(0, 0.01, (10, 10))
    u = w @ x

    def plain():
        for _ in range(100):
            np.exp(u), np.exp(u), w @ x, u @ x.T

    return ours, best(plain, 20) / 100


NAMES = [
    "cmp 2000", "cmp 2000000", "ising dfd", "ising ratio", "ising pseudo", "ising ksd",
    "genes poisson", "genes cmp", "network 15", "network 30",
]  # fmt: skip


def draw(found):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 2.6), layout="constrained")
    for axis, (title, (sizes, seconds)) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
        axis.loglog(sizes, seconds, "o-", color="#30638e")
        name, _, unit = title.rpartition(", ")
        axis.set(title=f"{name}\nexponent {exponent(sizes, seconds):.2f}", xlabel=unit)
        axis.title.set_fontsize(8)
        axis.set_ylim(min(seconds) / 3, max(seconds) * 3)
    figure.axes[0].set_ylabel("seconds, second fit")
    figure.savefig(HERE / "results" / "growth.png", dpi=130)


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        print(json.dumps(measure(sys.argv[2])))
        return
    wanted = sys.argv[1:] or ["cases", "growth"]
    if "cases" in wanted:
        write("suite.md", cases())
    if "growth" in wanted:
        write("growth.md", grown())


def write(name, text):
    (HERE / "results" / name).write_text(text)
    print(text)


def cases():
    names = [n for n in NAMES if "genes" not in n or "DFDBAYES_DATA" in os.environ]
    stages = ("read", "tabulate", "minimise", "calibrate", "sample", "summarise")
    lines = [
        "| case | first fit, s | second fit, s | " + " | ".join(stages) + " | compiling, first fit "
        "| min. bulk ESS | ESS a second | divergences | peak memory, GiB | plain reference, s | ratio |",
        "|---" * (len(stages) + 10) + "|",
    ]
    for name in names:
        out = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, check=True)
        f = json.loads(out.stdout.strip().splitlines()[-1])
        split = " | ".join(f"{f['stages'][s]:.2f}" for s in stages)
        plain, ratio = ("", "") if f["plain"] is None else (f"{f['plain']:.0f}", f"{f['plain'] / f['warm']:.0f}")
        lines.append(
            f"| {name} | {f['cold']:.1f} | {f['warm']:.2f} | {split} | {f['cold'] - f['warm']:.1f} | {f['ess']:.0f} | "
            f"{f['ess'] / f['warm']:.0f} | {f['divergences']} | {f['memory']:.2f} | {plain} | {ratio} |"
        )
        print(lines[-1], flush=True)
    heading = (
        "Made by `python benchmarks/suite.py cases`, data seeds 0, 1 and 8, fit seeds 0 and 1, on two cores. "
        "The cases of 1000 lattices of 10 x 10 are named by their loss; genes are sampled at the paper's "
        "weights; `network d` are Ising networks of d binary columns with n = 2000 and 10,000 rows, by the "
        "pseudo-likelihood. What the plain reference is, and how it is scaled, stands in benchmarks/suite.py:"
        " it loops in Python, so it flatters; the authors' own PyTorch code, timed in parts on a machine of "
        "this kind, takes 275 s for the first case, 467, 1103 and 6233 s for the lattices by dfd, pseudo and "
        "ksd, and 2054 and 9533 s for the genes."
    )
    return "\n".join(["# Where the time goes", "", heading, "", *lines, ""])


def grown():
    found = growth()
    draw(found)
    lines = ["| what grows | sizes | seconds | exponent |", "|---|---|---|---|"]
    for title, (sizes, seconds) in found.items():
        shown = ", ".join(f"{s:.3g}" for s in seconds)
        lines.append(f"| {title} | {', '.join(map(str, sizes))} | {shown} | {exponent(sizes, seconds):.2f} |")
    ours, plain = evaluation()
    evaluated = (
        f"Loss and gradient of the CMP graphical model on 880 rows of 10 counts: {1e6 * ours:.0f} microseconds; "
        f"NumPy's exponentials and matrix products of the same sizes: {1e6 * plain:.0f}; ratio {ours / plain:.2f}."
    )
    made = "Made by `python benchmarks/suite.py growth`, data seeds 0 and 8, second fits."
    shown = ["![growth](growth.png)", "", "# One evaluation", "", evaluated, ""]
    return "\n".join(["# How it grows", "", made, "", *lines, "", *shown])


if __name__ == "__main__":
    main()
