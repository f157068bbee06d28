"""The page in a real browser: no sideways scrolling at any width, no error, sorting and enlarging work."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from report_fakes import Made

WIDTHS = (360, 800, 1400)
NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), "")
pytestmark = pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")

CATCH = "<script>window.faults = []; addEventListener('error', (e) => window.faults.push(e.message));</script>"
PROBE = """<script>
const root = document.documentElement;
const out = [...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, .skip, .sr, dialog')
  && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + '.' + e.className);
const article = document.getElementById('fig12-numbers');
const buttons = [...article.querySelectorAll('th button')];
const column = article.querySelector('tbody');
const values = (i) => [...column.rows].map((r) => Number(r.cells[i].dataset.value));
const button = buttons.find((b) => b.textContent.trim() === 'RLTune (s)');
button.click(); const up = values(COLUMN); button.click(); const down = values(COLUMN);
const enlarge = document.querySelector('.enlarge');
const dialog = document.getElementById('enlarged');
enlarge.click(); const opened = dialog.open && !!dialog.querySelector('svg') && !enlarge.querySelector('svg');
dialog.addEventListener('close', () => setTimeout(() => parent.postMessage({
  width: innerWidth, scroll: root.scrollWidth, out, faults: window.faults, up, down, opened,
  back: !!enlarge.querySelector('svg'), contents: document.querySelector('.contents details').open,
  buttons: buttons.length, text: getComputedStyle(document.body).color,
}, '*'), 50));
dialog.close();
</script>"""


@pytest.fixture(scope="module")
def measured(made: Made, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("layout")
    shown = list(made.there["fig12-numbers"].artefact.columns)
    probe = PROBE.replace("COLUMN", str(shown.index("rltune_mean")))
    page = made.html.replace("<style>", CATCH + "<style>", 1).replace("</body>", probe + "</body>")
    (folder / "page.html").write_text(page, encoding="utf-8")
    frames = "".join(f'<iframe src="page.html" style="width:{w}px;height:900px;border:0"></iframe>' for w in WIDTHS)
    (folder / "probe.html").write_text(
        f"<!doctype html><pre id=o></pre>{frames}<script>const all = [];"
        "addEventListener('message', (e) => { all.push(e.data); o.textContent = JSON.stringify(all); });</script>"
    )
    return {m["width"]: m for m in json.loads(_dump(folder / "probe.html", folder))}


def _dump(page: Path, folder: Path) -> str:
    """The text the probe has written into its page."""
    # a window that has all frames in sight: others are put to sleep
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-dev-shm-usage", f"--user-data-dir={folder / 'profile'}", "--window-size=1500,3200",
         "--virtual-time-budget=5000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )
    return html.unescape(re.search(r'<pre id="o">(.*?)</pre>', done.stdout, flags=re.DOTALL)[1])


@pytest.mark.parametrize("width", WIDTHS)
def test_layout(measured: dict[int, dict[str, Any]], width: int) -> None:
    found = measured[width]
    assert found["faults"] == []
    assert found["scroll"] <= width and found["out"] == []
    assert found["contents"] == (width >= 1088)


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_sort_and_figures_enlarge(measured: dict[int, dict[str, Any]], width: int) -> None:
    found = measured[width]
    assert found["up"] == sorted(found["up"]) and found["down"] == sorted(found["down"], reverse=True)
    assert len(set(found["up"])) > 10
    assert found["opened"] and found["back"]
