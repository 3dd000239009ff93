"""What a page looks like to a browser: which pictures loaded, how wide it is, and what the console said."""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

PROBE = """<script>addEventListener('load', () => { document.title = 'PROBE' + JSON.stringify({
images: [...document.images].map(i => i.complete && i.naturalWidth > 0),
wide: document.documentElement.scrollWidth, window: innerWidth}) + 'END' })</script>"""


def opened(page: Path, width: int = 1200) -> dict:
    """Open a page in headless Chromium; without one the test says that it was skipped."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium (Debian's package 'chromium'), which is not installed")
    copy = page.with_name("probe.html")
    copy.write_text(page.read_text().replace("</body>", PROBE + "</body>"))
    with tempfile.TemporaryDirectory() as profile:
        flags = (
            "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
            "--disable-component-update --disable-sync --enable-logging=stderr --virtual-time-budget=10000 --dump-dom"
        )
        done = subprocess.run(
            [
                chromium,
                *flags.split(),
                f"--user-data-dir={profile}",
                f"--window-size={width},900",
                copy.resolve().as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=180,
        )
    copy.unlink()
    found = re.search(r"PROBE(\{.*?\})END", done.stdout)
    assert found, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(found.group(1).replace("&quot;", '"')) | {"console": console}
