"""Fits in several threads and processes at once are the fits that one would get alone."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pages import ROOT


def test_threads_at_once(quick):
    rows = [np.random.default_rng(seed).poisson(3.0 + seed, 80) for seed in range(3)]
    alone = [quick("poisson", own).posterior["rate"].values for own in rows]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda own: quick("poisson", own).posterior["rate"].values, rows))
    for own, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.slow
def test_the_page_s_script_fits_in_spawned_processes(tmp_path):
    page = (ROOT / "docs" / "how-to" / "many-fits.md").read_text()
    script = tmp_path / "schools.py"
    script.write_text(re.search(r"```text\n(# schools.py.*?)```", page, flags=re.DOTALL)[1])
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=300)
    first, second = eval(ended.stdout)  # a list of two numbers
    assert abs(first - 2) < 0.5 and abs(second - 3) < 0.6
