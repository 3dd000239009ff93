import os
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import dfdbayes as dfd
from dfdbayes.core.parameters import Parameter, Space
from dfdbayes.core.priors import Mirrored, Ordered, describe_prior, quantiles

SPACE = Space(
    (
        Parameter("real", dist.Normal(0.0, 1.0), shape=(2,)),
        Parameter("positive", dist.Gamma(2.0, 1.0)),
        Parameter("share", dist.Beta(2.0, 2.0)),
        Parameter("below", dist.Normal(0.0, 1.0), upper=3.0),
        Parameter("inside", dist.Uniform(-1.0, 4.0)),
        Parameter("edge", dist.HalfNormal(1.0), shape=(2,), labels=("a", "b"), closed=True),
    )
)
THETA = np.array([-1.2, 0.4, 2.5, 0.3, -5.0, 3.1, 0.7, 1.6])


def test_coordinates_go_there_and_back():
    for forward, backward in ((SPACE.from_z, SPACE.to_z), (SPACE.from_y, SPACE.to_y)):
        np.testing.assert_allclose(forward(backward(THETA)), THETA, rtol=1e-14)
        np.testing.assert_allclose(np.asarray(forward(jnp.asarray(backward(THETA)))), THETA, rtol=1e-13)
    assert (SPACE.to_y(THETA)[-2:] == THETA[-2:]).all()  # closed supports are left as they are
    assert SPACE.edges[0][-1] == 0.0 and SPACE.edges[0][0] == -np.inf


def test_log_jacobian_is_the_determinant():
    z = jnp.asarray(SPACE.to_z(THETA))
    determinant = np.linalg.slogdet(np.asarray(jax.jit(jax.jacobian(SPACE.from_z))(z)))[1]
    assert float(SPACE.log_jacobian(z)) == pytest.approx(determinant, rel=1e-12)


def test_slopes_are_derivatives():
    roots = Space((*SPACE.parameters, Parameter("root", dist.HalfNormal(1.0), square=True)))
    z = np.append(SPACE.to_z(THETA), [-0.4])
    y = np.append(SPACE.to_y(THETA), [0.8])
    for path, slopes, at in ((roots.from_y, roots.slopes_of_y, y), (roots.y_of_z, roots.slopes_to_y, z)):
        first = jax.jit(jax.jacobian(path))
        np.testing.assert_allclose(np.diag(slopes(at)[0]), first(jnp.asarray(at)), rtol=1e-12, atol=1e-15)
        second = np.einsum("iii->i", jax.jit(jax.jacobian(first))(jnp.asarray(at)))
        np.testing.assert_allclose(slopes(at)[1], second, rtol=1e-12, atol=1e-14)


def test_priors_enter_compiled_code_in_one_order(monkeypatch):
    """That of NumPyro depends on the process, and a process must be able to use what another has compiled."""
    priors = [
        dist.TransformedDistribution(dist.StudentT(3.0, 0.5, 2.0), dist.transforms.AffineTransform(1.0, 4.0)),
        Mirrored(dist.Gamma(2.0, 5.0), 0.0, 1),
        dist.MixtureGeneral(dist.Categorical(np.array([0.3, 0.7])), [dist.Normal(-1.0, 2.0), dist.Cauchy(1.5, 0.3)]),
    ]
    found = []
    for turn in (1, -1):
        names = dist.Distribution.gather_pytree_data_fields.__func__
        ordered = classmethod(lambda cls, turn=turn, names=names: tuple(sorted(names(cls)))[::turn])
        with monkeypatch.context() as patch:
            patch.setattr(dist.Distribution, "gather_pytree_data_fields", ordered)
            each = [Ordered.of(prior) for prior in priors]
            for own, prior in zip(each, priors, strict=True):
                assert float(own.log_prob(0.7)) == float(prior.log_prob(0.7))
            found.append([np.concatenate([np.ravel(value) for value in own.values]) for own in each])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_log_prior_sums_over_entries():
    expected = sum(
        float(jnp.sum(prior.log_prob(value)))
        for prior, value in [
            (dist.Normal(0.0, 1.0), THETA[:2]), (dist.Gamma(2.0, 1.0), THETA[2]), (dist.Beta(2.0, 2.0), THETA[3]),
            (dist.Normal(0.0, 1.0), THETA[4]), (dist.Uniform(-1.0, 4.0), THETA[5]), (dist.HalfNormal(1.0), THETA[6:]),
        ]
    )  # fmt: skip
    assert float(SPACE.log_prior(jnp.asarray(THETA), SPACE.priors)) == pytest.approx(expected)


def test_names_of_entries():
    assert SPACE.names == ("real[0]", "real[1]", "positive", "share", "below", "inside", "edge[a]", "edge[b]")


def test_priors_are_replaced_by_name_and_supports_follow():
    model = dfd.models.ConwayMaxwellPoisson().with_priors({"nu": dist.Uniform(0.1, 2.0)})
    assert model.space.upper.tolist() == [np.inf, 2.0]
    assert model.with_priors({"nu": dist.Normal(1.0, 1.0)}).space.lower.tolist() == [0.0, 0.0]
    assert describe_prior(model.space.priors["rate"]) == "LogNormal(loc=0, scale=5)"
    with pytest.raises(dfd.errors.ModelError, match="no parameter 'theta3'"):
        model.with_priors({"theta3": dist.Normal(0.0, 1.0)})


@pytest.mark.parametrize(
    ("prior", "match"),
    [
        (3.0, "NumPyro distribution"),
        (dist.Poisson(3.0), "discrete"),
        (dist.Dirichlet(jnp.ones(3)), "lives on"),
        (dist.Uniform(-3.0, -1.0), "no mass"),
        (dist.Normal(jnp.zeros(3), 1.0), "shape"),
    ],
)
def test_impossible_priors_are_refused(prior, match):
    with pytest.raises(dfd.errors.ModelError, match=match):
        dfd.models.Poisson().with_priors({"rate": prior})


def test_a_slip_in_a_mass_function_is_reported_where_the_model_is_made():
    with pytest.raises(dfd.errors.ModelError, match="cannot be evaluated"):
        dfd.Model(lambda theta, x: theta["rate"] * x[0], dfd.Counts(1), {"speed": dist.Normal(0.0, 1.0)})
    with pytest.raises(dfd.errors.ModelError, match="one number"):
        dfd.Model(lambda theta, x: theta["a"] * x, dfd.Counts(2), {"a": dist.Normal(0.0, 1.0)})


def test_roots_are_folded_onto_one_sign_and_nothing_else_is():
    space = dfd.models.ConwayMaxwellPoissonGraphical(2, prior="squared").space
    z = np.array([-0.5, 0.3, -0.2, 0.4, -0.9])  # two intercepts, one interaction, two nu
    assert space.fold(z).tolist() == [-0.5, 0.3, 0.2, 0.4, 0.9]
    np.testing.assert_array_equal(space.from_z(z), space.from_z(space.fold(z)))
    assert (SPACE.fold(SPACE.to_z(THETA)) == SPACE.to_z(THETA)).all()


@pytest.mark.parametrize(
    ("prior", "frozen"),
    [
        (dist.Normal(1.0, 2.0), stats.norm(1.0, 2.0)),
        (dist.LogNormal(0.3, 0.7), stats.lognorm(0.7, scale=np.exp(0.3))),
        (dist.HalfNormal(2.0), stats.halfnorm(scale=2.0)),
        (dist.Gamma(2.0, 3.0), stats.gamma(2.0, scale=1 / 3.0)),
        (dist.Chi2(3.0), stats.chi2(3.0)),
        (dist.Beta(2.0, 5.0), stats.beta(2.0, 5.0)),
        (dist.Uniform(-1.0, 4.0), stats.uniform(-1.0, 5.0)),
        (dist.Exponential(2.0), stats.expon(scale=0.5)),
        (dist.Laplace(1.0, 2.0), stats.laplace(1.0, 2.0)),
        (dist.Cauchy(1.0, 2.0), stats.cauchy(1.0, 2.0)),
        (dist.HalfCauchy(2.0), stats.halfcauchy(scale=2.0)),
        (dist.StudentT(4.0, 1.0, 2.0), stats.t(4.0, 1.0, 2.0)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_quantiles_of_priors_are_those_of_their_distributions(prior, frozen):
    levels = [0.001, 0.05, 0.16, 0.5, 0.84, 0.95, 0.999]
    np.testing.assert_allclose(quantiles(prior, levels)[:, 0], frozen.ppf(levels), rtol=1e-12, atol=1e-15)


@pytest.mark.daily("1")
@pytest.mark.parametrize("seed", ["0", "1", "2"])  # shuffles sets of names, one of them otherwise than here
def test_priors_mean_the_same_in_another_process(tmp_path, seed):
    """Parameters that were used here and sent to a worker: NumPyro's order of values depends on the process."""
    here = float(SPACE.log_prior(THETA, SPACE.prior_values))
    (tmp_path / "space").write_bytes(pickle.dumps((SPACE, THETA)))
    there = (
        "import pickle, dfdbayes; space, theta = pickle.load(open('space', 'rb'));"
        "print(repr(float(space.log_prior(theta, space.prior_values))))"
    )
    environment = os.environ | {"PYTHONHASHSEED": seed}
    words = [sys.executable, "-c", there]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment)
    assert float(ended.stdout) == pytest.approx(here, rel=1e-12)


def test_priors_that_one_parameter_cannot_have():
    uneven = dist.Uniform(jnp.array([0.1, 0.1]), jnp.array([4.6, 10.0]))
    for prior in (dist.Delta(1.0), dist.Normal(0, 1).mask(False), uneven, dist.Normal,
                  dist.ImproperUniform(dist.constraints.real, (), ()).expand([2])):  # fmt: skip
        with pytest.raises(dfd.errors.ModelError):
            dfd.Parameter("m", prior, shape=(2,) if prior is uneven else ())
