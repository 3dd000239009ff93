import os
from pathlib import Path

# What one process of the tests compiles the others need not; set before JAX is imported, and inherited by commands.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import jax
import pytest

import dfdbayes

jax.config.update("jax_numpy_rank_promotion", "raise")
dfdbayes.fit.__kwdefaults__["check"] = False  # most tests look elsewhere; those of the checks ask for them


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Data that are not part of the package: beside the project, or where the variable says."""
    folder = Path(os.environ.get("DFDBAYES_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"needs the data in {folder.name}; set DFDBAYES_DATA to their folder")
    return folder
