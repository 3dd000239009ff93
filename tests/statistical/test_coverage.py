"""Coverage: of a posterior whose coverage is known, its bookkeeping, and what the adjustment mends."""

import json

import numpy as np
import numpyro.distributions as dist
import pytest

import dfdbayes as dfd

POISSON = dfd.models.Poisson()


@pytest.mark.slow
def test_standard_bayes_covers_as_it_should():
    """200 data sets, n = 200: the exact posterior's coverage is nominal to about 1 / n.

    Binomial error at 95 %: 1.5 points; the limits are 4 of them, a false alarm in 1 of 10^4.
    """
    found = dfd.coverage(
        POISSON, {"rate": 3.0}, 200, replicates=200, loss="likelihood", sampler="laplace", progress=False
    )
    assert found.replicates == 200 and found.failures == {}
    for level in (0.5, 0.8, 0.9, 0.95):
        assert abs(found.marginal["rate"][level] - level) < 4 * np.sqrt(level * (1 - level) / 200) + 0.005
        assert abs(found.joint[level] - found.marginal["rate"][level]) < 0.06  # one parameter: nearly the same region
    assert found.table.loc["joint", 0.95] == found.joint[0.95]


@pytest.mark.slow
def test_an_uncalibrated_loss_does_not():
    """beta = 1 for the discrete Fisher divergence: the intervals are far too wide or too narrow, and it is seen."""
    found = dfd.coverage(POISSON, {"rate": 3.0}, 200, replicates=100, beta=20.0, sampler="laplace", progress=False)
    assert found.marginal["rate"][0.95] < 0.6


def test_finished_replicates_are_kept(tmp_path):
    path = tmp_path / "coverage.jsonl"
    settings = {"loss": "ratio", "sampler": "laplace", "bootstrap": 50, "progress": False}
    whole = dfd.coverage(POISSON, {"rate": 3.0}, 100, replicates=12, **settings)
    dfd.coverage(POISSON, {"rate": 3.0}, 100, replicates=5, path=path, **settings)
    with path.open("a") as lines:
        lines.write('{"replicate": 5, "tai')  # a line cut off in the middle
    again = dfd.coverage(POISSON, {"rate": 3.0}, 100, replicates=12, path=path, **settings)
    assert again == whole
    kept = [json.loads(line)["replicate"] for line in path.read_text().splitlines() if line.endswith("}")]
    assert sorted(kept) == list(range(12))


def test_failures_are_counted_not_hidden():
    """Five counts a data set: many have no calibration; they are counted by reason."""
    found = dfd.coverage(
        dfd.models.ConwayMaxwellPoisson(), {"rate": 4.0, "nu": 1.25}, 12, replicates=12, loss="dfd", sampler="laplace",
        progress=False,
    )  # fmt: skip
    assert sum(found.failures.values()) + found.replicates == 12
    assert set(found.failures) <= {"MinimiserError", "CalibrationError"} and found.failures


@pytest.mark.slow
def test_a_misspecified_model_is_judged_by_its_target():
    """Negative binomial data in a Poisson model: the target is the minimiser of the expected loss."""
    from scipy import stats

    law = stats.nbinom(6, 0.6)
    x = np.arange(200)
    target = dfd.minimise(dfd.objective(POISSON, dfd.Dataset.of(x, weights=law.pmf(x)), "ratio")).theta

    def source(seed):
        return law.rvs(300, random_state=seed)

    found = dfd.coverage(
        POISSON, target, 300, replicates=200, source=source, loss="ratio", sampler="laplace", progress=False
    )
    assert abs(found.marginal["rate"][0.95] - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 200) + 0.01


def test_nonsense_is_refused():
    with pytest.raises(dfd.errors.SettingError, match="between 0 and 1"):
        dfd.coverage(POISSON, {"rate": 3.0}, 100, levels=(95,))
    with pytest.raises(dfd.errors.SettingError, match="at least one replicate"):
        dfd.coverage(POISSON, {"rate": 3.0}, 100, replicates=0)


def test_replicates_of_different_runs_are_not_mixed(tmp_path):
    path = tmp_path / "coverage.jsonl"
    settings = {"sampler": "laplace", "bootstrap": 20, "progress": False, "path": path}
    dfd.coverage(POISSON, {"rate": 3.0}, 100, replicates=2, **settings)
    before = path.read_text()
    for change in ({"loss": "ratio"}, {"prior": {"rate": dist.Gamma(2.0, 1.0)}}, {"seed": 7}):
        with pytest.raises(dfd.errors.SettingError, match=rf"another run \(it differs in {next(iter(change))}\)"):
            dfd.coverage(POISSON, {"rate": 3.0}, 100, replicates=2, **(settings | change))
    assert path.read_text() == before
