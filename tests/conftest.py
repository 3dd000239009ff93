import os
from pathlib import Path

import jax
import pytest

import dfdbayes  # noqa: F401  (sets float64)

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Data that are not part of the package: beside the project, or where the variable says."""
    folder = Path(os.environ.get("DFDBAYES_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"needs the data in {folder.name}; set DFDBAYES_DATA to their folder")
    return folder
