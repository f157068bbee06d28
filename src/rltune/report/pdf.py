"""The page as a PDF, printed by a Chromium that is on the machine."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from rltune.errors import DataError, RLTuneError
from rltune.files import atomic_write

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""What the program may be called."""
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --no-pdf-header-footer "
    "--generate-pdf-document-outline"
).split()
PATIENCE_S = 300


def find_chromium() -> str | None:
    """Path of a Chromium or Chrome, or None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def print_page(page: Path, target: Path) -> Path:
    """Print a page to a PDF and return its path.

    Raises DataError where there is no such page, RLTuneError where there is no Chromium or it does not print.
    """
    if not page.is_file():
        raise DataError(f"{page}: no such page; make it first with: make report")
    program = find_chromium()
    if program is None:
        raise RLTuneError(
            f"no Chromium found to print with (looked for {', '.join(NAMES)}); install one, for instance "
            "with: apt-get install chromium; or open the page in any browser and print it from there"
        )
    with tempfile.TemporaryDirectory() as folder, atomic_write(target) as path:
        command = [program, *OPTIONS, f"--user-data-dir={folder}", f"--print-to-pdf={path}", page.resolve().as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise RLTuneError(f"{program} did not print {page} within {PATIENCE_S} s") from None
        if done.returncode or not Path(path).is_file() or not Path(path).stat().st_size:
            raise RLTuneError(
                f"{program} did not print {page} (exit status {done.returncode}): {done.stderr.strip()[-400:]}"
            )
    return target
