"""The traced objective is the objective: same value and gradient, under jit, for every loss and both spellings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dfdbayes as dfd

COUNTS = [0, 1, 1, 2, 2, 2, 3, 3, 4, 6]
ANSWERS = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 1]])


@pytest.mark.parametrize("loss", [name for name in dfd.losses.names() if name != "robust"])  # which fit completes
def test_value_and_gradient_agree_under_jit(loss):
    theta = {"rate": 2.0, "nu": 0.8}
    made = dfd.objective(dfd.models.ConwayMaxwellPoisson(), COUNTS, loss)
    value, slope = jax.jit(jax.value_and_grad(made.traced))(theta)  # the very first call is traced
    again = dfd.objective(dfd.models.ConwayMaxwellPoisson(), COUNTS, loss)
    assert float(value) == pytest.approx(again(theta), rel=1e-12)
    assert [float(slope[name]) for name in theta] == pytest.approx(again.gradient(theta), rel=1e-10)
    assert made(theta) == pytest.approx(again(theta), rel=1e-12)  # the table holds arrays, not tracers


@pytest.mark.parametrize("loss", ["likelihood", "dfd"])
def test_gradients_of_few_terms_are_those_of_all_at_once(loss, monkeypatch):
    made = dfd.objective(dfd.models.ConwayMaxwellPoisson(), COUNTS, loss)
    one_at_a_time = made.unit_gradients([2.0, 0.8])
    monkeypatch.setattr("dfdbayes.core.objective.FEW_DERIVATIVES", 0)
    np.testing.assert_allclose(one_at_a_time, made.unit_gradients([2.0, 0.8]), rtol=1e-12, atol=1e-13)


def test_arrays_by_name_are_the_flat_vector():
    objective = dfd.objective(dfd.models.IsingNetwork(3), ANSWERS, "ratio")
    flat = np.linspace(-0.5, 0.5, 6)
    named = {"intercept": flat[:3], "interaction": flat[3:]}
    assert float(objective.traced(named)) == pytest.approx(objective(flat), rel=1e-12)
    assert float(jax.jit(objective.traced)(flat)) == pytest.approx(objective(flat), rel=1e-12)
    many = jax.vmap(objective.traced)(jnp.stack([flat, 2 * flat]))
    assert np.asarray(many) == pytest.approx([objective(flat), objective(2 * flat)], rel=1e-12)


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ({"intercept": 0.0}, "parameters are intercept, interaction"),
        ({"intercept": np.zeros(2), "interaction": 0.0}, "shape"),
    ],
)
def test_wrong_names_and_shapes_are_refused(theta, message):
    objective = dfd.objective(dfd.models.IsingNetwork(3), ANSWERS, "ratio")
    with pytest.raises(dfd.errors.ModelError, match=message):
        objective.traced(theta)
