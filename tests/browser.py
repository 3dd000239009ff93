"""What a page is to a browser: which pictures loaded, how wide it is, what the console said, and how it acts.

The network is blocked; what a page asks for outside itself is counted.
"""

import html
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

PROBE = """<script>addEventListener('load', () => { const found = JSON.stringify({
acted: (() => { ACT })() ?? null, alts: [...document.images].filter(i => !i.alt).length,
outside: performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:')),
images: [...document.images].map(i => i.complete && i.naturalWidth > 0),
wide: document.documentElement.scrollWidth, window: innerWidth});
if (parent === window) document.title = 'PROBE' + found + 'END'; else parent.postMessage(found, '*') })</script>"""
FRAME = """<!doctype html><body style='margin:0'><iframe src='probe.html' style='border:0;width:WIDTHpx;height:900px'>
</iframe><script>addEventListener('message', e => { document.title = 'PROBE' + e.data + 'END' })</script>"""


def opened(page: Path, width: int = 1200, act: str = "", framed: bool = False) -> dict:
    """Open a page in headless Chromium; without one the test says that it was skipped.

    ``act`` is a script that runs when the page is loaded; what it returns is found under "acted". A window is at least
    500 pixels wide, whatever it is told; a page that is ``framed`` may be narrower.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium (Debian's package 'chromium'), which is not installed")
    copy, frame = page.with_name("probe.html"), page.with_name("probe-frame.html")
    copy.write_text(page.read_text().replace("</body>", PROBE.replace("ACT", act) + "</body>"))
    frame.write_text(FRAME.replace("WIDTH", str(width)))
    with tempfile.TemporaryDirectory() as profile:
        flags = (
            "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
            "--disable-component-update --disable-sync --host-resolver-rules=MAP*~NOTFOUND "
            "--enable-logging=stderr --virtual-time-budget=10000 --dump-dom"
        )
        done = subprocess.run(
            [
                chromium,
                *(flag.replace("MAP*", "MAP * ") for flag in flags.split()),
                f"--user-data-dir={profile}",
                f"--window-size={width},900",
                (frame if framed else copy).resolve().as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=180,
        )
    copy.unlink()
    frame.unlink()
    found = re.search(r"PROBE(\{.*?\})END", html.unescape(done.stdout), flags=re.DOTALL)
    assert found, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(found.group(1)) | {"console": console}
