import gc
import os
import sys
import warnings
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

# What one process of the tests compiles the others need not; set before JAX is imported, and inherited by commands.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# Small runs: compiling is most of their time, and the older emitters compile twice as fast.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # commands of the package start a hundred times

import jax
import numpy as np
import pandas as pd
import pytest
from _pytest.doctest import DoctestModule
from xdist.scheduler import LoadScopeScheduling

import dfdbayes
from dfdbayes import cli

ROOT = Path(__file__).parents[1]
QUICK = {"sampler": "laplace", "bootstrap": 60, "draws": 100, "progress": False}

sys.dont_write_bytecode = False
gc.set_threshold(200_000, 20, 1000)  # what is compiled stays; looking through all of it often takes a tenth of the time
jax.config.update("jax_numpy_rank_promotion", "raise")
dfdbayes.fit.__kwdefaults__["check"] = False  # most tests look elsewhere; those of the checks ask for them


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Examples are those of the package; docstrings of tests have none."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a test that names daily cases the others are slow."""
    seen = {}
    for item in items:
        wanted = item.get_closest_marker("daily")
        if wanted is not None:
            case = item.callspec.id
            met = [pattern for pattern in wanted.args if fnmatchcase(case, pattern)]
            seen.setdefault((item.function, wanted.args), set()).update(met)
            if not met:
                item.add_marker(pytest.mark.slow)
    for (function, patterns), met in seen.items():
        if met and met < set(patterns) and not any("::" in word for word in sys.argv):
            raise pytest.UsageError(f"{function.__name__} has no case {', '.join(set(patterns) - met)}")


class ByFile(LoadScopeScheduling):
    """Tests of one file share a process and what it compiles, and so do the files that share fits.

    pytest-xdist 3.8 writes the groups of ``--dist loadgroup`` where pytest 9.2 no longer reads them.
    """

    def _split_scope(self, nodeid):
        return scope_of(nodeid.partition("::")[0])


@cache
def scope_of(file):
    """The file, or one name for all files with the fits of small_fits.py."""
    return "small fits" if "\nimport small_fits\n" in (ROOT / file).read_text() else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Data that are not part of the package: beside the project, or where the variable says."""
    folder = Path(os.environ.get("DFDBAYES_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"needs the data in {folder.name}; set DFDBAYES_DATA to their folder")
    return folder


@pytest.fixture
def call(monkeypatch, capsys):
    """The command in this process: (exit code, standard output, standard error)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dfdbayes", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return ended.value.code or 0, out, err

    return run


@pytest.fixture
def quick():
    """A fit in a fraction of a second, its warnings kept on it and not raised."""

    def fit(model, data, **settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dfdbayes.fit(model, data, **(QUICK | settings))

    return fit


@pytest.fixture
def visits(tmp_path):
    """A file with 200 counts."""
    path = tmp_path / "visits.csv"
    pd.DataFrame({"visits": np.random.default_rng(0).poisson(3.0, 200)}).to_csv(path, index=False)
    return path
