"""Results are used again only where the same numbers would come out; compiled code only where the same is computed."""

import gc
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln

import dfdbayes as dfd
from dfdbayes._util.identity import fingerprint
from dfdbayes.core import graphs
from dfdbayes.core.priors import describe_prior

X = np.random.default_rng(0).poisson(3.0, 200)

ALIKE = [  # pairs that used to print alike
    (dist.TruncatedNormal(0.0, 0.1, low=0.0), dist.TruncatedNormal(30.0, 0.1, low=0.0)),
    (dist.Normal(jnp.zeros(3), 1.0), dist.Normal(jnp.array([0.0, 0.0, 9.0]), 1.0)),
    (dist.Normal(np.zeros(20), 1.0), dist.Normal(np.arange(20.0), 1.0)),
    (dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)), dist.MultivariateNormal(jnp.zeros(2), 2 * jnp.eye(2))),
    (
        dist.TransformedDistribution(dist.Normal(0, 1), dist.transforms.AffineTransform(0, 2)),
        dist.TransformedDistribution(dist.Normal(0, 1), dist.transforms.AffineTransform(0, 3)),
    ),
    (
        dist.MixtureGeneral(dist.Categorical(jnp.array([0.5, 0.5])), [dist.Normal(0, 1), dist.Normal(3, 1)]),
        dist.MixtureGeneral(dist.Categorical(jnp.array([0.5, 0.5])), [dist.Normal(0, 1), dist.Normal(4, 1)]),
    ),
    (dist.Normal(0.0, 0.1234561), dist.Normal(0.0, 0.1234562)),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_priors_are_known_by_all_their_values(one, other):
    assert fingerprint(one) != fingerprint(other)
    assert describe_prior(one) != describe_prior(other)  # what reports show
    before = fingerprint(one)
    one.log_prob(one.sample(jax.random.key(0)))  # whatever it caches
    assert fingerprint(one) == before


def test_state_of_another_prior_is_not_used(tmp_path, quick):
    rows = np.random.default_rng(0).poisson(3.0, 100)
    for k, prior in enumerate(ALIKE[0]):
        prior = dist.TruncatedNormal(prior.base_dist.loc, 5.0, low=0.0)
        if k == 0:
            quick("poisson", rows, prior={"rate": prior}, calibration="gpc", checkpoint=tmp_path)
        else:
            with pytest.raises(dfd.errors.SettingError, match="differs in"):
                quick("poisson", rows, prior={"rate": prior}, calibration="gpc", checkpoint=tmp_path)


def test_kept_replicates_belong_to_one_model(tmp_path):
    """A 3x3 grid's replicates are not a 4x4 torus's; nor those of other priors, sources or code."""
    path = tmp_path / "kept.jsonl"
    quick = {"sampler": "laplace", "bootstrap": 30, "loss": "ratio", "progress": False, "path": path, "workers": 1}
    dfd.coverage(dfd.models.Ising(graphs.grid(3, 3)), {"temperature": 3.0}, 50, 2, **quick)
    kept = path.read_text()
    others = [
        dfd.models.Ising(graphs.grid(4, 4, periodic=True)),
        dfd.models.Ising(graphs.grid(3, 3)).with_priors({"temperature": dist.Gamma(3.0, 1.0)}),
    ]
    for model in others:
        with pytest.raises(dfd.errors.SettingError, match="replicates of another run"):
            dfd.coverage(model, {"temperature": 3.0}, 50, 2, **quick)
    with pytest.raises(dfd.errors.SettingError, match="replicates of another run"):
        dfd.coverage(
            dfd.models.Ising(graphs.grid(3, 3)), {"temperature": 3.0}, 50, 2, source=lambda seed: None, **quick
        )
    assert path.read_text() == kept
    path.write_text(kept + json.dumps({"replicate": 2}) + "\n3\n")  # lines that are no replicates
    assert dfd.coverage(dfd.models.Ising(graphs.grid(3, 3)), {"temperature": 3.0}, 50, 2, **quick).replicates == 2


SCALE = 1.0


class Shape:
    power = 1.0


def test_code_follows_what_it_refers_to(quick):
    """A global or an attribute that changes between two fits changes the second."""
    global SCALE
    rows, shape = np.random.default_rng(0).poisson(4.0, 200), Shape()

    def log_mass(theta, x):
        return SCALE * theta["rate"] * x[0] - shape.power * gammaln(x[0] + 1)

    model = dfd.Model(log_mass, dfd.Counts(1), {"rate": dist.Normal(0, 3)})
    first = quick(model, rows, loss="ratio").minimum.theta["rate"]
    SCALE = 2.0
    try:
        assert quick(model, rows, loss="ratio").minimum.theta["rate"] == pytest.approx(first / 2, rel=1e-6)
        assert np.mean(dfd.simulate(model, {"rate": first / 2}, 4000).rows) == pytest.approx(4.0, abs=0.3)
    finally:
        SCALE = 1.0
    shape.power = 0.5
    assert quick(model, rows, loss="ratio").minimum.theta["rate"] < 0.8 * first
    assert dfd.objective(model, rows)({"rate": 1.0}) != pytest.approx(_with_power_one(rows))


def _with_power_one(rows):
    model = dfd.Model(lambda t, x: t["rate"] * x[0] - gammaln(x[0] + 1), dfd.Counts(1), {"rate": dist.Normal(0, 3)})
    return dfd.objective(model, rows)({"rate": 1.0})


def test_fresh_closures_share_compiled_code(quick):
    rows = np.random.default_rng(0).poisson(4.0, 200)

    def made():
        return dfd.Model(lambda t, x: t["r"] * x[0] - gammaln(x[0] + 1), dfd.Counts(1), {"r": dist.Normal(0, 3)})

    assert made() == made() and hash(made()) == hash(made())
    quick(made(), rows)
    compiled = quick(made(), rows).timings["compiling"]
    assert sum(compiled.values()) < 0.2  # tracing the mass function, and nothing else
    gc.collect()
    before = _resident()
    for _ in range(5):
        quick(made(), rows)
    gc.collect()
    assert _resident() - before < 20e6  # it was 20 MB a fit


def _resident():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_models_that_compute_different_things_differ():
    def made(constant):
        return dfd.Model(lambda t, x: constant * t["r"] * x[0], dfd.Binary(1), {"r": dist.Normal(0, 3)})

    assert made(1.0) != made(2.0)
    assert dfd.models.Ising(graphs.grid(3, 3)) == dfd.models.Ising(graphs.grid(3, 3))
    assert dfd.models.Ising(graphs.grid(3, 3)) != dfd.models.Ising(graphs.grid(3, 3, periodic=True))


def tabulated(table, wrap):
    @wrap
    def log_mass(theta, x):
        return theta["r"] * x[0] + jnp.asarray(table)[jnp.clip(x[0].astype(int), 0, 59)]

    return dfd.Model(log_mass, dfd.Counts(1), {"r": dist.Normal(0, 2)})


def test_identity_is_the_same_in_every_process():
    """Texts hash differently from process to process; what is kept must be found again all the same."""
    code = (
        "import numpyro.distributions as d, dfdbayes as dfd\n"
        "from dfdbayes._util.identity import fingerprint\n"
        "priors = d.Normal(2, 1), d.Normal(1, 2), d.TruncatedNormal(0, 1, low=0), d.Chi2(3.0)\n"
        "seen = [*map(fingerprint, priors), dfd.models.ConwayMaxwellPoisson().identity]\n"
    )
    here: dict = {}
    exec(code, here)
    words = [sys.executable, "-c", f"import jax; jax.config.update('jax_enable_x64', True)\n{code}print(seen)"]
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    there = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
    assert there.strip() == str(here["seen"]) and len(set(map(str, here["seen"]))) == 5


@pytest.mark.parametrize("wrap", [jax.jit, lambda function: function])
def test_constants_inside_compiled_functions_count(wrap):
    one = -gammaln(np.arange(60.0) + 1)
    other = np.array(one)
    other[5] -= 0.4
    first, second = tabulated(one, wrap), tabulated(other, wrap)
    assert first != second and first == tabulated(one, wrap)
    values = [dfd.objective(model, X, "pseudo")({"r": 1.0}) for model in (first, second)]
    assert values[0] != values[1]
