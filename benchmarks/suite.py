"""Where the time goes, against the version before and against NumPyro's NUTS, and how it grows.

    python benchmarks/suite.py [--before OTHER/src] [cases] [growth] [CASE ...]

Writes suite.md and growth.md in benchmarks/results. Every case runs in a process of its own: a first fit, then two more
of the same shape, of which the quicker one counts. With ``--before`` the same cases run by the package in that folder,
in the same run, each in turn with this one; a case it cannot do, or not in two minutes, is left empty. NumPyro's NUTS
draws from the same log density, from the same place with the same metric, 4 chains of 500 steps for warm-up and 250
draws. The ratios are the result; seconds differ between machines. The gene data are read from the folder in
DFDBAYES_DATA; without it those cases are left out.
"""

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LONGEST = 120  # seconds that a case may take by another version or sampler


def network(d, n):
    import dfdbayes as dfd

    rng, model = np.random.default_rng(8), dfd.models.IsingNetwork(d)
    pairs = d * (d - 1) // 2
    interaction = np.zeros(pairs)
    on = rng.choice(pairs, pairs // 6, replace=False)
    interaction[on] = 0.5 * rng.choice([-1.0, 1.0], len(on)) * min(1.0, (15 / d))
    theta = {"intercept": 0.3 * rng.standard_normal(d), "interaction": interaction}
    return model, dfd.simulate(model, theta, n, seed=1, method="gibbs" if d > 16 else None).rows


def genes(d):
    return np.genfromtxt(Path(os.environ["DFDBAYES_DATA"]) / "brca_40.csv", delimiter=",", skip_header=1)[:, :d].astype(
        int
    )


def case(name):
    """Model, data and settings of a case."""
    import dfdbayes as dfd

    kind, *rest = name.split()
    if kind == "cmp":
        model = dfd.models.ConwayMaxwellPoisson()
        return model, dfd.simulate(model, {"rate": 4.0, "nu": 0.75}, int(rest[0]), seed=0).rows, {}
    if kind == "ising":
        model = dfd.models.Ising(dfd.graphs.grid(10, 10))
        return model, dfd.simulate(model, {"temperature": 5.0}, 1000, seed=0).rows, {"loss": rest[0]}
    if kind == "genes":
        d = int(rest[1])
        make = {"poisson": dfd.models.PoissonGraphical, "cmp": dfd.models.ConwayMaxwellPoissonGraphical}[rest[0]]
        return make(d), genes(d), {"loss": "ratio"}
    if kind == "counts":  # as many columns as nobody has genes of
        d = int(rest[0])
        rng = np.random.default_rng(0)
        return dfd.models.PoissonGraphical(d), rng.poisson(rng.gamma(2.0, 1.0, (880, d))), {"loss": "ratio"}
    if kind == "regression":
        rng, n = np.random.default_rng(3), int(rest[1])
        x, group = rng.normal(size=n), rng.integers(0, 3, n)
        rows = {
            "y": rng.poisson(np.exp(0.5 + 0.3 * x + 0.2 * group)),
            "x": x,
            "group": np.array(["a", "b", "c"])[group],
        }
        return rest[0], rows, {"formula": "y ~ x + group"}
    if kind == "missing":
        model, rows = network(int(rest[0]), int(rest[1]))
        rows = rows.astype(float)
        rows[np.random.default_rng(4).random(rows.shape) < 0.05] = np.nan
        return model, rows, {"loss": "pseudo", "missing": "impute"}
    if kind == "graph":
        rng, n = np.random.default_rng(5), int(rest[0])
        pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 4.0 / n]
        return dfd.models.RandomGraph("edges + gwesp(0.25)"), pairs, {}
    if kind == "map":
        rng, n = np.random.default_rng(6), int(rest[0])
        row, column = np.divmod(np.arange(n * n), n)
        x = rng.normal(size=n * n)
        seen = np.where(rng.random(n * n) < 1.0 / (1.0 + np.exp(-x)), "yes", "no")
        return "autologistic", {"row": row, "column": column, "x": x, "seen": seen}, {
            "formula": "seen ~ x", "options": {"at": ["row", "column"]},
        }  # fmt: skip
    return *network(int(rest[0]), int(rest[1])), {"loss": "pseudo"}


def measure(name):
    """Fits of a case in this process, and what they cost."""
    import inspect

    import arviz_stats

    import dfdbayes as dfd

    warnings.simplefilter("ignore")
    model, data, settings = case(name)
    if "check" in inspect.signature(dfd.fit).parameters:
        settings = settings | {"check": False}
    if isinstance(data, np.ndarray) and not np.isnan(data.astype(float)).any():
        data = dfd.Dataset.of(data)
    seconds, fits = [], []
    for seed in (0, 1, 2):
        if len(fits) == 2 and fits[0].model.space.size > 1000:  # two take long enough
            break
        began = time.perf_counter()
        fits.append(dfd.fit(model, data, seed=seed, progress=False, **settings))
        seconds.append(time.perf_counter() - began)
    best = 1 + int(np.argmin(seconds[1:]))
    fit = fits[best]
    few = list(fit.posterior.data_vars)
    draws = np.concatenate([fit.posterior[v].values.reshape(*fit.posterior[v].shape[:2], -1) for v in few], axis=2)
    some = np.linspace(0, draws.shape[2] - 1, min(draws.shape[2], 200)).astype(int)
    ess = min(
        float(arviz_stats.ess(np.ascontiguousarray(draws[..., j]), method="bulk"))
        for j in some
        if np.ptp(draws[..., j])
    )
    return {
        "parameters": fit.model.space.size, "cold": seconds[0], "warm": seconds[best], "stages": fit.timings["seconds"],
        "ess": ess, "sampler": fit.settings["sampler"],
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }  # fmt: skip


def numpyro(name):
    """Effective draws a second of NumPyro's NUTS on the same posterior, a second run counting."""
    import jax
    from numpyro.infer import MCMC, NUTS

    import dfdbayes as dfd
    from dfdbayes.core import mixing
    from dfdbayes.core import samplers as sampling
    from dfdbayes.core.posterior import beyond, posterior

    warnings.simplefilter("ignore")
    model, data, settings = case(name)
    objective = dfd.objective(model, data, settings.get("loss", "dfd"))
    wide, around = beyond(objective, dfd.minimise(objective))
    log_density, inputs, start = posterior(wide, dfd.calibrate(wide, minimum=around), around)
    centre = sampling.centre(log_density, inputs, start)
    kernel = NUTS(
        potential_fn=lambda z: -log_density(z, inputs), dense_mass=True,
        inverse_mass_matrix=centre.factor @ centre.factor.T,
    )  # fmt: skip
    sampler = MCMC(kernel, num_warmup=500, num_samples=250, num_chains=4, chain_method="vectorized", progress_bar=False)
    starts = sampling.base.scattered(log_density, inputs, centre, 4, np.random.default_rng(0))
    for seed in (0, 1):
        began = time.perf_counter()
        sampler.run(jax.random.key(seed), init_params=jax.numpy.asarray(starts))
        draws = np.asarray(sampler.get_samples(group_by_chain=True))
        seconds = time.perf_counter() - began
    return {"rate": float(mixing.bulk_size(log_density.fold(draws)).min()) / seconds}


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
            dfd.fit(model, data, seed=seed, check=False, progress=False, **settings)
            times.append(time.perf_counter() - began)
        return min(times[1:])

    cmp = dfd.models.ConwayMaxwellPoisson()
    sizes = [2000, 20_000, 200_000, 2_000_000]
    data = {n: dfd.simulate(cmp, {"rate": 4.0, "nu": 0.75}, n, seed=0).rows for n in sizes}
    found["CMP after the pass, n"] = sizes, [second(cmp, data[n]) for n in sizes]
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
    found["Poisson graphical d = 5, n"] = sizes, [second(graph, rows[:n]) for n in sizes]
    sizes = [5, 10, 20, 40]
    found["Ising network n = 1000, d"] = sizes, [second(*network(d, 1000)) for d in sizes]
    sizes = [200, 400, 800, 1600, 3200]
    model, x = network(8, 500)
    settings = {"loss": "pseudo", "calibration": "gpc", "sampler": "laplace"}
    found["Ising network d = 8, bootstrap fits B"] = sizes, [second(model, x, bootstrap=b, **settings) for b in sizes]
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
    ours = best(lambda: jax.block_until_ready(many(theta, objective.terms, weights)), 20) / times
    x, w = np.asarray(objective.terms.s), np.random.default_rng(1).normal(0, 0.01, (10, 10))
    u = w @ x

    def plain():
        for _ in range(100):
            np.exp(u), np.exp(u), w @ x, u @ x.T

    return ours, best(plain, 20) / 100


NAMES = [
    "cmp 2000", "cmp 2000000", "ising dfd", "ising ratio", "ising pseudo", "ising ksd", "genes poisson 10",
    "genes cmp 10", "genes poisson 40", "network 15 2000", "network 30 10000", "network 60 5000", "counts 100",
    "regression poisson 5000", "regression cmp 5000", "missing 10 1000", "graph 60", "map 20",
]  # fmt: skip
COMPARED = ("cmp 2000", "genes cmp 10")  # with NumPyro: the others would take it too long


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
    if len(sys.argv) > 2 and sys.argv[1] in ("--one", "--numpyro"):
        print(json.dumps((measure if sys.argv[1] == "--one" else numpyro)(sys.argv[2])))
        return
    wanted, before = sys.argv[1:], None
    if "--before" in wanted:
        place = wanted.index("--before")
        before = wanted[place + 1]
        del wanted[place : place + 2]
    named = [name for name in NAMES if name in wanted]
    if "cases" in wanted or named or not wanted:
        write("suite.md", cases(before, named or NAMES))
    if "growth" in wanted or not wanted:
        write("growth.md", grown())


def write(name, text):
    (HERE / "results" / name).write_text(text)
    print(text)


def apart(flag, name, source=None):
    """What a process of its own prints; None where it fails or takes too long."""
    environment = os.environ | ({} if source is None else {"PYTHONPATH": str(Path(source).resolve())})
    try:
        out = subprocess.run(
            [sys.executable, __file__, flag, name], capture_output=True, text=True, check=True, env=environment,
            timeout=LONGEST if source or flag == "--numpyro" else None,
        )  # fmt: skip
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
        print(name, type(problem).__name__, str(getattr(problem, "stderr", ""))[-300:], flush=True)
        return None
    return json.loads(out.stdout.strip().splitlines()[-1])


def cases(before, names):
    """The page: a line for each case, those of other cases staying as they are."""
    kept = HERE / "results" / "suite.md"
    known = {line.split(" | ")[0].strip("| "): line for line in kept.read_text().splitlines()} if kept.is_file() else {}
    names = [n for n in names if "genes" not in n or "DFDBAYES_DATA" in os.environ]
    stages = ("read", "tabulate", "minimise", "calibrate", "sample", "summarise")
    head = [
        "| case | parameters | first fit, s | later fit, s | " + " | ".join(stages) + " | sampler | min. bulk ESS "
        "| ESS a second | peak memory, GiB | before: later fit, s | its ESS | ratio of ESS a second "
        "| NumPyro's NUTS: ESS a second, sampling alone |",
        "|---" * (len(stages) + 12) + "|",
    ]
    for name in names:
        f = apart("--one", name)
        if f is None:
            known[name] = f"| {name} | no answer" + " |" * (len(stages) + 11)
            continue
        split = " | ".join(f"{f['stages'][s]:.2f}" for s in stages)
        rate, other = f["ess"] / f["warm"], None
        if before is not None:
            other = apart("--one", name, before)
        past = (
            " |  | "
            if other is None
            else (f"{other['warm']:.2f} | {other['ess']:.0f} | {rate * other['warm'] / other['ess']:.1f}")
        )
        theirs = apart("--numpyro", name) if name in COMPARED else None
        known[name] = (
            f"| {name} | {f['parameters']} | {f['cold']:.1f} | {f['warm']:.2f} | {split} | {f['sampler']} "
            f"| {f['ess']:.0f} | {rate:.0f} | {f['memory']:.2f} | {past} "
            f"| {'' if theirs is None else round(theirs['rate'])} |"
        )
        print(known[name], flush=True)
    lines = [*head, *(known[name] for name in NAMES if name in known)]
    heading = (
        "Made by `python benchmarks/suite.py --before OTHER/src cases`, data seeds 0, 1 and 8, on two cores; fits with "
        "no options but the loss, without checks. 1000 lattices of 10 x 10 are named by their loss; `network d n` are "
        "Ising networks of d binary columns, by the pseudo-likelihood; `genes` are count graphs on columns of the gene "
        "data by ratio matching, `counts 100` on 100 simulated columns of 880 rows. Regressions have a number and a "
        "factor, `missing` is a network with 5 % of its entries missing, `graph` and `map` are one observation. "
        "Before: the package of the folder "
        "named, at its own defaults (draws, bootstrap); the smallest effective size is over at most 200 parameters."
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
